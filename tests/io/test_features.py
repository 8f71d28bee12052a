"""Feature files: what names mean, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.datasets import make_waterbirds_like
from isrlearn.io import TableError, load_features, save_features

X = np.random.default_rng(0).normal(size=(24, 5)).astype(np.float16)
Y, PLACE, SPLIT = np.tile([0, 1], 12), np.repeat([0, 1], 12), np.arange(24) // 2 % 3
WHOLE = {"X": X, "y": Y, "environments": PLACE, "split": SPLIT}


def saved(tmp_path, **arrays):
    path = tmp_path / "features.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    "names",
    [
        ("X", "y", "environments", "split"),
        ("features", "labels", "place", "split"),
        ("embeddings", "label", "environment", "split"),
    ],
)
def test_names_of_the_arrays(tmp_path, names):
    splits = load_features(saved(tmp_path, **dict(zip(names, WHOLE.values(), strict=True))))
    for code, part in enumerate((splits.train, splits.validation, splits.test)):
        np.testing.assert_array_equal(part.X, X[code == SPLIT])
        assert part.X.dtype == np.float32
        np.testing.assert_array_equal(part.y, Y[code == SPLIT])
        np.testing.assert_array_equal(part.environments, PLACE[code == SPLIT])


def test_groups_hold_the_environment(tmp_path):
    splits = load_features(saved(tmp_path, X=X, y=Y, group=2 * Y + PLACE, split=SPLIT))
    np.testing.assert_array_equal(splits.test.environments, PLACE[SPLIT == 2])


def test_splits_may_be_named(tmp_path):
    named = np.array(["train", "val", "test"])[SPLIT]
    splits = load_features(saved(tmp_path, **{**WHOLE, "split": named}))
    np.testing.assert_array_equal(splits.validation.y, Y[SPLIT == 1])


def test_what_is_saved_comes_back(tmp_path):
    splits = make_waterbirds_like(n_features=32, random_state=1)
    again = load_features(save_features(tmp_path / "a.npz", splits))
    for part in ("train", "validation", "test"):
        for field in ("X", "y", "environments"):
            ours, theirs = (getattr(getattr(s, part), field) for s in (again, splits))
            np.testing.assert_array_equal(ours, theirs)


def test_a_failed_write_leaves_the_old_file_alone(tmp_path, monkeypatch):
    def half(file, **arrays):
        file.write(b"half")
        raise OSError("no space left")

    target = tmp_path / "features.npz"
    target.write_bytes(b"old")
    monkeypatch.setattr(np, "savez", half)
    with pytest.raises(OSError, match="no space left"):
        save_features(target, make_waterbirds_like(n_features=32, random_state=1))
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["features.npz"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": None}, r"has no features \(n, d\): 'X' or 'features' or 'embeddings' must be among"),
        ({"y": None}, "has no labels"),
        ({"environments": None}, "has no environments: 'environments' or"),
        ({"environments": None, "group": PLACE}, "'group' is not class"),
        ({"split": None}, "has no split: 'split' must be among"),
        ({"split": SPLIT + 1}, "'split' holds '3'"),
        ({"split": SPLIT * 0}, "the validation split has no samples"),
        ({"X": X[:, 0]}, r"has no features \(n, d\)"),
        ({"X": X.astype(str)}, "features must be numbers"),
        ({"X": np.full_like(X, np.nan)}, "is missing"),
        ({"y": Y[:-1]}, "one entry per sample; .* have"),
        ({"y": Y.astype(object)}, "holds Python objects"),
    ],
)
def test_bad_files(tmp_path, changes, message):
    arrays = {name: array for name, array in {**WHOLE, **changes}.items() if array is not None}
    with pytest.raises(TableError, match=message):
        load_features(saved(tmp_path, **arrays))


def test_what_is_no_archive(tmp_path):
    path = tmp_path / "features.npz"
    with pytest.raises(TableError, match="there is no such file"):
        load_features(path)
    path.write_bytes(b"hello")
    with pytest.raises(TableError, match=r"is not a \.npz archive"):
        load_features(path)
    with open(path, "wb") as file:
        np.save(file, X)
    with pytest.raises(TableError, match="save named arrays"):
        load_features(path)
