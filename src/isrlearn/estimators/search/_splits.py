"""Which rows train and which are held out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import MISSING, encode

Rows = NDArray[np.intp] | slice


class Sample(NamedTuple):
    """Checked features, targets and environments of the same rows."""

    X: NDArray  # (n, d)
    y: NDArray  # (n,)
    environments: NDArray  # (n,)

    def rows(self, rows: Rows) -> Sample:
        """Some of the rows."""
        return Sample(self.X[rows], self.y[rows], self.environments[rows])


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to train on and rows to score; of one sample, or of a sample and another one."""

    sample: Sample
    train: Rows
    other: Sample
    test: Rows

    @property
    def training(self) -> Sample:
        """The rows to train on; not copied if they are all there are."""
        return self.sample.rows(self.train)

    @property
    def held_out(self) -> Sample:
        """The rows to score."""
        return self.other.rows(self.test)


def splits_of(
    sample: Sample,
    validation: Sample | None,
    cells: NDArray[np.intp],
    *,
    selection: str,
    cv: Any,
    random_state: Any,
) -> list[Split]:
    """The splits of a selection rule.

    Parameters
    ----------
    sample : Sample
    validation : Sample or None
        If given, the one split trains on all of `sample` and scores these.
    cells : ndarray of shape (n,)
        What folds are stratified by.
    selection : str
        "leave-one-environment-out" holds out one environment after the other.
    cv : int, splitter or iterable of (train, test)
    random_state : RandomState or None
        Shuffles rows inside their cells; None takes them in turn.
    """
    everything = slice(None)
    if validation is not None:
        return [Split(sample, everything, validation, everything)]
    if selection == "leave-one-environment-out":
        pairs: Iterable = _environments_in_turn(sample.environments)
    elif isinstance(cv, Integral):
        pairs = cell_folds(cells, int(cv), random_state)
    elif hasattr(cv, "split") and not isinstance(cv, str):
        with warnings.catch_warnings():
            # Environments are the groups of splitters that have them; the others say they do not.
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            pairs = list(cv.split(sample.X, cells, encode(sample.environments)[1]))
    elif isinstance(cv, Iterable) and not isinstance(cv, str):
        pairs = cv
    else:
        raise ValueError(
            "cv must be an int of at least 2, a scikit-learn splitter or an iterable of "
            f"(train, test) rows; got {cv!r}"
        )
    found = [Split(sample, np.asarray(a), sample, np.asarray(b)) for a, b in pairs]
    if not found:
        raise ValueError("cv holds no (train, test) pair")
    return found


def cell_folds(
    cells: NDArray[np.intp], n_folds: int, random_state: np.random.RandomState | None = None
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Folds in which every cell is spread as evenly as its rows allow.

    A cell with fewer rows than folds is held out in some of them only, and the one row of a
    cell is never held out: the cell could not be compared without it.

    Examples
    --------
    >>> import numpy as np
    >>> [test.tolist() for _, test in cell_folds(np.array([0, 0, 0, 0, 1, 1, 2]), 2)]
    [[0, 2, 4], [1, 3, 5]]
    """
    if n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds; got {n_folds}")
    fold = np.full(len(cells), -1)
    taken = 0
    for cell in np.unique(cells):
        rows = np.flatnonzero(cells == cell)
        if len(rows) < 2:
            continue
        if random_state is not None:
            rows = random_state.permutation(rows)
        # Each cell goes on where the last one stopped, so that folds have the same size too.
        fold[rows] = (taken + np.arange(len(rows))) % n_folds
        taken += len(rows)
    found = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]
    found = [(train, test) for train, test in found if len(test)]
    if not found:
        raise ValueError(
            f"no row can be held out: each class in each environment has one row (n_samples="
            f"{len(cells)}); give a validation set"
        )
    return found


def _environments_in_turn(environments: NDArray) -> Iterable[tuple[NDArray, NDArray]]:
    """Each environment held out once; rows of unknown environment always train."""
    names, codes = encode(environments)
    if len(names) < 3:
        raise ValueError(
            "selection='leave-one-environment-out' needs three environments, two of them to "
            f"compare while the third is held out; there are {len(names)}: {names.tolist()}"
        )
    return [(np.flatnonzero(codes != e), np.flatnonzero(codes == e)) for e in range(len(names))]


def cells_of(y: NDArray | None, environments: NDArray) -> NDArray[np.intp]:
    """Number of each row's class × environment, unknown environments being one of their own."""
    names, codes = encode(environments)
    codes = np.where(codes == MISSING, len(names), codes)
    return codes if y is None else encode(y)[1] * (len(names) + 1) + codes
