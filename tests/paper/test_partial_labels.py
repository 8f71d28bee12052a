"""The benchmark of partial labels: what is drawn, what is fitted, what is kept."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from isrlearn import ISRClassifier
from isrlearn.datasets import load_digits_on_paper
from isrlearn.metrics import group_sizes, worst_group_accuracy
from isrlearn.paper import partial_labels
from isrlearn.paper.partial_labels import (
    METHODS,
    PENALTIES,
    Curve,
    LabelsPlan,
    _usable,
    curves,
    partly_labelled,
    run_partial_labels,
    write_partial_labels,
)
from isrlearn.paper.real.experiments import REAL
from isrlearn.paper.real.features import TrainedFeatures
from isrlearn.paper.records import CellKey, Record

SMALL = LabelsPlan(("digits-on-paper",), ("isr", "plain"), (1.0, 0.25), 2)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run_partial_labels(SMALL, tmp_path_factory.mktemp("run"))


def test_every_cell_is_recorded_once(result):
    assert not result.failures
    assert [r.key for r in result.records] == SMALL.keys()
    assert len({r.key.id for r in result.records}) == 2 * 2 * 2 * 2
    for record in result.records:
        error = record.value
        worst = record.key.options["score"] == "worst group"
        assert error == pytest.approx(max(record.per_environment)) if worst else error < 0.5


def test_fewer_labels_cost_isr_and_nothing_else(result):
    at = {(c.method, c.score, c.fraction): c.mean for c in result.curves}
    assert at["plain", "worst group", 1.0] == at["plain", "worst group", 0.25]
    assert at["isr", "worst group", 1.0] > at["plain", "worst group", 1.0] + 0.2
    assert at["isr", "worst group", 1.0] > at["isr", "worst group", 0.25]


def test_a_finished_run_is_not_run_again(result, tmp_path, monkeypatch):
    one = LabelsPlan(SMALL.datasets, ("plain",), (1.0,), 1)
    first = run_partial_labels(one, tmp_path)
    monkeypatch.setattr(partial_labels, "_splits", None)
    assert run_partial_labels(one, tmp_path).records == first.records


def test_smaller_shares_are_parts_of_larger_ones():
    environments = np.array(["a", "b"] * 50)
    large, small = (partly_labelled(environments, f, seed=3) for f in (0.5, 0.1))
    known = {f: {i for i, v in enumerate(e) if v is not None} for f, e in ((5, large), (1, small))}
    assert len(known[5]) == 50
    assert len(known[1]) == 10
    assert known[1] < known[5]
    assert all(large[i] == environments[i] for i in known[5])
    assert (partly_labelled(environments, 1.0, seed=3) == environments).all()


USABLE = {
    "all cells": ([0, 0, 1, 1], ["a", "b", "a", "b"], {}, []),
    "one class": ([0, 0, 1, 1], ["a", "b", "a", "a"], {}, ["class 1 was not compared"]),
    "covariances": (
        [0, 0, 0, 0, 1, 1, 1],
        ["a", "a", "b", "b", "a", "a", "b"],
        {"method": "cov"},
        ["class 1 was not compared"],
    ),
}


@pytest.mark.parametrize(("y", "known", "more", "notes"), USABLE.values(), ids=USABLE)
def test_classes_that_cannot_be_compared_are_left_out(y, known, more, notes):
    asked = {"C": 0.01, "weights": "class"} | more
    known = np.array(known, dtype=object)
    parameters, environments, left_out = _usable(np.array(y), known, asked)
    assert parameters == asked
    assert environments is known
    assert left_out == notes


def test_nothing_is_compared_where_nothing_can_be():
    known = np.array(["a", None, None, "b"], dtype=object)
    parameters, environments, notes = _usable(np.array([0, 0, 1, 1]), known, {"C": 1.0})
    assert parameters["missing_environments"] == "single"
    assert environments is None
    assert "nothing was removed" in notes[0]


def test_changes_are_paired():
    # Accuracies of 0.9 and 0.5 with all labels, each 0.1 less with a tenth of them.
    records = [
        Record(
            CellKey("d", "isr", 2, seed, "converged", {}, {"fraction": f, "score": "average"}),
            1 - accuracy + (0.1 if f < 1 else 0.0),
            0.0,
            [],
            0.0,
        )
        for seed, accuracy in enumerate((0.9, 0.5))
        for f in (1.0, 0.1)
    ]
    full, tenth = curves(records)
    assert (full.mean, full.change) == (pytest.approx(0.7), 0.0)
    assert tenth.change == pytest.approx(-0.1)
    assert tenth.change_half_width == pytest.approx(0.0, abs=1e-12)
    assert tenth.half_width > 1  # two draws tell little of the mean itself


def test_files(result, tmp_path):
    written = write_partial_labels(result, tmp_path, command="isr bench partial-labels")
    names = ["table.md", "curves.json", "results.csv", "figure.png", "figure.svg"]
    assert [p.name for p in written] == names
    page = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert "Made by `isr bench partial-labels`." in page
    assert "| ISR-Mean, worst group, change |  | -0." in page
    found = json.loads((tmp_path / "curves.json").read_text(encoding="utf-8"))
    assert len(found["curves"]) == 8
    assert (tmp_path / "figure.png").read_bytes()[1:4] == b"PNG"
    lines = (tmp_path / "results.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + len(result.records)


def test_every_method_chooses_its_own_penalty_by_the_same_rule(result):
    splits = load_digits_on_paper(random_state=0)
    train, held_out = splits.train, splits.validation
    for name in SMALL.methods:
        _, settings = METHODS[name]
        assert "C" not in settings
        scores = []
        for C in PENALTIES:
            clf = ISRClassifier(C=C, **settings).fit(train.X, train.y, train.environments)
            guess = clf.predict(held_out.X)
            scores.append(worst_group_accuracy(held_out.y, guess, held_out.environments))
        (kept,) = (
            r
            for r in result.records
            if (r.key.seed, r.key.method, r.key.options)
            == (0, name, {"fraction": 1.0, "score": "worst group"})
        )
        # The search keeps its reference unless another penalty is better by a standard error.
        chosen = PENALTIES.index(kept.chosen["C"])
        assert 1 - kept.validation == pytest.approx(scores[chosen])
        assert max(scores) - scores[chosen] < 0.1


def test_one_draw_has_no_spread():
    one = Curve("d", "isr", "average", 0.1, 1, 0.8, math.nan, -0.1, math.nan)
    assert (one.shown, one.change_shown) == ("0.800", "-0.100")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"datasets": ("cows",)}, "unknown data set 'cows'"),
        ({"methods": ("irm",)}, "unknown method 'irm'"),
        ({"fractions": (0.0,)}, "must be above 0"),
        ({"n_draws": 0}, "n_draws=0"),
    ],
)
def test_mistakes_are_named(change, message):
    with pytest.raises(ValueError, match=message):
        LabelsPlan(**change)


def test_the_published_procedure_is_one_of_the_methods(tmp_path):
    plan = LabelsPlan(("digits-on-paper",), ("isr-published", "isr-cov-published"), (1.0, 0.05), 1)
    result = run_partial_labels(plan, tmp_path)
    assert not result.failures
    wanted = {"fraction": 1.0, "score": "average"}
    mean, cov = (r for r in result.records if r.key.options == wanted)
    assert mean.chosen["n_spurious"] == "auto"
    assert cov.chosen["n_spurious"] in (1, 2, 3, 5, 8)


def test_features_of_networks_are_made_once(tmp_path, monkeypatch):
    splits = load_digits_on_paper(random_state=0)
    made = []

    def features(trained_with, seed, options, checkpoint):
        made.append((trained_with, seed, options["n_samples"]))
        return TrainedFeatures(splits, None)

    experiment = replace(REAL["mc-cmnist"], features=features)
    monkeypatch.setattr(partial_labels, "REAL", {"mc-cmnist": experiment})
    first, again = (partial_labels._splits("mc-cmnist", 0, tmp_path) for _ in range(2))
    assert made == [("erm", 1, 15_000)]  # its first seed
    assert (first.train.y == again.train.y).all()
    sizes = group_sizes(first.validation.y, first.validation.environments).values()
    assert len(set(sizes)) == 1  # every group counts alike
