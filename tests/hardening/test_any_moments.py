"""The mathematics on whatever moments there are: they add up, ranks are ranks, bases are bases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isrlearn.core import (
    METHODS,
    Coordinates,
    Eraser,
    Moments,
    covariance_rank,
    covariance_subspace,
    joint_subspace,
    mean_rank,
    mean_subspace,
    multiclass_subspace,
)
from isrlearn.core.labels import Cells
from isrlearn.engine import cell_moments, fit_logistic
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.permutation import permutation_rank

MANY = settings(max_examples=80, deadline=None, derandomize=True, database=None)
KINDS = {"means": {"order": 1}, "pooled": {"pooled": True}, "cells": {}}


@st.composite
def rows(draw, least=1, most_features=6):
    """Features, classes, environments (some unknown) with at least some rows per cell."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    K, E, d = draw(st.integers(1, 3)), draw(st.integers(2, 3)), draw(st.integers(1, most_features))
    count = rng.integers(least, draw(st.sampled_from([least + 1, least + 4, 40])), size=(K, E))
    y, e = (np.repeat(i.ravel(), count.ravel()) for i in np.indices((K, E)))
    X = rng.normal(size=(len(y), d)) + rng.normal(size=(K, E, d))[y, e]
    kind = draw(st.sampled_from(["as it is", "as it is", "copies", "low rank", "one constant"]))
    if kind == "copies":
        X[:] = X[:, :1]
    elif kind == "low rank":
        X = X[:, :1] @ rng.normal(size=(1, d))
    elif kind == "one constant":
        X[:, -1] = 7.0
    X = X * 10.0 ** np.array(draw(st.lists(st.integers(-30, 30), min_size=d, max_size=d)))
    order = rng.permutation(len(y))
    return X[order], y[order], e[order]


def close(a: Moments, b: Moments, X: np.ndarray) -> None:
    """The same moments, each feature measured by its own size."""
    size = np.abs(X).max(axis=0) + np.finfo(float).tiny
    np.testing.assert_array_equal(a.count, b.count)
    np.testing.assert_allclose(a.mean / size, b.mean / size, atol=1e-12)
    for own, other in ((a.scatter, b.scatter), (a.total[2], b.total[2])):
        if own is not None:
            np.testing.assert_allclose(
                own / size / size[:, None], other / size / size[:, None], atol=1e-11 * len(X)
            )
    if a.unlabelled is not None:
        close(a.unlabelled, b.unlabelled, X)


@MANY
@given(rows(), st.sampled_from(sorted(KINDS)), st.integers(0, 99), st.booleans())
def test_moments_add_up_in_any_order(data, kind, seed, unknown):
    X, y, e = data
    rng = np.random.default_rng(seed)
    e = np.where(rng.uniform(size=len(y)) < 0.3, np.nan, e) if unknown else e
    weight = rng.integers(1, 4, size=len(y))
    part = rng.integers(3, size=len(y))
    whole = cell_moments(X, y, e, sample_weight=weight, **KINDS[kind])
    a, b, c = (
        cell_moments(X[part == i], y[part == i], e[part == i],
                          sample_weight=weight[part == i], **KINDS[kind])
        for i in range(3)
    )  # fmt: skip
    close((a + b) + c, whole, X)
    close(a + (b + c), whole, X)
    close(c + (b + a), whole, X)
    twice = np.repeat(np.arange(len(y)), weight)
    close(cell_moments(X[twice], y[twice], e[twice], **KINDS[kind]), whole, X)


@MANY
@given(rows(least=2))
def test_ranks_are_ranks(data):
    X, y, e = data
    moments = cell_moments(X, y, e)
    tests = [mean_rank(moments), covariance_rank(moments), METHODS["joint"].rank(moments)]
    for test in tests:
        assert 0 <= test.rank <= test.limit <= X.shape[1]
        assert all(0.0 <= p <= 1.0 for p in test.p_values)
        assert np.isfinite(test.spectrum).all()
        assert np.isfinite(test.noise)


@settings(MANY, max_examples=20)
@given(rows(least=2, most_features=3), st.sampled_from(["mean", "cov", "joint"]))
def test_permuted_ranks_are_ranks(data, method):
    X, y, e = data
    sample = Sample(X, Cells.of(y, e))
    test = permutation_rank(sample, METHODS[method], level=0.1, n_permutations=19)
    assert 0 <= test.rank <= test.limit <= X.shape[1]
    assert all(0.0 < p <= 1.0 for p in test.p_values)


FINDERS = {
    "mean": mean_subspace,
    "mean, paper": lambda m, r: mean_subspace(m, r, variant="paper"),
    "mean, authors": lambda m, r: mean_subspace(m, r, variant="authors"),
    "multiclass, paper": lambda m, r: multiclass_subspace(m, r, variant="paper"),
    "multiclass, authors": lambda m, r: multiclass_subspace(m, r, variant="authors"),
    "cov": covariance_subspace,
    "cov, paper": lambda m, r: covariance_subspace(m, r, variant="paper"),
    "joint": joint_subspace,
}


@MANY
@given(rows(least=2), st.sampled_from(sorted(FINDERS)), st.sampled_from(["auto", 0, 1, 2]))
def test_bases_are_orthonormal_and_erase(data, finder, rank):
    X, y, e = data
    rank = min(rank, X.shape[1]) if rank != "auto" else rank
    try:
        found = FINDERS[finder](cell_moments(X, y, e), rank)
    except ValueError as error:
        if "no two environments have different covariances" in str(error):
            return
        raise
    U, V, r = found.basis, found.dual, found.rank
    assert np.isfinite(V).all()
    assert np.isfinite(found.spectrum).all()
    np.testing.assert_allclose(U.T @ U, np.eye(r), atol=1e-9)
    eraser = Eraser.of(found, 0.0, X.mean(axis=0))
    size = np.abs(X).max(axis=0) + np.finfo(float).tiny
    once = eraser(X)
    assert np.isfinite(once).all()
    # What is erased is erased, and nothing is left to erase.
    np.testing.assert_allclose(eraser(once) / size, once / size, atol=1e-5)
    np.testing.assert_array_equal(Eraser.of(found, 1.0, X.mean(axis=0))(X), X)
    head, level = np.random.default_rng(0).normal(size=(2, X.shape[1])) / size, np.ones(2)
    coef, intercept = eraser.fold(head, level)
    np.testing.assert_allclose(X @ coef.T + intercept, once @ head.T + level, atol=1e-5)


@MANY
@given(rows(), st.sampled_from([1e-3, 1.0, 1e3]))
def test_logistic_regressions_reach_their_minimum_in_any_unit(data, penalty):
    """With the penalty on features divided by their unit, they have the same scores."""
    X, y, _ = data
    y = y if y.any() else np.arange(len(y)) % 2
    K, unit, none = y.max() + 1, np.abs(X).max(axis=0), np.zeros((X.shape[1], 0))
    coordinates = Coordinates(Eraser(none, none, 1.0, X.mean(axis=0)), 1 / unit)
    fit = fit_logistic(X, y, n_classes=K, penalty=penalty, coordinates=coordinates)
    assert fit.converged
    coef, intercept = coordinates.fold(fit.coef, fit.intercept[:, 0])
    assert np.isfinite(coef).all()
    expected = fit_logistic(X / unit, y, n_classes=K, penalty=penalty)
    assert expected.converged
    np.testing.assert_allclose(
        X @ coef.T + intercept, X / unit @ expected.coef.T + expected.intercept.T, atol=1e-6
    )


@pytest.mark.parametrize("d", [4, 600])
@pytest.mark.parametrize("scale", [1e-30, 1e-17, 1e17, 1e30])
def test_float32_moments_keep_six_digits_at_any_scale(d, scale):
    """Their squares leave float32's range; the moments do not."""
    rng = np.random.default_rng(0)
    X, e = rng.normal(size=(300, d)).astype(np.float32), np.arange(300) % 2
    X[:, 1] = 0.0
    X[:, 0] *= np.float32(scale)
    found, wide = (cell_moments(Z, None, e, pooled=True) for Z in (X, X.astype(float)))
    size = np.abs(X).max(axis=0).astype(float) + np.finfo(float).tiny
    np.testing.assert_allclose(
        found.within() / size / size[:, None], wide.within() / size / size[:, None], atol=1e-3
    )
    assert found.within()[0, 0] == pytest.approx(wide.within()[0, 0], rel=1e-5)


def test_one_row_per_cell_gives_rank_zero():
    moments = cell_moments(np.random.default_rng(0).normal(size=(6, 2)), None, np.arange(6))
    assert moments.dof == 0
    assert mean_rank(moments).rank == 0
