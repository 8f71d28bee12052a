"""Principal components from the rows themselves, where a d×d matrix would cost more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core._accumulate import default_chunk_size

#: Directions that are carried along beside the wanted ones.
_MORE = 10
#: Relative gain of variance by one more pass below which no other is made, and most passes.
_GAIN, _PASSES = 1e-2, 10
#: Fewest features, and features a component, for which this is considered.
_WIDE, _THIN = 512, 8
#: Passes that have to be paid for, and the price of an eigenvector routine a cubed feature, in
#: units of a float32 multiplication in a large product.
_PAID, _EIGH = 6, 7.0


def prefers_rows(n: float, d: int, p: float | None) -> bool:
    """Whether p principal components of n rows of d features are cheaper from rows than moments."""
    if p is None or p < 1 or d < _WIDE or p * _THIN > d:
        return False
    return 2 * _PAID * 4 * n * (p + _MORE) < n * d + _EIGH * d**2


def row_components(
    X: Any, center: NDArray, n_components: int, weight: NDArray | None = None
) -> NDArray[np.float64]:
    """Leading principal directions (d, p) of rows, by a block Krylov method with a fixed start.

    Each pass multiplies a block of directions by the scatter of the rows without forming it; the
    answer is the best in the span of all the blocks. Passes end when one adds less than a hundredth
    to the variance held; what is left out then was measured below a thousandth. Directions of
    nearly equal variance may be mixed with others just beyond the last one.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Anything that slices by rows into arrays.
    center : ndarray of shape (d,)
        Their mean.
    n_components : int
    weight : ndarray of shape (n,), optional
        Weights of the rows.
    """
    d, p = X.shape[1], n_components
    start = np.random.default_rng(0).standard_normal((d, p + _MORE))
    basis = np.linalg.qr(_times_scatter(X, center, start, weight))[0]
    images = np.empty((d, 0))
    held, best = 0.0, basis[:, :p]
    for _ in range(_PASSES):
        block = basis[:, images.shape[1] :]
        images = np.hstack([images, _times_scatter(X, center, block, weight)])
        inner = basis.T @ images
        last = len(inner) - 1
        values, vectors = linalg.eigh((inner + inner.T) / 2, subset_by_index=[last - p + 1, last])
        best, before, held = basis @ vectors[:, ::-1], held, float(values.sum())
        if held - before <= _GAIN * held or 2 * basis.shape[1] > d:
            break
        block = images[:, -block.shape[1] :]
        for _ in range(2):  # once more: what rounding left of the first
            block = block - basis @ (basis.T @ block)
        basis = np.hstack([basis, np.linalg.qr(block)[0]])
    return best


def projected(X: Any, center: NDArray, components: NDArray) -> NDArray:
    """Centred rows on some directions, in the rows' precision and made block by block."""
    n, d = X.shape
    dtype = np.float32 if np.dtype(X.dtype) == np.float32 else np.float64
    out = np.empty((n, components.shape[1]), dtype=dtype)
    step = default_chunk_size(d)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        np.matmul(
            np.asarray(X[rows], dtype=dtype) - center.astype(dtype),
            components.astype(dtype),
            out=out[rows],
        )
    return out


def _times_scatter(
    X: Any, center: NDArray, block: NDArray, weight: NDArray | None
) -> NDArray[np.float64]:
    """Scatter of the rows about a point times some directions, in one pass."""
    n, d = X.shape
    total = np.zeros(block.shape)
    step = default_chunk_size(d)
    for start in range(0, n, step):
        rows = np.asarray(X[start : start + step])
        rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
        rows = rows - center.astype(rows.dtype)
        image = rows @ block.astype(rows.dtype)
        if weight is not None:
            image *= weight[start : start + step, None].astype(rows.dtype)
        total += rows.T @ image
    return total
