"""Splits of the rows that a search scores settings on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.model_selection import StratifiedGroupKFold, check_cv

from isrlearn.core.labels import MISSING, Cells
from isrlearn.estimators.held_out import MOST_FOLDS

Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


def folds_of(X: Any, cells: Cells, selection: str, cv: Any, random_state: Any) -> list[Fold]:
    """Rows to train on and rows to score, for each split of a selection rule.

    "leave-one-environment-out" holds out one environment after the other, or with more than twenty
    of them a twentieth at a time; else folds are stratified by class and environment, and split no
    cluster. `random_state` shuffles rows inside cells. Unlike with scikit-learn's
    `StratifiedKFold`, the only row of a cell is never held out: the cell could not be compared
    without it. A cell with fewer rows than folds is held out in some folds.

    Examples
    --------
    >>> import numpy as np
    >>> cells = Cells.of(None, np.array([0, 0, 0, 0, 1, 1, 2]))
    >>> [test.tolist() for _, test in folds_of(None, cells, "worst-group", 2, None)]
    [[0, 2, 4], [1, 3, 5]]
    """
    E = len(cells.environments)
    e = np.where(cells.e == MISSING, E, cells.e)
    strata = cells.k * (E + 1) + e
    fold = np.full(len(e), -1)  # in which each row is held out; -1: it always trains
    if selection == "leave-one-environment-out":
        if E < 3:
            raise ValueError(
                "selection='leave-one-environment-out' needs three environments; there are "
                f"{E}: {cells.environments.tolist()}"
            )
        fold = np.append(np.arange(E) % min(E, MOST_FOLDS), -1)[e]  # unknown ones always train
    elif not isinstance(cv, Integral) or cells.cluster is not None:
        groups = e if cells.cluster is None else cells.cluster
        return _by_splitter(X, strata, groups, cv, random_state)
    elif cv < 2:
        raise ValueError(f"cv must be at least 2 folds; got {cv}")
    else:
        names, size = np.unique(strata, return_counts=True)
        order = [np.flatnonzero(strata == cell) for cell in names[size > 1]]
        if random_state is not None:
            order = [random_state.permutation(rows) for rows in order]
        # Each cell continues where the last one stopped, so that folds have the same size too.
        dealt = np.concatenate([[], *order]).astype(int)
        fold[dealt] = np.arange(len(dealt)) % int(cv)
    if fold.max(initial=-1) < 0:
        raise ValueError(
            f"no row can be held out: each class in each environment has only one row (n_samples="
            f"{len(e)}); merge environments, or give a validation set"
        )
    return [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(fold.max() + 1)]


def _by_splitter(
    X: Any, strata: NDArray, groups: NDArray, cv: Any, random_state: Any
) -> list[Fold]:
    """Folds of scikit-learn's splitters, or folds given as pairs of rows."""
    if isinstance(cv, Integral):
        n_clusters = len(np.unique(groups))
        if n_clusters < 2:
            raise ValueError(
                f"a cluster is never split between folds, and the {len(groups)} rows to split are "
                "of one: name smaller clusters, or leave clusters out"
            )
        n_folds = min(int(cv), n_clusters)
        cv = StratifiedGroupKFold(n_folds, shuffle=True, random_state=random_state)
    with warnings.catch_warnings():
        # Clusters, or else environments, are the groups of splitters that use them; others warn.
        warnings.filterwarnings("ignore", "The (groups param|least populated)", UserWarning)
        pairs: Iterable = check_cv(cv, strata, classifier=True).split(X, strata, groups)
        found = [(np.asarray(train), np.asarray(test)) for train, test in pairs if len(test)]
    if not found:
        raise ValueError("cv has no (train, test) pair")
    return found


def unseen_cell_folds(cells: Cells, n_folds: int = 5) -> list[Fold] | None:
    """Folds that hold out whole cells, as if not collected; None if every cell has two rows.

    Held-out rows of the other cells do not show what a model does in a cell that was never trained
    on, or whose only row always trains; cells left out whole do. What remains must connect all
    classes and environments: a class compared with itself must link one environment to the next.
    The list is empty where no cell can be spared.

    Examples
    --------
    >>> import numpy as np
    >>> k, e = np.repeat([0, 0, 0, 1, 1], 2), np.repeat([0, 1, 2, 0, 1], 2)
    >>> [e[test].tolist() for _, test in unseen_cell_folds(Cells.of(k, e))]
    [[0, 0], [1, 1], [0, 0], [1, 1]]
    """
    seen = cells.count() > 1
    if len(seen) < 2 or seen.all():
        return None
    left, folds = [tuple(cell) for cell in np.argwhere(seen)], []
    most = -(-len(left) // n_folds)
    while left:
        rest = seen.copy()
        out: list[tuple[int, ...]] = []
        for cell in left:
            rest[cell] = len(out) == most
            if not rest[cell] and _connected(rest):
                out.append(cell)
            rest[cell] = cell not in out
        if not out:
            break
        left = [cell for cell in left if cell not in out]
        held = (cells.e != MISSING) & (seen & ~rest)[cells.k, cells.e]
        folds.append((np.flatnonzero(~held), np.flatnonzero(held)))
    return folds


def empty_cells(cells: Cells, fewest: int = 1) -> NDArray[np.bool_]:
    """Which cells (K, E) have too few rows, and no row of unknown environment may be theirs."""
    unknown = np.bincount(cells.k[cells.e == MISSING], minlength=len(cells.classes))
    return (cells.count() < fewest) & (unknown == 0)[:, None]


def _connected(seen: NDArray[np.bool_]) -> bool:
    """Whether classes and environments that share cells are all linked, directly or not."""
    graph = np.pad(seen, ((0, seen.shape[1]), (len(seen), 0)))
    return connected_components(graph, directed=False, return_labels=False) == 1
