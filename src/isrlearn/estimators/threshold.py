"""The threshold between classes, moved for the sake of the worst group of held-out rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import Cells
from isrlearn.estimators.selection import cell_sums, shrunk_worst

#: Candidates, rounds over the classes, and standard errors from the best that are close to it.
_CANDIDATES, _ROUNDS, _MARGIN = 100, 2, 0.5


def worst_group_shift(scores: NDArray, cells: Cells) -> NDArray[np.float64]:
    """What to add to the intercepts so that the worst group of held-out rows does best.

    The smallest change within half a standard error of the best, one class after the other; zero
    where no change is better by more than that.

    Parameters
    ----------
    scores : ndarray of shape (n, 1) or (n, K)
        Decision function of rows that the model was not fitted on.
    cells : Cells
        Their classes and environments.

    Examples
    --------
    >>> scores = np.linspace(-1, 3, 400)[:, None]
    >>> cells = Cells.of(np.repeat([0, 1], 200), np.zeros(400, dtype=int))
    >>> bool(np.isclose(worst_group_shift(scores, cells)[0], -1.0, atol=0.15))
    True
    """
    two = scores.shape[1] == 1
    # One column per class: that of class 0 is zero where there are two.
    scores = np.hstack([np.zeros_like(scores), scores]) if two else scores.copy()
    shift = np.zeros(scores.shape[1])
    for _ in range(1 if two else _ROUNDS):
        for k in [1] if two else range(len(shift)):
            found = _shift_of_class(k, scores, cells)
            scores[:, k] += found
            shift[k] += found
    return shift[1:] if two else shift


def _shift_of_class(k: int, scores: NDArray, cells: Cells) -> float:
    """What to add to the scores of one class."""
    others = scores.copy()
    others[:, k] = -np.inf
    margin = scores[:, k] - others.max(axis=1)
    own, otherwise = cells.k == k, others.argmax(axis=1) == cells.k
    levels = np.quantile(margin, np.linspace(0.005, 0.995, _CANDIDATES))
    shifts = np.append(0.0, -np.unique(levels))
    hits = (np.where(margin + b > 0, own, otherwise) for b in shifts)
    sums = [cell_sums(values, cells) for values in hits]
    size = cell_sums(np.ones(len(margin)), cells)
    worst, error = shrunk_worst(np.array(sums), size, len(cells.classes))
    best = int(worst.argmax())
    near = shifts[worst >= worst[best] - _MARGIN * error[best]]
    return float(near[np.abs(near).argmin()])
