"""Principal components of rows without a d×d matrix, projections on them, and column variances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.engine.rows import Rows, row_blocks

#: Bytes of a block of float32 rows: it stays in the cache between its two products.
_BLOCK_BYTES, _FEWEST = 8 << 20, 256
#: Extra directions, gain of variance below which the passes end, largest number of passes.
_EXTRA, _GAIN, _PASSES = 10, 1e-2, 10


def row_components(
    X: Any, p: int, *, center: NDArray, weight: NDArray | None = None
) -> NDArray[np.float64]:
    """Leading principal directions (d, p) of rows, without a d×d matrix.

    With few rows they come from the n×n Gram matrix, exactly; else from a block Krylov method
    with a fixed start, whose passes end when one adds less than a hundredth to the variance held.
    scikit-learn's `randomized_svd` does not take rows that are read block by block.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 5.0, 2.0]
    >>> np.abs(row_components(X, 1, center=X.mean(axis=0))).round(1).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    n, d = X.shape
    if n <= d and not isinstance(X, Rows):
        Z = np.asarray(X[:], dtype=np.float64) - center
        if weight is not None:
            Z *= np.sqrt(weight)[:, None]
        p = min(p, n)
        values, vectors = linalg.eigh(Z @ Z.T, subset_by_index=[n - p, n - 1])
        real = values > n * np.finfo(float).eps * values[-1]
        return (Z.T @ (vectors[:, real] / np.sqrt(values[real])))[:, ::-1]
    if 4 * (p + _EXTRA) >= d:  # too few features for an iteration to save anything
        return np.linalg.eigh(_scatter_times(X, np.eye(d), center, weight))[1][:, : -p - 1 : -1]
    # Block Krylov iteration: the best directions in the span of all the blocks so far.
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((d, p + _EXTRA)))[0]
    basis, images = Q, np.empty((d, 0))
    held = 0.0
    for _ in range(_PASSES):
        images = np.hstack([images, _scatter_times(X, Q, center, weight)])
        values, vectors = np.linalg.eigh(basis.T @ images)
        before, held = held, float(values[-p:].sum())
        if held - before <= _GAIN * held or 2 * basis.shape[1] > d:
            break
        Q = images[:, -Q.shape[1] :]
        for _ in range(2):  # twice, because rounding errors remain the first time
            Q = np.linalg.qr(Q - basis @ (basis.T @ Q))[0]
        basis = np.hstack([basis, Q])
    return basis @ vectors[:, : -p - 1 : -1]


def _scatter_times(X: Any, V: NDArray, center: NDArray, weight: NDArray | None) -> NDArray:
    """Scatter of the rows about `center` times V (d, k), in one pass."""
    total, level = np.zeros(V.shape), np.zeros(V.shape[1])
    V = V.astype(X.dtype)
    shift = (center @ V).astype(X.dtype)
    for rows, block in row_blocks(X, max(_FEWEST, _BLOCK_BYTES // (4 * X.shape[1]))):
        image = block @ V - shift
        image = image if weight is None else image * weight[rows, None].astype(X.dtype)
        total += block.T @ image
        level += image.sum(axis=0)
    return total - np.outer(center, level)


def project(X: Any, components: NDArray, center: NDArray) -> NDArray:
    """``(X - center) @ components`` (n, p), in the precision of the rows, block by block."""
    out = np.empty((X.shape[0], components.shape[1]), dtype=X.dtype)
    for rows, block in row_blocks(X, max(_FEWEST, _BLOCK_BYTES // (4 * X.shape[1]))):
        out[rows] = (block - center.astype(X.dtype)) @ components.astype(X.dtype)
    return out


def column_squares(
    X: Any, centred: Callable[[NDArray], NDArray], weight: NDArray | None = None
) -> NDArray[np.float64]:
    """Sum over the rows of the squares of centred features, (d,)."""
    total = np.zeros(X.shape[1])
    for rows, block in row_blocks(X, max(_FEWEST, _BLOCK_BYTES // (4 * X.shape[1]))):
        Z = centred(block)
        Z = Z.astype(np.float64)  # squares of float32 features may be out of its range
        Z = Z if weight is None else Z * np.sqrt(weight[rows, None])
        total += np.einsum("ij,ij->j", Z, Z)
    return total
