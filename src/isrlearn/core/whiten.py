"""Coordinates in which features have comparable scale: whitening, PCA, and those of a head."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core.moments import MEANS_ONLY, NEGLIGIBLE, Moments, between

if TYPE_CHECKING:
    from isrlearn.core.subspace import Eraser

#: Rows per feature from which whitened features are better than the features as they are.
ROWS_PER_FEATURE = 20
#: Rows per feature with which tests in whitened features keep their level, rows of the smallest
#: cell per feature with which its covariance is worth comparing, and largest number of principal
#: components used when rows are too few for all features.
_ROWS_PER_TESTED_FEATURE, _ROWS_PER_CELL_FEATURE, _MOST = 10, 3, 200
#: Smallest eigenvalue of a correlation matrix taken at face value. Below it a direction has no
#: variance inside the cells, and only its differences between cells matter. Below the second number
#: it is all rounding error.
_FLOOR, _ROUNDING = 1e-10, 1e-13


@dataclass(frozen=True, eq=False)
class Whitening:
    """Linear coordinates ``z = x @ factor`` with identity within-cell covariance.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 2)) @ [[3.0, 1.0], [0.0, 0.1]]
    >>> moments = Moments.population(np.zeros((1, 1, 2)), np.cov(X.T))
    >>> W = whitening(moments)
    >>> np.allclose(W.factor.T @ (moments.within() / moments.dof) @ W.factor, np.eye(2))
    True
    """

    factor: NDArray[np.float64]  # (d, p)
    #: (p, d): ``z @ inverse`` is x again (its projection on p principal components if p < d).
    inverse: NDArray[np.float64]


def whitening(moments: Moments, *, total: bool = False) -> Whitening:
    """Whitening by the pooled within-cell covariance, or by the total covariance of all rows.

    A direction with no variance inside the cells keeps a tiny one, so that a feature which is
    constant in each environment still counts as the clearest of shifts. A direction with no
    variance at all is left out of a total whitening: multiplied by a large constant, even a
    rounding error would be large.
    """
    scatter = moments.total[2] if total else moments.within()
    if scatter is None:
        raise ValueError(MEANS_ONLY)
    dof = max(moments.total[0] - moments.ddof, 1.0) if total else moments.dof
    # One row per cell leaves no degrees of freedom, and no scatter within the cells to divide.
    dof = dof if dof > 0 else 1.0
    squares, nothing = np.diag(scatter), _ROUNDING if total else -np.inf
    if not total and (squares <= 0).any():
        squares = np.where(squares > 0, squares, np.diag(moments.total_scatter()))
    scale = np.sqrt(np.maximum(squares, 0.0) / dof)
    inverse_scale = 1.0 / np.where(scale > 0, scale, np.inf)
    correlation = scatter / dof * inverse_scale * inverse_scale[:, None]
    try:
        lower = linalg.cholesky(correlation, lower=True)
        singular = np.diag(lower).min() ** 2 < _FLOOR
    except linalg.LinAlgError:
        singular = True
    if singular:
        values, vectors = linalg.eigh(correlation)
        root = np.sqrt(np.maximum(values, _FLOOR))
        factor = np.where(values > nothing, vectors / root, 0.0) * inverse_scale[:, None]
        return Whitening(factor, (vectors * root).T * scale)
    factor = linalg.lapack.dtrtri(lower, lower=True)[0].T
    return Whitening(factor * inverse_scale[:, None], lower.T * scale)


def equalised(moments: Moments, factor: NDArray) -> Moments:
    r"""Moments with the deviations inside each class divided by the class's own scale.

    A class that spreads three times as far as another would drown the shifts of the other in its
    sampling noise. The squared scale is the class's average variance in the whitened coordinates
    ``x @ factor``, so that it does not depend on units and rotations. Directions of shifts stay
    the same. Moments without a scatter per cell are returned as they are.

    Examples
    --------
    >>> import numpy as np
    >>> mean = np.array([[[0.0], [6.0]], [[0.0], [2.0]]])
    >>> moments = Moments.population(mean, np.array([9.0, 1.0])[:, None, None, None])
    >>> shifts = equalised(moments, whitening(moments).factor).mean_shifts().reshape(2, 2)
    >>> np.allclose(shifts[0], shifts[1])
    True
    """
    dof = np.maximum(moments.count - moments.ddof, 0.0).sum(axis=1)
    if moments.scatter is None or moments.pooled or np.count_nonzero(dof) < 2:
        return moments
    squares = np.einsum("keij,ij->k", moments.scatter, factor @ factor.T)
    scale = np.sqrt(squares * dof.sum() / np.where(dof > 0, dof, 1.0) / max(squares.sum(), 1e-300))
    scale = np.where(scale > 0, scale, 1.0)[:, None, None]
    centre = between(moments.count, moments.mean, axis=1)[1][:, None]
    mean = np.where(moments.count[..., None] > 0, centre + (moments.mean - centre) / scale, 0.0)
    return replace(moments, mean=mean, scatter=moments.scatter / scale[..., None] ** 2)


def principal_components(
    moments: Moments, n_components: int | float | None
) -> tuple[NDArray, NDArray]:
    """Leading principal directions (d, p) and variances (p,) of all the rows, from moments alone.

    Parameters
    ----------
    moments : Moments
    n_components : int or float or None
        Number of directions, or the fraction of the variance in (0, 1) they must hold, or None
        for all with any variance.
    """
    # An integer needs few of many eigenvectors; a fraction needs all eigenvalues.
    d = moments.n_features
    wanted = None if n_components is None or n_components < 1 else [d - int(n_components), d - 1]
    values, vectors = linalg.eigh(moments.total_scatter(), subset_by_index=wanted)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    rank = int(np.count_nonzero(values > values[0] * len(values) * np.finfo(float).eps))
    p = rank
    if n_components is not None and n_components < 1:
        enough = (n_components - 1e-12) * values.sum()
        p = 1 + int(np.searchsorted(np.cumsum(values), enough))
    p = max(1, min(p, rank))
    vectors = without_rounding(vectors[:, :p])
    return vectors, values[:p] / max(moments.total[0] - moments.ddof, 1.0)


def without_rounding(directions: NDArray) -> NDArray[np.float64]:
    """Orthonormal directions with zeros for entries that are rounding errors.

    Multiplied by a feature of 1e30, such an entry would hide all features of order one.
    """
    return np.where(np.abs(directions) > 16 * np.finfo(float).eps, directions, 0.0)


def reliable_components(moments: Moments, smallest_cell: float = np.inf) -> int | None:
    """Number of principal components that a test can whiten; None if all the features."""
    enough = max(1.0, np.floor(smallest_cell / _ROWS_PER_CELL_FEATURE))
    rows = max(1.0, moments.dof // _ROWS_PER_TESTED_FEATURE)
    if moments.ddof == 0 or moments.n_features <= min(rows, enough):
        return None
    return int(min(_MOST, rows, enough))


def reliable_coordinates(moments: Moments, *, smallest_cell: float = np.inf) -> Whitening:
    """Whitened coordinates: of all features, or of as many principal components as rows allow."""
    p = reliable_components(moments, smallest_cell)
    if p is None:
        return whitening(moments)
    components, _ = principal_components(moments, p)
    inner = whitening(moments.map(components))
    return Whitening(components @ inner.factor, inner.inverse @ components.T)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Erased, centred and scaled features, in which an L2 penalty treats all directions equally.

    An invariant feature a hundred times smaller than a spurious one would be lost to an L2
    penalty on raw features. So features are whitened by their total covariance where there are
    enough rows, standardised column by column otherwise, and the head is folded back to the
    original features.
    """

    eraser: Eraser  #: What is erased.
    #: Matrix (d, p) applied to the centred features, the erasure included; or scale of each column
    #: (d,), applied to the erased and centred features.
    linear: NDArray[np.float64]

    def __call__(self, X: NDArray) -> NDArray:
        """Rows of X in these coordinates, in X's own precision."""
        if self.linear.ndim == 2:
            Z = (X - self.eraser.center).astype(X.dtype, copy=False)
            return Z @ self.linear.astype(X.dtype, copy=False)
        Z = self.eraser.centred(X)
        Z *= self.linear.astype(X.dtype)
        return Z

    def fold(self, coef: NDArray, intercept: NDArray) -> tuple[NDArray, NDArray]:
        """Head on the original features that equals the given one on these coordinates."""
        if self.linear.ndim == 1:
            lifted = coef * self.linear
            return self.eraser.fold(lifted, intercept - lifted @ self.eraser.center)
        lifted = coef @ self.linear.T
        return lifted, intercept - lifted @ self.eraser.center

    def scatter(self, scatter: NDArray) -> NDArray[np.float64]:
        """Scatter (p, p) in these coordinates, from that of the features (d, d)."""
        if self.linear.ndim == 2:
            return self.linear.T @ scatter @ self.linear
        basis, dual, removed = self.eraser.basis, self.eraser.dual, 1.0 - self.eraser.scale
        # (I - rUVᵀ) S (I - rVUᵀ) = S - UAᵀ - AUᵀ with A = rSV - r²/2 UVᵀSV.
        image = scatter @ dual
        half = removed * image - removed**2 / 2 * basis @ (dual.T @ image)
        found = scatter - np.hstack([basis, half]) @ np.hstack([half, basis]).T
        found *= self.linear
        found *= self.linear[:, None]
        return found

    @cached_property
    def matrix(self) -> NDArray[np.float64]:
        """The whole linear map, (d, p): these coordinates are ``(X - center) @ matrix``."""
        if self.linear.ndim == 2:
            return self.linear
        weight = (1.0 - self.eraser.scale) * self.eraser.basis.T * self.linear
        return np.diag(self.linear) - self.eraser.dual @ weight


def head_coordinates(moments: Moments, eraser: Eraser) -> Coordinates:
    """Coordinates for a head on erased features: whitened by all rows, or standardised."""
    count = moments.total[0]
    if moments.ddof == 0 or count >= ROWS_PER_FEATURE * moments.n_features:
        factor = whitening(moments, total=True).factor
        weight = (1.0 - eraser.scale) * (eraser.basis.T @ factor)
        return Coordinates(eraser, factor - eraser.dual @ weight)
    dof, scatter = max(count - moments.ddof, 1.0), moments.total_scatter()
    return standardised(eraser, np.diag(scatter), scatter @ eraser.dual, dof)


def standardised(eraser: Eraser, squares: NDArray, cross: NDArray, dof: float) -> Coordinates:
    """Coordinates of unit variance, from the diagonal of the scatter and its product with the dual.

    Columns of which the erasure leaves nothing are zero.
    """
    basis, dual, removed = eraser.basis, eraser.dual, 1.0 - eraser.scale
    after = squares - 2 * removed * np.einsum("ij,ij->i", cross, basis)
    after = after + removed**2 * np.einsum("ij,jk,ik->i", basis, dual.T @ cross, basis)
    real = after > squares * NEGLIGIBLE
    return Coordinates(eraser, np.where(real, np.sqrt(dof / np.where(real, after, 1.0)), 0.0))
