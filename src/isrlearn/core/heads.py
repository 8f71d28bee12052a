"""Linear heads in closed form: they need moments alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core.moments import Moments
from isrlearn.core.whiten import Coordinates

_NEGLIGIBLE = 1e-10


def lda_head(
    moments: Moments, coordinates: Coordinates, *, penalty: float = 0.0
) -> tuple[NDArray, NDArray]:
    r"""Coefficients and intercepts of linear discriminant analysis, from moments alone.

    .. math:: w_k = \Sigma^{-1} \mu_k, \quad b_k = \log \pi_k - \tfrac12 w_k^\top \mu_k

    with the within-class covariance of all the rows; for two classes, the difference of the two.

    Parameters
    ----------
    moments : Moments
        Of the original features.
    coordinates : Coordinates
    penalty : float, default=0.0
        Added to the diagonal of the within-class scatter in the head's coordinates, as an L2
        penalty is to that of least squares.

    Returns
    -------
    coef : ndarray of shape (K, d), or (1, d) for two classes
    intercept : ndarray of shape (K,) or (1,)
    """
    matrix = coordinates.matrix
    count, mean, scatter = moments.map(matrix).by_class
    n, K = count.sum(), len(count)
    # The origin of the coordinates is the eraser's centre, not the mean of reweighted moments.
    mean = mean - coordinates.eraser.center @ matrix
    # A population's weights are shares: only their ratios may matter, however small they are.
    dof = max(n - moments.ddof * K, 1.0) if moments.ddof else n
    values, vectors = linalg.eigh(scatter / dof)
    # Erased directions, which have no variance, get no coefficient.
    real = values > max(values[-1], 0.0) * _NEGLIGIBLE
    values, vectors = values[real] + penalty / dof, vectors[:, real]
    coef = ((mean @ vectors) / values) @ vectors.T
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
    d, factor = moments.n_features - 1, coordinates.matrix
    mean, scatter = moments.total[1], moments.total_scatter()
    values, vectors = linalg.eigh(factor.T @ scatter[:d, :d] @ factor)
    values += alpha
    # The least-norm solution where the system is singular.
    real = values > values[-1] * np.finfo(float).eps * len(values)
    target = vectors[:, real].T @ (factor.T @ scatter[:d, d])
    coef = factor @ (vectors[:, real] @ (target / values[real]))
    return coef, float(mean[d] - coef @ mean[:d])
