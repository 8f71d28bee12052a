"""Rows that need not fit in memory: what a source must offer to be fitted on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core._accumulate import default_chunk_size


class Rows(ABC):
    """Rows of features that are read some at a time, in order, and again for every pass.

    Moments, logistic heads and predictions take one where they take an array. A subclass sets
    `shape` and `dtype`, and reads slices of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.core import Moments
    >>> rows = ArraySource(np.arange(12.0).reshape(6, 2))
    >>> len(rows), rows[2:4].tolist()
    (6, [[4.0, 5.0], [6.0, 7.0]])
    >>> Moments.from_data(rows, None, [0, 0, 0, 1, 1, 1]).mean[0].tolist()
    [[2.0, 3.0], [8.0, 9.0]]
    """

    shape: tuple[int, int]
    dtype: np.dtype
    #: Names of the columns, where they have any.
    feature_names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def __getitem__(self, rows: slice) -> NDArray:
        """Some rows that follow each other, as an array."""

    def blocks(self) -> Iterator[tuple[slice, NDArray]]:
        """All the rows, block by block, and where each block lies."""
        step = default_chunk_size(self.shape[1])
        for start in range(0, len(self), step):
            rows = slice(start, min(start + step, len(self)))
            yield rows, self[rows]


class ArraySource(Rows):
    """Rows of what slices like an array: a Zarr or HDF5 array, or some columns of a memory map.

    Parameters
    ----------
    array : array-like of shape (n, m)
        Sliced by rows, never taken whole.
    columns : sequence of int, optional
        Which columns are features, in this order; all of them when not given.

    Examples
    --------
    >>> import numpy as np
    >>> ArraySource(np.eye(3), columns=[2, 0])[1:].tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    """

    def __init__(self, array: Any, columns: Any = None) -> None:
        if len(array.shape) != 2:
            raise ValueError(f"rows must have 2 dimensions; these have the shape {array.shape}")
        self._array, self._columns = array, None if columns is None else np.asarray(columns)
        width = array.shape[1] if self._columns is None else len(self._columns)
        self.shape = int(array.shape[0]), int(width)
        small = array.dtype in (np.float32, np.float16)
        self.dtype = np.dtype(np.float32 if small else np.float64)

    def __getitem__(self, rows: slice) -> NDArray:
        block = np.asarray(self._array[rows])
        block = block if self._columns is None else block[:, self._columns]
        return block.astype(self.dtype, copy=False)
