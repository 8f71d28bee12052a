"""The algorithms on samples: the published ones to the letter, ours as their formulas say."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import linalg

from isrlearn.core import (
    Moments,
    covariance_subspace,
    joint_subspace,
    mean_subspace,
    multiclass_subspace,
    principal_angles,
    regression_subspace,
    whitening,
)
from isrlearn.core.whiten import equalised
from isrlearn.engine import cell_moments

D, K, E = 6, 3, 4


@pytest.fixture(scope="module")
def data():
    """Cells of different sizes whose means and covariances differ."""
    rng = np.random.default_rng(0)
    X, y, environments = [], [], []
    for k in range(K):
        for e in range(E):
            n = int(rng.integers(60, 200))
            X.append(rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) + rng.normal(size=D))
            y += [k] * n
            environments += [e] * n
    return np.concatenate(X), np.array(y), np.array(environments)


@pytest.fixture(scope="module")
def moments(data):
    return cell_moments(*data)


def cells(data, k):
    X, y, environments = data
    return [X[(y == k) & (environments == e)] for e in range(E)]


def same_span(found, expected, tol=1e-8):
    assert found.basis.shape == expected.shape
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(found.rank), atol=1e-12)
    assert principal_angles(found.basis, expected)[0] <= tol


@pytest.mark.parametrize("k", range(K))
@pytest.mark.parametrize("r", [1, 2, 3])
def test_algorithm_1_to_the_letter(data, moments, k, r):
    M = np.array([cell.mean(axis=0) for cell in cells(data, k)])
    values, vectors = np.linalg.eigh(np.cov(M.T))
    found = mean_subspace(moments, r, classes=[k], variant="paper")
    same_span(found, vectors[:, ::-1][:, :r])
    assert found.dual is found.basis
    np.testing.assert_allclose(found.spectrum[: E - 1] / (E - 1), values[::-1][: E - 1], rtol=1e-9)


def test_algorithm_1_uses_the_last_class_by_default(moments):
    last = mean_subspace(moments, 2, classes=[K - 1], variant="paper")
    same_span(mean_subspace(moments, 2, variant="paper"), last.basis)


def leading_difference(cells, a, b, r):
    values, vectors = np.linalg.eigh(np.cov(cells[a].T) - np.cov(cells[b].T))
    return vectors[:, np.argsort(-np.abs(values))[:r]]


@pytest.mark.parametrize("pair", list(combinations(range(E), 2)))
def test_algorithm_2_to_the_letter(data, moments, pair):
    two = moments.of_environments(np.array(pair))
    found = covariance_subspace(two, 2, classes=[1], variant="paper")
    same_span(found, leading_difference(cells(data, 1), *pair, 2))


@pytest.mark.parametrize("classes", [[1], [0, 2], None])
def test_flag_mean_over_pairs_and_classes(data, moments, classes):
    stack = [
        leading_difference(cells(data, k), a, b, 2)
        for k in (range(K) if classes is None else classes)
        for a, b in combinations(range(E), 2)
    ]
    U = np.linalg.svd(np.hstack(stack))[0]
    found = covariance_subspace(moments, 2, classes=classes, variant="paper")
    same_span(found, U[:, :2])


def stacked(data, each):
    """Left singular vectors of the leading eigenvectors of every class, so many of each."""
    stack = []
    for k in range(K):
        M = np.array([cell.mean(axis=0) for cell in cells(data, k)])
        stack.append(np.linalg.eigh(np.cov(M.T))[1][:, ::-1][:, :each])
    return np.linalg.svd(np.hstack(stack))[0]


@pytest.mark.parametrize("r", [1, 3, 5])
def test_algorithm_3_to_the_letter(data, moments, r):
    same_span(multiclass_subspace(moments, r, variant="paper"), stacked(data, E - 1)[:, :r])


@pytest.mark.parametrize("r", [1, 2, 5])
def test_algorithm_3_as_in_the_authors_code(data, moments, r):
    found = multiclass_subspace(moments, r, variant="authors")
    same_span(found, stacked(data, min(E - 1, r))[:, :r])


def test_algorithm_4_to_the_letter(data):
    X, _, environments = data
    M = np.array([X[environments == e].mean(axis=0) for e in range(E)])
    vectors = np.linalg.eigh(np.cov(M.T))[1][:, ::-1]
    moments = cell_moments(X, None, environments)
    same_span(regression_subspace(moments, 2, variant="paper"), vectors[:, :2])


def between_scatter(moments, classes):
    total = np.zeros((D, D))
    for k in classes:
        n, m = moments.count[k], moments.mean[k]
        Z = m - n @ m / n.sum()
        total += (n[:, None] * Z).T @ Z
    return total


@pytest.mark.parametrize("classes", [None, [1], [0, 2]])
@pytest.mark.parametrize("r", [1, 3])
def test_pooled_means_solve_the_generalised_eigenproblem(moments, classes, r):
    within = moments.within() / moments.dof
    equal = equalised(moments, whitening(moments).factor)
    S = between_scatter(equal, range(K) if classes is None else classes)
    values, V = linalg.eigh(S, within)
    V = V[:, ::-1][:, :r]
    found = mean_subspace(moments, r, classes=classes)
    # Directions are Σ times the discriminants; those are the functionals that read them off.
    same_span(found, within @ V)
    assert principal_angles(found.dual, V)[0] < 1e-8
    np.testing.assert_allclose(found.dual.T @ found.basis, np.eye(r), atol=1e-10)
    m = min(len(found.spectrum), D)
    np.testing.assert_allclose(found.spectrum[:m], np.maximum(values[::-1][:m], 0), atol=1e-8)


def test_pooled_multiclass_is_pooled_mean(moments):
    a, b = multiclass_subspace(moments, 3), mean_subspace(moments, 3)
    np.testing.assert_array_equal(a.basis, b.basis)
    np.testing.assert_array_equal(a.dual, b.dual)


def test_with_few_rows_nothing_is_whitened(data):
    X, y, environments = data
    cell = E * y + environments
    few = np.concatenate([np.flatnonzero(cell == c)[:4] for c in range(K * E)])
    moments = cell_moments(X[few], y[few], environments[few])
    vectors = np.linalg.eigh(between_scatter(moments, range(K)))[1][:, ::-1]
    found = mean_subspace(moments, 2)
    same_span(found, vectors[:, :2])
    assert found.dual is found.basis
    means = cell_moments(X[few], y[few], environments[few], order=1)
    same_span(mean_subspace(means, 2), vectors[:, :2])


def objective(moments, N, *, means):
    """The docstrings' sums for orthonormal N, in the coordinates of the moments."""
    total = 0.0
    for k in range(K):
        n, S = moments.count[k] - 1, moments.covariance[k]
        shifts = S - np.tensordot(n, S, axes=1) / n.sum()
        total += sum(w / 2 * np.sum((N.T @ D @ N) ** 2) for w, D in zip(n, shifts, strict=True))
        if means:
            n, m = moments.count[k], moments.mean[k]
            total += np.sum(n[:, None] * ((m - n @ m / n.sum()) @ N) ** 2)
    return total


@pytest.mark.parametrize("find", [covariance_subspace, joint_subspace])
def test_pooled_covariances_maximise_the_formula(moments, find):
    W = whitening(moments)
    white = equalised(moments, W.factor).map(W.factor)
    found = find(moments, 2)
    N = linalg.orth(np.linalg.solve(W.inverse.T, found.basis))  # basis = inverseᵀ N · triangle
    means = find is joint_subspace
    best = objective(white, N, means=means)
    rng = np.random.default_rng(1)
    for step in (1e-4, 1e-3, 1e-2, 0.1, 10.0):
        for _ in range(50):
            other = np.linalg.qr(N + step * rng.normal(size=N.shape))[0]
            assert objective(white, other, means=means) <= best * (1 + 1e-7)


def test_spectra_are_sorted_and_not_negative(moments):
    for found in (
        mean_subspace(moments, 2),
        mean_subspace(moments, 2, variant="paper"),
        multiclass_subspace(moments, 2, variant="paper"),
        covariance_subspace(moments, 2),
        covariance_subspace(moments, 2, variant="paper"),
        covariance_subspace(moments, 2, classes=[0], variant="paper"),
        joint_subspace(moments, 2),
    ):
        assert (np.diff(found.spectrum) <= 1e-9 * found.spectrum[0]).all()
        assert (found.spectrum >= 0).all()


@pytest.mark.parametrize(
    "find",
    [
        lambda m: mean_subspace(m, 0),
        lambda m: mean_subspace(m, 0, variant="paper"),
        lambda m: multiclass_subspace(m, 0, variant="paper"),
        lambda m: covariance_subspace(m, 0),
        lambda m: covariance_subspace(m, 0, variant="paper"),
        lambda m: joint_subspace(m, 0),
    ],
)
def test_zero_dimensions_are_an_empty_basis(moments, find):
    found = find(moments)
    assert found.rank == 0
    assert found.basis.shape == found.dual.shape == (D, 0)


def test_more_than_the_means_can_span_is_capped(moments):
    assert mean_subspace(moments, D, classes=[0]).rank == E - 1
    assert mean_subspace(moments, D, classes=[0], variant="paper").rank == E - 1
    assert mean_subspace(moments, D + 3).rank == D


def test_rank_is_tested_on_the_classes_that_are_compared(moments):
    # Means shift in class 0 only.
    mean = np.zeros((2, 3, 4))
    mean[0, 1, 0] = 1.0
    population = Moments.population(mean, np.eye(4))
    assert mean_subspace(population, classes=[0]).rank == 1
    assert mean_subspace(population, classes=[1]).rank == 0
    assert mean_subspace(population, variant="paper").rank == 0
    assert multiclass_subspace(population, variant="paper").rank == 1
    assert covariance_subspace(moments, variant="paper").rank_test is not None


def test_regression_takes_one_class_only(moments):
    with pytest.raises(ValueError, match="the moments have 3; compute them with y=None"):
        regression_subspace(moments, 1)


def test_automatic_rank_needs_a_scatter(data):
    means = cell_moments(*data, order=1)
    with pytest.raises(ValueError, match="keep means only"):
        mean_subspace(means)
    with pytest.raises(ValueError, match="no scatter per cell"):
        covariance_subspace(means, 2)
    with pytest.raises(ValueError, match="no scatter per cell"):
        joint_subspace(cell_moments(*data, pooled=True), 2)
