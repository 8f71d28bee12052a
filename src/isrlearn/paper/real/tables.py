"""Tables in the layout of the paper, its numbers beside ours."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from isrlearn.paper.real.experiment import Experiment
from isrlearn.paper.real.methods import METHODS
from isrlearn.paper.real.paper import PaperScore, paper_score
from isrlearn.paper.real.scores import SCORES, TableScore
from isrlearn.paper.records import Record
from isrlearn.paper.tables import Table

__all__ = ["CellScore", "cell_scores", "score_tables"]


@dataclass(frozen=True)
class CellScore:
    """Scores of one method on networks trained in one way, over seeds.

    Parameters
    ----------
    score, trained_with, method : str
    n_seeds : int
    mean, std : float
        Of the score; NaN for the deviation of one seed.
    change, change_error : float
        Mean difference from the first method seed by seed, positive where the method is better,
        and its standard error.
    """

    score: str
    trained_with: str
    method: str
    n_seeds: int
    mean: float
    std: float
    change: float
    change_error: float


def cell_scores(records: Iterable[Record], reference: str) -> list[CellScore]:
    """Every cell of the records, in their order."""
    at: dict[tuple[str, str, str], dict[int, float]] = {}
    for record in records:
        key = record.key
        cell = (key.options["score"], key.optimizer, key.method)
        at.setdefault(cell, {})[key.seed] = SCORES[cell[0]].score(record.value)
    found = []
    for (score, trained_with, method), values in at.items():
        first = at.get((score, trained_with, reference), {})
        sign = SCORES[score].sign
        changes = [sign * (v - first[seed]) for seed, v in values.items() if seed in first]
        mean, std = _moments(list(values.values()))
        change, spread = _moments(changes)
        error = spread / math.sqrt(len(changes)) if changes else math.nan
        found.append(CellScore(score, trained_with, method, len(values), mean, std, change, error))
    return found


def score_tables(experiment: Experiment, cells: Iterable[CellScore]) -> list[Table]:
    """One table a score: ways of training down; methods, each with the paper's number, across."""
    at = {(c.score, c.trained_with, c.method): c for c in cells}
    methods = [m for m in experiment.methods if any(key[2] == m for key in at)]
    labels = {m: experiment.labels.get(m, METHODS[m].label) for m in methods}
    tables = []
    for name in experiment.scores:
        score = SCORES[name]
        heads, rows = ["trained with"], []
        for m in methods:
            heads += [labels[m], *_beside(experiment, m)]
        for trained_with, label in experiment.trained_with.items():
            if not any((name, trained_with, m) in at for m in methods):
                continue
            row = [label]
            for m in methods:
                cell = at.get((name, trained_with, m))
                row.append("" if cell is None else _shown(score, cell.mean, cell.std))
                for column in _beside(experiment, m):
                    if column == "paper":
                        printed = _paper(experiment, label, name, labels[m])
                        row.append("" if printed is None else _printed(score, printed))
                    else:
                        row.append("" if cell is None else _change(score, cell))
            rows.append(row)
        if rows:
            tables.append(Table(f"{experiment.title}: {score.label}", heads, rows))
    return tables


def _beside(experiment: Experiment, method: str) -> list[str]:
    """Columns beside a method's own: the paper's number, the difference from the first method."""
    if method not in experiment.main:
        return []
    paper = ["paper"] if experiment.table else []
    return [*paper, *(["better by"] if method != experiment.main[0] else [])]


def _paper(experiment: Experiment, trained_with: str, score: str, method: str) -> PaperScore | None:
    return paper_score(experiment.table, experiment.dataset, trained_with, score, method)


def _shown(score: TableScore, mean: float, std: float) -> str:
    digits, factor = score.decimals, score.factor
    text = f"{factor * mean:.{digits}f}"
    return text if math.isnan(std) else f"{text} ± {factor * std:.{digits}f}"


def _printed(score: TableScore, printed: PaperScore) -> str:
    digits = score.decimals
    text = f"{printed.mean:.{digits}f}"
    return text if math.isnan(printed.std) else f"{text} ± {printed.std:.{digits}f}"


def _change(score: TableScore, cell: CellScore) -> str:
    """The paired difference with its standard error."""
    digits, factor = score.decimals, score.factor
    text = f"{factor * cell.change:+.{digits}f}"
    if math.isnan(cell.change_error):
        return text
    return f"{text} (s.e. {factor * cell.change_error:.{digits}f})"


def _moments(values: list[float]) -> tuple[float, float]:
    if not values:
        return math.nan, math.nan
    std = float(np.std(values, ddof=1)) if len(values) > 1 else math.nan
    return float(np.mean(values)), std


def as_rows(cells: Iterable[CellScore], labels: Mapping[str, str]) -> list[list[str]]:
    """Cells as lines of a CSV file, with a head."""
    head = ["score", "trained_with", "method", "n_seeds", "mean", "std", "change", "change_error"]
    rows = [head]
    for cell in cells:
        numbers = (cell.mean, cell.std, cell.change, cell.change_error)
        rows.append(
            [cell.score, labels.get(cell.trained_with, cell.trained_with), cell.method]
            + [str(cell.n_seeds)]
            + ["" if math.isnan(v) else f"{v:.6g}" for v in numbers]
        )
    return rows
