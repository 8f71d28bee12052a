"""Small Gaussian data whose every assumption is known."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.diagnosis import diagnose


def gaussian_cells(count, means, covariances=None, *, seed=0, mixing=None):
    """Rows X, y, environments of Gaussian cells: counts (K, E), means (K, E, d)."""
    rng = np.random.default_rng(seed)
    count, means = np.asarray(count), np.asarray(means, dtype=float)
    d = means.shape[-1]
    X, y, environments = [], [], []
    for k, e in np.ndindex(*count.shape):
        root = np.eye(d)
        if covariances is not None:
            root = np.linalg.cholesky(np.asarray(covariances)[k, e])
        X.append(means[k, e] + rng.normal(size=(count[k, e], d)) @ root.T)
        y += [k] * count[k, e]
        environments += [e] * count[k, e]
    X = np.concatenate(X)
    return X if mixing is None else X @ mixing, np.array(y), np.array(environments)


@pytest.fixture
def cells():
    return gaussian_cells


@pytest.fixture(scope="session")
def shortcut():
    """Two classes, three environments: one direction shifts, another one shows the class."""
    means = np.zeros((2, 3, 6))
    means[..., 0] = [0.0, 2.0, 4.0]
    means[1, :, 1] = 2.0
    mixing = np.random.default_rng(1).normal(size=(6, 6))
    X, y, e = gaussian_cells(np.full((2, 3), 400), means, mixing=mixing)
    return X, y, np.array(["harbour", "meadow", "shore"])[e]


@pytest.fixture(scope="session")
def diagnosis(shortcut):
    return diagnose(*shortcut)
