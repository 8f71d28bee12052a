"""Moments summed from batches are those of the stored features."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from isrlearn.engine import cell_moments
from isrlearn.torch import extract_features, torch_moments


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
    parts = [slice(start, start + size) for start in range(0, len(X), size)]
    batches = [tuple(torch.tensor(a[part]) for a in (X, y, e)) for part in parts]
    return torch_moments(linear(X.shape[1], batches[0][0].dtype), batches, "0", **options)


def linear(d, dtype=torch.float32):
    """A network whose features are its inputs."""
    return nn.Sequential(nn.Linear(d, 1, dtype=dtype))


@pytest.mark.parametrize("size", [1, 37, 300])
@pytest.mark.parametrize("pooled", [False, True])
def test_streamed_is_batch(pooled, size):
    X, y, e = rows()
    expected = cell_moments(X, y, names(e), pooled=pooled)
    assert_same(summed(X, y, e, size, pooled=pooled), expected)


def test_all_environments_known():
    X, y, e = rows()
    e = abs(e)
    assert_same(summed(X, y, e, 50), cell_moments(X, y, e))


@pytest.mark.parametrize("pooled", [False, True])
def test_regression_targets_are_last_columns(pooled):
    X, _, e = rows()
    y = X[:, 0] - X[:, 1]
    expected = cell_moments(X, None, names(e), targets=y, pooled=pooled)
    assert_same(summed(X, y, e, 64, task="regression", pooled=pooled), expected)


def test_far_from_the_origin_no_digits_are_lost():
    X, y, e = rows(offset=1e6)
    near = cell_moments(X - 1e6, y, names(e))
    far = summed(X, y, e, 50)
    np.testing.assert_allclose(far.scatter, near.scatter, atol=1e-7 * near.scatter.max())


def test_single_precision_is_summed_in_double():
    X, y, e = rows()
    X = X.astype(np.float32)
    assert_same(summed(X, y, e, 50), cell_moments(X.astype(float), y, names(e)))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_inputs_are_not_changed(task):
    X, y, e = (torch.tensor(a) for a in rows())
    before = X.clone()
    y = y.double() if task == "regression" else y
    torch_moments(linear(5, X.dtype), [(X, y, e)], "0", task=task)
    assert torch.equal(X, before)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_of_a_network(network, samples, loader, task):
    model, data = network(), loader(samples(task=task, unknown=True))
    features = extract_features(model, data)
    X = features.X.astype(float)
    if task == "regression":
        expected = cell_moments(X, None, features.environments, targets=features.y)
    else:
        expected = cell_moments(X, features.y, features.environments)
    assert_same(torch_moments(model, data, task=task), expected)


def test_mistakes_are_named():
    X, y, e = (torch.tensor(a) for a in rows())
    network = linear(5, X.dtype)
    with pytest.raises(ValueError, match=r"integer codes.*task='regression'"):
        torch_moments(network, [(X, y.double(), e)], "0")
    with pytest.raises(ValueError, match="holds NaN or infinity"):
        torch_moments(network, [(X, y / 0, e)], "0", task="regression")
    with pytest.raises(ValueError, match="yields no batches"):
        torch_moments(network, [], "0")
