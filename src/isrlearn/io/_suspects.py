"""Features that are in a table by accident: row numbers, ids, copies of a label."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from isrlearn.core.labels import encode
from isrlearn.engine import row_blocks
from isrlearn.io.errors import listed

#: Fewest rows of a table that is examined, and rows by which most features are ruled out.
_FEWEST, _FIRST = 10, 1000
#: Largest probability that separation by chance may have, over all features.
_CHANCE = 1e-3
_MOST_EXTREMES = 10_000_000


def suspects(
    X: NDArray, names: tuple[str, ...], y: NDArray | None, environments: NDArray | None
) -> list[str]:
    """Sentences about features that look like row numbers, or that separate groups perfectly.

    Examples
    --------
    >>> X = np.column_stack([np.arange(40), np.arange(40) % 2, np.sin(np.arange(40))])
    >>> notes = suspects(X, ("id", "copy", "age"), np.arange(40) % 2, None)
    >>> [note.partition(";")[0] for note in notes][1]
    "each of these features alone separates the labels: 'copy'"
    """
    found = []
    first = X[:_FIRST]
    whole = np.flatnonzero((first == np.rint(first)).all(axis=0))
    if numbers := [names[i] for i in whole if _counts_rows(X[:, i])]:
        looks = "these features look like row numbers, ids or dates"
        found.append(f"{looks}: {listed(numbers)}; leave them out if they are")
    for what, values in {"labels": y, "environments": environments}.items():
        if copies := [names[i] for i in _separating(X, values)]:
            separates = f"each of these features alone separates the {what}"
            found.append(f"{separates}: {listed(copies)}; leave them out if they are copies")
    return found


def _counts_rows(column: NDArray) -> bool:
    """Whether a column holds different whole numbers, in order or without gaps."""
    n, steps = len(column), np.diff(column)
    if n < _FEWEST or (column != np.rint(column)).any():
        return False
    ordered = (steps > 0).all() or (steps < 0).all()
    return bool(ordered or (np.ptp(column) == n - 1 and len(np.unique(column)) == n))


def _separating(X: NDArray, labels: NDArray | None) -> NDArray[np.intp]:
    """Features whose values in each group do not overlap with those in any other."""
    none = np.zeros(0, dtype=np.intp)
    if labels is None:
        return none
    groups, codes = encode(labels)
    K, d = len(groups), X.shape[1]
    sizes = np.bincount(codes[codes >= 0], minlength=K)
    # Ranks in random order keep K groups together with probability K! ∏ n_k! / n!.
    chance = gammaln(K + 1) + gammaln(sizes + 1).sum() - gammaln(sizes.sum() + 1) + np.log(d)
    if K < 2 or chance > np.log(_CHANCE) or K * d > _MOST_EXTREMES:
        return none
    low, high, left = np.full((K, d), np.inf), np.full((K, d), -np.inf), np.arange(d)
    for rows, block in row_blocks(X):
        for k in np.unique(codes[rows]):
            if k >= 0:
                own = block[codes[rows] == k][:, left]
                low[k, left] = np.minimum(low[k, left], own.min(axis=0))
                high[k, left] = np.maximum(high[k, left], own.max(axis=0))
        order = np.argsort(low[:, left], axis=0)
        ends, starts = (np.take_along_axis(a[:, left], order, 0) for a in (high, low))
        left = left[(ends[:-1] < starts[1:]).all(axis=0)]
        if not len(left):
            break
    return left
