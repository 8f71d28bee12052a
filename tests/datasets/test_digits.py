"""Digits on coloured paper."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from isrlearn.datasets import load_digits_on_paper


@pytest.fixture(scope="module")
def splits():
    return load_digits_on_paper()


def counts(data):
    """Images of each class on each paper: (odd, even) by (yellow, blue)."""
    return np.array(
        [
            [
                ((data.y == y) & (data.environments == e)).sum()
                for e in ("yellow paper", "blue paper")
            ]
            for y in ("odd", "even")
        ]
    )


def test_sizes_and_range(splits):
    for data, n in ((splits.train, 1000), (splits.validation, 297), (splits.test, 500)):
        assert data.X.shape == (n, 192)
        assert data.X.dtype == np.float64
        assert 0 <= data.X.min() < data.X.max() <= 1
        np.testing.assert_array_equal(data.y == "odd", data.truth.digit % 2 == 1)


def test_paper_goes_with_class_in_training_only(splits):
    train = counts(splits.train)
    share = np.diag(train) / train.sum(axis=1)
    np.testing.assert_allclose(share, 0.95, atol=0.5 / train.sum(axis=1).min())
    for data in (splits.validation, splits.test):
        assert abs(np.diff(counts(data), axis=1)).max() <= 1


def test_correlation_is_a_parameter():
    none = counts(load_digits_on_paper(correlation=0.5).train)
    assert abs(np.diff(none, axis=1)).max() <= 1
    full = counts(load_digits_on_paper(correlation=1.0).train)
    assert full[0, 1] == full[1, 0] == 0
    assert counts(load_digits_on_paper(correlation=1.0).test).min() > 100


def test_every_image_is_printed_once(splits, monkeypatch):
    images, digits = load_digits(return_X_y=True)
    parts = (splits.train, splits.validation, splits.test)
    drawn = np.concatenate([data.truth.digit for data in parts])
    np.testing.assert_array_equal(np.bincount(drawn), np.bincount(digits))
    # With b known, ink comes back from a picture: (x - b) / (1 - b).
    for name in ("_SHEET_DEVIATION", "_PIXEL_DEVIATION"):
        monkeypatch.setattr(f"isrlearn.datasets.digits.{name}", 0.0)
    plain = load_digits_on_paper()
    ink = []
    for data in (plain.train, plain.validation, plain.test):
        b = data.truth.paper[:, None, :]
        channels = (data.X.reshape(-1, 64, 3) - b) / (1 - b)
        np.testing.assert_allclose(channels, channels[..., :1].repeat(3, axis=2), atol=1e-12)
        ink.append(channels[..., 0])
    found = np.round(16 * np.concatenate(ink)).astype(int)
    expected = images.astype(int)
    np.testing.assert_array_equal(found[np.lexsort(found.T)], expected[np.lexsort(expected.T)])


def test_sheets_have_their_colour(splits):
    for name, rgb in (("yellow paper", (0.8, 0.75, 0.6)), ("blue paper", (0.6, 0.65, 0.8))):
        paper = splits.train.truth.paper[splits.train.environments == name]
        np.testing.assert_allclose(paper.mean(axis=0), rgb, atol=0.01)
        np.testing.assert_allclose(paper.std(axis=0), 0.05, rtol=0.15)


def test_seed_decides_everything(splits):
    same, other = load_digits_on_paper(random_state=0), load_digits_on_paper(random_state=1)
    np.testing.assert_array_equal(same.test.X, splits.test.X)
    np.testing.assert_array_equal(same.train.environments, splits.train.environments)
    assert (other.test.truth.digit != splits.test.truth.digit).any()


def test_a_plain_classifier_reads_the_paper():
    worst, average = [], []
    for seed in range(3):
        splits = load_digits_on_paper(random_state=seed)
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01, max_iter=1000))
        right = model.fit(splits.train.X, splits.train.y).predict(splits.test.X) == splits.test.y
        groups = {
            (y, e): right[(splits.test.y == y) & (splits.test.environments == e)].mean()
            for y in ("odd", "even")
            for e in np.unique(splits.test.environments)
        }
        worst.append(min(groups.values()))
        average.append(right.mean())
        assert max(groups[("odd", "blue paper")], groups[("even", "yellow paper")]) < min(
            groups[("odd", "yellow paper")], groups[("even", "blue paper")]
        )
    assert 0.15 < np.mean(worst) < 0.4
    assert 0.55 < np.mean(average) < 0.75


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"correlation": 1.5}, r"correlation=1.5 must be in \[0, 1\]"),
        ({"correlation": np.nan}, "correlation holds NaN or infinity"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        load_digits_on_paper(**parameters)
