"""Names and integer codes of labels, with a code for "unknown"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MISSING = -1


def is_missing(values: ArrayLike) -> NDArray[np.bool_]:
    """Mask of the entries that are None, NaN, NaT or pandas' NA."""
    array = np.asarray(values)
    if array.dtype.kind != "O":
        return array != array  # NaN and NaT are not equal to themselves
    # pandas' NA refuses to be compared, so it is recognised by name instead of imported.
    nulls = (v is None or type(v).__name__ == "NAType" or bool(v != v) for v in array.ravel())
    return np.fromiter(nulls, bool, array.size).reshape(array.shape)


def as_array(labels: Any) -> NDArray:
    """Labels as an array; of a list of texts, NumPy would turn NaN and numbers into texts too."""
    if isinstance(labels, np.ma.MaskedArray):
        return np.array(labels.tolist(), dtype=object)  # None where masked
    array = np.asarray(labels)
    listed = array.dtype.kind == "U" and isinstance(labels, list | tuple)
    return np.asarray(labels, dtype=object) if listed else array


def unmasked(numbers: Any) -> Any:
    """The same numbers, with NaN where a mask hides what NumPy would read as a number."""
    if not isinstance(numbers, np.ma.MaskedArray) or numbers.dtype.kind not in "biuf":
        return numbers
    if not np.ma.is_masked(numbers):
        return numbers.data
    return np.ma.filled(numbers.astype(np.result_type(numbers, np.float32)), np.nan)


def encode(labels: ArrayLike) -> tuple[NDArray, NDArray[np.intp]]:
    """Sorted distinct names and, for each label, its position among them.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Labels of any one sortable type; None, NaN, NaT and NA mean "unknown".

    Returns
    -------
    names : ndarray of shape (m,)
    codes : ndarray of shape (n,)
        ``names[codes]`` are the labels; -1 where the label is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> names, codes = encode(np.array(["land", None, "water"], dtype=object))
    >>> names.tolist(), codes.tolist()
    (['land', 'water'], [0, -1, 1])
    """
    array = np.asarray(labels)
    known = ~is_missing(array)
    values = array if known.all() else array[known]
    try:
        names, inverse = np.unique(values, return_inverse=True)
    except TypeError:
        kinds = sorted({type(v).__name__ for v in values})
        raise ValueError(
            f"labels mix types that cannot be sorted: {', '.join(kinds)}; "
            "convert them to one type, for example with str()"
        ) from None
    if names.dtype.kind == "O" and len(names) and all(isinstance(v, str) for v in names):
        names = names.astype(str)
    codes = np.full(array.shape, MISSING, dtype=np.intp)
    codes[known] = inverse.ravel()
    return names, codes


@dataclass(frozen=True, eq=False)
class Cells:
    """Class and environment of every row, encoded once."""

    classes: NDArray  #: Names of the classes (K,), sorted.
    environments: NDArray  #: Names of the environments (E,), sorted.
    k: NDArray[np.intp]  #: Position of each row's class (n,).
    e: NDArray[np.intp]  #: Position of each row's environment (n,); -1 where it is unknown.
    #: What rows have in common (n,), such as their patient: only clusters are independent.
    cluster: NDArray[np.intp] | None = None

    @classmethod
    def of(
        cls, y: ArrayLike | None, environments: ArrayLike, clusters: ArrayLike | None = None
    ) -> Cells:
        """Cells of rows with these labels; without y, all rows are of class 0."""
        names, e = encode(environments)
        classes, k = encode(np.zeros(len(e), dtype=int) if y is None else y)
        return cls(classes, names, k, e, None if clusters is None else encode(clusters)[1])

    def rows(self, rows: NDArray) -> Cells:
        """Cells of some of the rows, without the names that do not occur among them."""
        k, e = self.k[rows], self.e[rows]
        kept_k, k = np.unique(k, return_inverse=True)
        known = e != MISSING
        kept_e, e[known] = np.unique(e[known], return_inverse=True)
        cluster = None if self.cluster is None else self.cluster[rows]
        return Cells(self.classes[kept_k], self.environments[kept_e], k, e, cluster)

    def count(self) -> NDArray[np.intp]:
        """Rows of each cell, (K, E)."""
        K, E = len(self.classes), len(self.environments)
        known = self.e != MISSING
        slots = self.k[known] * E + self.e[known]
        return np.bincount(slots, minlength=K * E).reshape(K, E)


def union(a: NDArray, b: NDArray) -> NDArray:
    """Sorted names that occur in either array."""
    if len(a) == len(b) and np.array_equal(a, b):
        return a
    if not len(a) or not len(b):  # an empty array's type says nothing
        return a if len(a) else b
    # As objects: NumPy would turn numbers into strings to join the two.
    names = encode(np.concatenate([a.astype(object), b.astype(object)]))[0]
    return names if object in (a.dtype, b.dtype) else names.astype(np.result_type(a, b))
