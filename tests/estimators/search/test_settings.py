"""Every setting of a grid is scored as its estimator by itself would be."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from isrlearn.estimators import ISRClassifierCV, ISRRegressorCV
from isrlearn.estimators.pipeline import Fitter
from isrlearn.metrics import group_report

GRID = {"n_spurious": [1, 2], "scale": [0.0, 0.3], "C": [0.01, 1.0], "weights": [None, "group"]}
MORE = {"n_spurious": ["auto", 0, 1], "scale": [0.0, 1.0], "weights": [None, "class", "group"]}
LAST_LAYER = (np.random.default_rng(0).normal(size=(1, 10)), np.ones(1))

CLASSIFIERS = {
    "whitened": (MORE, {}),
    "principal components": ({"n_components": 6}, {}),
    "few rows": (MORE | {"n": 60}, {}),
    "few rows, principal components": ({"n": 90, "n_components": 5}, {}),
    "four methods": ({"method": ["mean", "cov", "joint", "multiclass"], "weights": None}, {}),
    "as published": ({"variant": "paper", "method": ["mean", "multiclass"]}, {}),
    "one class": ({}, {"only": "a"}),
    "permutation test": ({"n_spurious": "permutation", "C": 1.0}, {}),
    "lda": ({"head": ["lda"]}, {}),
    "an estimator": ({"head": LogisticRegression(C=0.3, tol=1e-10, max_iter=1000)}, {}),
    "a last layer": ({"head": LAST_LAYER}, {}),
    "three classes": ({}, {"n_classes": 3}),
}


def outputs_of(search, data, n):
    """Decision functions on rows n and after of all settings, fitted together on the rest."""
    sample = search._sample(data.X, data.y, data.environments, reset=True)
    estimators = [search._estimator(**point) for point in search._points(sample)]
    settings = [estimator._settings() for estimator in estimators]
    fitter = Fitter(sample.rows(np.arange(n)), settings, clip=True)
    fitted = [fitter.fit(s) for s in settings]
    return estimators, [data.X[n:] @ f.coef.T + f.intercept for f in fitted]


@pytest.mark.filterwarnings("ignore:covariances do not differ")
@pytest.mark.parametrize(("change", "shape"), CLASSIFIERS.values(), ids=CLASSIFIERS.keys())
def test_a_setting_is_its_classifier(shortcut, change, shape):
    n, change = change.get("n", 240), {k: v for k, v in change.items() if k != "n"}
    data = shortcut(n + 60, **{k: v for k, v in shape.items() if k != "only"})
    if "only" in shape:
        known = np.where(data.y == shape["only"], data.environments, np.nan)
        data = type(data)(data.X, data.y, known)
    estimators, outputs = outputs_of(ISRClassifierCV(**GRID | change), data, n)
    assert len(outputs) == len(estimators) > 2
    for i, estimator in enumerate(estimators):
        estimator.fit(data.X[:n], data.y[:n], environments=data.environments[:n])
        expected = estimator.decision_function(data.X[n:])
        found = outputs[i][:, 0] if expected.ndim == 1 else outputs[i]
        np.testing.assert_allclose(found, expected, atol=1e-6 * max(1.0, np.abs(expected).max()))


REGRESSORS = {
    "whitened": {"n_spurious": ["auto", 0, 1], "scale": [0.0, 1.0]},
    "principal components": {"n_components": 5},
    "few rows": {"n": 40},
    "as published": {"variant": "paper"},
    "an estimator": {"head": LinearRegression()},
    "a last layer": {"head": (np.arange(8.0), 1.0)},
}


@pytest.mark.parametrize("change", REGRESSORS.values(), ids=REGRESSORS.keys())
def test_a_setting_is_its_regressor(regression_shortcut, change):
    n, change = change.get("n", 200), {k: v for k, v in change.items() if k != "n"}
    data = regression_shortcut(n + 50)
    grid = {"n_spurious": [1, 2], "scale": [0.0, 0.3], "alpha": [0.0, 1.0, 100.0]}
    search = ISRRegressorCV(**grid | change)
    estimators, outputs = outputs_of(search, data, n)
    assert len(outputs) == len(estimators) > 2
    for i, estimator in enumerate(estimators):
        estimator.fit(data.X[:n], data.y[:n], environments=data.environments[:n])
        np.testing.assert_allclose(outputs[i], estimator.predict(data.X[n:]), rtol=1e-7, atol=1e-7)


def test_float32_rows_agree(shortcut):
    data = shortcut(300)
    narrow = type(data)(data.X.astype(np.float32), data.y, data.environments)
    search = ISRClassifierCV(**GRID)
    _, wide = outputs_of(search, data, 240)
    _, outputs = outputs_of(search, narrow, 240)
    for found, expected in zip(outputs, wide, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("selection", ["worst-group", "average"])
def test_scores_are_those_of_the_group_report(data, selection):
    folds = [(np.arange(100, 400), np.arange(100)), (np.arange(300), np.arange(300, 400))]
    search = ISRClassifierCV(
        n_spurious=[1, 2], scale=[0.0, 1.0], C=[0.1], cv=folds, selection=selection
    ).fit(data.X, data.y, environments=data.environments)
    results = search.cv_results_
    for i, point in enumerate(results["params"]):
        for j, (train, test) in enumerate(folds):
            estimator = search._estimator(**point)
            estimator.fit(data.X[train], data.y[train], environments=data.environments[train])
            predicted = estimator.predict(data.X[test])
            report = group_report(data.y[test], predicted, environments=data.environments[test])
            assert results[f"split{j}_worst_group"][i] == pytest.approx(report.worst)
            assert results[f"split{j}_average"][i] == pytest.approx(report.average)
            chosen = report.worst if selection == "worst-group" else report.average
            assert results[f"split{j}_test_score"][i] == pytest.approx(chosen)
    mean = np.mean([results[f"split{j}_test_score"] for j in range(2)], axis=0)
    np.testing.assert_allclose(results["mean_test_score"], mean)
    pooled = results[f"pooled_{selection.replace('-', '_')}"]
    assert search.best_score_ == pooled[search.best_index_]
    for i, point in enumerate(results["params"]):
        rows, predicted = np.concatenate([test for _, test in folds]), []
        for train, test in folds:
            estimator = search._estimator(**point)
            estimator.fit(data.X[train], data.y[train], environments=data.environments[train])
            predicted.append(estimator.predict(data.X[test]))
        report = group_report(data.y[rows], np.concatenate(predicted), data.environments[rows])
        assert results["pooled_worst_group"][i] == pytest.approx(report.worst)
        assert results["pooled_average"][i] == pytest.approx(report.average)


def test_the_best_score_is_no_mean_of_minima(shortcut):
    # Small groups: the mean of five folds' worst groups is far below the accuracy on new rows.
    gaps = []
    for seed in range(8):
        train, test = shortcut(240, seed=seed), shortcut(4000, seed=seed)
        search = ISRClassifierCV(n_spurious=2, scale=0.0, C=1.0, weights=None, cv=5)
        search.fit(train.X, train.y, environments=train.environments)
        true = group_report(test.y, search.predict(test.X), test.environments).worst
        gaps.append((search.best_score_ - true, search.cv_results_["mean_test_score"][0] - true))
    pooled, mean = np.mean(gaps, axis=0)
    assert mean < -0.05
    assert abs(pooled) < 0.6 * abs(mean)


def test_regression_scores_are_those_of_the_group_report(numbers):
    folds = [(np.arange(60, 300), np.arange(60))]
    search = ISRRegressorCV(n_spurious=[1, 2], cv=folds)
    search.fit(numbers.X, numbers.y, environments=numbers.environments)
    (train, test) = folds[0]
    for i, point in enumerate(search.cv_results_["params"]):
        estimator = search._estimator(**point)
        estimator.fit(numbers.X[train], numbers.y[train], environments=numbers.environments[train])
        predicted = estimator.predict(numbers.X[test])
        report = group_report(
            numbers.y[test], predicted, environments=numbers.environments[test], metric="rmse"
        )
        assert search.cv_results_["mean_worst_group"][i] == pytest.approx(-report.worst)
        assert search.cv_results_["mean_average"][i] == pytest.approx(-report.average)


def test_equal_settings_are_computed_once(data, monkeypatch):
    """Nothing is erased at scale 1 or rank 0, and "auto" is one of the counts."""
    search = ISRClassifierCV(n_spurious=["auto", 0, 1, 2], scale=[0.0, 1.0], C=1.0, weights=None)
    sample = search._sample(data.X, data.y, data.environments, reset=True)
    settings = [search._estimator(**point)._settings() for point in search._points(sample)]
    fits = []
    logistic = type(sample).logistic
    monkeypatch.setattr(
        type(sample), "logistic", lambda *args: fits.append(args) or logistic(*args)
    )
    fitter = Fitter(sample, settings, clip=True)
    fitted = [fitter.fit(s) for s in settings]
    assert len(settings) == 8
    assert len(fits) == 3
    assert len({f.coef.tobytes() for f in fitted}) == 3


def test_a_class_unseen_in_training_counts_as_wrong(shortcut):
    data = shortcut(200, n_classes=3)
    train, test = np.flatnonzero(data.y != "c"), np.arange(200)
    search = ISRClassifierCV(n_spurious=1, scale=0.0, C=1.0, weights=None, cv=[(train, test)])
    search.fit(data.X, data.y, environments=data.environments)
    assert search.cv_results_["mean_worst_group"][0] == 0.0
    assert search.cv_results_["mean_average"][0] <= np.mean(data.y != "c")


def test_rows_of_unknown_environment_train_and_count_in_the_average(data):
    environments = data.environments.astype(float)
    environments[::4] = np.nan
    folds = [(np.arange(100, 400), np.arange(100))]
    search = ISRClassifierCV(n_spurious=2, scale=0.0, C=1.0, cv=folds)
    search.fit(data.X, data.y, environments=environments)
    train, test = folds[0]
    for i, point in enumerate(search.cv_results_["params"]):
        estimator = search._estimator(**point)
        estimator.fit(data.X[train], data.y[train], environments=environments[train])
        report = group_report(
            data.y[test], estimator.predict(data.X[test]), environments=environments[test]
        )
        assert search.cv_results_["mean_worst_group"][i] == pytest.approx(report.worst)
        assert search.cv_results_["mean_average"][i] == pytest.approx(report.average)


def test_no_warning_of_its_own(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ISRClassifierCV(C=[1.0]).fit(data.X, data.y, environments=data.environments)
