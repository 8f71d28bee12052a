"""Penalised logistic regression in few passes over the rows, whatever the features' scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from isrlearn.core._accumulate import default_chunk_size
from isrlearn.core._log_loss import (
    ArrayRows,
    Block,
    FeatureMap,
    LogisticObjective,
    SummedRows,
    contrasts,
)
from isrlearn.core._minimise import Point, lbfgs, newton
from isrlearn.core.heads import Coordinates
from isrlearn.core.moments import Moments

#: Coefficients up to which a Newton step is cheaper than the gradient steps it saves.
_NEWTON_SIZE = 150
#: Most bytes of rows in a head's coordinates that are kept beside the rows themselves.
_COPY_BYTES = 256 << 20


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression, and how they were reached.

    Parameters
    ----------
    coef : ndarray of shape (1, p), or (K, p) for K > 2 classes
        Those of K classes add up to zero.
    intercept : ndarray of shape (1,) or (K,)
    n_passes : int
        How many times the rows were read.
    gradient_norm : float
        Norm of the gradient of the mean loss at the end, in coordinates where the curvature is
        about one: the distance to the minimum, in root mean square change of a score.
    converged : bool
        Whether that is below the tolerance.
    """

    coef: NDArray[np.float64]  # (1 or K, p)
    intercept: NDArray[np.float64]  # (1,) or (K,)
    n_passes: int
    gradient_norm: float
    converged: bool


def fit_logistic(
    Z: NDArray,
    codes: ArrayLike,
    penalty: ArrayLike = 1.0,
    *,
    n_classes: int | None = None,
    weight: ArrayLike | None = None,
    start: LogisticFit | None = None,
    scatter: NDArray | None = None,
    tol: float = 1e-9,
    max_passes: int = 1000,
) -> LogisticFit:
    r"""Minimiser of the penalised logistic loss, binary or multinomial.

    .. math:: \sum_i w_i\,\ell(y_i,\; b + z_i v) + \tfrac12 \sum_j \lambda_j v_j^2

    scikit-learn's LogisticRegression has :math:`\lambda_j = 1/C`. Few coefficients are found by
    Newton's method, many by L-BFGS in coordinates where the loss has about the same curvature
    everywhere, made from the second moments of Z and the penalty together. The penalty itself
    stays on the given features.

    Parameters
    ----------
    Z : ndarray of shape (n, p)
        Features, float64 or float32. Sums are float64 in both cases, and Z is not copied.
    codes : array-like of int of shape (n,)
        Classes 0, …, K−1.
    penalty : float or array-like of shape (p,), default=1.0
        λ. Zero leaves a coefficient free, infinity leaves its feature out. Classes that Z
        separates need a positive one: there is no minimum otherwise.
    n_classes : int, optional
        K; default: the largest code plus one, at least two.
    weight : array-like of shape (n,), optional
        Weights of the rows: 2 is the row twice.
    start : LogisticFit, optional
        Where to begin, for example the fit at the neighbouring penalty.
    scatter : ndarray of shape (p, p) or (p,), optional
        Sum of squares and products of the rows of Z about their mean, or its diagonal, where it
        is known: it saves the pass that computes it. The mean is then taken as zero; an
        approximation of either will do.
    tol : float, default=1e-9
        For `LogisticFit.gradient_norm`.
    max_passes : int, default=1000

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fit = fit_logistic(Z, [0, 1, 0, 1], penalty=0.5)
    >>> fit.coef.round(4).tolist(), fit.intercept.round(4).tolist(), fit.converged
    ([[0.5953]], [-0.8929], True)
    """
    codes = np.asarray(codes, dtype=np.intp)
    K = max(2, int(codes.max(initial=0)) + 1) if n_classes is None else n_classes
    w = None if weight is None else np.asarray(weight, dtype=np.float64)
    lam = np.array(np.broadcast_to(np.asarray(penalty, dtype=float), Z.shape[1:]))
    _check(Z, codes, K, lam, w)
    count = np.bincount(codes, w, minlength=K).astype(float)
    rows = ArrayRows(Z, codes, w)
    if scatter is not None:
        mean = np.zeros(len(lam))
        return solve_logistic(rows, lam, count, mean, scatter, start, tol, max_passes)
    # Newton's method makes its own second moments.
    order = 1 if _is_small(lam, count) else 2
    environment = np.zeros(len(Z))
    moments = Moments.from_data(Z, None, environment, order=order, pooled=True, sample_weight=w)
    _, mean, scatter = moments.total()
    found = solve_logistic(rows, lam, count, mean, scatter, start, tol, max_passes)
    return replace(found, n_passes=found.n_passes + 1)


def logistic_head(
    X: Any,
    codes: NDArray,
    moments: Moments,
    coordinates: Coordinates,
    *,
    C: float = 1.0,
    weight: NDArray | None = None,
    tol: float | None = None,
    max_passes: int = 1000,
) -> tuple[NDArray, NDArray, LogisticFit]:
    """Coefficients and intercepts of a logistic regression, and how they were reached.

    Of the original features; the penalty 1/C is that of the head's coordinates. Rows are taken to
    few coordinates once; many coordinates are never made, but seen from the original rows.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features; anything that slices by rows into arrays.
    codes : ndarray of int of shape (n,)
        Positions among the moments' classes.
    moments : Moments
        Of the original features.
    coordinates : Coordinates
    C : float, default=1.0
        Infinity leaves coefficients free.
    weight : ndarray of shape (n,), optional
        Weights of the rows.
    tol : float, optional
        For `LogisticFit.gradient_norm`; default: `default_tol`.
    max_passes : int, default=1000

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.core import Eraser, head_coordinates
    >>> rng = np.random.default_rng(0)
    >>> X, codes = rng.normal(size=(100, 2)), np.arange(100) % 2
    >>> moments = Moments.from_data(X, codes, codes)
    >>> nothing = Eraser(np.zeros((2, 0)), np.zeros((2, 0)), 1.0, moments.total()[1])
    >>> coordinates = head_coordinates(moments, nothing)
    >>> coef, intercept, fit = logistic_head(X, codes, moments, coordinates)
    >>> coef.shape, intercept.shape, fit.converged
    ((1, 2), (1,), True)
    """
    K, (n, d), p = len(moments.classes), X.shape, coordinates.n_coordinates
    small = np.dtype(X.dtype) == np.float32
    tol = default_tol(X.dtype) if tol is None else tol
    total = float(n if weight is None else weight.sum())
    newton_sized = (K - 1) * p <= _NEWTON_SIZE
    if newton_sized or (fits_copied(K, p, d) and n * p * (4 if small else 8) <= _COPY_BYTES):
        Z = _mapped(X, coordinates)
        scatter = None if newton_sized else unit_scatter(moments, coordinates, total)
        fit = fit_logistic(
            Z,
            codes,
            1 / C,
            n_classes=K,
            weight=weight,
            scatter=scatter,
            tol=tol,
            max_passes=max_passes,
        )
        return *coordinates.fold(fit.coef, fit.intercept), fit
    fit = solve_logistic(
        ArrayRows(X, codes, weight),
        np.full(p, 1 / C),
        np.bincount(codes, weight, K).astype(float),
        coordinates.eraser.center,
        unit_scatter(moments, coordinates, total),
        tol=tol,
        max_passes=max_passes,
        features=coordinates,
    )
    return fit.coef, fit.intercept, fit


def _mapped(X: Any, coordinates: Coordinates) -> NDArray:
    """All the rows in a head's coordinates, made block by block."""
    n, d = X.shape
    dtype = np.float32 if np.dtype(X.dtype) == np.float32 else np.float64
    Z = np.empty((n, coordinates.n_coordinates), dtype=dtype)
    step = default_chunk_size(d)
    for start in range(0, n, step):
        rows = slice(start, start + step)
        Z[rows] = coordinates(np.asarray(X[rows], dtype=dtype))
    return Z


def fits_copied(n_classes: int, p: int, d: int) -> bool:
    """Whether a head is better fitted in its own p coordinates than seen from the d features."""
    return (n_classes - 1) * p <= _NEWTON_SIZE or 2 * p <= d


def unit_scatter(moments: Moments, coordinates: Coordinates, total: float) -> NDArray[np.float64]:
    """Scatter of the rows in a head's coordinates, about; its diagonal where that will do."""
    # Whitened coordinates have unit variance, but for what was erased.
    if coordinates.linear.ndim == 2 or moments.scatter is None:
        return np.full(coordinates.n_coordinates, total)
    count, _, scatter = moments.total()
    pulled = coordinates.pull(coordinates.pull(np.asarray(scatter)).T)
    return pulled * (total / count)


def default_tol(dtype: DTypeLike) -> float:
    """Distance from the minimum that rows of a type are worth; float32 ones have no more digits."""
    return 1e-6 if np.dtype(dtype) == np.float32 else 1e-9


def solve_logistic(
    rows: Iterable[Block] | SummedRows,
    penalty: NDArray,
    count: NDArray,
    mean: NDArray,
    scatter: NDArray | None,
    start: LogisticFit | None = None,
    tol: float = 1e-9,
    max_passes: int = 1000,
    features: FeatureMap | None = None,
) -> LogisticFit:
    """Minimiser of the penalised logistic loss over rows that come in blocks, from anywhere.

    `fit_logistic` for rows that are not one array: what it finds out about an array beforehand
    must be given.

    Parameters
    ----------
    rows : iterable of (Z, codes, weight)
        Blocks of float64 features, class codes and weights (None: all one). Read once a pass, in
        the same order each time. Or an object that sums over its rows itself.
    penalty : ndarray of shape (p,)
    count : ndarray of shape (K,)
        Rows of each class, or their weight.
    mean : ndarray of shape (p,)
        Of the features, about.
    scatter : ndarray of shape (p, p) or (p,), or None
        About that mean. None where there are coefficients few enough for Newton's method.
    start : LogisticFit, optional
    tol : float, default=1e-9
    max_passes : int, default=1000
    features : FeatureMap, optional
        Linear coordinates, for example `Coordinates`, that penalty, scatter and start belong to.
        The fit's coefficients are then of the rows' own features, and so is the mean.

    Examples
    --------
    >>> import numpy as np
    >>> Z, codes = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 0, 1])
    >>> blocks = [(Z[:4], codes[:4], None), (Z[4:], codes[4:], None)]
    >>> parts = solve_logistic(blocks, np.ones(1), np.array([3.0, 3.0]), np.zeros(1), None)
    >>> np.allclose(parts.coef, fit_logistic(Z, codes, 1.0).coef)
    True
    """
    objective = LogisticObjective(rows, len(count), penalty, mean, features)
    point = _start(start, objective, count / count.sum())
    if scatter is None or _is_small(penalty, count):
        point = newton(objective, point, float(count.sum()), tol, max_passes)
    else:
        point = lbfgs(objective, point, count, scatter, tol, max_passes)
    Q = contrasts(objective.n_classes)
    V = point.V if features is None else features.lift(point.V)
    intercept = Q @ (point.b - mean @ V)
    norm = float(point.gradient_norm)
    return LogisticFit(Q @ V.T, intercept, point.passes, norm, norm <= tol)


def _is_small(penalty: NDArray, count: NDArray) -> bool:
    return (len(count) - 1) * len(penalty) <= _NEWTON_SIZE


def _start(start: LogisticFit | None, objective: LogisticObjective, share: NDArray) -> Point:
    """The given coefficients, or none and the intercepts of the classes' shares."""
    Q, p = contrasts(objective.n_classes), objective.n_features
    if start is None:
        logits = np.log(np.maximum(share, 1e-12))
        logits = logits[1:] - logits[:1] if len(share) == 2 else logits
        return Point(np.zeros((p, objective.n_scores)), logits @ Q)
    if start.coef.shape != (len(Q), p):
        raise ValueError(
            f"start has coefficients of shape {start.coef.shape}; this problem's are {(len(Q), p)}"
        )
    V = np.where(np.isinf(objective.penalty), 0.0, start.coef).T @ Q
    lifted = V if objective.features is None else objective.features.lift(V)
    return Point(V, start.intercept @ Q + objective.center @ lifted)


def _check(Z: NDArray, codes: NDArray, K: int, lam: NDArray, w: NDArray | None) -> None:
    if codes.shape != (len(Z),):
        raise ValueError(f"codes has shape {codes.shape}, but Z has {len(Z)} rows")
    if K < 2 or codes.min(initial=0) < 0 or codes.max(initial=0) >= K:
        raise ValueError(
            f"codes must lie in 0, …, {max(K, 2) - 1} for {K} classes; they run from "
            f"{codes.min(initial=0)} to {codes.max(initial=0)}"
        )
    if np.isnan(lam).any() or (lam < 0).any():
        raise ValueError(f"penalty must not be negative; got {lam[~(lam >= 0)][0]}")
    if w is not None and w.shape != codes.shape:
        raise ValueError(f"weight has shape {w.shape}, but Z has {len(Z)} rows")
