"""Linear heads tried before and after the removal: which group fails, and if weights help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.diagnosis._folds import Fold
from isrlearn.diagnosis._frame import Frame
from isrlearn.diagnosis._information import removed
from isrlearn.diagnosis._value import label
from isrlearn.engine import fit_logistic

WEIGHTS = (None, "class", "group")
#: Ratio of weights up to which they are taken for equal.
_ALIKE = 1.2
#: Of a head that is tried once and forgotten.
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class HeadScore:
    """Accuracy, on held-out rows, of one logistic regression for all environments.

    Parameters
    ----------
    removed : bool
        Whether the subspace was removed before.
    weight : {None, "class", "group"}
        How rows weigh: all the same, classes balanced, or classes in environments balanced.
    average : float
        Accuracy over all rows.
    worst : float
        Accuracy in the worst group, a class in an environment.
    worst_group : tuple
        Its class and environment.
    n : int
        Rows of that group that were tried.

    Examples
    --------
    >>> HeadScore(True, "class", 0.95, 0.91, ("waterbird", "land"), 56).worst_group
    ('waterbird', 'land')
    """

    removed: bool
    weight: str | None
    average: float
    worst: float
    worst_group: tuple[Any, Any]
    n: int

    @property
    def worst_error(self) -> float:
        """Standard error of the accuracy in the worst group, with a prior row on either side."""
        share = (self.worst * self.n + 1) / (self.n + 2)
        return float(np.sqrt(share * (1 - share) / (self.n + 2)))


def head_scores(
    frame: Frame, folds: Sequence[Fold], *, after: bool = True
) -> tuple[HeadScore, ...]:
    """Scores of logistic regressions by cross-validation, removal × weights.

    Parameters
    ----------
    frame : Frame
    folds : sequence of Fold
    after : bool, default=True
        Try them after the removal too.
    """
    found: list[HeadScore] = []
    plain = np.concatenate(row_weights(frame, None))
    for without in (False, True) if after else (False,):
        first: NDArray | None = None
        for weight in WEIGHTS:
            weights = row_weights(frame, weight)
            relative = np.concatenate(weights) / plain
            # Where classes or cells are about as large as each other there is nothing to weigh.
            if first is None or relative.max() > _ALIKE * relative.min():
                right = _right(frame, folds, weights, without)
            else:
                right = first
            first = right if first is None else first
            found.append(_score(frame, without, weight, right))
    return tuple(found)


def _right(
    frame: Frame, folds: Sequence[Fold], weights: tuple[NDArray, NDArray], without: bool
) -> NDArray:
    """Whether the class of each row is told by a head that was not trained on it."""
    right = np.zeros(len(frame.rows), dtype=bool)
    for fold in folds:
        basis = fold.basis if without else fold.basis[:, :0]
        train = np.setdiff1d(np.arange(len(frame.rows)), fold.test)
        told = predicted(frame, basis, train, fold.test, weights)
        right[fold.test] = told == frame.classes[fold.test]
    return right


def predicted(
    frame: Frame,
    basis: NDArray,
    train: NDArray,
    test: NDArray,
    weights: tuple[NDArray, NDArray],
) -> NDArray[np.intp]:
    """Classes of test rows by a logistic regression on training rows without a subspace.

    Rows whose environment is unknown train it too, as they do in the estimators.
    """
    K = len(frame.moments.classes)
    rows = removed(np.concatenate([frame.rows[train], frame.other_rows]), basis)
    codes = np.concatenate([frame.classes[train], frame.other_classes])
    weight = np.concatenate([weights[0][train], weights[1]])
    fit = fit_logistic(
        rows, codes, penalty=1.0, n_classes=K, weight=weight / weight.mean(), tol=_TOLERANCE
    )
    scores = removed(frame.rows[test], basis) @ fit.coef.T + fit.intercept
    return (scores[:, 0] > 0).astype(np.intp) if K == 2 else scores.argmax(axis=1)


def row_weights(frame: Frame, weight: str | None) -> tuple[NDArray, NDArray]:
    """Weights of rows with an environment and without, as the estimators weigh them.

    The frame may hold other shares of the cells than the data do; weights make up for it.
    """
    cells, outside = frame.moments.count, frame.moments.unlabelled
    held = np.zeros(cells.shape)
    np.add.at(held, (frame.classes, frame.environments), 1)
    inside = cells / np.maximum(held, 1)
    others = np.zeros(len(cells)) if outside is None else outside.count[:, 0]
    m = np.bincount(frame.other_classes, minlength=len(cells))
    other = others / np.maximum(m, 1)
    total = cells.sum(axis=1) + others
    balanced = total.sum() / (len(total) * np.maximum(total, 1))
    if weight == "class":
        inside, other = inside * balanced[:, None], other * balanced
    elif weight == "group":
        inside = inside * cells.sum() / (np.count_nonzero(cells) * np.maximum(cells, 1))
        other = other * balanced
    return inside[frame.classes, frame.environments], other[frame.other_classes]


def _score(frame: Frame, without: bool, weight: str | None, right: NDArray) -> HeadScore:
    """Average and worst accuracy of a head."""
    count = frame.moments.count
    cell = frame.classes * count.shape[1] + frame.environments
    tried = np.bincount(cell, minlength=count.size)
    accuracy = np.bincount(cell, right, minlength=count.size) / np.maximum(tried, 1)
    worst = int(np.where(tried > 0, accuracy, np.inf).argmin())
    k, e = divmod(worst, count.shape[1])
    seen = count.ravel() * (tried > 0)
    return HeadScore(
        without,
        weight,
        float(seen @ accuracy / seen.sum()),
        float(accuracy[worst]),
        (label(frame.moments.classes[k]), label(frame.moments.environments[e])),
        int(tried[worst]),
    )
