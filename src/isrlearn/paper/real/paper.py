"""The numbers of the paper's tables.

From "Invariant-Feature Subspace Recovery: A New Class of Provable Domain Generalization
Algorithms" (Wang, Balasubramaniam, Si, Li and Zhao): the tables of real data sets, of CLIP,
MC-CMNIST, RCFMNIST and Law School. ``paper_tables.csv`` holds them as printed: percentages for
accuracies, mean and standard deviation over the paper's seeds.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import NamedTuple

__all__ = ["PaperScore", "paper_score"]


class PaperScore(NamedTuple):
    """A printed mean and its standard deviation over seeds; NaN where none is printed."""

    mean: float
    std: float


def paper_score(
    table: str, dataset: str, trained_with: str, metric: str, method: str
) -> PaperScore | None:
    """What the paper prints in a cell of a table; None if it has no such cell.

    Examples
    --------
    >>> paper_score("mc_cmnist", "MC-CMNIST", "ERM", "average_accuracy", "ISR-Multiclass")
    PaperScore(mean=78.5, std=0.76)
    """
    return _tables().get((table, dataset, trained_with, metric, method))


@cache
def _tables() -> dict[tuple[str, str, str, str, str], PaperScore]:
    text = files(__package__).joinpath("paper_tables.csv").read_text(encoding="utf-8")
    return {
        (row["table"], row["dataset"], row["trained_with"], row["metric"], row["method"]): (
            PaperScore(float(row["mean"]), float(row["std"] or "nan"))
        )
        for row in csv.DictReader(text.splitlines())
    }
