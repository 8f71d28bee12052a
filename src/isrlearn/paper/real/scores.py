"""The scores of the paper's tables, out of a report by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from isrlearn.metrics import GroupReport

__all__ = ["SCORES", "TableScore"]


@dataclass(frozen=True)
class TableScore:
    """A column of a table.

    Parameters
    ----------
    label : str
        Its title.
    of : callable
        The score of a report.
    kind : {"accuracy", "rmse", "r2"}
        What it is made of; accuracies are printed in per cent, and all but RMSE are better when
        larger.
    """

    label: str
    of: Callable[[GroupReport], float]
    kind: str

    @property
    def factor(self) -> float:
        """By which a score is multiplied to be printed."""
        return 100.0 if self.kind == "accuracy" else 1.0

    @property
    def decimals(self) -> int:
        """Digits that are printed."""
        return 1 if self.kind == "accuracy" else 3

    @property
    def sign(self) -> int:
        """1 if larger is better, else -1."""
        return -1 if self.kind == "rmse" else 1

    def error(self, score: float) -> float:
        """The score as an error, which records hold: smaller is better."""
        return score if self.kind == "rmse" else 1 - score

    def score(self, error: float) -> float:
        """The score of which `error` made this number."""
        return error if self.kind == "rmse" else 1 - error


def _average(report: GroupReport) -> float:
    return report.average


def _worst(report: GroupReport) -> float:
    return report.worst


def _worst_10(report: GroupReport) -> float:
    return report.worst_k(min(10, len(report.groups)))


#: Scores by the names they have in the paper's tables.
SCORES: Mapping[str, TableScore] = MappingProxyType(
    {
        "average_accuracy": TableScore("Average accuracy (%)", _average, "accuracy"),
        "worst_group_accuracy": TableScore("Worst-group accuracy (%)", _worst, "accuracy"),
        "worst_10_group_accuracy": TableScore(
            "Accuracy of the worst 10 groups (%)", _worst_10, "accuracy"
        ),
        "average_rmse": TableScore("Average RMSE", _average, "rmse"),
        "worst_group_rmse": TableScore("Worst-group RMSE", _worst, "rmse"),
        "average_r2": TableScore("Average R²", _average, "r2"),
        "worst_group_r2": TableScore("Worst-group R²", _worst, "r2"),
    }
)
