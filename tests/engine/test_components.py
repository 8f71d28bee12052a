"""Components, variances and projections from rows: those that the moments give."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.core import principal_angles, principal_components
from isrlearn.engine import (
    ArrayRows,
    cell_moments,
    column_squares,
    project,
    row_components,
)


def rows_with_decay(n, d, *, dtype=np.float64, shift=0.0, seed=0):
    """Rows whose standard deviations fall, with a gap after the tenth direction."""
    rng = np.random.default_rng(seed)
    scale = np.arange(1, d + 1) ** -0.5
    scale[10:] *= 0.3
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return ((rng.normal(size=(n, d)) * scale) @ Q + shift).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shift", [0.0, 100.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_and_moments_have_the_same_components(dtype, shift, weighted):
    X = rows_with_decay(400, 120, dtype=dtype, shift=shift)
    w = np.random.default_rng(1).integers(0, 3, 400).astype(float) if weighted else None
    moments = cell_moments(X, None, np.zeros(400, dtype=int), sample_weight=w)
    expected, variance = principal_components(moments, 10)
    found = row_components(X, 10, center=moments.total[1], weight=w)
    np.testing.assert_allclose(found.T @ found, np.eye(10), atol=1e-10)
    assert principal_angles(found, expected).max() < 5e-3
    held = np.trace(found.T @ moments.total[2] @ found) / (moments.total[0] - 1)
    assert 1 - 1e-5 < held / variance.sum() <= 1 + 1e-12


def test_sorted_rows_have_the_same_components():
    # Enough rows to begin with a sample of them; the first ones say little of the others.
    X = rows_with_decay(30_000, 60)
    X = X[np.argsort(X[:, 0])]
    moments = cell_moments(X, None, np.zeros(len(X), dtype=int))
    expected, variance = principal_components(moments, 10)
    found = row_components(X, 10, center=moments.total[1])
    assert principal_angles(found, expected).max() < 5e-3
    held = np.trace(found.T @ moments.total[2] @ found) / (len(X) - 1)
    assert 1 - 1e-5 < held / variance.sum() <= 1 + 1e-12


def test_the_same_rows_give_the_same_components():
    X = rows_with_decay(300, 64)
    a, b = (row_components(X, 5, center=X.mean(axis=0)) for _ in range(2))
    np.testing.assert_array_equal(a, b)


def test_many_rows_begin_with_a_sample_of_them():
    """One block in ten finds where to begin, and all of them the same directions as before."""
    rng = np.random.default_rng(0)
    n, d, p = 7000, 520, 2
    strong = np.linalg.qr(rng.normal(size=(d, p)))[0]
    X = rng.normal(size=(n, p)) * [30.0, 20.0] @ strong.T + rng.normal(size=(n, d))
    X = X.astype(np.float32)
    center = X.mean(axis=0, dtype=float)
    found = row_components(X, p, center=center)
    expected = np.linalg.eigh(np.cov(X.T.astype(float)))[1][:, ::-1][:, :p]
    assert principal_angles(found, expected)[0] < 1e-3


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_few_wide_rows_have_exact_components(weighted, dtype):
    X = rows_with_decay(90, 400, dtype=dtype, shift=5.0)
    w = np.random.default_rng(1).integers(1, 3, 90).astype(float) if weighted else np.ones(90)
    center = np.average(X.astype(float), axis=0, weights=w)
    Z = np.sqrt(w)[:, None] * (X - center)
    expected = np.linalg.svd(Z, full_matrices=False)[2][:20].T
    found = row_components(X, 20, center=center, weight=w if weighted else None)
    np.testing.assert_allclose(found.T @ found, np.eye(20), atol=1e-10)
    np.testing.assert_allclose(np.abs(found.T @ expected), np.eye(20), atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_squares_and_projections_are_those_of_the_rows(dtype, weighted, shift):
    X = rows_with_decay(700, 40, dtype=dtype, shift=shift)
    w = np.random.default_rng(1).integers(0, 3, 700).astype(float) if weighted else None
    moments = cell_moments(X.astype(float), None, np.zeros(700), sample_weight=w)
    _, center, scatter = moments.total
    V = np.random.default_rng(2).normal(size=(40, 3))
    tol = 1e-10 if dtype == np.float64 else 1e-4
    for rows in (X, ArrayRows(X)):
        squares, product = column_squares(rows, V, center, w)
        np.testing.assert_allclose(squares, np.diag(scatter), rtol=tol)
        np.testing.assert_allclose(product, scatter @ V, rtol=tol, atol=tol * np.trace(scatter))
        found = project(rows, V, center)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, (X - center) @ V, atol=10 * tol)
