"""Splits of the rows that a search scores settings on."""

import warnings
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
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


def empty_cells(cells: Cells, fewest: int = 1) -> NDArray[np.bool_]:
    """Which cells (K, E) have too few rows, and no row of unknown environment may be theirs."""
    unknown = np.bincount(cells.k[cells.e == MISSING], minlength=len(cells.classes))
    return (cells.count() < fewest) & (unknown == 0)[:, None]
