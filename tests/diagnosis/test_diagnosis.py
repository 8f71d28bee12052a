"""The prediction is that of a comparison, the facts explain it, and text and dict show both."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

import isrlearn
from isrlearn import ISRClassifier, ISRRegressor, compare_models
from isrlearn.datasets import make_gaussian_environments
from isrlearn.diagnosis import diagnose


def missing_group(seed=0, n=1500):
    """A shortcut that weights cannot undo: class 0 was never seen in environment 1."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    e = np.where(rng.random(n) < 0.7, y, 1 - y)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 2 * y
    X[:, 1] += 4 * e
    return X, y, e


class TestPrediction:
    def test_it_is_the_answer_of_the_comparison(self, shortcut, diagnosis):
        X, y, e = shortcut
        advice, found = diagnosis.recommendation, diagnosis.comparison
        assert list(found.models) == ["plain", "class-balanced", "group-balanced", "ISR"]
        assert advice.prediction == found.answer
        model = found.models["ISR"].estimator
        again = compare_models(X, y, e, model=model, cv=3, name="ISR")
        assert again.to_dict() == found.to_dict()

    def test_parameters_are_those_of_the_winner(self, shortcut, diagnosis):
        X, y, e = shortcut
        advice, found = diagnosis.recommendation, diagnosis.comparison
        assert advice.prediction == "no difference"
        winner = found.models[found.best].estimator.best_estimator_
        clf = ISRClassifier(**advice.parameters).fit(X, y, environments=e)
        assert advice.parameters["n_spurious"] == clf.n_spurious_ == 0
        np.testing.assert_allclose(clf.coef_, winner.coef_, rtol=1e-4, atol=1e-6)
        assert "which removes nothing" in advice.summary

    def test_a_regression_is_advised_too(self):
        data = make_gaussian_environments(
            200, 3, n_invariant=3, n_spurious=2, task="regression", random_state=0
        )
        found = diagnose(data.X, data.y, data.environments)
        assert found.covariances is None
        assert not found.target.shifted
        parameters = found.recommendation.parameters
        ISRRegressor(**parameters).fit(data.X, data.y, environments=data.environments)

    def test_isr_is_expected_to_help_a_group_that_was_not_collected(self):
        X, y, e = missing_group()
        test = missing_group(1, n=6000)
        seen = ~((y == 0) & (e == 1))
        found = diagnose(X[seen], y[seen], e[seen], n_bootstrap=0)
        advice = found.recommendation
        assert found.has_gap
        for text in (str(found), found._repr_html_()):
            assert "By cross-validation, in the cells with rows" in text
        assert advice.prediction == "helps"
        assert "ISR is expected to help in these cells" in found.findings[1]
        clf = ISRClassifier(**advice.parameters).fit(X[seen], y[seen], environments=e[seen])
        assert clf.n_spurious_ == 1
        truth = compare_models(X[seen], y[seen], e[seen], model=clf, test=test)
        assert truth.answer == "helps"
        everything = diagnose(X, y, e, n_bootstrap=0)
        assert not everything.has_gap
        assert everything.recommendation.prediction == everything.comparison.answer

    @pytest.mark.parametrize("seed", range(3))
    def test_unequal_spread_of_classes_is_no_reason_to_use_isr(self, seed):
        rng = np.random.default_rng(seed)
        y, e = np.arange(600) % 2, np.arange(600) // 2 % 2
        X = rng.normal(size=(600, 6)) * np.where(y, 1.5, 1.0)[:, None]
        found = diagnose(X, y, e, n_bootstrap=0)
        assert not found.covariances.shifted
        assert found.recommendation.prediction != "helps"
        assert found.recommendation.parameters["n_spurious"] == 0

    @pytest.mark.parametrize(
        ("won", "prediction", "parameters"),
        [
            ({"scale": 0.5}, "helps", {"scale": 0.5}),
            ({"scale": 1.0}, "no difference", {"n_spurious": 0}),
            ({"n_spurious": 0}, "no difference", {"n_spurious": 0}),
        ],
        ids=str,
    )
    def test_only_a_removal_is_said_to_help(self, won, prediction, parameters):
        X, y, e = missing_group(0, n=600)
        found = diagnose(X, y, e, n_bootstrap=0, compare=False)
        settings = {"n_spurious": "auto", "scale": 0.0} | won
        models = {"plain": None, "ISR": SimpleNamespace(settings=settings)}
        comparison = SimpleNamespace(answer="helps", name="ISR", best="plain", models=models)
        advice = replace(found, comparison=comparison).recommendation
        assert (advice.prediction, advice.parameters) == (prediction, parameters)

    @pytest.mark.filterwarnings("ignore:.*repeat another one")
    def test_the_target_of_a_regression_is_tested_by_clusters(self):
        found = []
        for seed in range(20):
            rng = np.random.default_rng(seed)
            X, y, e = rng.normal(size=(60, 3)), rng.normal(size=60), np.arange(60) % 3
            copies, owner = (
                [np.repeat(a, 8, axis=0) for a in (X, y, e)],
                np.repeat(np.arange(60), 8),
            )
            how = {"level": 0.05, "n_bootstrap": 0, "compare": False}
            found.append(
                [diagnose(*copies, clusters, **how).target.shifted for clusters in (None, owner)]
            )
        rows, clusters = np.sum(found, axis=0)
        assert rows > 10
        assert clusters <= 4

    @pytest.mark.filterwarnings("ignore:.*repeat another one")
    def test_clusters_widen_the_intervals(self):
        rows = missing_group(n=300)
        copies = tuple(np.repeat(part, 4, axis=0) for part in rows)
        found = [
            diagnose(*copies, clusters, n_bootstrap=0).comparison.change.average
            for clusters in (None, np.repeat(np.arange(300), 4))
        ]
        width = [change.high - change.low for change in found]
        assert width[1] > 1.3 * width[0]

    def test_many_rows_are_sampled_and_that_is_stated(self, monkeypatch):
        monkeypatch.setattr("isrlearn.diagnosis.diagnosis._MOST_ROWS", 400)
        X, y, e = missing_group(n=1200)
        found = diagnose(X, y, e, n_bootstrap=0)
        assert 390 < found.n_compared < 420
        assert f"By cross-validation, on {found.n_compared} rows" in str(found)
        assert f"By cross-validation, on {found.n_compared} rows" in found._repr_html_()

    def test_a_data_frame_names_its_columns(self, shortcut):
        pd = pytest.importorskip("pandas", reason="needs a data frame")
        X, y, e = shortcut
        frame = pd.DataFrame(X, columns=[f"column {i}" for i in range(X.shape[1])])
        found = diagnose(frame, y, e, compare=False).columns
        same = diagnose(X, y, e, compare=False, feature_names=list(frame.columns)).columns
        assert [c.name for c in found] == [c.name for c in same]
        assert [c.removed for c in found] == pytest.approx([c.removed for c in same])

    def test_facts_alone_need_no_comparison(self, shortcut, diagnosis):
        found = diagnose(*shortcut, compare=False)
        assert found.comparison is None
        assert found.means == diagnosis.means
        assert found.recommendation.summary == "The models were not compared."


class TestUnseen:
    def test_each_environment_is_left_out(self, diagnosis):
        assert list(diagnosis.unseen) == [diagnosis.comparison.best, "ISR"]
        for scores in diagnosis.unseen.values():
            assert list(scores) == list(diagnosis.cells.environments)
            assert all(0.5 < score <= 1 for score in scores.values())
        assert "In an unseen environment?" in str(diagnosis)
        assert "left out" in diagnosis._repr_html_()

    def test_scores_are_those_of_a_model_fitted_without(self, shortcut, diagnosis):
        X, y, e = shortcut
        ours, out = diagnosis.comparison.models["ISR"].settings, e == e[0]
        alone = ISRClassifier(**ours).fit(X[~out], y[~out], e[~out])
        assert diagnosis.unseen["ISR"][e[0]] == pytest.approx(alone.score(X[out], y[out]))

    def test_two_environments_are_too_few(self):
        assert diagnose(*missing_group(n=300), n_bootstrap=0).unseen is None


class TestText:
    def test_it_fits_a_terminal_and_answers_every_question(self, diagnosis):
        text = str(diagnosis)
        assert max(map(len, text.splitlines())) <= 100
        for words in (
            "2,400 rows, 6 features, 2 classes, 3 environments",
            "Do means shift?             yes",
            "Do covariances differ?      no",
            "Is the subspace stable?     yes",
            "group-balanced",
        ):
            assert words in text
        for line in diagnosis.recommendation.summary.split(": "):
            assert line.split(",")[0] in text

    def test_many_environments_are_summed_up(self):
        rng = np.random.default_rng(0)
        e = np.arange(1200) % 40
        X = rng.normal(size=(1200, 3))
        X[:, 0] += rng.normal(size=40)[e]
        text = str(diagnose(X, np.arange(1200) // 40 % 2, e, n_bootstrap=0, compare=False))
        assert "Rows per cell: 15 to 15, median 15" in text

    def test_the_dict_is_json_and_complete(self, diagnosis):
        plain = diagnosis.to_dict()
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain
        assert plain["recommendation"]["prediction"] == diagnosis.recommendation.prediction
        assert plain["cells"]["environments"] == ["harbour", "meadow", "shore"]
        assert plain["means"]["n_dimensions"] == 1
        assert plain["comparison"]["verdict"] == diagnosis.comparison.verdict


def test_single_precision_and_sparse_rows_say_the_same(shortcut, diagnosis):
    X, y, e = shortcut
    for rows in (X.astype(np.float32), sparse.csr_array(X)):
        other = diagnose(rows, y, e, compare=False)
        assert other.means.effect == pytest.approx(diagnosis.means.effect, rel=1e-3)
        assert other.means.n_dimensions == diagnosis.means.n_dimensions


def test_input_is_left_alone(shortcut):
    X, y, e = (a.copy() for a in shortcut)
    diagnose(X, y, e, n_bootstrap=0, compare=False)
    for after, before in zip((X, y, e), shortcut, strict=True):
        np.testing.assert_array_equal(after, before)


def test_whole_numbers_are_a_regression_only_if_asked(cells):
    X, y, e = cells(np.full((2, 2), 50), np.zeros((2, 2, 3)))
    facts = {"n_bootstrap": 0, "compare": False}
    assert diagnose(X, y, e, **facts).task == "classification"
    assert diagnose(X, y, e, task="regression", **facts).task == "regression"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "clustering"}, "task must be one of 'auto', 'classification', 'regression'"),
        ({"level": 1.5}, r"level must be a number in .*got 1\.5"),
        ({"n_bootstrap": -1}, "n_bootstrap must be a number at least 0; got -1"),
        ({"environments": None}, "environments are needed"),
        ({"y": np.zeros(2400, int)}, "only one class"),
        ({"y": np.zeros(7)}, "inconsistent numbers of samples"),
    ],
)
def test_mistakes_are_named(shortcut, change, message):
    X, y, e = shortcut
    arguments = {"X": X, "y": y, "environments": e} | change
    with pytest.raises(ValueError, match=message):
        diagnose(**arguments)


def difficult(name):
    """Data that leave little to work with."""
    rng = np.random.default_rng(0)
    n = {"few rows": 24, "more features than rows": 100}.get(name, 400)
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 2
    X = rng.normal(size=(n, 300 if name == "more features than rows" else 4))
    X[:, 0] += 3.0 * e
    if name == "redundant features":
        X = np.column_stack([X, X[:, 1], np.full(n, 7.0)])
    if name == "a feature that is the environment":
        X[:, 0] = e
    if name == "whole numbers":
        X = np.round(10 * X).astype(int)
    return X, y, e


@pytest.mark.parametrize(
    "name",
    [
        "few rows",
        "more features than rows",
        "redundant features",
        "a feature that is the environment",
        "whole numbers",
    ],
)
def test_difficult_data_get_advice_that_can_be_followed(name):
    X, y, e = difficult(name)
    found = diagnose(X, y, e, n_bootstrap=10)
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.means.n_dimensions == 1
    ISRClassifier(**found.recommendation.parameters).fit(X, y, environments=e)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_more_features_than_rows_are_tested_as_an_estimator_tests_them(task):
    rng = np.random.default_rng(0)
    y, e = rng.integers(2, size=150), rng.integers(3, size=150)
    X = rng.normal(size=(150, 700)) + 0.5 * e[:, None]
    clf = ISRClassifier() if task == "classification" else ISRRegressor(compare="means")
    test = clf.fit(X, y, e).rank_test_
    found = diagnose(X, y, e, task=task, compare=False)
    assert found.means.p_value == pytest.approx(test.p_values[0])
    assert found.means.n_dimensions == test.rank > 0
    assert found.stability is not None


def test_cells_of_one_row_are_refused():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    with pytest.raises(ValueError, match="40 rows with an environment are in as many cells"):
        diagnose(X, y, np.arange(40) // 2)


def test_a_target_that_is_constant_in_an_environment():
    X, e = np.random.default_rng(0).normal(size=(60, 4)), np.repeat([0, 1], 30)
    found = diagnose(X, np.where(e, 2.5, 1.5), e, n_bootstrap=0)
    assert found.target.shifted
    assert "The target itself shifts" in str(found)
    assert "1 of 1" not in str(found)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e30])
def test_constant_features_are_an_error_of_ours(value):
    y, e = np.arange(80) % 2, np.arange(80) // 2 % 2
    with pytest.raises(ValueError, match="all 3 features are constant: there is nothing"):
        diagnose(np.full((80, 3), value), y, e)


def test_it_is_exported():
    assert isrlearn.diagnose is diagnose
