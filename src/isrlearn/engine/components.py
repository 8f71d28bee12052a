"""Principal components, projections and variances of rows, without a d×d matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Bytes of a block of float32 rows: it stays in the cache between its two products.
_BLOCK_BYTES, _FEWEST_ROWS = 4 << 20, 256
#: Directions that are carried along beside the wanted ones.
_MORE = 10
#: Relative gain of variance by one more pass below which the search ends, and most passes.
_GAIN, _PASSES = 1e-2, 10
#: One block in so many is a sample to begin with, where it has so many rows per direction.
_EVERY, _ROWS_PER_DIRECTION = 10, 20
#: Most rows whose Gram matrix is decomposed instead, and their most per wanted direction.
_FEW, _FEW_PER_DIRECTION = 1024, 8
#: Fewest features, and features per component, for which rows may be cheaper than moments.
_WIDE, _THIN = 512, 8
#: Passes that have to be paid for, each a little dearer than its multiplications in one large
#: product, and the cost of an eigenvector routine per cubed feature, in units of these.
_PAID, _EIGH = 3.5, 7.0
#: Smallest size of a float32 feature, and one over the largest, whose squares are exact enough.
_SMALLEST = 1e-15


def prefers_rows(n: float, d: int, p: float | None) -> bool:
    """Whether p principal components of n rows of d features cost less from rows than moments.

    Examples
    --------
    >>> prefers_rows(4795, 2048, 100), prefers_rows(80_000, 1024, 100)
    (True, False)
    """
    if p is None or p < 1 or d < _WIDE or p * _THIN > d:
        return False
    return _PAID * 4 * n * (p + _MORE) < n * d + _EIGH * d**2


def row_components(
    X: Any,
    p: int,
    *,
    center: NDArray,
    weight: NDArray | None = None,
    random_state: int = 0,
) -> NDArray[np.float64]:
    """Leading principal directions (d, p) of rows, largest variance first.

    A randomised block Krylov method [1]_: each pass over the rows multiplies a block of directions
    by their scatter, and the answer is the best in the span of all the blocks. It ends when a pass
    adds less than a hundredth to the variance held; what is then left out was measured below a
    thousandth. Directions of nearly equal variance may be mixed with others just beyond the last
    one. Many rows are first sampled for where to begin; few rows give the exact directions, through
    their Gram matrix. scikit-learn's `randomized_svd` needs all rows in memory.

    Parameters
    ----------
    X : array-like of shape (n, d)
        An array, a memory map, `Rows`, or any object with a shape that slices by rows.
    p : int
    center : ndarray of shape (d,)
        Mean of the rows.
    weight : ndarray of shape (n,), optional
        Weights of the rows.
    random_state : int, default=0
        Seed of the first block of directions.

    References
    ----------
    .. [1] Musco and Musco (2015), "Randomized Block Krylov Methods for Stronger and Faster
       Approximate Singular Value Decomposition".

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(200, 5)) * [1, 1, 9, 1, 1]
    >>> np.abs(row_components(X, 1, center=X.mean(axis=0))).round(1).ravel().tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    n, d = X.shape
    if n <= d and n <= max(_FEW, _FEW_PER_DIRECTION * p):
        return _from_gram(X, p, center, weight)

    def times(V: NDArray, every: int = 1) -> NDArray:
        return scatter_times(X, V, center=center, weight=weight, every=every)

    k = min(p + _MORE, d)
    start = np.random.default_rng(random_state).standard_normal((d, k))
    if n < _EVERY * _ROWS_PER_DIRECTION * k:
        return _leading(times, np.linalg.qr(times(start))[0], p)
    sample = partial(times, every=_EVERY)
    return _leading(times, _leading(sample, np.linalg.qr(sample(start))[0], k), p)


def _leading(times: Callable[[NDArray], NDArray], basis: NDArray, p: int) -> NDArray[np.float64]:
    """Leading eigenvectors (d, p), about, of a matrix known by its products, from a first basis."""
    images, held = np.empty((len(basis), 0)), 0.0
    for left in reversed(range(_PASSES)):
        block = basis[:, images.shape[1] :]
        images = np.hstack([images, times(block)])
        inner = basis.T @ images
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        before, held = held, float(values[-p:].sum())
        if not left or held - before <= _GAIN * held or 2 * basis.shape[1] > len(basis):
            break
        block = images[:, -block.shape[1] :]
        for _ in range(2):  # once more: what rounding left the first time
            block = block - basis @ (basis.T @ block)
        basis = np.hstack([basis, np.linalg.qr(block)[0]])
    return basis @ vectors[:, ::-1][:, :p]


def _from_gram(X: Any, p: int, center: NDArray, weight: NDArray | None) -> NDArray[np.float64]:
    """Exact directions of few rows, from their inner products."""
    Z = np.asarray(X[:], dtype=np.float64) - center
    if weight is not None:
        Z *= np.sqrt(weight)[:, None]
    vectors = np.linalg.eigh(Z @ Z.T)[1]
    # Orthonormal in spite of rounding in the smallest directions.
    return np.linalg.qr(Z.T @ vectors[:, ::-1][:, :p])[0]


def scatter_times(
    X: Any, V: NDArray, *, center: NDArray, weight: NDArray | None = None, every: int = 1
) -> NDArray[np.float64]:
    """Scatter of the rows about their mean times V (d, k), in one pass.

    With `every`, only one block of rows in so many is read.
    """
    total = np.zeros(V.shape)
    for rows, Z in _centred(X, center, every):
        image = Z @ V.astype(Z.dtype)
        if weight is not None:
            image *= weight[rows, None].astype(Z.dtype)
        total += Z.T @ image
    return total


def column_scatter(
    X: Any, *, center: NDArray, weight: NDArray | None = None
) -> NDArray[np.float64]:
    """Diagonal (d,) of the scatter of the rows about their mean, in one pass."""
    total = np.zeros(X.shape[1])
    for rows, Z in _centred(X, center):
        weighted = Z if weight is None else Z * weight[rows, None].astype(Z.dtype)
        total += np.einsum("ij,ij->j", weighted, Z)
    return total


def project(X: Any, components: NDArray, center: NDArray) -> NDArray:
    """``(X - center) @ components`` (n, p), in the precision of the rows, block by block."""
    out = np.empty((X.shape[0], components.shape[1]), dtype=_precision(X))
    for rows, Z in _centred(X, center):
        np.matmul(Z, components.astype(Z.dtype), out=out[rows])
    return out


def _centred(X: Any, center: NDArray, every: int = 1) -> Iterator[tuple[slice, NDArray]]:
    """Blocks of rows less the center, with their positions; one block in so many."""
    (n, d), dtype = X.shape, _precision(X)
    step = max(_FEWEST_ROWS, _BLOCK_BYTES // (4 * max(1, d)))
    for start in range(0, n, step * every):
        rows = slice(start, min(start + step, n))
        yield rows, np.asarray(X[rows], dtype=dtype) - center.astype(dtype)


def _precision(X: Any) -> np.dtype:
    """Float32 for float32 rows whose squares, and sums of them, have room there; else float64."""
    first = np.asarray(X[:_FEWEST_ROWS])
    size = np.abs(first).max(axis=0, initial=0.0)
    fits = (size == 0) | ((size > _SMALLEST) & (size < 1 / _SMALLEST))
    return np.dtype(np.float32 if first.dtype == np.float32 and fits.all() else np.float64)
