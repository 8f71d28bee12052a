"""The logistic head: a logistic regression in coordinates that the rows need not be taken to."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isrlearn.core._log_loss import ArrayRows
from isrlearn.core._range import CentredRows, LowRank, projected, sketch, start_directions
from isrlearn.core.heads import Coordinates
from isrlearn.core.logistic import LogisticFit, fit_logistic, solve_logistic, suits_newton
from isrlearn.core.moments import Moments

#: Most bytes of rows in a head's coordinates that are kept beside the rows themselves.
_COPY_BYTES = 256 << 20
#: Directions of largest variance that the metric of a head on many features knows.
_LEADING = 128


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
    scatter: NDArray | LowRank | None
    small = np.dtype(X.dtype) == np.float32
    tol = default_tol(X.dtype) if tol is None else tol
    total = float(n if weight is None else weight.sum())
    newton_sized = suits_newton(K, p)
    if newton_sized or (fits_copied(K, p, d) and n * p * (4 if small else 8) <= _COPY_BYTES):
        Z = projected(CentredRows(X, coordinates.eraser.center), coordinates.matrix)
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
    draft = None
    if moments.scatter is None and coordinates.linear.ndim == 1:
        rows = CentredRows(X, coordinates.eraser.center, weight)
        scatter = _leading_scatter(rows, coordinates)
        if rows.dtype == np.float32 and rows.is_near:
            draft = ArrayRows(X, codes, weight, np.float32)
    else:
        scatter = unit_scatter(moments, coordinates, total)
    if small and n * d * 8 <= _COPY_BYTES:
        X = np.asarray(X[:], dtype=np.float64)  # once, not in every pass
    fit = solve_logistic(
        ArrayRows(X, codes, weight),
        np.full(p, 1 / C),
        np.bincount(codes, weight, K).astype(float),
        coordinates.eraser.center,
        scatter,
        tol=tol,
        max_passes=max_passes,
        features=coordinates,
        draft=draft,
    )
    return fit.coef, fit.intercept, fit


def _leading_scatter(rows: CentredRows, coordinates: Coordinates) -> LowRank:
    """Scatter of the rows in standardised coordinates: its leading part, and the rest alike."""
    p = coordinates.n_coordinates
    start = start_directions(p, min(_LEADING, p // 2))
    images = coordinates.pull(rows.scatter_times(coordinates.lift(start)))
    vectors, values = sketch(start, images)
    n = float(rows.shape[0] if rows.weight is None else rows.weight.sum())
    # Standardised coordinates have unit variance, but for those of which nothing is left.
    trace = n * np.count_nonzero(coordinates.linear)
    rest = max(trace - values.sum(), 1e-6 * trace) / (p - len(values))
    return LowRank(vectors, values, rest)


def fits_copied(n_classes: int, p: int, d: int) -> bool:
    """Whether a head is better fitted in its own p coordinates than seen from the d features."""
    return suits_newton(n_classes, p) or 2 * p <= d


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
