"""The threshold that is best for the worst group, and rows that stand in for missing groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import MISSING, Cells
from isrlearn.estimators.selection import cell_sums, shrunk_worst

#: Shifts of the threshold that are tried, rounds over the classes, and standard errors from the
#: best shift that are close to it.
_SHIFTS, _ROUNDS, _CLOSE = 100, 2, 0.5
#: Rows that every group must have for the threshold to be moved.
FEWEST_TO_MOVE = 20
#: Share of the way towards the other classes by which rows that stand in for a cell are moved.
_PULL = 0.1


def replaceable(count: NDArray) -> NDArray[np.bool_]:
    """Which cells (K, E) rows of other cells can stand in for, given the rows of each cell.

    A class seen in both environments must link the cell's environment to one in which its class was
    seen.

    Examples
    --------
    >>> replaceable(np.array([[9, 9, 9], [9, 0, 0], [0, 0, 0]])).tolist()
    [[True, True, True], [True, True, True], [False, False, False]]
    """
    seen = (count > 0).astype(int)
    return seen @ seen.T @ seen > 0


def stand_ins(scores: NDArray, cells: Cells, missing: NDArray) -> tuple[NDArray, Cells]:
    """Held-out scores, and rows in place of missing cells.

    For a class that was not seen in an environment, its rows of other environments stand in. Their
    scores are moved as those of other classes are between these two environments, and then by a
    tenth of the way towards the other classes: what was learned about a class without that
    environment usually fits worse there.

    Parameters
    ----------
    scores : ndarray of shape (n, 1) or (n, K)
        Decision function of rows that the model was not fitted on.
    cells : Cells
        Their classes and environments.
    missing : ndarray of bool of shape (K, E)
        Cells to stand in for; those that are not `replaceable` are left out.

    Examples
    --------
    >>> scores = np.array([-2.0, -2.0, -1.0, -1.0, 2.0, 2.0])[:, None]  # class 0 moves by 1
    >>> cells = Cells.of([0, 0, 0, 0, 1, 1], ["a", "a", "b", "b", "a", "a"])
    >>> stand_ins(scores, cells, cells.count() == 0)[0][-2:, 0]
    array([2.65, 2.65])
    """
    count = cells.count()
    K, E = count.shape
    found, codes = [scores], [(cells.k, cells.e)]
    known = cells.e != MISSING
    sums = np.zeros((K, E, scores.shape[1]))
    np.add.at(sums, (cells.k[known], cells.e[known]), scores[known])
    mean = sums / np.maximum(count, 1)[:, :, None]
    own = sums.sum(axis=1) / np.maximum(count.sum(axis=1), 1)[:, None]
    pull = _PULL * (own.sum(axis=0) - K * own) / (K - 1)
    missing = missing & replaceable(count)
    for e in np.flatnonzero(missing.any(axis=0)):
        # Rows that would show the shift of a class if both of its cells were one sample.
        weight = count * count[:, [e]] / np.maximum(count + count[:, [e]], 1)
        total = weight.sum(axis=0)
        shift = np.einsum("kf,kfc->fc", weight, mean[:, [e]] - mean)
        shift /= np.where(total > 0, total, 1)[:, None]
        linked = known & (total[cells.e] > 0)
        for k in np.flatnonzero(missing[:, e]):
            rows = np.flatnonzero(linked & (cells.k == k))
            found.append(scores[rows] + shift[cells.e[rows]] + pull[k])
            codes.append((np.full(len(rows), k), np.full(len(rows), e)))
    ks, es = (np.concatenate(part) for part in zip(*codes, strict=True))
    return np.vstack(found), replace(cells, k=ks, e=es)


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
    levels = np.quantile(margin, np.linspace(0.005, 0.995, _SHIFTS))
    shifts = np.append(0.0, -np.unique(levels))
    hits = (np.where(margin + b > 0, own, otherwise) for b in shifts)
    sums = [cell_sums(values, cells) for values in hits]
    size = cell_sums(np.ones(len(margin)), cells)
    worst, error = shrunk_worst(np.array(sums), size, len(cells.classes))
    best = int(worst.argmax())
    near = shifts[worst >= worst[best] - _CLOSE * error[best]]
    return float(near[np.abs(near).argmin()])
