"""Principal components of rows without a d×d matrix, projections on them, and column variances."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.engine.rows import BLOCK, MOST, Rows, SparseRows, row_blocks

#: Bytes of a block of float32 rows, which stays in the cache between its two products, its fewest
#: rows, and the rows up to which the Gram matrix of all rows is decomposed.
_BLOCK_BYTES, _FEWEST, _FEW_ROWS = 8 << 20, 256, 4096
#: Extra directions, gain of variance below which the passes end, largest number of passes, and
#: bytes of directions after which there is no other pass.
_EXTRA, _GAIN, _PASSES, _MOST_BYTES = 10, 1e-2, 10, 3 << 26


def row_components(
    X: Any, p: int, *, center: NDArray, weight: NDArray | None = None, scatter: Any = None
) -> NDArray[np.float64]:
    """Leading principal directions (d, p) of rows, without decomposing a d×d matrix.

    With few rows they come from the n×n Gram matrix, exactly; else from a block Krylov method
    with a fixed start, whose passes end when one adds less than a hundredth to the variance held.
    scikit-learn's `randomized_svd` does not take rows that are read block by block. A `scatter`
    (d, d) that is known takes the place of the passes.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 3)) * [1.0, 5.0, 2.0]
    >>> np.abs(row_components(X, 1, center=X.mean(axis=0))).round(1).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    n, d = X.shape
    in_memory = isinstance(X, SparseRows) or not isinstance(X, Rows) or n * d <= BLOCK
    if n <= min(d, _FEW_ROWS) and in_memory:
        return _few_components(X, min(p, n), center, weight)
    if 4 * (p + _EXTRA) >= d:  # too few features for an iteration to save anything
        scatter = scatter_times(X, np.eye(d, dtype=X.dtype), center, weight)
        return np.linalg.eigh(scatter)[1][:, : -p - 1 : -1]
    # Block Krylov iteration: the best directions in the span of all the blocks so far.
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((d, p + _EXTRA)))[0]
    blocks, inner, held = [Q], np.empty((0, 0)), 0.0
    known = None if scatter is None else scatter.astype(X.dtype, copy=False)
    for _ in range(_PASSES):
        Q = blocks[-1].astype(X.dtype)
        image = scatter_times(X, Q, center, weight) if known is None else known @ Q
        new = np.vstack([Q.T @ image for Q in blocks])
        inner = np.block([[inner, new[: len(inner)]], [new.T]])
        before, held = held, float(np.linalg.eigvalsh(inner)[-p:].sum())
        if held - before <= _GAIN * held or len(inner) > min(d / 2, _MOST_BYTES / 8 / d):
            break
        image = image.astype(np.float64, copy=False)
        for _ in range(2):  # twice, for what rounding left the first time
            for Q in blocks:
                image -= Q @ (Q.T @ image)
            image = np.linalg.qr(image)[0]
        blocks.append(image)
    parts = np.split(np.linalg.eigh(inner)[1][:, : -p - 1 : -1], len(blocks))
    return sum(Q @ part for Q, part in zip(blocks, parts, strict=True))


def _few_components(X: Any, p: int, center: NDArray, weight: NDArray | None) -> NDArray:
    """Leading principal directions (d, p) of few rows, from the Gram matrix of all of them."""
    n = X.shape[0]
    root = np.ones(n) if weight is None else np.sqrt(weight)
    if isinstance(X, SparseRows):
        Z, rest = X.matrix.multiply(root[:, None]).tocsr(), center
        gram = (Z @ Z.T).toarray()
    else:
        Z, rest = (X[:].astype(np.float64) - center) * root[:, None], np.zeros(len(center))
        gram = Z @ Z.T
    cross = np.outer(root, Z @ rest)
    gram += (rest @ rest) * np.outer(root, root) - cross - cross.T
    values, vectors = linalg.eigh(gram, subset_by_index=[n - p, n - 1])
    real = values > n * np.finfo(float).eps * values[-1]
    vectors = vectors[:, real] / np.sqrt(values[real])
    return (Z.T @ vectors - np.outer(rest, root @ vectors))[:, ::-1]


def centred_blocks(X: Any, center: NDArray, dtype: Any) -> Iterator[tuple[slice, Any, NDArray]]:
    """Blocks of rows less the center, and what is still to be subtracted: that of sparse rows."""
    if isinstance(X, SparseRows):
        for rows in (slice(start, start + MOST) for start in range(0, len(X), MOST)):
            yield rows, X.matrix[rows], center
        return
    for rows, block in row_blocks(X, max(_FEWEST, _BLOCK_BYTES // (4 * X.shape[1]))):
        # In float64 first: far from the origin, float32 cannot hold the center.
        yield rows, (block - center).astype(dtype, copy=False), np.zeros(len(center))


def scatter_times(X: Any, V: NDArray, center: NDArray, weight: NDArray | None) -> NDArray:
    """Scatter of the rows about `center` times V (d, k), in one pass, in V's precision."""
    total, rest, level = np.zeros(V.shape), center, np.zeros(V.shape[1])
    for rows, block, rest in centred_blocks(X, center, V.dtype):
        image = block @ V - (rest @ V).astype(V.dtype)
        image = image if weight is None else image * weight[rows, None].astype(V.dtype)
        total += block.T @ image
        level += image.sum(axis=0)
    return total - np.outer(rest, level)


def project(X: Any, components: NDArray, center: NDArray) -> NDArray:
    """``(X - center) @ components`` (n, p), in the precision of the rows, block by block."""
    out = np.empty((X.shape[0], components.shape[1]), dtype=X.dtype)
    for rows, block, rest in centred_blocks(X, center, X.dtype):
        out[rows] = block @ components.astype(X.dtype) - rest @ components
    return out


def column_squares(
    X: Any, V: NDArray, center: NDArray, weight: NDArray | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Diagonal (d,) of the scatter of the rows about `center`, and its product with V (d, k)."""
    if isinstance(X, SparseRows):
        w = np.ones(X.shape[0]) if weight is None else weight
        where, w_each = X.matrix.indices, np.repeat(w, np.diff(X.matrix.indptr))
        squares = w_each * (X.matrix.data - center[where]) ** 2
        zeros = w.sum() - np.bincount(where, w_each, len(center))
        squares = np.bincount(where, squares, len(center)) + zeros * center**2
        return squares, scatter_times(X, V, center, weight)
    total, squares = np.zeros(V.shape), np.zeros(len(V))
    # In float64: squares of float32 features may be out of the range of float32.
    for rows, Z, _ in centred_blocks(X, center, np.float64):
        weighted = Z if weight is None else Z * weight[rows, None]
        squares += np.einsum("ij,ij->j", weighted, Z)
        total += weighted.T @ (Z @ V)
    return squares, total
