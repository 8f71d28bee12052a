"""Whitening and principal components from moments alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA

from isrlearn.core import Eraser, principal_angles, principal_components, whitening
from isrlearn.core.subspace import mean_subspace
from isrlearn.core.whiten import (
    head_coordinates,
    reliable_coordinates,
)
from isrlearn.engine import cell_moments


def sample(seed, n=400, d=5, *, unlabelled=False):
    rng = np.random.default_rng(seed)
    y, e = rng.integers(2, size=n), rng.integers(3, size=n)
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) * 10.0 ** rng.uniform(-3, 3, d)
    X += rng.normal(size=(6, d))[3 * y + e]
    environments = e.astype(object)
    if unlabelled:
        environments[::4] = None
    return X, y, environments


@pytest.mark.parametrize("seed", range(5))
def test_within_cell_covariance_becomes_the_identity(seed):
    moments = cell_moments(*sample(seed))
    W = whitening(moments)
    Z = moments.map(W.factor)
    np.testing.assert_allclose(Z.within() / Z.dof, np.eye(5), atol=1e-9)
    np.testing.assert_allclose(W.factor @ W.inverse, np.eye(5), atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_total_covariance_becomes_the_identity(seed):
    X, y, environments = sample(seed, unlabelled=True)
    moments = cell_moments(X, y, environments, pooled=True)
    nothing = Eraser(np.zeros((5, 0)), np.zeros((5, 0)), 1.0, moments.total[1])
    Z = head_coordinates(moments, nothing)(X)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(5), atol=1e-9)


def test_constant_and_dependent_columns_do_no_harm():
    X, y, environments = sample(0)
    X = np.column_stack([X, np.full(len(X), 3.0), X[:, 0] + X[:, 1]])
    W = whitening(cell_moments(X, y, environments))
    assert np.isfinite(W.factor).all()
    # All that varies comes back; the constant one has no part in it.
    expected = np.diag([1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(W.factor @ W.inverse, expected, atol=1e-4)


def test_column_constant_in_each_environment_is_the_clearest_shift():
    X, y, environments = sample(1)
    X = np.column_stack([X, 1e-3 * environments.astype(float)])
    moments = cell_moments(X, y, environments)
    Z = moments.map(whitening(moments).factor)
    shifts = (Z.mean - Z.mean.mean(axis=1, keepdims=True)).reshape(-1, 6)
    lead = np.linalg.svd(shifts)[2][0]
    # The leading direction of the shifts, seen from the features, is that column.
    direction = lead @ whitening(moments).inverse
    assert abs(direction[-1]) > 0
    functional = whitening(moments).factor @ lead
    assert np.abs(functional[-1]) * 1e-3 > np.abs(functional[:-1] * X[:, :-1].std(axis=0)).max()


@pytest.mark.parametrize("unlabelled", [False, True])
@pytest.mark.parametrize("pooled", [False, True])
def test_components_are_those_of_all_rows(unlabelled, pooled):
    X, y, environments = sample(2, unlabelled=unlabelled)
    moments = cell_moments(X, y, environments, pooled=pooled)
    pca = PCA(3).fit(X)
    components, variances = principal_components(moments, 3)
    assert principal_angles(components, pca.components_.T)[0] < 1e-6
    np.testing.assert_allclose(np.abs(np.sum(components * pca.components_.T, axis=0)), 1.0)
    np.testing.assert_allclose(variances, pca.explained_variance_, rtol=1e-9)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99, 0.999999])
def test_fraction_of_variance(share):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 8)) * [5, 4, 3, 2, 1, 0.5, 0.1, 0.05]
    moments = cell_moments(X, None, np.arange(300) % 2)
    components, _ = principal_components(moments, share)
    assert components.shape[1] == PCA(share, svd_solver="full").fit(X).n_components_


def test_no_more_components_than_have_variance():
    X = np.random.default_rng(4).normal(size=(50, 2)) @ np.ones((2, 5))
    moments = cell_moments(X, None, np.arange(50) % 2)
    assert principal_components(moments, None)[0].shape == (5, 1)
    assert principal_components(moments, 4)[0].shape == (5, 1)
    assert principal_components(moments, 0.5)[0].shape == (5, 1)


def test_means_alone_have_no_components():
    X, y, environments = sample(5)
    with pytest.raises(ValueError, match="keep means only"):
        principal_components(cell_moments(X, y, environments, order=1), 2)


def test_twenty_rows_per_feature_are_enough():
    rng = np.random.default_rng(6)
    for n, enough in ((102, True), (101, False)):  # two cells cost a degree of freedom each
        moments = cell_moments(rng.normal(size=(n, 5)), None, np.arange(n) % 2)
        found = mean_subspace(moments, 1)  # with an oblique projection where it was whitened
        assert np.array_equal(found.basis, found.dual) != enough


def test_with_few_rows_leading_components_are_whitened():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(200, 40)) * np.linspace(5, 0.1, 40)
    moments = cell_moments(X, None, np.arange(200) % 2)
    W = reliable_coordinates(moments)
    assert W.factor.shape == (40, 19)  # 198 degrees of freedom, ten per tested dimension
    Z = moments.map(W.factor)
    np.testing.assert_allclose(Z.within() / Z.dof, np.eye(19), atol=1e-9)
    components, _ = principal_components(moments, 19)
    assert principal_angles(W.factor, components)[0] < 1e-6
    np.testing.assert_allclose(W.factor @ W.inverse, components @ components.T, atol=1e-9)
    fewer = reliable_coordinates(moments, smallest_cell=10.0)
    assert fewer.factor.shape == (40, 3)  # three rows of that cell per coordinate
