"""What rows tell without a d×d matrix, where one would cost more: components and variances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core._slots import is_far

#: Directions that are carried along beside the wanted ones.
_MORE = 10
#: Relative gain of variance by one more pass below which no other is made, and most passes.
_GAIN, _PASSES = 1e-2, 10
#: Fewest features, and features a component, for which this is considered.
_WIDE, _THIN = 512, 8
#: Passes that have to be paid for, each a little dearer than its multiplications in one large
#: product, and the price of an eigenvector routine a cubed feature, in units of these.
_PAID, _EIGH = 3.5, 7.0
#: Share of the largest eigenvalue of products with float32 rows below which they are rounding.
_SEEN = 1e-5
#: Bytes of a block of float32 rows, and its fewest rows.
_BLOCK_BYTES, _FEWEST_ROWS = 4 << 20, 256
#: One block in so many is a sample to begin with, where it has so many rows a direction.
_EVERY, _ROWS_A_DIRECTION = 10, 20
#: Smallest size of a float32 feature, and one over the largest, whose squares are exact enough.
_SMALLEST = 1e-15


def is_wide(d: int) -> bool:
    """Whether a d×d matrix is worth avoiding."""
    return d >= _WIDE


def prefers_rows(n: float, d: int, p: float | None) -> bool:
    """Whether p principal components of n rows of d features are cheaper from rows than moments."""
    if p is None or p < 1 or not is_wide(d) or p * _THIN > d:
        return False
    return _PAID * 4 * n * (p + _MORE) < n * d + _EIGH * d**2


class CentredRows:
    """Rows less their mean, multiplied block by block in their own precision, never copied whole.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Anything that slices by rows into arrays.
    center : ndarray of shape (d,)
        Their mean.
    weight : ndarray of shape (n,), optional
        Weights of the rows.
    """

    def __init__(self, X: Any, center: NDArray, weight: NDArray | None = None) -> None:
        self.shape, self.weight = X.shape, weight
        self._X = X
        first = np.asarray(X[:_FEWEST_ROWS])
        dtype = np.float32 if first.dtype == np.float32 and _squares_fit(first) else np.float64
        self.dtype = np.dtype(dtype)
        # Rows near the origin need not be moved there: products are corrected instead.
        moved = is_far(first.astype(dtype, copy=False))
        self._origin = center.astype(dtype) if moved else None
        self._center = np.zeros_like(center) if moved else center

    @property
    def is_near(self) -> bool:
        """Whether they lie so near the origin that they are multiplied as they are."""
        return self._origin is None

    def blocks(self, every: int = 1) -> Iterator[tuple[slice, NDArray]]:
        """Some rows at a time, and where they lie; one block in so many."""
        n, d = self.shape
        step = max(_FEWEST_ROWS, _BLOCK_BYTES // (4 * d))
        for start in range(0, n, step * every):
            rows = slice(start, min(start + step, n))
            block = np.asarray(self._X[rows], dtype=self.dtype)
            yield rows, block if self._origin is None else block - self._origin

    def images(self, V: NDArray, every: int = 1) -> Iterator[tuple[slice, NDArray, NDArray]]:
        """Where some rows lie, these rows, and what they are, centred, times V (d, k)."""
        factor, shift = V.astype(self.dtype), (self._center @ V).astype(self.dtype)
        for rows, block in self.blocks(every):
            image = block @ factor
            image -= shift
            yield rows, block, image

    def scatter_times(self, V: NDArray, every: int = 1) -> NDArray[np.float64]:
        """Scatter of the rows times V (d, k), in one pass."""
        total, level = np.zeros(V.shape), np.zeros(V.shape[1])
        for rows, block, image in self.images(V, every):
            if self.weight is not None:
                image *= self.weight[rows, None].astype(self.dtype)
            total += block.T @ image
            level += image.sum(axis=0)
        return total - np.outer(self._center, level)

    def squares(self) -> NDArray[np.float64]:
        """Diagonal of the scatter of the rows, (d,), in one pass."""
        total, count = np.zeros(self.shape[1]), 0.0
        for rows, block in self.blocks():
            w = None if self.weight is None else self.weight[rows]
            count += len(block) if w is None else float(w.sum())
            left = block if w is None else block * w[:, None].astype(self.dtype)
            total += np.einsum("ij,ij->j", left, block)
        return np.maximum(total - count * self._center**2, 0.0)


def _squares_fit(rows: NDArray) -> bool:
    """Whether float32 has room for the squares of all features, and sums of them."""
    size = np.abs(rows).max(axis=0, initial=0.0)
    return bool(((size == 0) | ((size > _SMALLEST) & (size < 1 / _SMALLEST))).all())


def row_components(rows: CentredRows, p: int) -> NDArray[np.float64]:
    """Leading principal directions (d, p) of rows, by a block Krylov method with a fixed start.

    Each pass multiplies a block of directions by the scatter of the rows without forming it; the
    answer is the best in the span of all the blocks. Passes end when one adds less than a hundredth
    to the variance held; what is left out then was measured below a thousandth. Directions of
    nearly equal variance may be mixed with others just beyond the last one. Where there are rows
    enough, a sample of them finds the first block.
    """
    start = start_directions(rows.shape[1], p + _MORE)
    if rows.shape[0] >= _EVERY * _ROWS_A_DIRECTION * (p + _MORE):
        basis = np.linalg.qr(rows.scatter_times(start, _EVERY))[0]
        basis = leading(lambda V: rows.scatter_times(V, _EVERY), basis, p + _MORE)
    else:
        basis = np.linalg.qr(rows.scatter_times(start))[0]
    return leading(rows.scatter_times, basis, p)


def start_directions(d: int, k: int) -> NDArray[np.float64]:
    """Directions (d, k) to begin with, the same every time."""
    return np.random.default_rng(0).standard_normal((d, k))


def leading(times: Callable[[NDArray], NDArray], basis: NDArray, p: int) -> NDArray[np.float64]:
    """Eigenvectors (d, p) of the largest eigenvalues of a symmetric matrix, about.

    The matrix is known by its products alone; they begin with an orthonormal `basis`.
    """
    d = len(basis)
    images = np.empty((d, 0))
    held = 0.0
    for left in reversed(range(_PASSES)):
        block = basis[:, images.shape[1] :]
        images = np.hstack([images, times(block)])
        inner = basis.T @ images
        # NumPy's, as all products here: threads of another library would wait actively meanwhile.
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        values, vectors = values[-p:], vectors[:, -p:]
        before, held = held, float(values.sum())
        if not left or held - before <= _GAIN * held or 2 * basis.shape[1] > d:
            break
        block = images[:, -block.shape[1] :]
        for _ in range(2):  # once more: what rounding left of the first
            block = block - basis @ (basis.T @ block)
        basis = np.hstack([basis, np.linalg.qr(block)[0]])
    return basis @ vectors[:, ::-1]


def sketch(start: NDArray, images: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvectors (d, k) and values (k,) of a semidefinite matrix, about, from k products.

    Nyström's approximation: the largest matrix that has the `images` of the `start` directions
    and is none the larger for any other. Directions of which only rounding is seen are left out.
    """
    inner = start.T @ images
    values, vectors = np.linalg.eigh((inner + inner.T) / 2)
    seen = values > _SEEN * values[-1]
    factor = images @ (vectors[:, seen] / np.sqrt(values[seen]))
    values, vectors = np.linalg.eigh(factor.T @ factor)
    return factor @ (vectors / np.sqrt(values)), values


@dataclass(frozen=True, eq=False)
class LowRank:
    """Symmetric matrix with some known eigenvectors and one value for all other directions.

    Parameters
    ----------
    vectors : ndarray of shape (p, k)
    values : ndarray of shape (k,)
    rest : float
    """

    vectors: NDArray[np.float64]
    values: NDArray[np.float64]
    rest: float

    def __rmul__(self, factor: float) -> LowRank:
        return LowRank(self.vectors, factor * self.values, factor * self.rest)

    def __matmul__(self, other: NDArray) -> NDArray[np.float64]:
        known = self.vectors.T @ other
        return self.rest * other + self.vectors @ ((self.values - self.rest)[:, None] * known)

    @property
    def T(self) -> LowRank:
        """Itself: it is symmetric."""
        return self

    def inverse_root(self, penalty: float) -> LowRank:
        """Inverse square root of the matrix with a penalty added to its diagonal."""
        root = 1.0 / np.sqrt(np.append(self.values, self.rest) + penalty)
        return LowRank(self.vectors, root[:-1], float(root[-1]))


def projected(rows: CentredRows, components: NDArray) -> NDArray:
    """Centred rows on some directions, in the rows' precision and made block by block."""
    out = np.empty((rows.shape[0], components.shape[1]), dtype=rows.dtype)
    for where, _, image in rows.images(components):
        out[where] = image
    return out
