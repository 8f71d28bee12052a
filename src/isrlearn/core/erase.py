"""Removing a subspace from features or from a linear head, and the features that are left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from isrlearn.core.moments import Moments
from isrlearn.core.subspace import Subspace
from isrlearn.core.whiten import ROWS_PER_FEATURE, total_whitening

_NEGLIGIBLE = 1e-10

#: Entries of a dual up to which float32 has enough range on either side.
_LARGE = 1e12


@dataclass(frozen=True, eq=False)
class Eraser:
    r"""Scales the part of x that lies in a subspace, leaving the rest as it is.

    .. math:: x \mapsto x - (1 - s)\, U V^\top (x - c)

    Thin factors, never a d×d matrix. The centre c keeps an average sample where it is, so that a
    head trained before the erasure keeps its intercept; a head fitted afterwards is not affected.

    Parameters
    ----------
    basis : ndarray of shape (d, r)
        U: what is erased.
    dual : ndarray of shape (d, r)
        V, with ``V.T @ U`` the identity.
    scale : float
        s in [0, 1]: the share that is kept.
    center : ndarray of shape (d,)
        c: the point that is not changed.

    Examples
    --------
    >>> import numpy as np
    >>> axis = np.array([[1.0], [0.0]])
    >>> Eraser(axis, axis, 0.0, np.zeros(2))(np.array([[3.0, 4.0]])).tolist()
    [[0.0, 4.0]]
    """

    basis: NDArray[np.float64]  # (d, r)
    dual: NDArray[np.float64]  # (d, r)
    scale: float
    center: NDArray[np.float64]  # (d,)

    @classmethod
    def of(cls, subspace: Subspace, scale: float, center: NDArray) -> Eraser:
        """Eraser of a subspace."""
        return cls(subspace.basis, subspace.dual, scale, center)

    def __call__(self, X: NDArray) -> NDArray:
        """Rows of X with the spurious part scaled, in X's own precision."""
        if not self.basis.shape[1]:
            return X.copy()
        return X + self._change(X - self.center.astype(X.dtype))

    def centred(self, X: NDArray) -> NDArray:
        """Erased rows of X less the centre, in X's own precision."""
        Z = X - self.center.astype(X.dtype)
        if self.basis.shape[1]:
            Z += self._change(Z)
        return Z

    def _change(self, Z: NDArray) -> NDArray:
        # Rows are centred first: far from the origin the difference of two products would be all
        # rounding error.
        basis, dual = self.factors(Z.dtype)
        return ((Z @ dual) * Z.dtype.type(self.scale - 1.0)) @ basis.T

    def factors(self, dtype: DTypeLike) -> tuple[NDArray, NDArray]:
        """Basis and dual in a precision, in other units where float32 could not hold them.

        Features of very different scales have a dual of very large entries.
        """
        size = np.abs(self.dual)
        if size.max(initial=0.0) <= _LARGE:
            return self.basis.astype(dtype), self.dual.astype(dtype)
        least = np.where(size > 0, size, np.inf).min(axis=0)
        unit = 2.0 ** np.round(np.log2(size.max(axis=0)) / 2 + np.log2(least) / 2)
        return (self.basis * unit).astype(dtype), (self.dual / unit).astype(dtype)

    def on(self, components: NDArray) -> Eraser:
        """The same eraser for centred rows on orthonormal directions (d, p) whose span holds it."""
        basis, dual = components.T @ self.basis, components.T @ self.dual
        return Eraser(basis, dual, self.scale, np.zeros(components.shape[1]))

    def fold(self, coef: ArrayLike, intercept: ArrayLike) -> tuple[NDArray, NDArray]:
        """Head on x that equals (coef, intercept) on the erased x."""
        coef = np.asarray(coef, dtype=float)
        weight = (1.0 - self.scale) * (coef @ self.basis)
        shift = weight @ (self.dual.T @ self.center)
        return coef - weight @ self.dual.T, np.asarray(intercept, dtype=float) + shift


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Erased, centred and scaled features, in which an L2 penalty treats all directions equally.

    An invariant feature a hundred times smaller than a spurious one would be lost to an L2
    penalty on raw features. So features are whitened by their total covariance where there are
    enough rows, standardised column by column otherwise, and the head is folded back to the
    original features.

    Parameters
    ----------
    eraser : Eraser
    linear : ndarray of shape (d, p) or (d,)
        Matrix, or scale of each column, applied to the erased and centred features.
    """

    eraser: Eraser
    linear: NDArray[np.float64]  # (d, p) or (d,)

    def __call__(self, X: NDArray) -> NDArray:
        """Rows of X in these coordinates."""
        Z = self.eraser.centred(X)
        if self.linear.ndim == 2:
            return Z @ self.linear.astype(X.dtype)
        Z *= self.linear.astype(X.dtype)
        return Z

    def fold(self, coef: NDArray, intercept: NDArray) -> tuple[NDArray, NDArray]:
        """Head on the original features that equals the given one on these coordinates."""
        lifted = coef @ self.linear.T if self.linear.ndim == 2 else coef * self.linear
        return self.eraser.fold(lifted, intercept - lifted @ self.eraser.center)

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        return self.linear.shape[-1]

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The whole linear map, (d, p): these coordinates are ``(X - center) @ matrix``."""
        eraser, linear = self.eraser, self.linear
        if linear.ndim == 1:
            linear = np.diag(linear)
        weight = (1.0 - eraser.scale) * (eraser.basis.T @ linear)
        return linear - eraser.dual @ weight


def head_coordinates(moments: Moments, eraser: Eraser) -> Coordinates:
    """Coordinates for a head on erased features, from moments of the features with a scatter."""
    count = moments.total()[0]
    if moments.ddof == 0 or count >= ROWS_PER_FEATURE * moments.n_features:
        return Coordinates(eraser, total_whitening(moments).factor)
    squares = erased_squares(moments.total_scatter(), eraser)
    return Coordinates(eraser, inverse_deviation(squares, max(count - moments.ddof, 1.0)))


def erased_squares(scatter: NDArray, eraser: Eraser) -> NDArray[np.float64]:
    """Diagonal of a scatter (d, d) after the erasure; zero where nothing is left."""
    basis, dual, removed = eraser.basis, eraser.dual, 1.0 - eraser.scale
    squares, cross = np.diag(scatter), scatter @ dual
    after = squares - 2 * removed * np.einsum("ij,ij->i", cross, basis)
    after = after + removed**2 * np.einsum("ij,jk,ik->i", basis, dual.T @ cross, basis)
    return np.where(after > squares * _NEGLIGIBLE, after, 0.0)


def inverse_deviation(squares: NDArray, dof: float) -> NDArray[np.float64]:
    """One over the standard deviation of each column; zero where the deviation is zero."""
    real = squares > 0
    return np.where(real, 1.0 / np.sqrt(np.where(real, squares, 1.0) / dof), 0.0)
