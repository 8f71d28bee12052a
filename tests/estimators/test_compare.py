"""Comparison models are tuned as carefully as the model, and independently of it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, compare_models
from isrlearn.datasets import make_gaussian_environments
from isrlearn.estimators.compare import LabelledRows
from isrlearn.metrics import Change, group_report, paired_report


def gaussian(seed=0, n=150, **kwargs):
    data = make_gaussian_environments(
        n, 3, n_invariant=3, n_spurious=2, random_state=seed, **kwargs
    )
    return data.X, data.y, data.environments


def shortcut(seed=0, n=600, agreement=0.95):
    """A feature that shows the class, and a stronger one that shows the environment instead."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    e = np.where(rng.random(n) < agreement, y, 1 - y)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 2 * y
    X[:, 1] += 4 * e
    return X, y, e


def baselines(found):
    """Everything about the comparison models."""
    record = found.to_dict()
    record["models"].pop(found.name)
    return record["models"], record["best"]


class TestFairness:
    @pytest.mark.parametrize("held_out", [True, False])
    def test_baselines_do_not_depend_on_the_model(self, held_out):
        train, test = shortcut(n=200), shortcut(1) if held_out else None
        models = (
            ISRClassifier(C=1e-6, n_components=2, weights="class", head="lda"),
            ISRClassifierCV(C=1e-6, scale=0.0, n_spurious=1),
            DummyClassifier(),
        )
        found = [compare_models(*train, model=model, test=test) for model in models]
        assert all(baselines(each) == baselines(found[0]) for each in found)
        assert len({each.reports["model"].worst for each in found}) > 1

    def test_baselines_are_searches_that_remove_nothing(self):
        train, test = shortcut(), shortcut(1)
        found = compare_models(*train, model=ISRClassifier(), test=test)
        for name, weights in (("plain", None), ("class-balanced", "class")):
            search = ISRClassifierCV(n_spurious=0, scale=1.0, weights=weights, random_state=0)
            search.set_params(threshold=None if name == "plain" else "auto")
            search.fit(*train)
            model = found.models[name]
            assert model.settings == search.best_params_
            assert model.cross_validated == search.best_score_
            expected = group_report(test[1], search.predict(test[0]), test[2])
            assert [g.value for g in model.report.groups] == [g.value for g in expected.groups]

    def test_the_best_alternative_is_chosen_without_the_test_rows(self):
        train, test = shortcut(), shortcut(1)
        wrong = test[0], 1 - test[1], test[2]
        found = [compare_models(*train, model=ISRClassifier(), test=t) for t in (test, wrong)]
        assert found[0].best == found[1].best == "group-balanced"
        scores = {name: model.cross_validated for name, model in found[0].models.items()}
        assert max(list(scores)[:-1], key=scores.get) == found[0].best
        assert scores["model"] is None

    def test_held_out_rows_are_predicted_by_models_fitted_without_them(self):
        rng = np.random.default_rng(0)
        data = rng.normal(size=(120, 60)), np.arange(120) % 2, np.arange(120) // 2 % 2
        found = compare_models(*data, model=ISRClassifier(n_spurious=1, C=100.0))
        assert found.scored_on == "folds"
        for report in found.reports.values():
            assert report.n == 120
            assert report.average < 0.65

    def test_a_fitted_model_is_scored_as_it_is(self):
        train, test = shortcut(), shortcut(1)
        model = ISRClassifier(n_spurious=1).fit(*shortcut(2))
        found = compare_models(*train, model=model, test=test)
        assert found.models["model"].estimator is model
        expected = group_report(test[1], model.predict(test[0]), test[2])
        assert found.reports["model"].worst == expected.worst
        paired = paired_report(
            test[1],
            found.models[found.best].estimator.predict(test[0]),
            model.predict(test[0]),
            test[2],
        )
        assert found.change == paired

    def test_any_estimator_can_be_compared(self):
        found = compare_models(*shortcut(), model=LogisticRegression(), test=shortcut(1))
        assert found.models["model"].settings["C"] == 1.0


@pytest.fixture(scope="module")
def found():
    return compare_models(*shortcut(n=200), model=DummyClassifier(), test=shortcut(1, 200))


class TestVerdict:
    @staticmethod
    def change(found, worst, average=(-1, 1)):
        """A report of changes with these intervals; the estimates lie in the middle."""
        made = [
            Change(0.5, 0.5 + sum(ends) / 200, *(v / 100 for v in ends))
            for ends in (worst, average)
        ]
        return replace(found.change, worst=made[0], average=made[1])

    @pytest.mark.parametrize(
        ("best", "to_model", "plain_to_best", "plain_to_model", "verdict"),
        [
            ("plain", (1, 9), None, (1, 9), "use it"),
            ("plain", (-3, 5), None, (-3, 5), "no clear difference"),
            ("plain", (-9, -1), None, (-9, -1), "do not use it"),
            ("group-balanced", (1, 9), (1, 9), (5, 15), "use it"),
            ("group-balanced", (-3, 5), (1, 9), (1, 9), "use balanced weights instead"),
            ("group-balanced", (-3, 5), (-3, 5), (-3, 5), "no clear difference"),
            ("group-balanced", (-9, -1), (-3, 5), (-3, 5), "use balanced weights instead"),
            ("class-balanced", (-3, 5), (-3, 5), (-9, -1), "do not use it"),
        ],
    )
    def test_intervals_decide(self, found, best, to_model, plain_to_best, plain_to_model, verdict):
        from_plain = {"model": self.change(found, plain_to_model)}
        if plain_to_best:
            from_plain[best] = self.change(found, plain_to_best)
        made = replace(found, best=best, change=self.change(found, to_model), from_plain=from_plain)
        assert made.verdict == verdict
        assert made.headline.startswith(verdict.capitalize())
        against = "plain" if verdict == "do not use it" else best
        assert f" with the {against} model and " in made.headline
        simpler = "weights" in verdict and to_model[1] > 0
        assert (", the simpler choice: " in made.headline) == simpler
        assert str(made).startswith(made.headline)

    @pytest.mark.parametrize(
        ("worst", "average", "answer"),
        [
            ((-1, 3), (1, 2), "helps"),
            ((-3, 1), (-2, -1), "hurts"),
            ((-3, 1), (1, 2), "no difference"),  # the worst group points the other way
            ((-1, 3), (-2, -1), "no difference"),
            ((1, 3), (-2, -1), "helps"),
        ],
    )
    def test_the_average_decides_only_where_the_worst_group_does_not(
        self, found, worst, average, answer
    ):
        made = replace(found, change=self.change(found, worst, average))
        assert made.answer == answer
        said = "; the average, 50.0% to" in made.headline
        assert said == (answer != "no difference" and worst[0] < 0 < worst[1])

    def test_lower_errors_are_better(self):
        data = gaussian(task="regression")
        found = compare_models(*data, model=ISRRegressor(n_spurious=0, alpha=1e6))
        assert found.change.metric == "rmse"
        assert found.change.worst.low > 0
        assert found.answer == "hurts"
        assert list(found.models) == ["plain", "environment-balanced", "model"]

    @pytest.mark.parametrize("search", [ISRClassifier, ISRClassifierCV])
    @pytest.mark.parametrize("kept", [{"n_spurious": 0}, {"scale": 1.0}])
    def test_balanced_weights_are_not_replaced_by_themselves(self, search, kept):
        model = search(**kept, weights="group")
        found = compare_models(*shortcut(), model=model, test=shortcut(1, 2000))
        assert found.best == "group-balanced"
        assert found.from_plain[found.best].worst.low > 0
        assert found.verdict == "no clear difference"

    def test_a_removal_that_helps_is_to_be_used(self):
        # Environment 1 has no rows of class 0, which the test rows have: weights cannot help.
        X, y, e = shortcut(n=3000, agreement=0.7)
        seen = ~((y == 0) & (e == 1))
        found = compare_models(X[seen], y[seen], e[seen], test=shortcut(1, 3000, 0.5))
        assert (found.verdict, found.answer) == ("use it", "helps")
        assert found.change.worst.low > 0

    def test_nothing_is_recommended_on_noise(self):
        found = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            y, e = np.arange(400) % 2, np.arange(400) // 2 % 2
            X = rng.normal(size=(400, 5)) * np.where(y, 1.5, 1.0)[:, None]
            X[:, 0] += y
            model = ISRClassifierCV(scale=(0.0, 1.0), n_spurious=["auto", 1], C=1.0)
            found.append(compare_models(X, y, e, model=model, cv=3).answer)
        assert "helps" not in found

    def test_groups_that_lose_are_named(self):
        train, test = shortcut(), shortcut(1, n=2000)
        found = compare_models(*train, model=DummyClassifier(), test=test)
        assert "Groups that lose" in found.sentences[1]
        assert "0 in 1 (" in found.sentences[1]
        assert "Balanced weights alone change the worst group" in found.sentences[-1]


class TestClusters:
    def test_clusters_are_never_split(self):
        X, y, e = shortcut(n=200)
        clusters = np.arange(200) // 8
        rows = LabelledRows.of((X, y, e), clusters)
        for train, test in rows.folds(5, "accuracy"):
            assert not set(clusters[train]) & set(clusters[test])
        assert sum(len(test) for _, test in rows.folds(5, "accuracy")) == 200

    @pytest.mark.filterwarnings("ignore:.*repeat another one")
    def test_copies_of_rows_add_no_evidence(self):
        data = shortcut(n=300, agreement=0.8)
        five = tuple(np.repeat(part, 5, axis=0) for part in data)
        rows = np.repeat(np.arange(300), 5)
        model = ISRClassifier(n_spurious=1)
        once = compare_models(*data, model=model).change.worst
        clustered = compare_models(*five, model=model, clusters=rows).change.worst
        ignored = compare_models(*five, model=model).change.worst
        width = {name: c.high - c.low for name, c in locals().items() if isinstance(c, Change)}
        # Five copies of a row weaken the penalty, so that the models differ a little too.
        assert width["clustered"] > 0.5 * width["once"]
        assert width["ignored"] < 0.7 * width["clustered"]

    def test_clusters_of_test_rows_widen_intervals(self):
        train, test = shortcut(), shortcut(1, 300)
        model = ISRClassifier().fit(*train)
        five = tuple(np.repeat(part, 5, axis=0) for part in test)
        rows = np.repeat(np.arange(300), 5)
        wide = compare_models(*train, model=model, test=(*five, rows)).reports["model"]
        narrow = compare_models(*train, model=model, test=five).reports["model"]
        assert wide.worst == narrow.worst
        assert wide.by_rank[0].low < narrow.by_rank[0].low


def test_sparse_rows_and_frames_give_the_same():
    pd = pytest.importorskip("pandas")
    X, y, e = shortcut(n=200)
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    found = [
        compare_models(rows, y, e, model=ISRClassifier(n_spurious=1), cv=3).to_dict()
        for rows in (X, sparse.csr_array(X), pd.DataFrame(X, columns=list("abcd")))
    ]
    for each in found[1:]:
        assert each["verdict"] == found[0]["verdict"]
        for name, model in each["models"].items():
            assert model["report"]["worst"] == found[0]["models"][name]["report"]["worst"]


def test_the_record_is_json_and_the_text_has_all_columns():
    found = compare_models(
        *shortcut(n=200), model=ISRClassifier(head=LogisticRegression()), name="isr"
    )
    record = found.to_dict()
    assert json.loads(json.dumps(record)) == record
    assert list(record["models"]) == ["plain", "class-balanced", "group-balanced", "isr"]
    lines = str(found).splitlines()
    assert lines[2].split() == ["accuracy", "n", *record["models"]]
    assert f"{found.reports['isr'].worst:.4f}" in lines[3]


def test_mistakes_are_named():
    X, y, e = shortcut(n=60)
    with pytest.raises(ValueError, match="task must be one of"):
        compare_models(X, y, e, task="clustering")
    with pytest.raises(ValueError, match="name must differ from plain"):
        compare_models(X, y, e, name="plain")
    with pytest.raises(ValueError, match=r"rows must be \(X, y, environments\)"):
        compare_models(X, y, None)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        compare_models(X, y, e, clusters=[0, 1])
