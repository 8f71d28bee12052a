"""A second reading of the paper's Algorithms 1 to 4, in plain NumPy, against the estimators."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from isrlearn import ISRClassifier, ISRRegressor, ISRTransformer


def mean_directions(X, e):
    """Principal directions of the environments' means, and their variances: Algorithm 1, line 2."""
    means = np.array([X[e == j].mean(axis=0) for j in np.unique(e)])
    away = means - means.mean(axis=0)
    values, vectors = np.linalg.eigh(away.T @ away)
    return vectors[:, ::-1], values[::-1]


def algorithm_1(X, y, e, rank):
    """ISR-Mean: the means of one class, here the last."""
    last = y == np.unique(y)[-1]
    return mean_directions(X[last], e[last])[0][:, :rank]


def algorithm_2(X, y, e, rank):
    """ISR-Cov, robust form: directions of every class and pair of environments, and their mean."""
    found = []
    for k, (a, b) in product(np.unique(y), combinations(np.unique(e), 2)):
        one, other = (np.cov(X[(y == k) & (e == j)].T) for j in (a, b))
        values, vectors = np.linalg.eigh(one - other)
        found.append(vectors[:, np.argsort(-np.abs(values))[:rank]])
    return np.linalg.svd(np.hstack(found), full_matrices=False)[0][:, :rank]


def algorithm_3(X, y, e, rank):
    """ISR-Multiclass: E-1 directions of every class, stacked; their leading singular vectors."""
    E = len(np.unique(e))
    stack = [mean_directions(X[y == k], e[y == k])[0][:, : E - 1] for k in np.unique(y)]
    return np.linalg.svd(np.hstack(stack), full_matrices=False)[0][:, :rank]


def algorithm_4(X, y, e, rank):
    """ISR-Regression: the means of all rows of an environment."""
    return mean_directions(X, e)[0][:, :rank]


ALGORITHMS = {
    "mean": algorithm_1,
    "cov": algorithm_2,
    "multiclass": algorithm_3,
    "regression": algorithm_4,
}


def draw(seed, method):
    """Rows of a random shape, type, offset and unit, in which few directions shift."""
    rng = np.random.default_rng(seed)
    K, d, rank = int(rng.integers(2, 4)), int(rng.integers(7, 12)), int(rng.integers(1, 3))
    E = int(rng.integers(rank + 1, 6))
    n = int(rng.integers(40, 90)) * K * E
    y, e = np.arange(n) % K, np.arange(n) // K % E
    basis = np.linalg.qr(rng.normal(size=(d, d)))[0]
    Z = rng.normal(size=(n, d))
    Z[:, :rank] = Z[:, :rank] * (1.0 + 2.0 * e[:, None]) + 8.0 * rng.normal(size=(K, E, rank))[y, e]
    X = (Z + rng.normal(size=K)[y, None]) @ basis.T
    X = X * 10.0 ** rng.integers(-3, 4)
    X = X + 10.0 ** rng.integers(-1, 3) * X.std() * rng.normal(size=d)
    return X.astype(rng.choice(["float64", "float32"])), y, e, rank, rng.integers(1, 4, n)


def angle(A, B):
    """Sine of the largest angle between two subspaces with orthonormal bases."""
    return np.linalg.norm(A - B @ (B.T @ A), 2)


@pytest.mark.filterwarnings("ignore:covariances do not differ")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ALGORITHMS)
@pytest.mark.parametrize("seed", range(12))
def test_the_published_variant_is_the_published_algorithm(method, seed, weighted):
    X, y, e, rank, weight = draw(seed, method)
    rows = np.repeat(np.arange(len(y)), weight) if weighted else slice(None)
    expected = ALGORITHMS[method](X[rows].astype(float), y[rows], e[rows], rank)
    options = {"variant": "paper", "n_spurious": rank}
    weight = weight.astype(float) if weighted else None
    isr = ISRTransformer(method, **options).fit(X, y, e, sample_weight=weight)
    close = 1e-7 if X.dtype == np.float64 else 1e-4
    assert angle(isr.spurious_basis_, expected) < close
    if method == "regression":
        model = ISRRegressor(**options).fit(X, X[:, 0].astype(float), e, sample_weight=weight)
    else:
        model = ISRClassifier(method, **options).fit(X, y, e, sample_weight=weight)
    assert angle(model.spurious_basis_, expected) < close
    size = np.linalg.norm(model.coef_)
    assert np.abs(model.coef_ @ expected).max() < 10 * close * size


@pytest.mark.parametrize("method", ["mean", "multiclass"])
@pytest.mark.parametrize("seed", range(4))
def test_the_pooled_variant_finds_the_same_subspace_without_noise(method, seed):
    X, y, e, rank, _ = draw(seed, method)
    cells = [[(y == k) & (e == j) for j in np.unique(e)] for k in np.unique(y)]
    exact = np.array([[X[cell].mean(axis=0, dtype=float) for cell in row] for row in cells])
    shifts = exact - exact.mean(axis=1, keepdims=True)
    U = np.linalg.svd(shifts.reshape(-1, X.shape[1]), full_matrices=False)[2][:rank].T
    # The same rows about every mean, and means that shift along these directions only.
    means = exact.mean(axis=1, keepdims=True) + shifts @ U @ U.T
    noise = np.random.default_rng(seed).normal(size=(50, X.shape[1])) * X.std()
    noise -= noise.mean(axis=0)
    K, E = means.shape[:2]
    rows = (means[:, :, None] + noise).reshape(-1, X.shape[1])
    k, j = np.repeat(np.arange(K), E * 50), np.tile(np.repeat(np.arange(E), 50), K)
    pooled = ISRClassifier(method, n_spurious=rank).fit(rows, k, j)
    assert angle(pooled.spurious_basis_, U) < 1e-7
