"""Tables of the paper: what they compare, their scores over seeds, and the paper's own numbers.

``paper_tables.csv`` holds the paper's tables of real data sets, of CLIP, MC-CMNIST, RCFMNIST and
Law School as printed: percentages for accuracies, mean and standard deviation over seeds.
"""

import csv
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from isrlearn.datasets import EnvironmentData, Splits
from isrlearn.metrics import GroupReport, group_report
from isrlearn.paper.real.features import TrainedFeatures
from isrlearn.paper.real.methods import METHODS, Rule
from isrlearn.paper.records import CellKey, Record
from isrlearn.paper.summary import mean_interval
from isrlearn.paper.tables import Table, plus_minus

#: Candidate weights of heads on fixed features, by row of the table.
HEADS: Mapping[str, tuple[Any, ...]] = {"erm": (None, "class"), "reweighting": ("group",)}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A table of the paper: networks to train, and methods to apply to their features."""

    name: str  # of the command
    title: str  # of the table
    table: str = ""  # in paper_tables.csv; empty if it is not there
    dataset: str = ""  # in paper_tables.csv
    scores: tuple[str, ...]  # names in SCORES
    trained_with: Mapping[str, str]  # rows: name of the objective, label in the paper
    methods: tuple[str, ...]  # columns: names in METHODS; the others are compared with the first
    main: tuple[str, ...]  # the methods that are also in the paper
    #: From objective, seed, options and the path of a checkpoint to features.
    features: Callable[[str, int, Mapping[str, Any], Path], TrainedFeatures]
    options: Mapping[str, Any]  # everything that determines a run, with defaults
    networks: Collection[str] = ()  # legal values of the option "network"; empty if not known
    full: Mapping[str, Any] = field(default_factory=dict)  # changes for the paper's sizes
    n_seeds: int
    rule: Rule = Rule(worst=True)  # by which settings are chosen  # noqa: RUF009
    first_seed: int = 0  # later if earlier ones were used to set up the experiment
    labels: Mapping[str, str] = field(default_factory=dict)  # of methods, where not the usual ones
    frozen: bool = False  # features do not depend on the objective, which is that of the heads

    def rule_for(self, trained_with: str, options: Mapping[str, Any]) -> Rule:
        """The rule of a row, which gives heads on fixed features their weights."""
        if self.frozen or options.get("features") is not None:
            return replace(self.rule, weights=HEADS[trained_with])
        return self.rule


@dataclass(frozen=True)
class TableScore:
    """A score of the paper's tables; an accuracy is printed in per cent."""

    label: str
    of: Callable[[GroupReport], float]
    kind: str = "accuracy"
    factor: float = 100.0  # by which it is multiplied for printing
    decimals: int = 1
    sign: int = 1  # 1 if larger is better, else -1

    def error(self, score: float) -> float:
        """The score as an error, as records hold it, and from that the score again."""
        return score if self.sign < 0 else 1 - score

    def shown(self, mean: float, std: float) -> str:
        """Mean and standard deviation as printed."""
        return plus_minus(self.factor * mean, self.factor * std, self.decimals)


_average, _worst = attrgetter("average"), attrgetter("worst")


def scored(
    keys: list[CellKey],
    scores: Mapping[str, TableScore],
    splits: Splits,
    predict: Callable[[EnvironmentData], Any],
    chosen: Mapping[str, Any],
    seconds: float,
    notes: list[str],
) -> list[Record]:
    """Records of the scores of one fit; its settings, seconds and warnings are the same."""
    metric = scores[keys[0].options["score"]].kind
    test, validation = (
        group_report(data.y, predict(data), environments=data.environments, metric=metric)
        for data in (splits.test, splits.validation)
    )
    out = []
    for key in keys:
        score = scores[key.options["score"]]
        errors = [score.error(group.value) for group in test.groups]
        value, held_out = (score.error(score.of(report)) for report in (test, validation))
        out.append(Record(key, value, held_out, errors, seconds, notes, chosen=chosen))
    return out


#: Scores by the names they have in the paper's tables.
SCORES: Mapping[str, TableScore] = {
    "average_accuracy": TableScore("Average accuracy (%)", _average),
    "worst_group_accuracy": TableScore("Worst-group accuracy (%)", _worst),
    "worst_10_group_accuracy": TableScore(
        "Accuracy of the worst 10 groups (%)",
        lambda found: found.worst_k(min(10, len(found.groups))),
    ),
    "average_rmse": TableScore("Average RMSE", _average, "rmse", 1.0, 3, -1),
    "worst_group_rmse": TableScore("Worst-group RMSE", _worst, "rmse", 1.0, 3, -1),
    "average_r2": TableScore("Average R²", _average, "r2", 1.0, 3),
    "worst_group_r2": TableScore("Worst-group R²", _worst, "r2", 1.0, 3),
}


#: The row of networks that are trained on the test split, without further methods.
ORACLE = {"oracle": "Oracle"}


class PaperScore(NamedTuple):
    """A printed mean and its standard deviation over seeds; NaN where none is printed."""

    mean: float
    std: float


def paper_score(
    table: str, dataset: str, trained_with: str, metric: str, method: str
) -> PaperScore | None:
    """The paper's number in a cell of a table, or None if there is no such cell."""
    return _tables().get((table, dataset, trained_with, metric, method))


@cache
def _tables() -> dict[tuple[str, ...], PaperScore]:
    text = files(__package__).joinpath("paper_tables.csv").read_text(encoding="utf-8")
    names, found = ("table", "dataset", "trained_with", "metric", "method"), {}
    for row in csv.DictReader(text.splitlines()):
        score = PaperScore(float(row["mean"]), float(row["std"] or "nan"))
        found[tuple(row[name] for name in names)] = score
    return found


@dataclass(frozen=True)
class CellScore:
    """Score of one method on networks trained with one objective, over seeds."""

    score: str
    trained_with: str
    method: str
    n_seeds: int
    mean: float
    std: float  # NaN for one seed
    change: float  # mean difference from the first method, seed by seed; positive if better
    change_error: float  # its standard error


def cell_scores(records: Iterable[Record], reference: str) -> list[CellScore]:
    """Every cell of the records, in their order."""
    at: dict[tuple[str, str, str], dict[int, float]] = {}
    for record in records:
        key = record.key
        cell = (key.options["score"], key.optimizer, key.method)
        at.setdefault(cell, {})[key.seed] = SCORES[cell[0]].error(record.value)
    found = []
    for (score, trained_with, method), values in at.items():
        first = at.get((score, trained_with, reference), {})
        sign = SCORES[score].sign
        changes = [sign * (v - first[seed]) for seed, v in values.items() if seed in first]
        mean, std, _ = mean_interval(values.values())
        change, spread, _ = mean_interval(changes)
        error = spread / math.sqrt(len(changes)) if changes else math.nan
        found.append(CellScore(score, trained_with, method, len(values), mean, std, change, error))
    return found


def score_tables(experiment: Experiment, cells: Iterable[CellScore]) -> list[Table]:
    """One table per score: objectives down; methods, each with the paper's number, across."""
    at = {(c.score, c.trained_with, c.method): c for c in cells}
    methods = [m for m in experiment.methods if any(key[2] == m for key in at)]
    labels = {m: experiment.labels.get(m, METHODS[m].label) for m in methods}
    tables = []
    for name in experiment.scores:
        score = SCORES[name]
        heads, rows = ["trained with"], []
        for m in methods:
            heads += [labels[m], *_beside(experiment, m, methods)]
        for trained_with, label in experiment.trained_with.items():
            if not any((name, trained_with, m) in at for m in methods):
                continue
            row = [label]
            for m in methods:
                column = labels[m].removesuffix(", as published")
                column = label if trained_with in ORACLE and m == methods[0] else column
                printed = paper_score(experiment.table, experiment.dataset, label, name, column)
                shown = {"paper": "" if printed is None else plus_minus(*printed, score.decimals)}
                cell = at.get((name, trained_with, m))
                shown["better by"] = "" if cell is None else _change(score, cell)
                row.append("" if cell is None else score.shown(cell.mean, cell.std))
                row += [shown[beside] for beside in _beside(experiment, m, methods)]
            rows.append(row)
        if rows:
            tables.append(Table(f"{experiment.title}: {score.label}", heads, rows))
    return tables


def _beside(experiment: Experiment, method: str, shown: Collection[str]) -> list[str]:
    """Further columns: the paper's number where it compares, the difference from the first."""
    ours = method.removesuffix("-published")
    if ours not in experiment.main:
        return []
    theirs = f"{ours}-published" if f"{ours}-published" in shown else ours
    paper = ["paper"] if experiment.table and method == theirs else []
    return [*paper, *(["better by"] if ours != experiment.main[0] else [])]


def _change(score: TableScore, cell: CellScore) -> str:
    """The paired difference with its standard error."""
    digits, factor = score.decimals, score.factor
    error = f" (s.e. {factor * cell.change_error:.{digits}f})"
    return f"{factor * cell.change:+.{digits}f}" + error * (not math.isnan(cell.change_error))
