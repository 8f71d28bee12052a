"""The searches as a whole: what is chosen, from what, and what is reported."""

from __future__ import annotations

import io
import sys

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from isrlearn import ISRClassifier, ISRRegressor
from isrlearn.core.labels import Cells
from isrlearn.estimators import ISRClassifierCV, ISRRegressorCV
from isrlearn.estimators.folds import folds_of
from isrlearn.estimators.selection import (
    best_of,
    candidates,
    counts,
    effort,
    on_front,
)
from isrlearn.metrics import WorstGroupScorer, worst_group_accuracy

GRID = {"n_spurious": [1, 2], "scale": [0.0, 1.0], "C": [0.1, 1.0]}
SMALL = GRID | {"weights": None, "cv": 2, "threshold": None}


def test_agrees_with_grid_search(data):
    """The same folds, the same scores, the same choice as scikit-learn's search."""
    cells = Cells.of(data.y, data.environments)
    folds = folds_of(data.X, cells, "worst-group", 3, None)
    fast = ISRClassifierCV(**SMALL | {"weights": "class", "cv": folds})
    fast.fit(data.X, data.y, environments=data.environments)
    with sklearn.config_context(enable_metadata_routing=True):
        slow = GridSearchCV(
            ISRClassifier(weights="class"),
            GRID,
            scoring=WorstGroupScorer(),
            cv=folds,
            error_score="raise",
        ).fit(data.X, data.y, environments=data.environments)
    key = ["n_spurious", "scale", "C"]
    theirs = {
        tuple(p[k] for k in key): s
        for p, s in zip(
            slow.cv_results_["params"], slow.cv_results_["mean_test_score"], strict=True
        )
    }
    ours = {
        tuple(p[k] for k in key): s
        for p, s in zip(
            fast.cv_results_["params"], fast.cv_results_["mean_test_score"], strict=True
        )
    }
    assert ours == pytest.approx(theirs)
    names = {n for n in slow.cv_results_ if not n.endswith("_time") and n != "params"}
    assert names <= set(fast.cv_results_)


def test_a_shortcut_is_removed(shortcut):
    train, test = shortcut(1500, seed=1), shortcut(3000, seed=1)
    search = ISRClassifierCV(weights=None, C=1.0, cv=3)
    search.fit(train.X, train.y, environments=train.environments)
    plain = ISRClassifier(n_spurious=0).fit(train.X, train.y, environments=train.environments)
    worst = [
        worst_group_accuracy(test.y, model.predict(test.X), test.environments)
        for model in (search, plain)
    ]
    assert search.best_params_["scale"] < 1
    assert worst[0] > worst[1] + 0.1


@pytest.mark.parametrize("as_tuple", [True, False])
def test_validation_rows_choose_and_do_not_train(data, shortcut, as_tuple):
    other = shortcut(300, seed=5)
    validation = (other.X, other.y, other.environments) if as_tuple else other
    search = ISRClassifierCV(**SMALL).fit(
        data.X, data.y, environments=data.environments, validation=validation
    )
    assert search.n_splits_ == 1
    again = ISRClassifier(**search.best_params_)
    again.fit(data.X, data.y, environments=data.environments)
    np.testing.assert_array_equal(search.coef_, again.coef_)
    worst = worst_group_accuracy(other.y, again.predict(other.X), other.environments)
    assert search.best_score_ == pytest.approx(worst)


@pytest.mark.parametrize("n_environments", [2, 3])
def test_a_validation_set_may_lack_a_class(n_environments):
    rng = np.random.default_rng(0)
    y, e = rng.integers(0, 3, 600), rng.integers(0, n_environments, 600)
    X = rng.normal(size=(600, 4)) + np.eye(3, 4)[y] + 2.0 * e[:, None] * np.eye(4)[3]
    train, other = np.arange(600) < 400, (np.arange(600) >= 400) & (y < 2)
    validation = X[other], y[other], e[other]
    search = ISRClassifierCV(**SMALL).fit(X[train], y[train], e[train], validation=validation)
    # What is compared is the accuracy of the worst group, shrunk to that of its class.
    hits, k, g = search.best_estimator_.predict(X[other]) == y[other], y[other], e[other]
    worst = min(
        (hits[(k == a) & (g == b)].sum() + 5 * hits[k == a].mean())
        / (((k == a) & (g == b)).sum() + 5)
        for a in range(2)
        for b in range(n_environments)
    )
    assert search.cv_results_["selection_score"][search.best_index_] == pytest.approx(worst)


def test_the_best_is_refitted_on_everything(data):
    search = ISRClassifierCV(**SMALL).fit(data.X, data.y, environments=data.environments)
    again = ISRClassifier(**search.best_params_)
    again.fit(data.X, data.y, environments=data.environments)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        np.testing.assert_array_equal(
            getattr(search, method)(data.X), getattr(again, method)(data.X)
        )
    np.testing.assert_array_equal(search.intercept_, again.intercept_)
    np.testing.assert_array_equal(search.classes_, again.classes_)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_change_nothing(data, numbers, n_jobs):
    one = ISRClassifierCV(**SMALL).fit(data.X, data.y, environments=data.environments)
    more = clone(one).set_params(n_jobs=n_jobs)
    more.fit(data.X, data.y, environments=data.environments)
    for name in ("mean_worst_group", "mean_average"):
        np.testing.assert_array_equal(one.cv_results_[name], more.cv_results_[name])
    np.testing.assert_array_equal(one.coef_, more.coef_)
    one = ISRRegressorCV(cv=2).fit(numbers.X, numbers.y, environments=numbers.environments)
    more = ISRRegressorCV(cv=2, n_jobs=n_jobs)
    more.fit(numbers.X, numbers.y, environments=numbers.environments)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], more.cv_results_["mean_test_score"]
    )


def test_leave_one_environment_out(data, numbers):
    """One count of dimensions more than two environments can show is asked for, and capped."""
    search = ISRClassifierCV(
        n_spurious=[1, 4], scale=[0.0, 1.0], C=1.0, selection="leave-one-environment-out"
    ).fit(data.X, data.y, environments=data.environments)
    assert search.n_splits_ == 3
    point, held = search.cv_results_["params"][0], data.environments == 0
    estimator = ISRClassifier(**point)
    estimator.fit(data.X[~held], data.y[~held], environments=data.environments[~held])
    accuracy = estimator.score(data.X[held], data.y[held])
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(accuracy)
    search = ISRRegressorCV(selection="leave-one-environment-out", n_spurious=[1, 3])
    search.fit(numbers.X, numbers.y, environments=numbers.environments)
    assert search.n_splits_ == 4
    again = ISRRegressor(**search.best_params_)
    again.fit(numbers.X, numbers.y, environments=numbers.environments)
    np.testing.assert_array_equal(search.predict(numbers.X), again.predict(numbers.X))
    assert search.intercept_ == again.intercept_


def test_the_selection_rule_decides(shortcut):
    """Balanced weights cost average accuracy and help the small groups."""
    data = shortcut(800, noise=2.0, seed=3)
    found = {
        selection: ISRClassifierCV(
            n_spurious=2, scale=[0.0, 1.0], C=1.0, weights=[None, "group"], selection=selection
        )
        .fit(data.X, data.y, environments=data.environments)
        .trade_off()
        .query("best")
        for selection in ("worst-group", "average")
    }
    assert found["worst-group"]["worst_group"].item() > found["average"]["worst_group"].item()
    assert found["worst-group"]["average"].item() < found["average"]["average"].item()


def test_trade_off_is_a_frame_with_one_row_per_setting(data):
    last = LogisticRegression(C=0.3)
    weights = [None, "class", "group"]
    search = ISRClassifierCV(**GRID, head=["logistic", last], weights=weights, cv=2).fit(
        data.X, data.y, environments=data.environments
    )
    frame, results = search.trade_off(), search.cv_results_
    assert len(frame) == len(results["params"]) == 3 * 4 * (2 + 1)
    assert frame["C"].isna().sum() == 12
    assert results["param_C"].mask.sum() == 12
    np.testing.assert_array_equal(frame["worst_group"], results["mean_worst_group"])
    assert frame.index[frame["best"]].tolist() == [search.best_index_]
    assert frame["rank"].min() == 1
    front = frame[frame["on_front"]].sort_values("average")
    assert front["worst_group"].is_monotonic_decreasing
    for _, row in frame.iterrows():
        better = frame[
            (frame["average"] >= row["average"]) & (frame["worst_group"] >= row["worst_group"])
        ]
        beaten = (
            (better["average"] > row["average"]) | (better["worst_group"] > row["worst_group"])
        ).any()
        assert row["on_front"] != beaten


def test_front_keeps_equals():
    average, worst = np.array([3.0, 3.0, 2.0, 2.0, 1.0]), np.array([1.0, 1.0, 2.0, 1.0, 2.0])
    assert on_front(average, worst).tolist() == [True, True, True, False, False]


class TestTies:
    POINTS = (
        {"n_spurious": "auto", "scale": 0.0, "C": 1.0, "weights": None},
        {"n_spurious": 2, "scale": 0.0, "C": 1.0, "weights": None},
        {"n_spurious": 1, "scale": 0.0, "C": 1.0, "weights": "class"},
        {"n_spurious": 1, "scale": 0.0, "C": 1.0, "weights": None},
        {"n_spurious": 1, "scale": 0.0, "C": 0.1, "weights": None},
        {"n_spurious": 2, "scale": 0.5, "C": 1.0, "weights": "class"},
        {"n_spurious": 3, "scale": 1.0, "C": 1.0, "weights": "group"},
        {"n_spurious": 0, "scale": 0.0, "C": 1.0, "weights": None},
    )

    def best(self, *positions):
        scores = np.zeros(len(self.POINTS))
        scores[list(positions)] = 1.0
        return best_of(scores, [effort(point, "C") for point in self.POINTS])

    def test_the_least_is_removed(self):
        assert self.best(*range(7)) == 6
        assert self.best(*range(6)) == 5
        assert self.best(*range(8)) == 7
        assert self.best(0, 1, 2) == 2
        assert self.best(0, 1) == 1

    def test_then_rows_are_weighed_least_and_penalised_most(self):
        assert self.best(2, 3) == 3
        assert self.best(3, 4) == 4

    def test_the_score_comes_first(self):
        assert self.best(0) == 0

    def test_a_large_alpha_is_simple(self):
        low, high = ({"n_spurious": 1, "scale": 0.0, "alpha": a} for a in (1.0, 10.0))
        assert effort(high, "alpha") < effort(low, "alpha")


def test_points_are_all_combinations_with_the_penalty_where_it_matters(data):
    head = (np.ones((1, 10)), np.zeros(1))
    grid = {"n_spurious": [1, 2], "weights": [None, "group"], "C": [1.0, 2.0]}
    search = ISRClassifierCV(**grid, scale=0.0, head=["logistic", head], cv=2)
    points = search.fit(data.X, data.y, data.environments).cv_results_["params"]
    assert len(points) == 2 * 2 * 2 + 2 * 2
    first = {"C": 1.0, "head": "logistic", "n_spurious": 1, "scale": 0.0, "weights": None}
    assert first | {"method": "mean"} in points
    assert {"C" in p for p in points if p["head"] is head} == {False}


def test_balanced_regressions_are_tried_by_default(data):
    points = (
        ISRClassifierCV(n_spurious=[1, 2], C=[0.1, 1.0], cv=2)
        .fit(data.X, data.y, data.environments)
        .cv_results_["params"]
    )
    for weights in ("group", "class"):
        plain = [p for p in points if p["weights"] == weights]
        assert [(p["scale"], p["n_spurious"], p["C"]) for p in plain] == [(1, 1, 0.1), (1, 1, 1.0)]
    assert len(points) == 2 * 3 * 2 + 4


def test_a_removal_that_takes_the_signal_is_not_chosen():
    # The environment moves what tells the classes apart, by less than they differ.
    rng = np.random.default_rng(0)
    y, e = rng.integers(2, size=900), rng.integers(3, size=900)
    X = rng.normal(size=(900, 4))
    X[:, 0] += 4.0 * y + 0.7 * e
    search = ISRClassifierCV().fit(X, y, e)
    assert search.best_params_["scale"] > 0
    assert search.best_score_ > 0.8


@pytest.mark.parametrize(("share", "kept"), [(0.2, True), (0.8, False)])
@pytest.mark.filterwarnings("ignore:removing what shifts")
def test_where_most_environments_are_unknown_the_defaults_are_kept(share, kept):
    rng = np.random.default_rng(0)
    y, e = rng.integers(2, size=900), rng.integers(3, size=900).astype(float)
    X = rng.normal(size=(900, 4))
    X[:, 0] += 4.0 * y + 0.7 * e
    e[rng.random(900) > share] = np.nan
    search = ISRClassifierCV(scale=[0.0, 1.0]).fit(X, y, e)
    chosen = search.best_params_
    assert ((chosen["n_spurious"], chosen["scale"], chosen["C"]) == ("auto", 0, 0.1)) == kept


@pytest.mark.parametrize(("n_spurious", "scale"), [(0, 1.0), ("auto", 0.0)])
def test_where_penalties_alone_differ_the_best_is_chosen(data, n_spurious, scale):
    # Models without removal have no reference to keep: a comparison must not handicap them.
    for weights in (None, "class", "group"):
        search = ISRClassifierCV(n_spurious=n_spurious, scale=scale, weights=weights)
        search.fit(data.X, data.y, data.environments)
        assert search.cv_results_["rank_test_score"][search.best_index_] == 1


def test_candidates():
    head = (np.ones((1, 2)), np.zeros(1))
    assert candidates("head", head) == [head]
    assert candidates("head", [head, "lda"]) == [head, "lda"]
    assert candidates("C", np.array([1.0, 2.0])) == [1.0, 2.0]
    assert counts(None, 6) == ["auto", 1, 2, 4]
    with pytest.raises(ValueError, match="C is an empty list"):
        candidates("C", [])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_spurious": [1, 9]}, "n_spurious=9 is more than the 4 possible"),
        ({"scale": [0.0, 2.0]}, r"scale must be a number in \[0, 1\]; got 2\.0"),
        ({"C": [0.0]}, "C must be 'auto' or a number greater than 0"),
        ({"weights": ["row"]}, "got 'row'"),
        ({"method": "median"}, "got 'median'"),
        ({"head": ["svm"]}, "got 'svm'"),
        ({"selection": "best"}, "selection must be one of"),
    ],
)
def test_errors_name_the_value(data, change, message):
    with pytest.raises(ValueError, match=message):
        ISRClassifierCV(**change).fit(data.X, data.y, environments=data.environments)


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        (("X", "y"), "must be .X, y, environments."),
        (3, "got int"),
    ],
)
def test_validation_must_have_three_parts(data, validation, message):
    with pytest.raises(ValueError, match=message):
        ISRClassifierCV().fit(data.X, data.y, environments=data.environments, validation=validation)


@pytest.mark.parametrize("relabel", [str, lambda name: name + 1], ids=["text", "another class"])
def test_validation_has_no_class_of_its_own(relabel):
    y, e = np.arange(40) % 2, np.arange(40) // 2 % 2
    X, other = np.random.default_rng(0).normal(size=(40, 3)), [relabel(name) for name in y.tolist()]
    with pytest.raises(ValueError, match=r"a class .* that y does not have; the classes are"):
        ISRClassifierCV().fit(X, y, e, validation=(X, other, e))


def test_validation_and_left_out_environments_exclude_each_other(data):
    search = ISRClassifierCV(selection="leave-one-environment-out")
    with pytest.raises(ValueError, match="give no validation set"):
        search.fit(data.X, data.y, environments=data.environments, validation=data)


def test_environments_are_needed(data):
    with pytest.raises(ValueError, match="environments are needed"):
        ISRClassifierCV().fit(data.X, data.y)


def test_regression_has_no_class_weights(numbers):
    with pytest.raises(ValueError, match="weights must be one of None, 'group'; got 'class'"):
        ISRRegressorCV(weights="class").fit(numbers.X, numbers.y, environments=numbers.environments)


def test_frames_keep_their_names(data):
    frame = pd.DataFrame(data.X, columns=[f"x{i}" for i in range(10)])
    search = ISRClassifierCV(**SMALL).fit(frame, data.y, environments=pd.Series(data.environments))
    assert search.feature_names_in_.tolist() == list(frame.columns)
    assert search.best_estimator_.feature_names_in_.tolist() == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        search.predict(frame[frame.columns[::-1]])


class TestProgress:
    def fit(self, data, monkeypatch, *, terminal, verbose):
        screen = io.StringIO()
        screen.isatty = lambda: terminal
        monkeypatch.setattr(sys, "stderr", screen)
        search = ISRClassifierCV(**SMALL, verbose=verbose)
        search.fit(data.X, data.y, environments=data.environments)
        return screen.getvalue()

    def test_a_bar_on_a_terminal(self, data, monkeypatch):
        monkeypatch.setenv("TERM", "xterm")
        assert "16/16" in self.fit(data, monkeypatch, terminal=True, verbose=1)

    def test_none_elsewhere_or_unless_asked(self, data, monkeypatch):
        assert self.fit(data, monkeypatch, terminal=False, verbose=1) == ""
        assert self.fit(data, monkeypatch, terminal=True, verbose=0) == ""

    def test_none_without_rich(self, data, monkeypatch):
        monkeypatch.setitem(sys.modules, "rich.console", None)
        assert self.fit(data, monkeypatch, terminal=True, verbose=1) == ""


def test_trade_off_says_that_it_needs_pandas(data, monkeypatch):
    search = ISRClassifierCV(**SMALL).fit(data.X, data.y, environments=data.environments)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="needs pandas"):
        search.trade_off()
