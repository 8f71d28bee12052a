"""Moments summed from batches are those of the stored features."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isrlearn.core import Moments
from isrlearn.torch import TorchMoments, extract_features, torch_moments


def rows(seed=0, offset=0.0, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)) * [1.0, 0.1, 10.0, 1.0, 3.0] + offset
    return X, rng.integers(0, 3, n), rng.integers(-1, 4, n)


def assert_same(a, b, tolerance=1e-10):
    assert a.classes.tolist() == b.classes.tolist()
    assert a.environments.tolist() == b.environments.tolist()
    np.testing.assert_array_equal(a.count, b.count)
    np.testing.assert_allclose(a.mean, b.mean, rtol=tolerance)
    assert (a.scatter is None) == (b.scatter is None)
    if a.scatter is not None:
        assert a.scatter.shape == b.scatter.shape
        np.testing.assert_allclose(a.scatter, b.scatter, atol=tolerance * np.abs(b.scatter).max())
    assert (a.unlabelled is None) == (b.unlabelled is None)
    if a.unlabelled is not None:
        assert_same(a.unlabelled, b.unlabelled, tolerance)


def names(e):
    return np.where(e < 0, np.nan, e)


def summed(X, y, e, size, **options):
    sums = TorchMoments(**options)
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        sums.update(*(torch.tensor(a[part]) for a in (X, y, e)))
    return sums.moments()


@pytest.mark.parametrize("size", [1, 37, 300])
@pytest.mark.parametrize(("order", "pooled"), [(1, False), (2, False), (2, True)])
def test_streamed_is_batch(order, pooled, size):
    X, y, e = rows()
    expected = Moments.from_data(X, y, names(e), order=order, pooled=pooled)
    assert_same(summed(X, y, e, size, order=order, pooled=pooled), expected)


def test_all_environments_known():
    X, y, e = rows()
    e = abs(e)
    assert_same(summed(X, y, e, 50), Moments.from_data(X, y, e))


@pytest.mark.parametrize("pooled", [False, True])
def test_regression_targets_are_last_columns(pooled):
    X, _, e = rows()
    y = X[:, 0] - X[:, 1]
    expected = Moments.from_data(X, None, names(e), targets=y, pooled=pooled)
    assert_same(summed(X, y, e, 64, task="regression", pooled=pooled), expected)


def test_far_from_the_origin_no_digits_are_lost():
    X, y, e = rows(offset=1e6)
    near = Moments.from_data(X - 1e6, y, names(e))
    far = summed(X, y, e, 50)
    np.testing.assert_allclose(far.scatter, near.scatter, atol=1e-7 * near.scatter.max())


def test_single_precision_is_summed_in_double():
    X, y, e = rows()
    X = X.astype(np.float32)
    assert_same(summed(X, y, e, 50), Moments.from_data(X.astype(float), y, names(e)))


def test_the_features_given_are_not_changed():
    X, y, e = (torch.tensor(a) for a in rows())
    before = X.clone()
    TorchMoments().update(X, y, e)
    assert torch.equal(X, before)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_of_a_network(network, samples, loader, task):
    model, data = network(), loader(samples(task=task, unknown=True))
    features = extract_features(model, data)
    X = features.X.astype(float)
    if task == "regression":
        expected = Moments.from_data(X, None, features.environments, targets=features.y)
    else:
        expected = Moments.from_data(X, features.y, features.environments)
    assert_same(torch_moments(model, data, task=task), expected)


@pytest.mark.parametrize(
    ("y", "e", "message"),
    [
        (torch.zeros(4), torch.zeros(4).long(), "integer codes.*task='regression'"),
        (torch.zeros(3).long(), torch.zeros(4).long(), r"got shapes \(4, 2\), \(3,\) and \(4,\)"),
    ],
)
def test_targets_that_will_not_do(y, e, message):
    with pytest.raises(ValueError, match=message):
        TorchMoments().update(torch.zeros(4, 2), y, e)


def test_other_mistakes_are_named():
    sums = TorchMoments()
    with pytest.raises(ValueError, match="no batch"):
        sums.moments()
    y = e = torch.zeros(4).long()
    sums.update(torch.zeros(4, 2), y, e)
    with pytest.raises(ValueError, match="had 2 columns before and have 3 now"):
        sums.update(torch.zeros(4, 3), y, e)
    with pytest.raises(ValueError, match="NaN or infinity"):
        sums.update(torch.full((4, 2), torch.inf), y, e)
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        TorchMoments(order=3)
