"""Curves of accuracy against the share of labels, from records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import stats

from isrlearn.paper.records import Record
from isrlearn.paper.tables import Table

__all__ = ["Curve", "curve_table", "curves"]


@dataclass(frozen=True)
class Curve:
    """A point of a curve: mean accuracy over draws at one share of labels.

    Parameters
    ----------
    dataset, method, score : str
    fraction : float
    n_draws : int
    mean, half_width : float
        Of the accuracy, with half its 95 % interval by Student's t (NaN for one draw).
    change, change_half_width : float
        Of the difference from all labels, draw by draw; NaN where those were not run.

    Examples
    --------
    >>> Curve("digits", "isr", "average", 0.1, 20, 0.8, 0.01, -0.02, 0.01).shown
    '0.800 ± 0.010'
    """

    dataset: str
    method: str
    score: str
    fraction: float
    n_draws: int
    mean: float
    half_width: float
    change: float
    change_half_width: float

    @property
    def shown(self) -> str:
        """Mean and half width."""
        return f"{self.mean:.3f} ± {self.half_width:.3f}"

    @property
    def change_shown(self) -> str:
        """The difference from all labels; nothing where it is none by definition."""
        if self.fraction == 1:
            return ""
        return f"{self.change:+.3f} ± {self.change_half_width:.3f}"


def curves(records: Iterable[Record]) -> list[Curve]:
    """Every point of the records, in their order.

    Records hold errors, the share of labels as the option "fraction" of their key and the name of
    the score as the option "score".

    Examples
    --------
    >>> curves([])
    []
    """
    at: dict[tuple[str, str, str, float], dict[int, float]] = {}
    for record in records:
        key = record.key
        cell = (key.dataset, key.method, key.options["score"], key.options["fraction"])
        at.setdefault(cell, {})[key.seed] = 1 - record.value
    return [_point(cell, values, at.get((*cell[:3], 1.0), {})) for cell, values in at.items()]


def curve_table(
    found: Iterable[Curve], title: str, labels: Mapping[str, str], changes: Iterable[str] = ()
) -> Table:
    """Methods and scores down, shares of labels across.

    Parameters
    ----------
    found : iterable of Curve
        Of one data set.
    title : str
    labels : mapping of str to str
        Label of each method, in order.
    changes : iterable of str
        Methods whose worst group's change from all labels gets a row of its own.
    """
    at = {(c.method, c.score, c.fraction): c for c in found}
    fractions = sorted({fraction for _, _, fraction in at}, reverse=True)
    scores = list(dict.fromkeys(score for _, score, _ in at))
    rows = []
    for method, label in labels.items():
        for score in scores:
            cells = [at.get((method, score, fraction)) for fraction in fractions]
            rows.append([f"{label}, {score}", *("" if c is None else c.shown for c in cells)])
    for method in changes:
        cells = [at.get((method, scores[0], fraction)) for fraction in fractions]
        shown = ("" if c is None else c.change_shown for c in cells)
        rows.append([f"{labels[method]}, {scores[0]}, change", *shown])
    return Table(title, ["accuracy", *(f"{fraction:.0%}" for fraction in fractions)], rows)


def _point(
    cell: tuple[str, str, str, float], values: Mapping[int, float], full: Mapping[int, float]
) -> Curve:
    mean, half_width = _interval(list(values.values()))
    change, change_half_width = _interval([v - full[i] for i, v in values.items() if i in full])
    return Curve(*cell, len(values), mean, half_width, change, change_half_width)


def _interval(values: list[float]) -> tuple[float, float]:
    """Mean and half its 95 % interval."""
    n = len(values)
    if not n:
        return float("nan"), float("nan")
    if n == 1:
        return values[0], float("nan")
    half = float(stats.t.ppf(0.975, n - 1)) * float(np.std(values, ddof=1)) / n**0.5
    return float(np.mean(values)), half
