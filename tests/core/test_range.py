"""Principal components from rows: those of the moments, and chosen where they cost less."""

from __future__ import annotations

import numpy as np
import pytest
from isrlearn.core._range import (
    CentredRows,
    prefers_rows,
    row_components,
    sketch,
    start_directions,
)

from isrlearn import ISRClassifier, ISRTransformer
from isrlearn.core import principal_angles, principal_components
from isrlearn.engine import cell_moments


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
    found = row_components(CentredRows(X, moments.total[1], w), 10)
    np.testing.assert_allclose(found.T @ found, np.eye(10), atol=1e-10)
    assert principal_angles(found, expected).max() < 5e-3
    held = np.trace(found.T @ moments.total_scatter() @ found) / (moments.total[0] - 1)
    assert 1 - 1e-5 < held / variance.sum() <= 1 + 1e-12


def test_a_sample_to_begin_with_changes_nothing(monkeypatch):
    from isrlearn.core import _range

    monkeypatch.setattr(_range, "_BLOCK_BYTES", 1)
    seen = []
    times = _range.CentredRows.scatter_times

    def spy(rows, V, every=1):
        seen.append(every)
        return times(rows, V, every)

    monkeypatch.setattr(_range.CentredRows, "scatter_times", spy)
    X = rows_with_decay(5000, 60)
    # Sorted rows: the first ones say little of the others.
    X = X[np.argsort(X[:, 0])]
    moments = cell_moments(X, None, np.zeros(5000, dtype=int))
    expected, variance = principal_components(moments, 10)
    found = row_components(CentredRows(X, moments.total[1]), 10)
    assert {1, _range._EVERY} == set(seen)
    assert principal_angles(found, expected).max() < 5e-3
    held = np.trace(found.T @ moments.total_scatter() @ found) / 4999
    assert 1 - 1e-5 < held / variance.sum() <= 1 + 1e-12


def test_the_same_rows_give_the_same_components():
    X = rows_with_decay(300, 64)
    a, b = (row_components(CentredRows(X, X.mean(axis=0)), 5) for _ in range(2))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("n", "d", "p", "rows"),
    [
        (4795, 2048, 100, True),
        (162_770, 2048, 100, True),
        (80_000, 1024, 100, False),
        (1000, 20_000, 50, True),
        (4795, 2048, None, False),
        (4795, 2048, 0.9, False),
        (4795, 256, 20, False),
        (4795, 2048, 1000, False),
    ],
)
def test_the_route_goes_by_shape(n, d, p, rows):
    assert prefers_rows(n, d, p) is rows


@pytest.mark.parametrize("settings", [{}, {"method": "cov"}, {"variant": "paper"}])
def test_both_routes_find_the_same(monkeypatch, settings):
    from isrlearn.estimators import _reading

    rng = np.random.default_rng(2)
    X = rows_with_decay(600, 60)
    y, e = rng.integers(2, size=600), rng.integers(3, size=600)
    X[:, 3] += 0.8 * e * (1 + rng.normal(size=600))
    X[:, 4] += 0.5 * y
    fits = []
    for rows in (False, True):
        monkeypatch.setattr(_reading, "prefers_rows", lambda *_, rows=rows: rows)
        classifier = ISRClassifier(n_components=10, n_spurious=1, **settings)
        transformer = ISRTransformer(n_components=10, n_spurious=1, **settings)
        classifier.fit(X, y, environments=e)
        transformer.fit(X, y, environments=e)
        assert (classifier.moments_.scatter is None) is rows
        fits.append((classifier, transformer))
    (a, ta), (b, tb) = fits
    assert principal_angles(a.spurious_basis_, b.spurious_basis_).max() < 1e-2
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=0.02)
    np.testing.assert_allclose(ta.transform(X), tb.transform(X), atol=0.02)


def test_very_wide_rows_need_no_square_matrix():
    # 40,000 features: a matrix of their products would have 12.8 GB.
    rng = np.random.default_rng(3)
    n, d = 1200, 40_000
    y, e = rng.integers(2, size=n), rng.integers(2, size=n)
    X = rng.standard_normal((n, d), dtype=np.float32) * np.float32(0.05)
    X[:, :50] += rng.standard_normal((n, 50), dtype=np.float32)
    X[:, 0] += 3 * e
    X[:, 1] += 2 * y
    found = ISRClassifier().fit(X, y, environments=e)
    assert found.n_spurious_ == 1
    assert abs(found.spurious_basis_[0, 0]) > 0.95
    assert found.score(X, y) > 0.7


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shift", [0.0, 100.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_wide_rows_need_no_square_matrix(monkeypatch, dtype, shift, n_classes):
    from isrlearn.estimators import _reading

    rng = np.random.default_rng(4)
    X = rows_with_decay(500, 600, dtype=dtype, shift=shift)
    y, e = rng.integers(n_classes, size=500), rng.integers(2, size=500)
    X[:, 3] += 0.8 * e
    X[:, 4] += 0.5 * y
    X[:, 5] = 7.0
    w = rng.integers(1, 3, 500)
    fits = []
    for wide in (True, False):
        monkeypatch.setattr(_reading, "is_wide", lambda _, wide=wide: wide)
        found = ISRClassifier(n_spurious=1, n_components=None, C=0.1, group_weight="balanced")
        found.fit(X, y, environments=e, sample_weight=w)
        assert (found.moments_.scatter is None) is wide
        fits.append(found)
    a, b = (found.decision_function(X.astype(float)) for found in fits)
    np.testing.assert_allclose(a, b, atol=1e-7 if dtype == np.float64 else 1e-3)


def test_many_rows_begin_with_a_sample_of_them():
    """One block in ten finds where to begin, and all of them the same directions as before."""
    rng = np.random.default_rng(0)
    n, d, p = 7000, 520, 2
    strong = np.linalg.qr(rng.normal(size=(d, p)))[0]
    X = rng.normal(size=(n, p)) * [30.0, 20.0] @ strong.T + rng.normal(size=(n, d))
    X = X.astype(np.float32)
    center = X.mean(axis=0, dtype=float)
    found = row_components(CentredRows(X, center), p)
    expected = np.linalg.eigh(np.cov(X.T.astype(float)))[1][:, ::-1][:, :p]
    assert principal_angles(found, expected)[0] < 1e-3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_sketch_of_enough_directions_is_the_matrix(dtype):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(60, 8)) * np.logspace(0, -1, 8)
    matrix = root @ root.T
    start = start_directions(60, 20)
    # Twelve of the directions see nothing but the products' rounding.
    vectors, values = sketch(start, (matrix.astype(dtype) @ start.astype(dtype)).astype(float))
    assert vectors.shape == (60, 8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-8)
    np.testing.assert_allclose((vectors * values) @ vectors.T, matrix, atol=1e-4 * values[-1])


def test_a_sketch_holds_the_large_directions_of_a_matrix_that_has_more():
    X = rows_with_decay(400, 120)
    scatter = X.T @ X
    start = start_directions(120, 40)
    vectors, values = sketch(start, scatter @ start)
    exact = np.linalg.eigvalsh(scatter)
    np.testing.assert_allclose(values[-10:], exact[-10:], rtol=0.1)
    # Never larger than the matrix, in any direction.
    rest = np.linalg.eigvalsh(scatter - (vectors * values) @ vectors.T)
    assert rest[0] > -1e-9 * exact[-1]
