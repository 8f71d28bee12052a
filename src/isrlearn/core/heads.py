"""Linear heads in closed form, and preconditioners of the logistic head."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core.moments import NEGLIGIBLE, Moments
from isrlearn.core.whiten import Coordinates

#: Eigenvectors (p, k) and eigenvalues (k,) of a scatter, and one value for all other directions.
Sketch = tuple[NDArray, NDArray, float]
#: ``root(A)``: rows of A times a root of an inverse curvature; ``root(A, True)``: its transpose.
Root = Callable[..., NDArray]

#: Coordinates up to which the scatter of rows is computed; beyond, it is sketched by this many
#: directions, seen on this many rows; share of the largest curvature below which one is flat.
_FULL, _LEADING, _ROWS, _FLAT = 1024, 128, 2048, 1e-13


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
    # Erased directions, along which nothing varies, get no coefficient. One that varies between
    # classes alone separates them perfectly.
    apart = np.square((mean - count @ mean / n) @ vectors).max(axis=0)
    least = max(values[-1], apart.max()) * NEGLIGIBLE
    real = np.maximum(values, apart) > least
    values, vectors = np.maximum(values[real], least) + penalty / dof, vectors[:, real]
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
    spectrum, vectors = linalg.eigh(factor.T @ scatter[:d, :d] @ factor)
    target = vectors.T @ (factor.T @ scatter[:d, d])
    values = spectrum + alpha
    # The least-norm solution where the system is singular.
    real = values > values[-1] * np.finfo(float).eps * len(values)
    coef = factor @ (vectors[:, real] @ (target[real] / values[real]))
    return coef, float(mean[d] - coef @ mean[:d])


def row_scatter(rows: NDArray) -> NDArray | Sketch:
    """Scatter ``rows.T @ rows`` (p, p), or a sketch of it where coordinates are many.

    The sketch is Nyström's approximation: the largest matrix below the scatter that has the same
    image of random vectors.
    """
    n, p = rows.shape
    if p <= _FULL:
        return rows.T @ rows
    step = max(1, n // _ROWS)  # some of the rows show the leading directions
    some = rows[::step].astype(np.float32)
    start = np.random.default_rng(0).standard_normal((p, _LEADING), dtype=np.float32)
    images = (step * (some.T @ (some @ start))).astype(np.float64)
    inner = start.T @ images
    values, vectors = linalg.eigh((inner + inner.T) / 2)
    seen = values > 1e-6 * values[-1]
    images = images @ (vectors[:, seen] / np.sqrt(values[seen]))
    values, vectors = linalg.eigh(images.T @ images)
    trace = step * float(np.vdot(some, some))
    rest = max(trace - float(values.sum()), 1e-6 * trace) / (p - len(values))
    return images @ (vectors / np.sqrt(values)), values, rest


def inverse_root(scatter: NDArray | Sketch, along: float, penalty: float) -> Root:
    """Root of the inverse of ``along * scatter + penalty``."""
    if isinstance(scatter, tuple):
        vectors, values, rest = scatter
        scale = 1.0 / np.sqrt(along * values + penalty)
        other = 1.0 / np.sqrt(along * rest + penalty)
        return lambda A, _=False: other * A + ((A @ vectors) * (scale - other)) @ vectors.T
    curvature = scatter.copy()
    curvature.flat[:: len(curvature) + 1] += penalty / along
    least = _FLAT * np.diag(curvature).max()
    # The transposed view has the order of LAPACK: no other copy is made.
    lower, failed = linalg.lapack.dpotrf(curvature.T, lower=1, overwrite_a=1, clean=0)
    if not failed and np.diag(lower).min() ** 2 > least:
        unit = 1.0 / np.sqrt(along)
        solve = partial(linalg.solve_triangular, lower, lower=True, check_finite=False)
        return lambda A, transposed=False: unit * solve(A.T, trans=int(not transposed)).T
    return class_roots((along * scatter + penalty * np.eye(len(scatter)))[None])


def class_roots(curvature: NDArray) -> Root:
    """Roots of inverse curvatures (K, p, p); directions without curvature stay as they are."""
    values, vectors = np.linalg.eigh(curvature)
    values = np.where(values > _FLAT * values.max(), values, np.inf)
    roots = (vectors / np.sqrt(values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return lambda A, _=False: (roots @ A[:, :, None])[:, :, 0]
