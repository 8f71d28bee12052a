"""Data on which settings differ: a shortcut that holds in training and not in a small group."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.datasets import EnvironmentData


def _shortcut(n, d=10, *, n_classes=2, n_environments=3, noise=1.0, seed=0):
    """Classes show weakly in two features; their environment strongly in two others.

    Most rows of class k are in environment k, so that the environment gives the class away.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    environments = np.where(rng.uniform(size=n) < 0.7, y, rng.integers(n_environments, size=n))
    where = 3.0 * rng.normal(size=(n_environments, 2))
    Z = noise * rng.normal(size=(n, d))
    Z[:, :2] += np.column_stack([y - 0.5 * (n_classes - 1), (y == 0) - 0.5])
    Z[:, 2:4] += where[environments]
    mixing = np.random.default_rng(100).normal(size=(d, d))
    return EnvironmentData(Z @ mixing + 3.0, np.array(list("abcde"))[y], environments)


def _regression_shortcut(n, d=8, *, n_environments=4, seed=0):
    """A target that causes two features, whose environment moves two others with it."""
    rng = np.random.default_rng(seed)
    environments = rng.integers(n_environments, size=n)
    y = rng.normal(size=n) + 0.5 * environments
    where = 3.0 * np.random.default_rng(7).normal(size=(n_environments, 2))
    Z = rng.normal(size=(n, d))
    Z[:, :2] += np.column_stack([y, -y])
    Z[:, 2:4] += where[environments]
    mixing = np.random.default_rng(100).normal(size=(d, d))
    return EnvironmentData(Z @ mixing + 3.0, y, environments)


@pytest.fixture(scope="session")
def shortcut():
    return _shortcut


@pytest.fixture(scope="session")
def regression_shortcut():
    return _regression_shortcut


@pytest.fixture(scope="session")
def data():
    return _shortcut(400)


@pytest.fixture(scope="session")
def numbers():
    return _regression_shortcut(300)
