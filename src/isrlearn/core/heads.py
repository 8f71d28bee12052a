"""Linear heads: the coordinates they are fitted in, and those that need moments alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core._range import CentredRows
from isrlearn.core.erase import Eraser
from isrlearn.core.moments import Moments
from isrlearn.core.whiten import ROWS_PER_FEATURE, total_whitening

_NEGLIGIBLE = 1e-10


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Erased, centred and scaled features, in which a penalty treats all directions alike.

    An invariant feature a hundred times smaller than a spurious one would be lost to an L2
    penalty on raw features. So features are whitened by their total covariance where rows allow,
    standardised column by column otherwise, and the head is folded back to the original ones.

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
        """Head on the original features that acts as the given one does on these."""
        lifted = coef @ self.linear.T if self.linear.ndim == 2 else coef * self.linear
        return self.eraser.fold(lifted, intercept - lifted @ self.eraser.center)

    @property
    def n_coordinates(self) -> int:
        """How many coordinates there are."""
        return self.linear.shape[-1]

    def lift(self, V: NDArray) -> NDArray:
        """Coefficients (d, m) of the centred original features that act as V (p, m) here."""
        lifted = self.linear @ V if self.linear.ndim == 2 else self.linear[:, None] * V
        if not self.eraser.basis.shape[1]:
            return lifted
        return lifted - self.eraser.dual @ (self._removed * (self.eraser.basis.T @ lifted))

    def pull(self, slope: NDArray) -> NDArray:
        """Derivatives (p, m) by coefficients here, from those by the original features' (d, m)."""
        if self.eraser.basis.shape[1]:
            slope = slope - self.eraser.basis @ (self._removed * (self.eraser.dual.T @ slope))
        return self.linear.T @ slope if self.linear.ndim == 2 else self.linear[:, None] * slope

    @property
    def _removed(self) -> float:
        return 1.0 - self.eraser.scale

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The whole linear map, (d, p): these coordinates are ``(X - center) @ matrix``."""
        eraser, linear = self.eraser, self.linear
        if linear.ndim == 1:
            linear = np.diag(linear)
        weight = (1.0 - eraser.scale) * (eraser.basis.T @ linear)
        return linear - eraser.dual @ weight


def head_coordinates(
    moments: Moments,
    eraser: Eraser,
    components: NDArray | None = None,
) -> Coordinates:
    """Coordinates for a head on erased features, from moments of the features.

    Parameters
    ----------
    moments : Moments
        Of the original features, with a scatter.
    eraser : Eraser
        Of the original features.
    components : ndarray of shape (d, p), optional
        Principal directions the head is confined to; the erased subspace lies in their span.
    """
    reduced = moments if components is None else moments.map(components)
    if reduced.ddof == 0 or reduced.total()[0] >= ROWS_PER_FEATURE * reduced.n_features:
        linear = total_whitening(reduced).factor
        return Coordinates(eraser, linear if components is None else components @ linear)
    basis, dual = eraser.basis, eraser.dual
    if components is not None:
        basis, dual = components.T @ basis, components.T @ dual
    scatter, dof = reduced.total_scatter(), max(reduced.total()[0] - reduced.ddof, 1.0)
    squares = _erased_squares(np.diag(scatter), scatter @ dual, basis, dual, 1.0 - eraser.scale)
    inverse = _inverse_deviation(squares, dof)
    return Coordinates(eraser, inverse if components is None else components * inverse)


def standardising_coordinates(rows: CentredRows, dof: float, eraser: Eraser) -> Coordinates:
    """Coordinates for a head on erased features of few rows, without a d×d matrix."""
    squares = _erased_squares(
        rows.squares(),
        rows.scatter_times(eraser.dual),
        eraser.basis,
        eraser.dual,
        1.0 - eraser.scale,
    )
    return Coordinates(eraser, _inverse_deviation(squares, dof))


def _erased_squares(
    squares: NDArray, cross: NDArray, basis: NDArray, dual: NDArray, removed: float
) -> NDArray[np.float64]:
    """Diagonal of the scatter after the erasure; zero where nothing is left.

    From the diagonal before (d,) and the scatter's products with the dual (d, r).
    """
    after = squares - 2 * removed * np.einsum("ij,ij->i", cross, basis)
    after = after + removed**2 * np.einsum("ij,jk,ik->i", basis, dual.T @ cross, basis)
    return np.where(after > squares * _NEGLIGIBLE, after, 0.0)


def _inverse_deviation(squares: NDArray, dof: float) -> NDArray[np.float64]:
    """One over the standard deviation of each column; zero where it is."""
    real = squares > 0
    return np.where(real, 1.0 / np.sqrt(np.where(real, squares, 1.0) / dof), 0.0)


def lda_head(
    moments: Moments, coordinates: Coordinates, *, shrinkage: float = 0.0
) -> tuple[NDArray, NDArray]:
    r"""Coefficients and intercepts of linear discriminant analysis, from moments alone.

    .. math:: w_k = \Sigma^{-1} \mu_k, \quad b_k = \log \pi_k - \tfrac12 w_k^\top \mu_k

    with the within-class covariance of all the rows; two classes give the one difference.

    Parameters
    ----------
    moments : Moments
        Of the original features.
    coordinates : Coordinates
    shrinkage : float, default=0.0
        γ in [0, 1]: the covariance becomes (1−γ)Σ + γ·tr(Σ)/p·I in the head's coordinates, p the
        dimensions that the erasure leaves.

    Returns
    -------
    coef : ndarray of shape (K, d), or (1, d) for two classes
    intercept : ndarray of shape (K,) or (1,)
    """
    matrix = coordinates.matrix
    count, mean, scatter = moments.map(matrix).by_class()
    n, K = count.sum(), len(count)
    # The coordinates have their origin at the eraser's centre, not at reweighted moments' mean.
    mean = mean - coordinates.eraser.center @ matrix
    # A population's weights are shares: only their ratios may matter, however small they are.
    covariance = scatter / (max(n - moments.ddof * K, 1.0) if moments.ddof else n)
    precision = _inverse(covariance, shrinkage)
    coef = mean @ precision
    intercept = np.log(count / n) - 0.5 * np.einsum("kp,kp->k", coef, mean)
    if K == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return coordinates.fold(coef, intercept)


def ridge_head(
    moments: Moments, coordinates: Coordinates, *, alpha: float = 1.0
) -> tuple[NDArray, float]:
    """Coefficients and intercept of ridge regression, from moments alone.

    Parameters
    ----------
    moments : Moments
        Of the original features and, as last column, the target.
    coordinates : Coordinates
        Of the features.
    alpha : float, default=1.0
        Penalty on the squared coefficients in the head's coordinates, as in scikit-learn's Ridge.
    """
    d = moments.n_features - 1
    mean, scatter = moments.total()[1], moments.total_scatter()
    factor = coordinates.matrix
    gram = factor.T @ scatter[:d, :d] @ factor
    w = _solve(gram + alpha * np.eye(len(gram)), factor.T @ scatter[:d, d])
    coef = factor @ w
    return coef, float(mean[d] - coef @ mean[:d])


def _inverse(covariance: NDArray, shrinkage: float) -> NDArray:
    """Inverse on the directions that have variance; erased ones stay zero."""
    values, vectors = linalg.eigh(covariance)
    real = values > max(values[-1], 0.0) * _NEGLIGIBLE
    if not real.any():
        return np.zeros_like(covariance)
    values = (1.0 - shrinkage) * values + shrinkage * values[real].mean()
    return (vectors[:, real] / values[real]) @ vectors[:, real].T


def _solve(matrix: NDArray, right: NDArray) -> NDArray:
    """Least-norm solution of a symmetric, possibly singular, system."""
    values, vectors = linalg.eigh(matrix)
    real = values > values[-1] * np.finfo(float).eps * len(values)
    return vectors[:, real] @ ((vectors[:, real].T @ right) / values[real])
