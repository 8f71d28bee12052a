"""Removals that do no harm in held-out environments: regressions, then classifiers."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRRegressorCV
from isrlearn.core import (
    Moments,
    given_target,
    mean_rank,
    principal_angles,
    principal_components,
    regression_subspace,
)
from isrlearn.core.methods import METHODS
from isrlearn.engine import cell_moments
from isrlearn.estimators.held_out import beyond_doubt, held_out_accuracy, held_out_errors
from isrlearn.io import load, save


def population(gains, offsets, shifts, d=5, seed=0):
    """Moments of features and target: y ~ N(shift_e, 1), x = (gain_e a) y + b_e + noise."""
    rng = np.random.default_rng(seed)
    E, a = len(shifts), rng.normal(size=d)
    slopes = np.outer(gains, a)  # (E, d)
    mean = np.hstack([slopes * shifts[:, None] + offsets, shifts[:, None]])
    loading = np.concatenate([slopes, np.ones((E, 1))], axis=1)
    noise = np.diag(np.append(np.full(d, 0.25), 0.0))
    covariance = loading[:, :, None] * loading[:, None, :] + noise
    return Moments.population(mean[None], covariance[None], 1000.0)


def planted(E, seed=0):
    """Moments where one feature follows the target in every other environment only, and b_e."""
    rng = np.random.default_rng(seed)
    loading = np.zeros((E, 4, 6))  # sources: three invariant features, noise of y, two noises
    weights, sign = np.array([1.0, -1.0, 0.5]), np.where(np.arange(E) % 2, 1.0, -1.0)
    loading[:, :3, :3] = np.eye(3)
    target = np.concatenate([weights, [1.0, 0.0, 0.0]])
    loading[:, 3] = sign[:, None] * target + [0, 0, 0, 0, 0.3, 0]
    loading = np.concatenate([loading, np.broadcast_to(target, (E, 1, 6))], axis=1)
    mean = np.zeros((E, 5))
    mean[:, 3] = rng.normal(size=E)
    covariance = loading @ loading.transpose(0, 2, 1)
    return Moments.population(mean[None], covariance[None], 1000.0), np.eye(4)[:, 3:]


def test_given_the_target_a_shift_of_the_target_is_no_shift():
    shifts = np.array([0.0, 2.0, -1.0, 4.0])
    moments = population(np.ones(4), np.zeros((4, 5)), shifts)
    assert np.abs(moments.columns(5).mean_shifts()).max() > 1.0
    assert np.abs(given_target(moments).mean_shifts()).max() < 1e-12


def test_given_the_target_the_planted_directions_are_found():
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(5, 2)))[0]
    offsets, shifts = rng.normal(size=(4, 2)) @ basis.T, rng.normal(size=4)
    moments = population(np.ones(4), offsets, shifts)
    found = regression_subspace(given_target(moments), 2)
    assert principal_angles(found.basis, basis)[0] < 1e-10
    assert principal_angles(regression_subspace(moments.columns(5), 2).basis, basis)[0] > 0.1
    reg = ISRRegressor(2, compare="given-target").fit_moments(moments)
    assert principal_angles(reg.spurious_basis_, basis)[0] < 1e-10
    assert reg.compared_ == "given-target"


def test_the_test_given_the_target_keeps_its_level():
    # Without the correction for estimated slopes, most of these samples would show a shift.
    found = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        e = np.repeat(np.arange(3), 40)
        y = rng.normal(size=120) + 5.0 * e
        X = np.outer(y, [1.0, -0.5, 0.0]) + rng.normal(size=(120, 3))
        found += mean_rank(given_target(cell_moments(X, None, e, targets=y)), level=0.05).rank > 0
    assert found <= 20


def test_a_shift_of_the_target_alone_removes_nothing():
    moments = population(np.ones(5), np.zeros((5, 5)), np.array([0.0, 2.0, -1.0, 4.0, 1.0]))
    reg = ISRRegressor().fit_moments(moments)
    plain = ISRRegressor(0).fit_moments(moments)
    assert reg.compared_ == "nothing"
    assert reg.n_spurious_ == 0
    np.testing.assert_allclose(reg.coef_, plain.coef_, atol=1e-12)
    errors = reg.held_out_
    assert errors["means"].mean() > 1.2 * errors["nothing"].mean()


@pytest.mark.parametrize("E", [4, 7, 25])
def test_a_planted_direction_is_removed(E):
    moments, basis = planted(E)
    reg = ISRRegressor().fit_moments(moments)
    assert principal_angles(reg.spurious_basis_, basis)[0] < 1e-8
    assert np.abs(reg.coef_ @ basis).max() < 1e-8
    assert set(reg.held_out_) == {"nothing", "means", "given-target"}
    assert all(values.shape == (E,) for values in reg.held_out_.values())
    assert reg.held_out_[reg.compared_].mean() < reg.held_out_["nothing"].mean()


@pytest.mark.parametrize(
    "parameters",
    [{"n_spurious": 2}, {"variant": "paper"}, {"head": (np.ones(5), 0.0)}, {"compare": "means"}],
    ids=str,
)
def test_explicit_choices_are_not_overruled(parameters):
    moments = population(np.ones(5), np.zeros((5, 5)), np.array([0.0, 2.0, -1.0, 4.0, 1.0]))
    reg = ISRRegressor(**parameters).fit_moments(moments)
    known = regression_subspace(
        moments.columns(5),
        parameters.get("n_spurious", "auto"),
        variant=parameters.get("variant", "pooled"),
    )
    assert (reg.compared_, reg.held_out_) == ("means", None)
    assert reg.n_spurious_ == known.rank > 0
    assert principal_angles(reg.spurious_basis_, known.basis)[0] < 1e-7


def test_errors_are_those_of_estimators_fitted_on_the_others(continuous):
    X, y, e = continuous
    ranks = {"means": 2, "given-target": 1}
    errors = held_out_errors(cell_moments(X, None, e, targets=y), ranks, alpha=3.0, scale=0.5)
    for how, rank in {"nothing": 0, **ranks}.items():
        compare = "means" if how == "nothing" else how
        for i, name in enumerate(np.unique(e)):
            out = e == name
            reg = ISRRegressor(rank, compare=compare, alpha=3.0, scale=0.5)
            reg.fit(X[~out], y[~out], environments=e[~out])
            expected = np.sqrt(np.mean((y[out] - reg.predict(X[out])) ** 2))
            assert errors[how][i] == pytest.approx(expected, rel=1e-8)


def test_weights_count_on_held_out_environments_too(continuous):
    X, y, e = continuous
    rows = np.concatenate([np.flatnonzero(e == v)[: 200 - 50 * i] for i, v in enumerate(set(e))])
    X, y, e = X[rows], y[rows], e[rows]
    reg = ISRRegressor(weights="group").fit(X, y, environments=e)
    name = reg.environments_[1]
    other = ISRRegressor(0, weights="group").fit(X[e != name], y[e != name], e[e != name])
    rmse = np.sqrt(np.mean((y[e == name] - other.predict(X[e == name])) ** 2))
    assert reg.held_out_["nothing"][1] == pytest.approx(rmse, rel=1e-8)


def test_two_environments_remove_nothing_and_say_so():
    rng = np.random.default_rng(0)
    X, e = rng.normal(size=(200, 3)), np.arange(200) % 2
    X[:, 0] += 3.0 * e
    y = X[:, 1] + rng.normal(size=200)
    with pytest.warns(UserWarning, match="with two environments none can be held out"):
        reg = ISRRegressor().fit(X, y, environments=e)
    assert (reg.n_spurious_, reg.compared_, reg.held_out_) == (0, "nothing", None)
    assert reg.rank_test_.rank == 1
    assert ISRRegressor(compare="given-target").fit(X, y, environments=e).n_spurious_ == 1


def test_clusters_are_compared_given_their_target():
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(120), 5)
    e = clusters % 3
    y = np.repeat(rng.normal(size=120), 5) + e
    X = np.outer(y, [1.0, 0.5]) + np.repeat(rng.normal(size=(120, 2)), 5, axis=0)
    X += 0.01 * rng.normal(size=X.shape)
    given = ISRRegressor(compare="given-target")
    assert given.fit(X, y, e, clusters=clusters).rank_test_.p_values[0] > 0.01
    assert ISRRegressor(compare="means").fit(X, y, e, clusters=clusters).n_spurious_ == 1


def test_in_doubt_nothing():
    plain = np.array([1.0, 2.0, 3.0, 2.0])
    better, unsure = plain - [0.2, 0.3, 0.2, 0.3], plain - [0.9, -0.6, 0.0, 0.1]
    assert beyond_doubt({"nothing": plain, "means": unsure}) == "nothing"
    assert beyond_doubt({"nothing": plain, "means": better, "given-target": unsure}) == "means"


def test_a_search_keeps_ridge_where_only_the_target_shifts():
    rng = np.random.default_rng(0)
    e = np.repeat(np.arange(5), 60)
    y = rng.normal(size=300) + np.array([0.0, 2.0, -1.0, 4.0, 1.0])[e]
    X = np.outer(y, [1.0, -0.5, 0.0]) + rng.normal(size=(300, 3))
    search = ISRRegressorCV().fit(X, y, e)
    assert (search.selection_, search.n_splits_) == ("leave-one-environment-out", 5)
    assert {point["compare"] for point in search.cv_results_["params"]} == {"means", "given-target"}
    plain = ISRRegressorCV(n_spurious=0, scale=1.0).fit(X, y, e)
    np.testing.assert_allclose(search.coef_, plain.coef_, atol=1e-12)


def test_a_search_removes_what_misleads_in_held_out_environments():
    rng = np.random.default_rng(1)
    e = np.repeat(np.arange(8), 60)
    Z = rng.normal(size=(480, 2))
    y = Z @ [1.0, -1.0] + rng.normal(size=480)
    sign = np.where(np.arange(8) % 2, 1.0, -1.0)
    follower = sign[e] * y + rng.normal(size=8)[e] + 0.3 * rng.normal(size=480)
    X = np.column_stack([Z, follower])
    search = ISRRegressorCV(alpha=1.0, scale=[0.0, 1.0], weights=None).fit(X, y, e)
    assert search.best_params_["scale"] == 0.0
    assert abs(search.coef_[2]) < 0.05


def test_what_the_search_leaves_out_depends_on_what_is_given(continuous):
    X, y, e = continuous
    grid = {"n_spurious": [1], "alpha": 1.0, "weights": None}
    two = e != "north"
    two &= e != "south"
    given = ISRRegressorCV(**grid).fit(X, y, e, validation=(X, y, e))
    for search in (
        ISRRegressorCV(**grid).fit(X[two], y[two], e[two]),
        ISRRegressorCV(**grid, cv=[(np.arange(400), np.arange(400, 800))]).fit(X, y, e),
        given,
    ):
        assert search.selection_ == "worst-group"
    assert ISRRegressorCV(**grid).fit(X, y, e).selection_ == "leave-one-environment-out"
    paper = ISRRegressorCV(**grid, variant="paper").fit(X, y, e)
    assert {point["compare"] for point in paper.cv_results_["params"]} == {"means"}


def test_a_model_file_keeps_the_errors(continuous, tmp_path):
    X, y, e = continuous
    reg = ISRRegressor().fit(X, y, environments=e)
    save(reg, tmp_path / "model.safetensors")
    again = load(tmp_path / "model.safetensors")
    assert again.compared_ == reg.compared_
    for how, values in reg.held_out_.items():
        np.testing.assert_array_equal(again.held_out_[how], values)


def test_many_environments_are_left_out_in_twenty_folds():
    rng = np.random.default_rng(0)
    e = np.repeat(np.arange(45), 6)
    X, y = rng.normal(size=(270, 2)), rng.normal(size=270)
    search = ISRRegressorCV(n_spurious=[1], alpha=1.0, scale=[0.0, 1.0], weights=None).fit(X, y, e)
    assert search.n_splits_ == 20


def test_permutation_is_for_means():
    with pytest.raises(ValueError, match="n_spurious='permutation' compares means"):
        ISRRegressor("permutation", compare="given-target").fit([[0.0], [1.0]], [0.0, 1.0], [0, 1])


# Classifiers


def people(n_people, n, seed, *, K=3):
    """Classes that shift with the person wherever they differ clearly, by less than they differ."""
    rng = np.random.default_rng(seed)
    y, e = rng.integers(K, size=n), rng.integers(n_people, size=n)
    signal, shift = rng.normal(size=(K, 7)), rng.normal(size=(K, n_people, 5))
    X = signal[y] * [2, 2, 2, 2, 2, 0.3, 0.3] + rng.normal(size=(n, 7))
    X[:, :5] += 0.7 * shift[y, e]
    return X, y, e


def agreeing(shares, n, seed):
    """A shortcut, right in these shares of the rows of each environment, and a noisier cause."""
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(len(shares)), n)
    cause = rng.integers(2, size=len(e))
    y = np.where(rng.random(len(e)) < 0.25, 1 - cause, cause)
    colour = np.where(rng.random(len(e)) < np.asarray(shares)[e], y, 1 - y)
    X = np.column_stack([2 * cause - 1, 2 * colour - 1, np.zeros((len(e), 4))])
    return X + rng.normal(size=X.shape) * [0.5, 0.1, 1, 1, 1, 1], y, e


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("method", ["mean", "joint"])
def test_the_accuracy_from_moments_is_that_of_rows(K, method):
    X, y, e = people(4, 40_000, 0, K=K)
    found = held_out_accuracy(cell_moments(X, y, e), METHODS[method], 2)
    for name in range(4):
        out = e == name
        for how, rank in (("nothing", 0), ("removal", 2)):
            clf = ISRClassifier(method, n_spurious=rank, head="lda", weights="class")
            right = clf.fit(X[~out], y[~out], e[~out]).predict(X[out]) == y[out]
            accuracy = np.mean([right[y[out] == k].mean() for k in range(K)])
            # With three classes, only the nearest other one counts.
            assert found[how][name] == pytest.approx(accuracy, abs=0.01 if K == 2 else 0.05)


def test_a_harmful_removal_is_not_made():
    X, y, e = people(10, 4000, 0)
    with pytest.warns(UserWarning, match=r"left out from 0\.\d\d to .* n_spurious=5 removes it"):
        clf = ISRClassifier().fit(X, y, e)
    assert clf.n_spurious_ == 0
    assert clf.rank_test_.rank == 5
    assert (clf.held_out_["removal"] < clf.held_out_["nothing"]).all()
    plain = ISRClassifier(n_spurious=0, weights="class").fit(X, y, e)
    np.testing.assert_allclose(clf.coef_, plain.coef_, atol=1e-10)
    # What was asked for is done.
    assert ISRClassifier(n_spurious=2).fit(X, y, e).n_spurious_ == 2
    with pytest.warns(UserWarning, match="nothing was removed"):
        within = ISRClassifier(weights="within").fit(X, y, e)
    expected = ISRClassifier(n_spurious=0, weights="within").fit(X, y, e)
    np.testing.assert_allclose(within.coef_, expected.coef_, atol=1e-10)


def test_a_search_tries_no_harmful_removal():
    X, y, e = people(10, 2000, 1)
    with pytest.warns(UserWarning, match="nothing was removed"):
        search = ISRClassifierCV().fit(X, y, e)
    assert {point["scale"] for point in search.cv_results_["params"]} == {1.0}
    assert {point["weights"] for point in search.cv_results_["params"]} == {
        "auto",
        "class",
        "group",
    }
    # Without a setting that removes nothing there is nothing to choose.
    only = ISRClassifierCV(scale=0.0, n_spurious=[1, 2], C=0.1).fit(X, y, e)
    assert only.best_params_["scale"] == 0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shares", [(0.9, 0.85, 0.8), np.linspace(0.95, 0.6, 12)], ids=len)
def test_a_shortcut_that_helps_in_all_environments_is_removed(shares, seed):
    X, y, e = agreeing(shares, 1000, seed)
    clf = ISRClassifier().fit(X, y, e)
    assert clf.n_spurious_ == 1
    # Removal costs accuracy in environments like these, and wins where the shortcut is reversed.
    found = held_out_accuracy(clf.moments_, METHODS["mean"], 1)
    assert found["removal"].mean() < found["nothing"].mean()
    X, y, e = agreeing((0.1,), 2000, seed + 100)
    plain = ISRClassifier(n_spurious=0).fit(*agreeing(shares, 1000, seed))
    assert clf.score(X, y) > plain.score(X, y) + 0.1


@pytest.mark.parametrize("seed", range(3))
def test_the_check_needs_moments_only(seed):
    X, y, e = people(9, 2500, seed)
    how = {"head": "lda", "weights": "class"}
    with pytest.warns(UserWarning, match="nothing was removed"):
        clf = ISRClassifier(**how).fit(X, y, e)
    with pytest.warns(UserWarning, match="nothing was removed"):
        from_moments = ISRClassifier(**how).fit_moments(cell_moments(X, y, e))
    for name, accuracy in clf.held_out_.items():
        np.testing.assert_allclose(from_moments.held_out_[name], accuracy, atol=1e-9)


def test_a_few_environments_decide_nothing():
    X, y, e = people(8, 2000, 0)
    clf = ISRClassifier().fit(X, y, e)
    assert clf.n_spurious_ > 0
    assert clf.held_out_ is None


def test_an_environment_that_alone_differs_can_be_left_out():
    mean, covariance = np.zeros((2, 10, 3)), np.tile(np.eye(3), (2, 10, 1, 1))
    mean[1, :, 0], covariance[:, 4, 2, 2] = 2.0, 5.0
    clf = ISRClassifier("cov", head="lda").fit_moments(Moments.population(mean, covariance, 100.0))
    assert clf.n_spurious_ == 1
    assert np.flatnonzero(np.isnan(clf.held_out_["removal"])).tolist() == [4]


def test_few_rows_are_checked_in_the_directions_that_are_compared():
    X, y, e = people(9, 400, 0)
    noise = np.random.default_rng(1).normal(size=(len(X), 60))
    X = np.hstack([X, 0.1 * noise])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = ISRClassifier("multiclass", n_components=None).fit(X, y, e)
    moments = cell_moments(X, y, e)
    P = principal_components(moments, len(X) // 10)[0]
    expected = held_out_accuracy(
        moments.map(P), METHODS["multiclass"], clf.rank_test_.rank, penalty=1.0
    )
    for how, accuracy in expected.items():
        np.testing.assert_allclose(clf.held_out_[how], accuracy, atol=1e-8)
