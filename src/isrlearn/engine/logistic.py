"""Penalised logistic regression in few passes over the rows, whatever the scale of the features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from isrlearn.core.heads import Coordinates
from isrlearn.engine.components import project, scatter_times
from isrlearn.engine.loss import LogisticLoss
from isrlearn.engine.metric import LARGE, Metric, Spectrum
from isrlearn.engine.moments import cell_moments

#: Pairs of steps and gradient changes that L-BFGS remembers.
_MEMORY = 30
#: Gradient norm below which the loss changes by less than its rounding.
_VISIBLE = 1e-6
#: Passes of L-BFGS before its metric is computed anew: so many at least, and one per so many
#: features, since a matrix of second moments costs that much more than a gradient.
_PATIENCE, _FEATURES_PER_PASS = 15, 24
#: Most rows whose Gram matrix is decomposed, and most bytes of rows in few coordinates that are
#: kept in memory.
_FEW, _COPY_BYTES = 1500, 1 << 30
#: Fewest classes that are so little coupled that each has a metric of its own, and most numbers
#: in all of those.
_MANY, _METRICS = 20, 1 << 24


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression, and how they were found.

    Parameters
    ----------
    coef : ndarray of shape (1, d), or (K, d) for K > 2 classes
        Coefficients of the original features. Those of K classes add up to zero.
    intercept : ndarray of shape (1,) or (K,)
    converged : bool
        Whether `gradient_norm` is within the tolerance.
    n_passes : int
        How many times the rows were read.
    gradient_norm : float
        Norm of the gradient of the mean loss at the end, in coordinates where the curvature is
        about one: the distance to the minimum, in root mean square change of a score.
    inner : ndarray of shape (1, p) or (K, p)
        The coefficients in the coordinates of the penalty, for warm starts.
    """

    coef: NDArray[np.float64]  # (1 or K, d)
    intercept: NDArray[np.float64]  # (1,) or (K,)
    converged: bool
    n_passes: int
    gradient_norm: float
    inner: NDArray[np.float64]  # (1 or K, p)


def fit_logistic(
    X: Any,
    codes: ArrayLike | None = None,
    *,
    n_classes: int,
    C: float = 1.0,
    coordinates: Coordinates | None = None,
    weight: ArrayLike | None = None,
    start: LogisticFit | None = None,
    scatter: NDArray | None = None,
    tol: float | None = None,
    max_passes: int = 1000,
) -> LogisticFit:
    r"""Minimiser of the penalised logistic loss, binary or multinomial.

    .. math:: \sum_i w_i\,\ell(y_i,\; W z_i + b) + \tfrac{1}{2C} \lVert W \rVert^2

    as in scikit-learn's LogisticRegression, with z the head's coordinates of the features x. The
    solver is SciPy's L-BFGS in other coordinates, in which the loss has about unit curvature: they
    come from the second moments of the rows and the penalty together, and are computed anew from
    the curvature at the point reached if that takes many passes.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features: an array, a memory map, `Rows`, or any object with a shape that slices by rows.
        Or an object with a shape and a method `loss_and_gradient` like that of `LogisticLoss`,
        which sums the loss over its own rows, for example over the parts of a cluster.
    codes : array-like of int of shape (n,)
        Classes 0, …, K−1; not needed by an object that sums the loss itself.
    n_classes : int
        K.
    C : float, default=1.0
        Inverse penalty; infinity for none.
    coordinates : Coordinates, optional
        The head's coordinates; default: the features themselves.
    weight : array-like of shape (n,), optional
        Weights of the rows; not needed by an object that sums the loss itself.
    start : LogisticFit, optional
        Where to begin, for example the fit with another C.
    scatter : ndarray of shape (d, d) or (d,), optional
        Scatter of the weighted rows about their mean (about zero without coordinates), which saves
        a pass; or, without coordinates, its diagonal. An approximation only costs passes.
    tol : float, optional
        Tolerance for `LogisticFit.gradient_norm`; default: 1e-6 for float32 rows, otherwise 1e-9.
    max_passes : int, default=1000
        Passes over the rows after which the search ends, converged or not.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fit = fit_logistic(Z, [0, 1, 0, 1], n_classes=2, C=2.0)
    >>> fit.coef.round(4).tolist(), fit.intercept.round(4).tolist(), fit.converged
    ([[0.5953]], [-0.8929], True)
    """
    if not C > 0:
        raise ValueError(f"C must be positive; got {C!r}")
    if tol is None:
        tol = 1e-6 if getattr(X, "dtype", None) == np.float32 else 1e-9
    (n, d), m = X.shape, 1 if n_classes == 2 else n_classes
    p = d if coordinates is None else coordinates.n_coordinates
    if start is not None and start.inner.shape != (m, p):
        raise ValueError(
            f"start has coefficients of shape {start.inner.shape}; this problem needs {(m, p)}"
        )
    loss = X
    if not hasattr(X, "loss_and_gradient"):
        loss = LogisticLoss(X, np.asarray(codes), weight)
        _check_codes(loss.codes, n_classes)
        options = {"n_classes": n_classes, "C": C, "tol": tol, "max_passes": max_passes}
        if n < p and n <= _FEW:
            return _fit_few_rows(loss, coordinates, start, options)
        if coordinates is not None and 2 * p <= d and n * p * 8 <= _COPY_BYTES:
            return _fit_projected(loss, coordinates, start, options)
    count = _class_weights(loss, n_classes)
    share, total = count / count.sum(), float(count.sum())
    origin, spectrum = _moments(loss, coordinates, scatter, total)
    if start is None:
        log = np.log(np.maximum(share, 1e-12))
        V, b = np.zeros((p, m)), log[1:] - log[:1] if m == 1 else log - log.mean()
    else:
        V, b = start.inner.T, start.intercept + start.coef @ origin
    # The curvature if every row had the probabilities of the classes' counts.
    bend = (1.0 - share @ share) / max(1, n_classes - 1)
    level = np.array([bend * total])
    metric = Metric.of(spectrum.times(bend), level, np.zeros((p, 1)), 1.0 / C, total)
    objective = _Objective(loss, coordinates, origin, 1.0 / C, total, V, b, metric)
    objective, norm, passes = _minimise(objective, tol, max_passes)
    V, b = objective.V, objective.b
    if m > 1:  # the loss does not see what is common to all classes
        V, b = V - V.mean(axis=1, keepdims=True), b - b.mean()
    fit = LogisticFit(V.T, b, norm <= tol, passes, norm, V.T)
    return _in_features(fit, V, coordinates, origin)


def _check_codes(codes: NDArray, n_classes: int) -> None:
    """Raise unless there are two classes at least, and each row has one of them."""
    low, high = codes.min(initial=0), codes.max(initial=0)
    if n_classes < 2 or low < 0 or high >= n_classes:
        raise ValueError(
            f"codes must lie in 0, …, {max(n_classes, 2) - 1} for {n_classes} classes; they run "
            f"from {low} to {high}"
        )


def _class_weights(loss: Any, n_classes: int) -> NDArray[np.float64]:
    """Summed weight of the rows of each class, (K,)."""
    if isinstance(loss, LogisticLoss):
        return np.bincount(loss.codes, loss.weight, n_classes).astype(float)
    # Without coefficients every class has the probability 1/K.
    m = 1 if n_classes == 2 else n_classes
    value, _, by_intercept = loss.loss_and_gradient(np.zeros((m, loss.shape[1])), np.zeros(m))
    total = value / np.log(n_classes)
    count = total / n_classes - by_intercept
    return np.append(total - count, count) if m == 1 else count


def _moments(
    loss: Any, coordinates: Coordinates | None, scatter: NDArray | None, total: float
) -> tuple[NDArray, Spectrum]:
    """Center of the features (d,), and about the spectrum of the scatter in the coordinates."""
    (n, d), mine = loss.shape, isinstance(loss, LogisticLoss)
    lift, pull = _maps(coordinates)
    origin = np.zeros(d) if coordinates is None else coordinates.eraser.center
    p = d if coordinates is None else coordinates.n_coordinates
    white = coordinates is not None and coordinates.linear.ndim == 2
    if white or (scatter is None and not mine):  # unit variance, but for what was erased
        return origin, Spectrum.diagonal(np.full(p, total))
    if scatter is None:
        order, zeros = 2 if d <= LARGE else 1, np.zeros(n, dtype=int)
        moments = cell_moments(
            loss.X, None, zeros, order=order, pooled=True, sample_weight=loss.weight
        )
        _, mean, scatter = moments.total()
        origin = mean if coordinates is None else origin
    if scatter is None:
        return origin, Spectrum.sketched(
            lambda V: pull(scatter_times(loss.X, lift(V), center=origin, weight=loss.weight)), p
        )
    if scatter.ndim == 1:
        return origin, Spectrum.diagonal(scatter)
    if p > LARGE:
        return origin, Spectrum.sketched(lambda V: pull(scatter @ lift(V)), p)
    return origin, Spectrum.of(pull(pull(scatter).T)[None])


def _fit_projected(
    loss: LogisticLoss, coordinates: Coordinates, start: LogisticFit | None, options: dict
) -> LogisticFit:
    """Fit on the rows in few coordinates, which are computed once."""
    origin, p = coordinates.eraser.center, coordinates.n_coordinates
    Z = project(loss.X, coordinates.matrix, origin)
    unit = np.full(p, float(len(Z) if loss.weight is None else loss.weight.sum()))
    begin = None if start is None else _in_coordinates(start, start.inner, origin)
    fit = fit_logistic(Z, loss.codes, weight=loss.weight, start=begin, scatter=unit, **options)
    return _in_features(fit, fit.coef.T, coordinates, origin)


def _fit_few_rows(
    loss: LogisticLoss, coordinates: Coordinates | None, start: LogisticFit | None, options: dict
) -> LogisticFit:
    """Fit on fewer rows than coordinates: the solution is a combination of the rows."""
    X = np.asarray(loss.X[:], dtype=np.float64)
    origin = X.mean(axis=0) if coordinates is None else coordinates.eraser.center
    Z = X - origin if coordinates is None else coordinates(X)
    values, vectors = np.linalg.eigh(Z @ Z.T)
    real = values > len(values) * np.finfo(float).eps * values[-1]
    # The columns of Zᵀ basis are orthonormal, and the rows of T are their coordinates.
    basis, T = vectors[:, real] / np.sqrt(values[real]), vectors[:, real] * np.sqrt(values[real])
    begin = None
    if start is not None:
        begin = _in_coordinates(start, (basis.T @ (Z @ start.inner.T)).T, origin)
    scatter = values[real]
    fit = fit_logistic(T, loss.codes, weight=loss.weight, start=begin, scatter=scatter, **options)
    return _in_features(fit, Z.T @ (basis @ fit.coef.T), coordinates, origin)


def _in_coordinates(fit: LogisticFit, coef: NDArray, origin: NDArray) -> LogisticFit:
    """The fit with coefficients of other coordinates, which are zero at the origin."""
    return replace(fit, coef=coef, inner=coef, intercept=fit.intercept + fit.coef @ origin)


def _in_features(
    fit: LogisticFit, V: NDArray, coordinates: Coordinates | None, origin: NDArray
) -> LogisticFit:
    """The fit with the coefficients of the features that act as V (p, m) on the coordinates."""
    lifted = _maps(coordinates)[0](V)
    return replace(fit, coef=lifted.T, intercept=fit.intercept - origin @ lifted, inner=V.T)


def _maps(coordinates: Coordinates | None) -> tuple[Callable, Callable]:
    """Functions from coefficients of coordinates to those of features, and back for derivatives."""
    if coordinates is None:
        return (lambda V: V), (lambda columns: columns)
    return coordinates.lift, coordinates.pull


@dataclass(frozen=True, eq=False)
class _Objective:
    """The mean penalised loss, in coordinates u (q + 1, m) where it has about unit curvature."""

    loss: Any
    coordinates: Coordinates | None
    origin: NDArray[np.float64]  # (d,)
    penalty: float
    total: float
    V: NDArray[np.float64]  # (q, m): coefficients at u = 0
    b: NDArray[np.float64]  # (m,): intercepts there
    metric: Metric

    def at(self, u: NDArray) -> _Objective:
        """The same with another point at zero."""
        step, rise = self.metric.step(u.reshape(len(self.V) + 1, -1))
        return replace(self, V=self.V + step, b=self.b + rise)

    def gradient(self) -> tuple[float, NDArray[np.float64]]:
        """Value and gradient at u = 0, in one pass."""
        value, by_coef, by_b = self.loss.loss_and_gradient(*self._head())
        pull = _maps(self.coordinates)[1]
        by_V = pull(by_coef.T - np.outer(self.origin, by_b)) + self.penalty * self.V
        value += 0.5 * self.penalty * float((self.V * self.V).sum())
        return value / self.total, self.metric.gradient(by_V, by_b).ravel() / self.total

    @property
    def renewable(self) -> bool:
        """Whether the curvature can be had."""
        return len(self.V) <= LARGE and hasattr(self.loss, "curvature")

    def renewed(self) -> _Objective:
        """The same in the metric of the curvature at u = 0, in one pass."""
        (q, m), pull = self.V.shape, _maps(self.coordinates)[1]
        each = m >= _MANY and m * q * q <= _METRICS
        level, mean, scatter = self.loss.curvature(*self._head(), self.origin, each=each)
        spectrum = Spectrum.of(np.array([pull(pull(matrix).T) for matrix in scatter]))
        metric = Metric.of(spectrum, level, pull(mean.T), self.penalty, self.total)
        return replace(self, metric=metric)

    def _head(self) -> tuple[NDArray, NDArray]:
        lifted = _maps(self.coordinates)[0](self.V)
        return lifted.T, self.b - self.origin @ lifted


def _minimise(objective: _Objective, tol: float, max_passes: int) -> tuple[_Objective, float, int]:
    """The objective about its minimum, the norm of the gradient there, and the passes it took."""
    patience = max(_PATIENCE, len(objective.V) // _FEATURES_PER_PASS)
    patience = patience if objective.renewable else max_passes
    value, gradient = objective.gradient()
    norm, passes, stuck = float(np.linalg.norm(gradient)), 1, 0
    while norm > tol and stuck < 2 and passes < max_passes:
        allowed, before = min(patience, max_passes - passes), norm
        goal = tol if norm <= _VISIBLE else max(tol, _VISIBLE)
        u, value, gradient, used = _descend(objective, value, gradient, goal, allowed)
        objective, passes, norm = objective.at(u), passes + used, float(np.linalg.norm(gradient))
        # Where no step was good another try may find one, but not twice.
        idle = used < allowed or 0.5 * before < norm <= _VISIBLE
        stuck = stuck + 1 if norm > goal and idle else 0
        if norm > max(tol, _VISIBLE) and passes < max_passes and objective.renewable:
            objective, patience, passes = objective.renewed(), 2 * patience, passes + 2
            value, gradient = objective.gradient()
            norm = float(np.linalg.norm(gradient))
    return objective, norm, passes


def _descend(
    objective: _Objective, value: float, gradient: NDArray, goal: float, allowed: int
) -> tuple[NDArray, float, NDArray, int]:
    """Best point found by L-BFGS in some passes, value and gradient there, and passes used."""
    unit, passes = float(np.linalg.norm(gradient)), 0
    visible = unit > _VISIBLE
    last = best = (value if visible else unit, np.zeros(gradient.size), value, gradient)

    def at(u: NDArray) -> tuple[float, NDArray]:
        # In units in which the first step of L-BFGS, of length one, is that of unit curvature.
        nonlocal last, best, passes
        if u.any():
            there, slope = objective.at(unit * u).gradient()
            passes += 1
            last = (there if visible else float(np.linalg.norm(slope)), unit * u, there, slope)
            best = min(best, last, key=lambda found: found[0])
        # Close to the minimum values differ by less than their rounding; the trapezoidal rule
        # gives their difference from the gradients, to third order.
        change = last[2] - value if visible else 0.5 * unit * float((gradient + last[3]) @ u)
        return change / unit**2, last[3] / unit

    def stop(u: NDArray) -> None:
        if np.linalg.norm(last[3]) <= goal:
            raise StopIteration

    options = {"maxcor": _MEMORY, "maxfun": allowed, "maxiter": allowed, "ftol": 0.0, "gtol": 0.0}
    zeros = np.zeros(gradient.size)
    optimize.minimize(at, zeros, jac=True, method="L-BFGS-B", callback=stop, options=options)
    return *best[1:], passes
