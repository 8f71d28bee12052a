"""The converged optimiser: true minima, whatever the units of the features."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression

from isrlearn.paper.baselines import (
    ERMClassifier,
    ERMRegressor,
    GroupDROClassifier,
    GroupDRORegressor,
    IBERMClassifier,
    IBERMRegressor,
    IBIRMClassifier,
    IGAClassifier,
    IGARegressor,
    IRMv1Classifier,
    IRMv1Regressor,
    ReweightedClassifier,
    VRExClassifier,
    VRExRegressor,
)
from isrlearn.paper.baselines.solve import whitened_coordinates
from isrlearn.paper.datasets import (
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
)

CLASSIFIERS = [
    ERMClassifier(),
    ReweightedClassifier(),
    GroupDROClassifier(),
    IRMv1Classifier(0.9),
    IGAClassifier(100.0),
    VRExClassifier(10.0),
    IBERMClassifier(),
    IBIRMClassifier(),
]
REGRESSORS = [
    ERMRegressor(),
    GroupDRORegressor(),
    IRMv1Regressor(0.9),
    IGARegressor(10.0),
    VRExRegressor(1.0),
    IBERMRegressor(),
]


def overlapping(n_classes=2, seed=0, sizes=(300, 200, 400)):
    """Classes that overlap, so that every risk has a minimum; features of very different size."""
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(3), sizes)
    y = rng.integers(0, n_classes, size=len(e))
    shift = rng.normal(size=(n_classes, 4))
    drift = rng.normal(size=(3, n_classes, 4)) * [0, 0, 1, 1]
    X = shift[y] + drift[e, y] + 1.5 * rng.normal(size=(len(e), 4))
    return X * [1.0, 1e-3, 1e2, 1.0], y, e


def linear(seed=0):
    rng = np.random.default_rng(seed)
    e = np.repeat(np.arange(3), [300, 200, 400])
    X = rng.normal(size=(900, 4))
    y = X[:, 0] + 0.3 * rng.normal(size=900)
    X[:, 3] += y * np.array([0.5, 1.0, 2.0])[e]
    return X * [1.0, 1e-3, 1e2, 1.0], y, e


def gradient_at(model, X, y, e):
    """Largest entry of the gradient of the model's objective, in whitened coordinates."""
    problem = model._problem(X, y, e, None)
    mean, factor = whitened_coordinates(X, None)
    risks, shares = replace(problem, X=(X - mean) @ factor).risks()
    W = np.vstack([np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)])
    V = np.vstack([np.linalg.solve(factor, W[:-1]), W[-1] + mean @ W[:-1]])
    *_, final = model._stages(shares)
    return np.abs(final.gradient([risk.at(V) for risk in risks])).max()


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda m: type(m).__name__)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_gradient_of_classifiers_is_below_the_tolerance(model, n_classes):
    X, y, e = overlapping(n_classes)
    model.fit(X, y, environments=e)
    assert gradient_at(model, X, y, e) <= 1.01 * model.tol


@pytest.mark.parametrize("model", REGRESSORS, ids=lambda m: type(m).__name__)
def test_gradient_of_regressors_is_below_the_tolerance(model):
    X, y, e = linear()
    model.fit(X, y, environments=e)
    assert gradient_at(model, X, y, e) <= 1.01 * model.tol


@pytest.mark.parametrize(
    "model",
    [*CLASSIFIERS, IRMv1Classifier(0.999), IGAClassifier(1e4)],
    ids=lambda m: type(m).__name__,
)
def test_units_do_not_matter(model):
    """A change of units, even a rotation and a shift, changes no prediction."""
    X, y, e = overlapping()
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(4, 4)) * [1.0, 100.0, 1e-4, 1.0], rng.normal(size=4)
    one = model.fit(X, y, environments=e).decision_function(X)
    two = model.fit(X @ A + b, y, environments=e).decision_function(X @ A + b)
    np.testing.assert_allclose(one, two, atol=1e-3)


def test_erm_is_unpenalised_logistic_regression():
    for n_classes in (2, 3):
        X, y, _ = overlapping(n_classes)
        X = X / X.std(axis=0)
        theirs = LogisticRegression(C=np.inf, tol=1e-8, max_iter=1000).fit(X, y)
        ours = ERMClassifier().fit(X, y)
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)


def test_erm_regression_is_least_squares():
    X, y, _ = linear()
    theirs, ours = LinearRegression().fit(X, y), ERMRegressor().fit(X, y)
    np.testing.assert_allclose(ours.coef_ * X.std(axis=0), theirs.coef_ * X.std(axis=0), atol=1e-6)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-6)


@pytest.mark.parametrize(
    ("zero", "task"),
    [
        (IRMv1Classifier(0.0), "c"),
        (IGAClassifier(0.0), "c"),
        (VRExClassifier(0.0), "c"),
        (IBERMClassifier(0.0), "c"),
        (IRMv1Regressor(0.0), "r"),
        (IGARegressor(0.0), "r"),
    ],
)
def test_without_its_penalty_a_method_is_erm(zero, task):
    X, y, _ = overlapping(sizes=(300, 300, 300)) if task == "c" else linear()
    e = np.repeat(np.arange(3), 300)  # of one size: the mean of risks is the risk of all
    erm = (ERMClassifier() if task == "c" else ERMRegressor()).fit(X, y)
    zero.fit(X, y, environments=e)
    np.testing.assert_allclose(zero.coef_ * X.std(axis=0), erm.coef_ * X.std(axis=0), atol=1e-4)


def test_reweighting_is_erm_with_balanced_weights():
    X, y, e = overlapping()
    counts = np.array([[np.sum((y == k) & (e == a)) for a in range(3)] for k in range(2)])
    weight = len(y) / (counts.size * counts[y, e])
    weighted = ERMClassifier().fit(X, y, sample_weight=weight)
    balanced = ReweightedClassifier().fit(X, y, environments=e)
    np.testing.assert_allclose(balanced.predict_proba(X), weighted.predict_proba(X), atol=1e-5)


def test_group_dro_lowers_the_largest_risk():
    X, y, e = overlapping()

    def cell_risks(model):
        p = model.predict_proba(X)[np.arange(len(y)), y]
        return [-np.log(p[(y == k) & (e == a)]).mean() for k in (0, 1) for a in range(3)]

    robust = max(cell_risks(GroupDROClassifier(smoothing=1e-4).fit(X, y, environments=e)))
    balanced = max(cell_risks(ReweightedClassifier().fit(X, y, environments=e)))
    assert robust < balanced
    # No small step away from it lowers the largest risk: it is the minimum, up to the smoothing.
    model = GroupDROClassifier(smoothing=1e-4).fit(X, y, environments=e)
    coef = model.coef_.copy()
    for direction in np.eye(4) / X.std(axis=0):
        for step in (-0.05, 0.05):
            model.coef_ = coef + step * direction
            assert max(cell_risks(model)) > robust - 1e-4 * np.log(6)


@pytest.mark.parametrize("n_environments", range(2, 11))
@pytest.mark.parametrize("name", ["2", "2s"])
def test_example_2_is_solved_by_erm_that_converges(name, n_environments):
    splits = make_linear_unit_test(
        name, n_environments=n_environments, n_samples=3000, random_state=n_environments
    )
    model = ERMClassifier().fit(splits.train.X, splits.train.y)
    assert 1 - model.score(splits.test.X, splits.test.y) < 0.0015


def test_irm_finds_the_invariant_predictor_of_the_anti_causal_regression():
    splits = make_regression_unit_test(
        n_environments=6, n_samples=3000, anticausal=True, random_state=0
    )
    train, test = splits.train, splits.test

    def error(model):
        model.fit(train.X, train.y, environments=train.environments)
        return np.mean((model.predict(test.X) - test.y) ** 2)

    assert error(IRMv1Regressor(0.99)) < 0.012 < 0.03 < error(ERMRegressor())


def test_multiclass_unit_test_runs():
    splits = make_multiclass_unit_test(n_environments=3, n_samples=1000, random_state=0)
    train = splits.train
    for model in (ERMClassifier(), IRMv1Classifier(0.9), IGAClassifier(100.0)):
        model.fit(train.X, train.y, environments=train.environments)
        assert model.coef_.shape == (len(np.unique(train.y)), train.X.shape[1])
        assert model.score(train.X, train.y) > 0.9


def test_constant_and_collinear_features_get_finite_weights():
    X, y, e = overlapping()
    X = np.column_stack([X, np.full(len(y), 7.0), X[:, 0] + X[:, 3]])
    model = IRMv1Classifier(0.5).fit(X, y, environments=e)
    plain = IRMv1Classifier(0.5).fit(X[:, :4], y, environments=e)
    assert model.coef_[0, 4] == 0.0
    np.testing.assert_allclose(
        model.decision_function(X), plain.decision_function(X[:, :4]), atol=1e-4
    )


def test_weight_decay_shrinks_whitened_weights():
    X, y, _ = overlapping()
    free = ERMClassifier().fit(X, y)
    shrunk = ERMClassifier(weight_decay=1.0).fit(X, y)
    spread = [np.std(model.decision_function(X)) for model in (free, shrunk)]
    assert spread[1] < 0.5 * spread[0]


def test_too_few_iterations_are_reported():
    X, y, e = overlapping()
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        IRMv1Classifier(0.9, max_iter=1).fit(X, y, environments=e)
