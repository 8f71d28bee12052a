"""How a head does in an environment that was left out of training."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.moments import Moments
from isrlearn.diagnosis._frame import Frame
from isrlearn.diagnosis._heads import predicted, row_weights
from isrlearn.diagnosis._information import removed, ridge
from isrlearn.diagnosis._stability import SHIFTS, leading

#: Most times that environments are left out in turn.
_MOST_LEFT_OUT = 10


@dataclass(frozen=True)
class Unseen:
    """Score in an environment that was left out of training, mean over those left out.

    Parameters
    ----------
    score : {"balanced accuracy", "R²"}
    before, after : float
        Without and with the removal of the subspace that the other environments show.

    Examples
    --------
    >>> Unseen("balanced accuracy", 0.6, 0.9).gain.__round__(2)
    0.3
    """

    score: str
    before: float
    after: float

    @property
    def gain(self) -> float:
        """What the removal adds."""
        return self.after - self.before


def unseen_score(
    frame: Frame,
    moments: Moments,
    classes: NDArray,
    method: str,
    rank: int,
    *,
    n_patterns: int,
    target: NDArray | None = None,
) -> Unseen | None:
    """Score in environments left out in turn.

    None if the environments that remain could not show as many dimensions as all of them do: a
    smaller subspace would be tried then, and say little about the one found.

    Parameters
    ----------
    frame : Frame
    moments : Moments
        In the frame's coordinates; with a scatter a cell for "cov" and "joint".
    classes : ndarray of int
        Positions of the classes compared.
    method : {"mean", "cov", "joint"}
    rank : int
        Dimensions removed.
    n_patterns : int
        Classes that move in ways of their own.
    target : ndarray of shape (n,), optional
        What a regression predicts, for each row of the frame.
    """
    E = len(moments.environments)
    left_out = np.array_split(np.arange(E), min(E, _MOST_LEFT_OUT))
    fewest = E - max(map(len, left_out))
    if fewest < 2 or (method == "mean" and rank > n_patterns * (fewest - 1)):
        return None
    scores = []
    for out in left_out:
        kept = np.setdiff1d(np.arange(E), out)
        basis = leading(SHIFTS[method](_part(moments, kept), classes), rank)
        train = np.flatnonzero(np.isin(frame.environments, kept))
        for place in out:
            test = np.flatnonzero(frame.environments == place)
            if target is not None and np.ptp(target[test]) == 0:
                continue  # there is no variance to explain
            scores.append(
                [
                    _balanced(frame, b, train, test)
                    if target is None
                    else _explained(removed(frame.rows, b), target, train, test)
                    for b in (basis[:, :0], basis)
                ]
            )
    if not scores:
        return None
    before, after = np.mean(scores, axis=0)
    return Unseen("balanced accuracy" if target is None else "R²", float(before), float(after))


def _part(moments: Moments, kept: NDArray) -> Moments:
    """Moments of some of the environments."""
    scatter = moments.scatter
    if scatter is not None and not moments.pooled:
        scatter = scatter[:, kept]
    names = moments.environments[kept]
    return Moments(moments.classes, names, moments.count[:, kept], moments.mean[:, kept], scatter)


def _balanced(frame: Frame, basis: NDArray, train: NDArray, test: NDArray) -> float:
    """Balanced accuracy on test rows of a class-balanced head."""
    # Rows of unknown environment may be of the one left out.
    known = replace(frame, other_rows=frame.other_rows[:0], other_classes=frame.other_classes[:0])
    k = frame.classes[test]
    right = predicted(known, basis, train, test, row_weights(known, "class")) == k
    return float(np.mean([right[k == c].mean() for c in np.unique(k)]))


def _explained(Z: NDArray, target: NDArray, train: NDArray, test: NDArray) -> float:
    """R² on test rows of ridge regression."""
    centre, level = Z[train].mean(axis=0), target[train].mean()
    coef = ridge(Z[train] - centre, target[train] - level)
    error = target[test] - level - (Z[test] - centre) @ coef
    return 1 - float(np.mean(error**2) / np.var(target[test]))
