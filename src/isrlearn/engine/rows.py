"""Rows of features that do not have to fit in memory, read block by block, and sparse rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isrlearn.core.labels import unmasked

#: Numbers in a block of rows, and its fewest and most rows.
BLOCK, FEWEST, MOST = 1 << 24, 2048, 16384


class Rows(ABC):
    """Rows of features that are read in slices, in order, and again for every pass.

    The moments, the solvers and the estimators accept one wherever they accept an array. A
    subclass sets `shape` and `dtype`, and reads slices of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.engine import ArrayRows, cell_moments
    >>> rows = ArrayRows(np.arange(12.0).reshape(6, 2))
    >>> len(rows), rows[2:4].tolist()
    (6, [[4.0, 5.0], [6.0, 7.0]])
    >>> cell_moments(rows, None, [0, 0, 0, 1, 1, 1]).mean[0].tolist()
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
        """Consecutive rows as an array."""


class ArrayRows(Rows):
    """Rows of an array-like object: a Zarr or HDF5 array, or some columns of a memory map.

    Parameters
    ----------
    array : array-like of shape (n, m)
        Sliced by rows, never loaded as a whole.
    columns : sequence of int, optional
        Positions of the features among the columns, in this order; default: all columns.

    Examples
    --------
    >>> import numpy as np
    >>> ArrayRows(np.eye(3), columns=[2, 0])[1:].tolist()
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
        block = np.asarray(unmasked(self._array[rows]))
        block = block if self._columns is None else block[:, self._columns]
        return block.astype(self.dtype, copy=False)


class SparseRows(Rows):
    """Rows of a SciPy sparse matrix or array: multiplied as they are, read in dense blocks.

    Examples
    --------
    >>> from scipy import sparse
    >>> rows = SparseRows(sparse.eye(3, format="csr"))
    >>> rows[1:].tolist(), rows[[2, 0]].matrix.nnz
    ([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], 2)
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = sparse.csr_array(matrix)
        if not self.matrix.has_canonical_format:
            self.matrix = self.matrix.copy()  # the user's matrix stays as it is
            self.matrix.sum_duplicates()
        self.shape, self.dtype = self.matrix.shape, self.matrix.dtype

    def __getitem__(self, rows: Any) -> Any:
        """Consecutive rows as an array, or any rows as `SparseRows`."""
        part = self.matrix[rows]
        return part.toarray() if isinstance(rows, slice) else SparseRows(part)

    def __matmul__(self, other: NDArray) -> NDArray:
        return self.matrix @ other


def row_blocks(X: Any, step: int | None = None) -> Iterator[tuple[slice, NDArray]]:
    """Blocks of `step` consecutive rows, by default of about 64 MB in float32, and their positions.

    X is an array, a memory map, `Rows`, or any object with a shape that slices by rows.

    Examples
    --------
    >>> import numpy as np
    >>> [(rows.start, rows.stop, len(block)) for rows, block in row_blocks(np.eye(5), step=3)]
    [(0, 3, 3), (3, 5, 2)]
    """
    n, d = X.shape
    step = step or min(max(FEWEST, BLOCK // max(1, d)), MOST)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        yield rows, np.asarray(X[rows])
