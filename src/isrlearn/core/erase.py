"""Taking a subspace out of features, or out of a linear head."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from isrlearn.core.subspace import Subspace

#: Entries of a dual up to which float32 has room enough on either side.
_LARGE = 1e12


@dataclass(frozen=True, eq=False)
class Eraser:
    r"""Scales the part of x that lies in a subspace, leaving the rest as it is.

    .. math:: x \mapsto x - (1 - s)\, U V^\top (x - c)

    Thin factors, never a d×d matrix. The centre c keeps an average sample where it is, so that a
    head trained before the erasure keeps its intercept's meaning; a head fitted after it does not
    care.

    Parameters
    ----------
    basis : ndarray of shape (d, r)
        U: what is erased.
    dual : ndarray of shape (d, r)
        V, with ``V.T @ U`` the identity.
    scale : float
        s in [0, 1]: what is kept.
    center : ndarray of shape (d,)
        c: what does not move.

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
        # Of rows already centred: far from the origin the difference of two products would be
        # all rounding.
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
        """The same eraser for centred rows on orthonormal directions (d, p) that span its own."""
        basis, dual = components.T @ self.basis, components.T @ self.dual
        return Eraser(basis, dual, self.scale, np.zeros(components.shape[1]))

    def fold(self, coef: ArrayLike, intercept: ArrayLike) -> tuple[NDArray, NDArray]:
        """Head on x that acts as (coef, intercept) does on the erased x."""
        coef = np.asarray(coef, dtype=float)
        weight = (1.0 - self.scale) * (coef @ self.basis)
        shift = weight @ (self.dual.T @ self.center)
        return coef - weight @ self.dual.T, np.asarray(intercept, dtype=float) + shift
