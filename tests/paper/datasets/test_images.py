"""Idx files, and the two image data sets made of them."""

from __future__ import annotations

import gzip
import hashlib
import os
import struct

import numpy as np
import pytest

from isrlearn.paper.datasets import (
    files as data_files,
)
from isrlearn.paper.datasets import (
    load_fashion_on_photos,
    load_idx_images,
    load_mc_cmnist,
    load_rcfmnist,
    read_idx,
)
from isrlearn.paper.datasets.files import DataError, Resource
from isrlearn.paper.datasets.images import COLOURS, rotated

REAL = pytest.mark.skipif("ISRLEARN_DATA" not in os.environ, reason="ISRLEARN_DATA is not set")
CODE = {"u1": 8, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}


def idx_bytes(array: np.ndarray) -> bytes:
    kind = array.dtype.str[1:]
    head = bytes([0, 0, CODE[kind], array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(f">{kind}").tobytes()


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Data sets of a few images where MNIST's and Fashion-MNIST's are looked for."""
    rng = np.random.default_rng(0)
    known = {}
    for name in ("mnist", "fashion-mnist"):
        files = []
        for n in (600, 300):
            images = rng.integers(0, 256, (n, 28, 28), dtype=np.uint8)
            images[rng.random(images.shape) < 0.7] = 0
            for array in (images, rng.integers(0, 10, n, dtype=np.uint8)):
                data = idx_bytes(array)
                path = f"{name}/{len(files)}.gz"
                (tmp_path / name).mkdir(exist_ok=True)
                (tmp_path / path).write_bytes(gzip.compress(data, mtime=0))
                files.append(Resource(path, "http://x", hashlib.sha256(data).hexdigest()))
        known[name] = tuple(files)
    monkeypatch.setattr(data_files, "IDX_FILES", known)
    monkeypatch.setenv("ISRLEARN_DATA", str(tmp_path))


@pytest.mark.parametrize("kind", CODE)
@pytest.mark.parametrize("packed", [False, True])
def test_idx_files_come_back_as_they_were_written(tmp_path, kind, packed):
    array = np.arange(24).reshape(2, 3, 4).astype(kind)
    data = idx_bytes(array)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(data, mtime=0) if packed else data)
    read = read_idx(path)
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"is not an idx file: it begins with \(nothing\)"),
        (b"PK\3\4 and more", "begins with 50 4b 03 04"),
        (bytes([0, 0, 8, 3, 0, 0]), "ends after 6 bytes, inside its header of 16"),
        (idx_bytes(np.arange(5, dtype="u1"))[:-1], r"has 12 bytes; .* shape \(5,\) .* has 13"),
        (gzip.compress(b"0" * 99, mtime=0)[:20], "is a damaged gzip file"),
    ],
)
def test_what_is_no_idx_file_is_refused(data, message):
    with pytest.raises(DataError, match=message):
        read_idx(data)


def test_parts_of_mnist(small):
    everything, train, test = (load_idx_images(part=p)[0] for p in ("all", "train", "test"))
    assert (len(train), len(test)) == (600, 300)
    np.testing.assert_array_equal(everything, np.concatenate([train, test]))
    with pytest.raises(ValueError, match="part='validation' is unknown; use one of 'all'"):
        load_idx_images(part="validation")


def test_coloured_digits_are_their_ink_in_their_colour(small):
    splits = load_mc_cmnist(random_state=3)
    palette = dict(COLOURS)
    for part in (splits.train, splits.validation, splits.test):
        assert part.X.dtype == np.float32
        peak = part.X.max(axis=(2, 3))
        wanted = np.array([palette[name] for name in part.environments]) / 255
        np.testing.assert_allclose(peak, wanted, atol=1e-6)
        ink = part.X.max(axis=1) > 0
        np.testing.assert_array_equal(part.X, ink[:, None] * peak[:, :, None, None])
    assert [len(p.y) for p in (splits.train, splits.validation, splits.test)] == [540, 60, 300]


def test_a_digit_has_its_colour_as_often_as_it_should(small):
    names = np.array(list(COLOURS))
    splits = load_mc_cmnist(random_state=1)
    own = names[splits.train.y] == splits.train.environments
    share = splits.train.truth.correlation
    assert own[share == 1].all()
    assert 0.85 < own[share == 0.9].mean() < 0.97  # 0.9 + 0.1 / 10
    assert (names[splits.test.y] == splits.test.environments).mean() < 0.2


@pytest.mark.parametrize("load", [load_mc_cmnist, load_rcfmnist])
def test_the_seed_decides_everything(small, load):
    sizes = {} if load is load_mc_cmnist else {"n_train": 300, "n_validation": 100, "n_test": 50}
    a, b, c = (load(random_state=seed, **sizes) for seed in (1, 1, 2))
    for part in ("train", "validation", "test"):
        x, same, other = (getattr(splits, part).X for splits in (a, b, c))
        np.testing.assert_array_equal(x, same)
        assert (x != other).any()


def test_sizes_out_of_range(small):
    with pytest.raises(ValueError, match="n_samples=901 must be at most 900"):
        load_mc_cmnist(n_samples=901)
    with pytest.raises(ValueError, match="add up to 700 images; there are 600"):
        load_rcfmnist(n_train=500, n_validation=100, n_test=100)


def test_rotations_are_counter_clockwise():
    images = np.random.default_rng(0).random((3, 28, 28), dtype=np.float32)
    turned = rotated(images, np.array([0.0, 90.0, 180.0]))
    expected = [np.rot90(image, k) for k, image in enumerate(images)]
    np.testing.assert_allclose(turned, expected, atol=1e-5)
    assert turned.dtype == np.float32


def test_turned_garments_tell_their_angle_in_training_only(small):
    splits = load_rcfmnist(n_train=400, n_validation=100, n_test=100, random_state=0)
    train, test = splits.train, splits.test
    told = np.isclose(train.truth.redness, train.y)
    assert 0.7 < told.mean() < 0.9
    np.testing.assert_allclose(train.truth.redness[~told], 1 - train.y[~told])
    assert abs(np.corrcoef(test.truth.redness, test.y)[0, 1]) < 0.2
    bright = train.X[:, 0] + train.X[:, 2] > 0.1
    assert (train.X[:, 1][bright] == 0).all()
    np.testing.assert_array_equal(np.bincount(train.environments), [40] * 10)
    red = train.X[:, 0].mean(axis=(1, 2))
    assert all(
        red[train.environments == e].max() <= red[train.environments == e + 1].min()
        for e in range(9)
    )


@REAL
def test_the_real_files_are_the_published_ones():
    for name in ("mnist", "fashion-mnist"):
        images, labels = load_idx_images(name, part="test")
        assert images.shape == (10_000, 28, 28)
        assert np.bincount(labels).min() > 800


def test_garments_on_photos_are_in_the_proportions_asked_for(small):
    pytest.importorskip("PIL")
    splits = load_fashion_on_photos(n_train=100, n_validation=40, n_test=60, random_state=0)
    for part, own in ((splits.train, 0.95), (splits.validation, 0.5), (splits.test, 0.5)):
        assert part.X.dtype == np.uint8
        assert part.X.shape[1:] == (3, 96, 96)
        shirt, temple = part.y == "shirt", part.environments == "temple"
        assert shirt.mean() == pytest.approx(0.77, abs=0.02)
        assert temple[shirt].mean() == pytest.approx(own, abs=0.03)
        assert temple[~shirt].mean() == pytest.approx(1 - own, abs=0.06)
    again = load_fashion_on_photos(n_train=100, n_validation=40, n_test=60, random_state=0)
    np.testing.assert_array_equal(splits.test.X, again.test.X)
    with pytest.raises(ValueError, match="need more garments than Fashion-MNIST has"):
        load_fashion_on_photos(n_train=400, n_validation=40, n_test=60)
