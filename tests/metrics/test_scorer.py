"""The scorer receives the right environments through scikit-learn, or raises an error."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate

from isrlearn.metrics import WorstGroupScorer, group_report, worst_group_accuracy


class Threshold(ClassifierMixin, BaseEstimator):
    """Predicts whether a feature is positive; remembers the environments it was fitted with."""

    __metadata_request__fit = {"environments": True}

    def __init__(self, feature=0):
        self.feature = feature

    def fit(self, X, y, environments=None):
        if environments is None:
            raise ValueError("environments did not arrive in fit")
        self.classes_ = np.unique(y)
        self.environments_ = np.unique(environments)
        return self

    def predict(self, X):
        return (X[:, self.feature] > 0).astype(int)


@pytest.fixture
def data():
    # Feature 0 is wrong in one group alone, feature 1 a little everywhere: the first has the
    # better average, the second the better worst group.
    rng = np.random.default_rng(0)
    n = 400
    y = rng.integers(2, size=n)
    environments = np.where(rng.random(n) < 0.9, "common", "rare")
    sign = 2 * y - 1
    shortcut = np.where((environments == "rare") & (y == 1), -sign, sign)
    noisy = np.where(rng.random(n) < 0.2, -sign, sign)
    return np.column_stack([shortcut, noisy]), y, environments


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_cross_validate_scores_each_fold_with_its_own_environments(data, routing):
    X, y, environments = data
    folds = KFold(4)
    result = cross_validate(
        Threshold(1),
        X,
        y,
        scoring=WorstGroupScorer(),
        cv=folds,
        params={"environments": environments},
        error_score="raise",
    )
    prediction = Threshold(1).predict(X)
    expected = [
        worst_group_accuracy(y[t], prediction[t], environments[t]) for _, t in folds.split(X)
    ]
    np.testing.assert_array_equal(result["test_score"], expected)
    assert len(set(expected)) > 1


def test_it_works_beside_other_scorers(data, routing):
    X, y, environments = data
    result = cross_validate(
        Threshold(0),
        X,
        y,
        scoring={"worst": WorstGroupScorer(), "two": WorstGroupScorer(k=2), "plain": "accuracy"},
        cv=3,
        params={"environments": environments},
        error_score="raise",
    )
    np.testing.assert_array_equal(result["test_worst"], 0.0)
    np.testing.assert_array_equal(result["test_two"], 0.5)
    assert (result["test_plain"] > 0.9).all()


def test_grid_search_picks_the_better_worst_group(data, routing):
    X, y, environments = data
    chosen = {}
    for scoring in ("accuracy", WorstGroupScorer()):
        search = GridSearchCV(
            Threshold(), {"feature": [0, 1]}, scoring=scoring, cv=4, error_score="raise"
        )
        search.fit(X, y, environments=environments)
        chosen[str(scoring)] = search.best_params_["feature"]
    assert chosen == {"accuracy": 0, "WorstGroupScorer(metric='accuracy', k=1)": 1}
    held_out = search.score(X, y, environments=environments)
    assert held_out == worst_group_accuracy(y, search.predict(X), environments)


@pytest.mark.parametrize("metric", ["rmse", "r2"])
def test_greater_is_better_for_regressions_too(metric):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    y = X @ [1.0, -1.0] + 0.1 * rng.standard_normal(60)
    environments = np.arange(60) % 3
    scorer = WorstGroupScorer(metric)
    good = scorer(LinearRegression().fit(X, y), X, y, environments=environments)
    bad = scorer(LinearRegression().fit(X[:, ::-1], y), X, y, environments=environments)
    assert good > bad


def test_without_environments_it_raises(data):
    X, y, environments = data
    model = Threshold().fit(X, y, environments=environments)
    with pytest.raises(ValueError, match="need environments"):
        WorstGroupScorer()(model, X, y)


def test_without_environments_it_raises_through_cross_validate(data, routing):
    X, y, _ = data
    with pytest.raises(ValueError, match="need environments"):
        cross_validate(
            LogisticRegression(), X, y, scoring=WorstGroupScorer(), cv=2, error_score="raise"
        )


def test_k_averages_the_worst_groups(data):
    X, y, environments = data
    model = Threshold(1).fit(X, y, environments=environments)
    expected = group_report(y, model.predict(X), environments).worst_k(3)
    assert WorstGroupScorer(k=3)(model, X, y, environments=environments) == expected


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s)), lambda s: eval(repr(s))]
)
def test_it_copies_pickles_and_reads_back_from_its_repr(duplicate):
    scorer = WorstGroupScorer("rmse", k=2)
    assert duplicate(scorer) == scorer


def test_a_search_that_holds_it_clones():
    search = GridSearchCV(Threshold(), {"feature": [0]}, scoring=WorstGroupScorer(k=2))
    assert clone(search).scoring == WorstGroupScorer(k=2)


@pytest.mark.parametrize(
    ("arguments", "message"), [({"metric": "auc"}, "got 'auc'"), ({"k": 0}, "at least 1, got 0")]
)
def test_bad_settings_are_an_error_at_once(arguments, message):
    with pytest.raises(ValueError, match=message):
        WorstGroupScorer(**arguments)
