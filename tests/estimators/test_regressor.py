"""ISRRegressor: environment means removed, a linear head on the rest."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso, LinearRegression, PoissonRegressor, Ridge
from sklearn.tree import DecisionTreeRegressor

from isrlearn import ISRRegressor, ISRTransformer
from isrlearn.core import (
    head_coordinates,
    principal_angles,
    principal_components,
    regression_subspace,
)
from isrlearn.engine import cell_moments


def fit(data, **parameters):
    X, y, e = data
    return ISRRegressor(**parameters).fit(X, y, environments=e)


@pytest.mark.parametrize("head", ["ridge", LinearRegression(), Lasso(0.01), Ridge(3.0)], ids=str)
@pytest.mark.parametrize("variant", ["pooled", "paper"])
def test_prediction_is_one_affine_map(continuous, head, variant):
    X, y, _ = continuous
    reg = fit(continuous, n_spurious=2, head=head, variant=variant)
    assert reg.coef_.shape == (5,)
    assert isinstance(reg.intercept_, float)
    np.testing.assert_array_equal(reg.predict(X), X @ reg.coef_ + reg.intercept_)
    assert np.abs(reg.coef_ @ reg.spurious_basis_).max() < 1e-8
    assert reg.score(X, y) > 0.8


@pytest.mark.parametrize("variant", ["pooled", "paper"])
@pytest.mark.parametrize("n_spurious", [1, 2, "auto"])
def test_estimator_is_the_function(continuous, variant, n_spurious):
    X, _, e = continuous
    reg = fit(continuous, n_spurious=n_spurious, variant=variant, compare="means")
    found = regression_subspace(cell_moments(X, None, e), n_spurious, variant=variant)
    assert reg.n_spurious_ == found.rank
    assert principal_angles(reg.spurious_basis_, found.basis)[0] < 1e-8
    np.testing.assert_allclose(reg.spectrum_, found.spectrum, atol=1e-7)


def test_paper_variant_is_algorithm_4(continuous):
    X, y, e = continuous
    M = np.array([X[e == v].mean(axis=0) for v in np.unique(e)])
    U = np.linalg.svd(np.cov(M.T))[0]
    reg = fit(continuous, n_spurious=2, variant="paper", alpha=0.0)
    assert principal_angles(reg.spurious_basis_, U[:, :2])[0] < 1e-7
    reference = LinearRegression().fit(X @ U[:, 2:], y)
    np.testing.assert_allclose(reg.predict(X), reference.predict(X @ U[:, 2:]), atol=1e-8)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 100.0])
def test_ridge_is_scikit_learns_on_the_coordinates(continuous, alpha):
    X, y, _ = continuous
    reg = fit(continuous, alpha=alpha)
    Z = head_coordinates(reg.moments_.columns(5), reg.eraser_)(X)
    np.testing.assert_allclose(reg.predict(X), Ridge(alpha).fit(Z, y).predict(Z), atol=1e-8)
    given = fit(continuous, head=Ridge(alpha))
    np.testing.assert_allclose(given.coef_, reg.coef_, atol=1e-8)
    np.testing.assert_allclose(given.intercept_, reg.intercept_, atol=1e-8)


def test_unpenalised_head_is_least_squares_on_invariant_coordinates(continuous):
    X, y, e = continuous
    isr = ISRTransformer("regression", output="invariant").fit(X, environments=e)
    Z = isr.transform(X)
    reference = LinearRegression().fit(Z, y).predict(Z)
    reg = fit(continuous, alpha=0.0, compare="means")
    np.testing.assert_allclose(reg.predict(X), reference, atol=1e-8)


def test_what_is_removed_is_what_fails_elsewhere(continuous):
    # Where the shortcut is broken, least squares fails and the invariant regression does not.
    X, y, _ = continuous
    reg, plain = fit(continuous), LinearRegression().fit(X, y)
    basis = reg.spurious_basis_
    moved = X + 10.0 * np.random.default_rng(0).normal(size=(len(X), 2)) @ basis.T
    assert reg.score(moved, y) == pytest.approx(reg.score(X, y), abs=1e-9)
    assert plain.score(X, y) > reg.score(X, y)
    assert plain.score(moved, y) < 0.5 < reg.score(moved, y)


def test_group_weight_is_the_papers_reweighting(continuous):
    X, y, e = continuous
    rows = np.concatenate([np.flatnonzero(e == v)[: 200 - 50 * i] for i, v in enumerate(set(e))])
    X, y, e = X[rows], y[rows], e[rows]
    codes = np.unique(e, return_inverse=True)[1]
    w = len(y) / (4 * np.bincount(codes)[codes])
    for head in ("ridge", LinearRegression()):
        a = fit((X, y, e), head=head, n_spurious=0, weights="group", alpha=0.0)
        b = ISRRegressor(head=head, n_spurious=0, alpha=0.0)
        b.fit(X, y, environments=e, sample_weight=w)
        np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-8)
        np.testing.assert_allclose(a.intercept_, b.intercept_, atol=1e-8)
        plain = fit((X, y, e), head=head, n_spurious=0, alpha=0.0)
        assert np.abs(a.coef_ - plain.coef_).max() > 1e-5


def test_unlabelled_rows_train_the_head_only(continuous):
    X, y, e = continuous
    some = np.arange(len(y)) % 3 == 0
    partly = e.astype(object)
    partly[some] = None
    reg = fit((X, y, partly), n_spurious=2, alpha=0.0)
    labelled = fit((X[~some], y[~some], e[~some]), n_spurious=2)
    np.testing.assert_allclose(reg.spurious_basis_, labelled.spurious_basis_, atol=1e-10)
    left = np.linalg.svd(reg.spurious_basis_)[0][:, 2:]
    reference = LinearRegression().fit(X @ left, y)
    np.testing.assert_allclose(reg.predict(X), reference.predict(X @ left), atol=1e-8)


@pytest.mark.parametrize("parameters", [{}, {"weights": "group"}, {"n_components": 4}])
@pytest.mark.parametrize("n_spurious", [1, 2, "auto"])
def test_parts_are_the_whole(continuous, parameters, n_spurious):
    X, y, e = continuous
    partly = e.astype(object)
    partly[::9] = None
    parameters = {"n_spurious": n_spurious, **parameters}
    whole = fit((X, y, partly), **parameters)
    shuffled = ISRRegressor(**parameters)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), 6):
        shuffled.partial_fit(X[rows], y[rows], environments=partly[rows])
    one_by_one = ISRRegressor(**parameters)
    for name in [*np.unique(e), None]:
        rows = partly == name
        one_by_one.partial_fit(X[rows], y[rows], environments=partly[rows])
    moments = cell_moments(X, None, partly, targets=y)
    for reg in (shuffled, one_by_one, ISRRegressor(**parameters).fit_moments(moments)):
        np.testing.assert_allclose(reg.coef_, whole.coef_, atol=1e-8)
        np.testing.assert_allclose(reg.intercept_, whole.intercept_, atol=1e-8)
        assert reg.n_spurious_ == whole.n_spurious_
        assert reg.n_features_in_ == 5
        assert reg.environments_.tolist() == whole.environments_.tolist()


def test_before_enough_was_seen_predicting_says_so(continuous):
    X, y, e = continuous
    reg = ISRRegressor(n_spurious=2)
    with pytest.raises(NotFittedError):
        reg.predict(X)
    north = e == "north"
    reg.partial_fit(X[north], y[north], environments=e[north])
    missing = "the rows seen so far are not enough to predict: "
    with pytest.raises(ValueError, match=missing + ".*needs at least two; known so far: .'north'."):
        reg.predict(X)
    south = e == "south"
    reg.partial_fit(X[south], y[south], environments=e[south])
    with pytest.raises(ValueError, match=missing + "n_spurious=2 is more than the 1 possible"):
        reg.predict(X)


def test_only_heads_from_moments_can_be_fitted_in_parts():
    for head, possible in [("ridge", True), ((np.ones(5), 0.0), True), (Lasso(), False)]:
        for method in ("partial_fit", "fit_moments"):
            assert hasattr(ISRRegressor(head=head), method) == possible


@pytest.mark.parametrize("shape", [(5,), (1, 5)])
@pytest.mark.parametrize("scale", [0.0, 0.5, 1.0])
def test_adapted_head(continuous, shape, scale):
    X, y, e = continuous
    trained = LinearRegression().fit(X, y)
    head = (trained.coef_.reshape(shape), trained.intercept_)
    reg = fit(continuous, head=head, scale=scale, n_spurious=2)
    assert reg.coef_.shape == (5,)
    basis = reg.spurious_basis_
    np.testing.assert_allclose(reg.coef_ @ basis, scale * trained.coef_ @ basis, atol=1e-12)
    average = X.mean(axis=0, keepdims=True)
    np.testing.assert_allclose(reg.predict(average), trained.predict(average), atol=1e-10)
    if scale == 1.0:
        np.testing.assert_array_equal(reg.predict(X), trained.predict(X))
    parts = ISRRegressor(head=head, scale=scale, n_spurious=2)
    for rows in np.array_split(np.arange(len(y)), 3):
        parts.partial_fit(X[rows], y[rows], environments=e[rows])
    np.testing.assert_allclose(parts.coef_, reg.coef_, atol=1e-10)


def test_components_first(continuous):
    X, _, _ = continuous
    reg = fit(continuous, n_components=4, n_spurious=1)
    components, _ = principal_components(reg.moments_.columns(5), 4)
    np.testing.assert_allclose(components @ (components.T @ reg.coef_), reg.coef_, atol=1e-10)
    a, b = fit(continuous), fit(continuous, n_components=5)
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-6)


def test_one_environment_removes_nothing_on_request(continuous):
    X, y, _ = continuous
    reg = ISRRegressor(missing_environments="single", alpha=0.0).fit(X, y)
    assert reg.n_spurious_ == 0
    np.testing.assert_allclose(reg.predict(X), LinearRegression().fit(X, y).predict(X), atol=1e-8)
    parts = ISRRegressor(missing_environments="single", alpha=0.0)
    for rows in np.array_split(np.arange(len(y)), 3):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(parts.coef_, reg.coef_, atol=1e-8)


def test_few_rows_are_enough_to_fit():
    rng = np.random.default_rng(0)
    X, e = rng.normal(size=(30, 20)), np.arange(30) % 3
    X[:, 0] += 5.0 * e
    y = X[:, 1] + 0.1 * rng.normal(size=30)
    reg = fit((X, y, e), n_spurious=1)
    assert np.abs(reg.coef_ @ reg.spurious_basis_).max() < 1e-10
    assert reg.score(X, y) > 0.8


@pytest.mark.parametrize("head", [DecisionTreeRegressor(), PoissonRegressor()], ids=str)
def test_heads_must_be_linear(continuous, head):
    X, y, e = continuous
    with pytest.raises(ValueError, match=r"has no coef_|decision function other than"):
        ISRRegressor(head=head).fit(X, np.exp(y / 10), environments=e)


def test_float32_rows(continuous):
    X, y, e = continuous
    reg = ISRRegressor().fit(X.astype(np.float32), y.astype(np.float32), environments=e)
    assert reg.predict(X.astype(np.float32)).dtype == np.float64
    np.testing.assert_allclose(reg.predict(X), fit(continuous).predict(X), atol=1e-3)
