"""Scores of predictions in every group at once, and what a selection rule makes of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import MISSING, encode

SELECTIONS = ("worst-group", "average", "leave-one-environment-out")


@dataclass(frozen=True, eq=False)
class Groups:
    """Group of each held-out row: class × environment, or environment.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        -1 where the environment is unknown.
    size : ndarray of shape (G,)
        Rows of each group.
    """

    codes: NDArray[np.intp]  # (n,)
    size: NDArray[np.intp]  # (G,)

    @classmethod
    def of(cls, y: NDArray | None, environments: NDArray) -> Groups:
        """Groups of rows, with y None by environment alone."""
        names, codes = encode(environments)
        if y is not None:
            codes = np.where(codes == MISSING, MISSING, encode(y)[1] * len(names) + codes)
        found, inverse = np.unique(codes[codes != MISSING], return_inverse=True)
        dense = np.full(len(codes), MISSING)
        dense[codes != MISSING] = inverse
        return cls(dense, np.bincount(inverse, minlength=len(found)))

    def means(self, values: NDArray) -> NDArray[np.float64]:
        """Mean of a value a row in each group."""
        known = self.codes != MISSING
        total = np.bincount(self.codes[known], values[known], minlength=len(self.size))
        return total / self.size


@dataclass(frozen=True)
class Score:
    """What one setting reached on one split; the greater the better."""

    worst_group: float
    average: float

    @classmethod
    def of_hits(cls, hits: NDArray, groups: Groups) -> Score:
        """Accuracies, from whether each row was right."""
        by_group = groups.means(hits.astype(float))
        average = float(hits.mean())
        return cls(float(by_group.min()) if len(by_group) else average, average)

    @classmethod
    def of_errors(cls, errors: NDArray, groups: Groups) -> Score:
        """Root mean squared errors with a minus sign."""
        squares = np.square(errors, dtype=float)
        by_group = groups.means(squares)
        average = -float(np.sqrt(squares.mean()))
        return cls(-float(np.sqrt(by_group.max())) if len(by_group) else average, average)

    def by(self, selection: str) -> float:
        """The number that a selection rule looks at."""
        return self.worst_group if selection == "worst-group" else self.average
