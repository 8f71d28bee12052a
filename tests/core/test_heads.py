"""Closed-form heads are those of scikit-learn, fitted on the same coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge

from isrlearn.core import (
    Eraser,
    head_coordinates,
    lda_head,
    mean_subspace,
    principal_angles,
    principal_components,
    ridge_head,
)
from isrlearn.engine import cell_moments

D = 5


def sample(seed, n=300, K=2, *, unlabelled=0.3):
    rng = np.random.default_rng(seed)
    y, e = rng.choice(K, size=n, p=[0.7] + [0.3 / (K - 1)] * (K - 1)), rng.integers(3, size=n)
    X = rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) + rng.normal(size=(3 * K, D))[3 * y + e]
    environments = e.astype(object)
    environments[rng.random(n) < unlabelled] = None
    return X + 10.0, y, environments


def erasers(moments, scale=0.0):
    """Nothing, an orthogonal and an oblique erasure of two dimensions."""
    none, center = np.zeros((moments.n_features, 0)), moments.total[1]
    return {
        "nothing": Eraser(none, none, scale, center),
        "orthogonal": Eraser.of(mean_subspace(moments, 2, variant="paper"), scale, center),
        "oblique": Eraser.of(mean_subspace(moments, 2), scale, center),
    }


KINDS = ["nothing", "orthogonal", "oblique"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [300, 40], ids=["whitened", "standardised"])
@pytest.mark.parametrize("p", [None, 3])
@pytest.mark.parametrize("scale", [0.0, 0.4])
def test_a_head_on_coordinates_folds_into_one_on_features(kind, n, p, scale):
    X, y, environments = sample(0, n)
    moments = cell_moments(X, y, environments)
    if p is not None:
        components, _ = principal_components(moments, p)
        X, moments = X @ components, moments.map(components)
    eraser = erasers(moments, scale)[kind]
    coordinates = head_coordinates(moments, eraser)
    Z = coordinates(X)
    np.testing.assert_allclose(Z, (X - eraser.center) @ coordinates.matrix, atol=1e-9)
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=1e-9)
    rng = np.random.default_rng(1)
    coef, intercept = rng.normal(size=(3, Z.shape[1])), rng.normal(size=3)
    folded, shifted = coordinates.fold(coef, intercept)
    np.testing.assert_allclose(X @ folded.T + shifted, Z @ coef.T + intercept, atol=1e-9)


def test_coordinates_have_unit_variance():
    X, y, environments = sample(2)
    moments = cell_moments(X, y, environments)
    Z = head_coordinates(moments, erasers(moments)["nothing"])(X)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(D), atol=1e-9)
    few = slice(0, 30)
    small = cell_moments(X[few], y[few], environments[few])
    for eraser in erasers(small, 0.3).values():
        Z = head_coordinates(small, eraser)(X[few])
        np.testing.assert_allclose(Z.std(axis=0, ddof=1), 1.0, atol=1e-9)


def test_a_column_that_is_erased_altogether_is_left_out():
    rng = np.random.default_rng(3)
    X, e = rng.normal(size=(20, 4)), np.arange(20) % 2
    X[:, 0] += 100 * e
    moments = cell_moments(X, None, e)
    axis = np.eye(4)[:, :1]
    Z = head_coordinates(moments, Eraser(axis, axis, 0.0, moments.total[1]))(X)
    np.testing.assert_array_equal(Z[:, 0], 0.0)
    np.testing.assert_allclose(Z[:, 1:].std(axis=0, ddof=1), 1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("pooled", [False, True])
def test_lda_is_that_of_scikit_learn_on_erased_rows(kind, K, pooled):
    X, y, environments = sample(4, K=K)
    moments = cell_moments(X, y, environments, pooled=pooled)
    eraser = erasers(moments)[kind]
    coef, intercept = lda_head(moments, head_coordinates(moments, eraser))
    left = np.linalg.svd(eraser.basis, full_matrices=True)[0][:, eraser.basis.shape[1] :]
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(X @ left, y)
    found = X @ coef.T + intercept
    expected = np.atleast_2d(reference.decision_function(X @ left).T).T
    if K > 2:
        found = found - found.mean(axis=1, keepdims=True)
        expected = expected - expected.mean(axis=1, keepdims=True)
    # scikit-learn's covariance divides by n, ours by n - K: the quadratic part differs by that.
    n = len(y)
    prior = np.log(np.bincount(y) / n)
    prior = prior[1:] - prior[:1] if K == 2 else prior - prior.mean()
    np.testing.assert_allclose((found - prior) * n / (n - K), expected - prior, atol=1e-7)
    assert coef.shape == ((1, D) if K == 2 else (K, D))


def test_penalty_is_the_formula():
    X, y, environments = sample(5)
    moments = cell_moments(X, y, environments)
    eraser = erasers(moments)["oblique"]
    coordinates = head_coordinates(moments, eraser)
    Z = coordinates(X)
    left = np.linalg.svd(Z, full_matrices=False)[2][: D - 2].T  # what the erasure leaves
    Z = Z @ left
    mean = np.array([Z[y == k].mean(axis=0) for k in (0, 1)])
    S = sum((Z[y == k] - mean[k]).T @ (Z[y == k] - mean[k]) for k in (0, 1))
    for penalty in (0.0, 1.0, 300.0):
        w = np.linalg.solve((S + penalty * np.eye(D - 2)) / (len(Z) - 2), mean[1] - mean[0])
        b = np.log(np.mean(y == 1) / np.mean(y == 0)) - w @ (mean[0] + mean[1]) / 2
        coef, intercept = lda_head(moments, coordinates, penalty=penalty)
        np.testing.assert_allclose((X @ coef.T + intercept)[:, 0], Z @ w + b, atol=1e-8)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("case", ["separated", "few rows"])
def test_penalty_is_the_formula_where_the_scatter_within_classes_is_singular(case, K):
    X, y, environments = sample(7, K=K)
    rng = np.random.default_rng(0)
    if case == "separated":  # a feature that is constant in each class
        X = np.column_stack([X, y == 0])
    else:  # more features than rows
        X = np.column_stack([X, rng.normal(size=(300, 40))])[:30]
        y, environments = np.arange(30) % K, environments[:30]
    moments = cell_moments(X, y, environments)
    eraser = erasers(moments)["oblique"]
    coordinates = head_coordinates(moments, eraser)
    Z = coordinates(X)
    mean = np.array([Z[y == k].mean(axis=0) for k in range(K)])
    D = Z - mean[y]
    w = np.linalg.solve((D.T @ D + 2 * np.eye(Z.shape[1])) / (len(y) - K), mean.T).T
    b = np.log(np.bincount(y) / len(y)) - np.sum(w * mean, axis=1) / 2
    expected = Z @ w.T + b
    expected = expected[:, 1:] - expected[:, :1]
    for penalty in (2.0, 0.0):
        coef, intercept = lda_head(moments, coordinates, penalty=penalty)
        found = X @ coef.T + intercept
        found = found if K == 2 else found[:, 1:] - found[:, :1]
        if penalty:
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(coef @ eraser.basis, 0.0, atol=1e-6 * np.abs(coef).max())
        if case == "separated":
            assert ((found > 0).any(axis=1) == (y > 0)).all()


def test_lda_of_reweighted_cells_is_lda_of_weighted_rows():
    X, y, environments = sample(6, unlabelled=0.0)
    w = np.array([[3.0, 0.5, 1.0], [0.2, 2.0, 1.0]])
    moments = cell_moments(X, y, environments)
    weighted = cell_moments(X, y, environments, sample_weight=w[y, environments.astype(int)])
    coordinates = head_coordinates(moments, erasers(moments)["oblique"])
    for a, b in zip(
        lda_head(moments.reweighted(w), coordinates), lda_head(weighted, coordinates), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-9)
    # The head does not depend on where the coordinates have their origin.
    moved = replace(coordinates.eraser, center=weighted.total[1])
    other = replace(coordinates, eraser=moved)
    for a, b in zip(lda_head(weighted, coordinates), lda_head(weighted, other), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)


def test_weights_of_a_population_matter_by_their_ratios(plant):
    model = plant(0, 3, 2, 2, 3)
    m = model.moments
    eraser = Eraser.of(mean_subspace(m, 2), 0.0, m.total[1])
    expected = lda_head(m, head_coordinates(m, eraser))
    for factor in (1e-3, 1e3):
        scaled = m.reweighted(np.full(m.count.shape, factor))
        found = lda_head(scaled, head_coordinates(scaled, eraser))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def regression(seed, n=300):
    X, _, environments = sample(seed, n)
    rng = np.random.default_rng([seed, 1])
    y = X @ rng.normal(size=D) + rng.normal(size=n)
    return X, y, environments


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.0, 1.0, 100.0])
@pytest.mark.parametrize("n", [300, 40], ids=["whitened", "standardised"])
def test_ridge_is_that_of_scikit_learn_on_the_coordinates(kind, alpha, n):
    X, y, environments = regression(7, n)
    moments = cell_moments(X, None, environments, targets=y)
    features = moments.columns(D)
    coordinates = head_coordinates(features, erasers(features)[kind])
    coef, intercept = ridge_head(moments, coordinates, alpha=alpha)
    Z = coordinates(X)
    head = Ridge(alpha) if alpha else LinearRegression()
    np.testing.assert_allclose(X @ coef + intercept, head.fit(Z, y).predict(Z), atol=1e-7)


def test_ridge_with_one_solution_too_many_takes_the_smallest():
    X, y, environments = regression(8)
    X = np.column_stack([X, X[:, 0]])  # a column twice, no penalty to choose
    moments = cell_moments(X, None, environments, targets=y)
    features = moments.columns(D + 1)
    none = np.zeros((D + 1, 0))
    coordinates = head_coordinates(features, Eraser(none, none, 0.0, features.total[1]))
    coef, intercept = ridge_head(moments, coordinates, alpha=0.0)
    np.testing.assert_allclose(
        X @ coef + intercept, LinearRegression().fit(X[:, :D], y).predict(X[:, :D]), atol=1e-6
    )
    assert np.abs(coef).max() < 1e3


def test_tiny_features_are_not_lost_to_the_penalty():
    # The same head whatever the unit of a column: the penalty acts on whitened coordinates.
    X, y, environments = regression(9)
    units = np.array([1.0, 1e-4, 1e3, 1.0, 1e-2])
    heads = []
    for data in (X, X * units):
        moments = cell_moments(data, None, environments, targets=y)
        features = moments.columns(D)
        coordinates = head_coordinates(features, erasers(features)["oblique"])
        heads.append(ridge_head(moments, coordinates, alpha=10.0))
    np.testing.assert_allclose(heads[1][0] * units, heads[0][0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(heads[1][1], heads[0][1], rtol=1e-6)


@pytest.mark.parametrize("n", [300, 40], ids=["whitened", "standardised"])
def test_head_confined_to_components_has_no_part_outside(n):
    X, y, environments = sample(10, n)
    moments = cell_moments(X, y, environments)
    components, _ = principal_components(moments, 3)
    center, reduced = (
        moments.total[1],
        moments.map(components, -moments.total[1] @ components),
    )
    inner = mean_subspace(reduced, 1)
    outer = Eraser.of(inner.lift(components), 0.0, center)
    rows = (X - center) @ components
    # The eraser of the reduced rows is that of the features, seen on the components.
    eraser = Eraser.of(inner, 0.0, reduced.total[1])
    np.testing.assert_allclose(eraser(rows), (outer(X) - center) @ components, atol=1e-9)
    found = lda_head(reduced, head_coordinates(reduced, eraser))
    again = cell_moments(rows, y, environments)
    for a, b in zip(found, lda_head(again, head_coordinates(again, eraser)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8)
    coef = found[0] @ components.T
    assert principal_angles(coef.T, components)[0] < 1e-7
    assert np.abs(coef @ outer.basis).max() < 1e-8
