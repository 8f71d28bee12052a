"""Penalised logistic regression in few passes over the rows, whatever the scale of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from isrlearn.core.heads import Coordinates
from isrlearn.engine.components import project
from isrlearn.engine.loss import LogisticLoss

#: Pairs of steps and gradient changes that L-BFGS remembers.
_MEMORY = 30
#: Gradient norm below which the loss changes by less than its rounding.
_VISIBLE = 1e-6
#: Passes of L-BFGS before its metric is computed anew: so many at least, and one per so many
#: features, since a matrix of second moments costs that much more than a gradient.
_PATIENCE, _FEATURES_PER_PASS = 15, 24
#: Most bytes of rows in the head's coordinates that are kept in memory.
_COPY_BYTES = 1 << 30
#: Most features for which the metric is a full matrix.
_SQUARE = 4096
#: Fewest classes that are so little coupled that each has a metric of its own, and most numbers
#: in all of those.
_MANY, _METRICS = 20, 1 << 24
#: Relative size of what is added to a Gram matrix that is singular.
_JITTER = 1e-13


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


@runtime_checkable
class SummedLoss(Protocol):
    """Rows, wherever they are, that sum the logistic loss of linear scores."""

    shape: tuple[int, int]

    def loss_and_gradient(
        self, coef: NDArray, intercept: NDArray
    ) -> tuple[float, NDArray, NDArray]:
        """Loss, and its derivatives by coef (m, d) and by intercept (m,)."""


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
    X : array-like of shape (n, d), or SummedLoss
        Features: an array, a memory map, `Rows`, any object with a shape that slices by rows, or
        an object that sums the loss over its own rows, for example over the parts of a cluster.
    codes : array-like of int of shape (n,)
        Classes 0, …, K−1; not used with a SummedLoss.
    n_classes : int
        K.
    C : float, default=1.0
        Inverse penalty; infinity for none.
    coordinates : Coordinates, optional
        The head's coordinates; default: the features themselves.
    weight : array-like of shape (n,), optional
        Weights of the rows; not used with a SummedLoss.
    start : LogisticFit, optional
        Where to begin, for example the fit with another C.
    scatter : ndarray of shape (d, d) or (d,), optional
        Scatter of the weighted rows about their mean (about zero without coordinates), or its
        diagonal: it saves a pass. An approximation only costs passes.
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
    loss = X
    if not isinstance(X, SummedLoss):
        loss = LogisticLoss(X, np.asarray(codes), weight)
        _check_codes(loss.codes, n_classes)
    count = _class_weights(loss, n_classes)
    view = _view(loss, coordinates, scatter, float(count.sum()))
    if tol is None:
        tol = 1e-6 if getattr(X, "dtype", None) == np.float32 else 1e-9
    problem = _Problem(view, 1.0 / C)
    found, norm = _minimise(problem, _start(start, problem, count), count, tol, max_passes)
    V, b = view.outward(found.V), found.b
    if n_classes > 2:  # the loss does not see what is common to all classes
        V, b = V - V.mean(axis=1, keepdims=True), b - b.mean()
    lifted = V if coordinates is None else coordinates.lift(V)
    return LogisticFit(lifted.T, b - view.origin @ lifted, norm <= tol, problem.passes, norm, V.T)


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
        return loss.class_weights(n_classes)
    # Without coefficients every class has the probability 1/K.
    m = 1 if n_classes == 2 else n_classes
    value, _, level = loss.loss_and_gradient(np.zeros((m, loss.shape[1])), np.zeros(m))
    total = value / np.log(n_classes)
    count = total / n_classes - level
    return np.array([total - count[0], count[0]]) if m == 1 else count


@dataclass(frozen=True, eq=False)
class _View:
    """How the solver sees the rows: as coordinates with an isotropic penalty.

    Parameters
    ----------
    loss : SummedLoss
        Over rows in some features.
    center : ndarray
        Subtracted from those features.
    coordinates : Coordinates or None
        From the centred features to the coordinates; None if they are the same.
    scatter : ndarray of shape (q, q) or (q,)
        Of the rows in the coordinates, about; or its diagonal.
    origin : ndarray of shape (d,)
        The original features of the point whose score is the intercept.
    rows, factor : ndarray of shape (n, p) and (n, q), optional
        Orthonormal directions ``rows.T @ factor`` of the head's coordinates, where the solver
        sees only these.
    """

    loss: SummedLoss
    center: NDArray[np.float64]
    coordinates: Coordinates | None
    scatter: NDArray[np.float64]
    origin: NDArray[np.float64]
    rows: NDArray[np.float64] | None = None
    factor: NDArray[np.float64] | None = None

    def outward(self, V: NDArray) -> NDArray:
        """Coefficients of the head's coordinates."""
        return V if self.rows is None or self.factor is None else self.rows.T @ (self.factor @ V)

    def inward(self, V: NDArray) -> NDArray:
        """Coefficients of the solver's coordinates."""
        return V if self.rows is None or self.factor is None else self.factor.T @ (self.rows @ V)


def _view(
    loss: Any, coordinates: Coordinates | None, scatter: NDArray | None, total: float
) -> _View:
    """The view of the rows in which a pass is cheapest."""
    (n, d), mine = loss.shape, isinstance(loss, LogisticLoss)
    if coordinates is None:
        if mine and n < d and n * d * 8 <= _COPY_BYTES:
            return _row_space(loss, None)
        origin = np.zeros(d)
        if scatter is None and mine:
            origin, scatter = loss.moments(full=d <= _SQUARE)
        return _View(loss, origin, None, np.full(d, total) if scatter is None else scatter, origin)
    origin, p = coordinates.eraser.center, coordinates.n_coordinates
    if mine and n * p * 8 <= _COPY_BYTES:
        if n < p:
            return _row_space(loss, coordinates)
        if 2 * p <= d:
            Z = project(loss.X, coordinates.matrix, origin)
            copied = LogisticLoss(Z, loss.codes, loss.weight)
            return _View(copied, np.zeros(p), None, np.full(p, total), origin)
    if coordinates.linear.ndim == 1 and scatter is None and mine and d <= _SQUARE:
        scatter = loss.moments(full=True)[1]
    if coordinates.linear.ndim == 1 and scatter is not None and scatter.ndim == 2:
        scatter = coordinates.pull(coordinates.pull(scatter).T)
    else:
        scatter = np.full(p, total)  # whitened, or standardised at least
    return _View(loss, origin, coordinates, scatter, origin)


def _row_space(loss: LogisticLoss, coordinates: Coordinates | None) -> _View:
    """The view for fewer rows than coordinates: the solution is a combination of the rows."""
    X = np.asarray(loss.X[:], dtype=np.float64)
    origin = X.mean(axis=0) if coordinates is None else coordinates.eraser.center
    Z = X - origin if coordinates is None else coordinates(X)
    gram = Z @ Z.T
    gram.flat[:: len(gram) + 1] += _JITTER * np.trace(gram)
    # With Z Zᵀ = L Lᵀ the columns of Zᵀ L⁻ᵀ are orthonormal, and the rows of L their coordinates.
    lower = linalg.cholesky(gram, lower=True)
    inner = LogisticLoss(lower, loss.codes, loss.weight)
    factor = linalg.lapack.dtrtri(lower, lower=True)[0].T
    return _View(inner, np.zeros(len(Z)), None, lower.T @ lower, origin, Z, factor)


@dataclass(frozen=True, eq=False)
class _Point:
    """Coefficients, intercepts, and the objective there with its gradient."""

    V: NDArray[np.float64]  # (q, m)
    b: NDArray[np.float64]  # (m,)
    value: float
    slope: NDArray[np.float64]  # (q, m)
    level: NDArray[np.float64]  # (m,)


class _Problem:
    """The penalised loss as a function of coefficients and intercepts in a view of the rows."""

    def __init__(self, view: _View, penalty: float) -> None:
        self.view, self.penalty, self.passes = view, penalty, 0

    def lift(self, V: NDArray, b: NDArray) -> tuple[NDArray, NDArray]:
        """Coefficients and intercepts of the rows' own features."""
        view = self.view
        lifted = V if view.coordinates is None else view.coordinates.lift(V)
        return lifted.T, b - view.center @ lifted

    def pull(self, columns: NDArray) -> NDArray:
        """Derivatives by V from those by coefficients of the rows' features."""
        return columns if self.view.coordinates is None else self.view.coordinates.pull(columns)

    def __call__(self, V: NDArray, b: NDArray) -> _Point:
        """The objective at a point, in one pass."""
        self.passes += 1
        loss, by_coef, level = self.view.loss.loss_and_gradient(*self.lift(V, b))
        slope = self.pull(by_coef.T - np.outer(self.view.center, level)) + self.penalty * V
        return _Point(V, b, loss + 0.5 * self.penalty * float((V * V).sum()), slope, level)

    def metric(self, here: _Point, total: float) -> _Metric | None:
        """Metric of the curvature at a point, if the rows can tell."""
        curvature, (q, m) = getattr(self.view.loss, "curvature", None), here.V.shape
        if curvature is None or q > _SQUARE:
            return None
        self.passes += 1
        each = m >= _MANY and m * q * q <= _METRICS
        coef, intercept = self.lift(here.V, here.b)
        levels, means, scatters = curvature(coef, intercept, self.view.center, each=each)
        pulled = [self.pull(self.pull(scatter).T) for scatter in scatters]
        return _Metric.of(pulled, levels, self.pull(means.T), self.penalty, total)


@dataclass(frozen=True, eq=False)
class _Metric:
    """Coordinates u, (q + 1, m), in which a loss of known curvature has unit curvature.

    One matrix for all the scores, or one for each.
    """

    root: NDArray[np.float64]  # (1 or m, q, q), or a diagonal (1, q)
    level: NDArray[np.float64]  # (1 or m,)
    mean: NDArray[np.float64]  # (q, 1 or m)
    total: float

    @classmethod
    def of(
        cls, curvature: Any, level: NDArray, mean: NDArray, penalty: float, total: float
    ) -> _Metric:
        """Metric of curvatures along coefficients, about a mean, and along intercepts."""
        root = np.array([_inverse_root(H, penalty) for H in curvature])
        return cls(np.sqrt(total) * root, np.sqrt(total / level), mean, total)

    def move(self, here: _Point, u: NDArray) -> tuple[NDArray, NDArray]:
        """Coefficients and intercepts at u, with `here` at zero."""
        u = u.reshape(len(self.mean) + 1, -1)
        step = _times(self.root, u[:-1])
        return here.V + step, here.b + self.level * u[-1] - (self.mean * step).sum(axis=0)

    def gradient(self, at: _Point) -> NDArray[np.float64]:
        """Gradient of the mean loss by u."""
        slope = _times(self.root, at.slope - self.mean * at.level, transposed=True)
        return np.concatenate([slope, self.level * at.level[None]]).ravel() / self.total

    def norm(self, at: _Point) -> float:
        """Norm of that gradient."""
        return float(np.linalg.norm(self.gradient(at)))


def _times(root: NDArray, columns: NDArray, *, transposed: bool = False) -> NDArray[np.float64]:
    """A diagonal, one matrix, or one matrix per column, times columns (q, m)."""
    if root.ndim == 2:
        return root.T * columns
    root = np.swapaxes(root, 1, 2) if transposed else root
    return root[0] @ columns if len(root) == 1 else (root @ columns.T[:, :, None])[:, :, 0].T


def _inverse_root(curvature: NDArray, penalty: float) -> NDArray[np.float64]:
    """T with ``T @ T.T`` the (pseudo-)inverse of a matrix, or diagonal, with a penalty added."""
    diagonal = penalty + (curvature if curvature.ndim == 1 else np.diag(curvature))
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, np.inf))
    if curvature.ndim == 1:
        return scale
    scaled = curvature * scale * scale[:, None]
    np.fill_diagonal(scaled, diagonal * scale**2)
    try:
        lower = linalg.cholesky(scaled, lower=True)
        return scale[:, None] * linalg.lapack.dtrtri(lower, lower=True)[0].T
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(scaled)
        real = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        return scale[:, None] * vectors / np.sqrt(np.where(real, values, np.inf))


def _start(start: LogisticFit | None, problem: _Problem, count: NDArray) -> _Point:
    """The point of an earlier fit, or no coefficients and the log odds of the classes."""
    view, m = problem.view, 1 if len(count) == 2 else len(count)
    if start is None:
        log = np.log(np.maximum(count / count.sum(), 1e-12))
        b = log[1:] - log[:1] if m == 1 else log - log.mean()
        return problem(np.zeros((view.scatter.shape[0], m)), b)
    p = view.scatter.shape[0] if view.rows is None else view.rows.shape[1]
    if start.inner.shape != (m, p):
        raise ValueError(
            f"start has coefficients of shape {start.inner.shape}; this problem needs {(m, p)}"
        )
    return problem(view.inward(start.inner.T), start.intercept + start.coef @ view.origin)


def _minimise(
    problem: _Problem, here: _Point, count: NDArray, tol: float, max_passes: int
) -> tuple[_Point, float]:
    """The minimum of the objective, about, and the norm of the gradient there."""
    total, share = float(count.sum()), count / count.sum()
    # As if every row had the probabilities of the classes' counts.
    bend = (1.0 - share @ share) / max(1, len(count) - 1)
    scatter = problem.view.scatter
    level, mean = np.array([bend * total]), np.zeros((len(scatter), 1))
    metric = _Metric.of([bend * scatter], level, mean, problem.penalty, total)
    patience = max(_PATIENCE, len(scatter) // _FEATURES_PER_PASS)
    norm, stuck = metric.norm(here), 0
    while norm > tol and stuck < 2 and problem.passes < max_passes:
        allowed, passes, before = min(patience, max_passes - problem.passes), problem.passes, norm
        goal = tol if norm <= _VISIBLE else max(tol, _VISIBLE)
        here = _descend(problem, metric, here, goal, allowed)
        norm = metric.norm(here)
        # Where no step was good another try may find one, but not twice.
        idle = problem.passes - passes < allowed or 0.5 * before < norm <= _VISIBLE
        stuck = stuck + 1 if norm > goal and idle else 0
        if norm > max(tol, _VISIBLE) and problem.passes < max_passes:
            metric = problem.metric(here, total) or metric
            norm, patience = metric.norm(here), 2 * patience
    return here, norm


def _descend(problem: _Problem, metric: _Metric, here: _Point, goal: float, passes: int) -> _Point:
    """Best point that L-BFGS finds from here in some passes."""
    gradient, unit = metric.gradient(here), metric.norm(here)
    visible = unit > _VISIBLE
    best, norm = (here.value if visible else unit, here), unit

    def value(u: NDArray) -> tuple[float, NDArray]:
        # In units in which the first step of L-BFGS, of length one, is that of unit curvature.
        nonlocal best, norm
        there = problem(*metric.move(here, unit * u)) if u.any() else here
        slope, norm = metric.gradient(there), metric.norm(there)
        if visible:
            change = (there.value - here.value) / metric.total
        else:
            # Close to the minimum values differ by less than their rounding; the trapezoidal rule
            # gives their difference from the gradients, to third order.
            change = 0.5 * unit * float((gradient + slope) @ u)
        best = min(best, (there.value if visible else norm, there), key=lambda found: found[0])
        return change / unit**2, slope / unit

    def stop(u: NDArray) -> None:
        if norm <= goal:
            raise StopIteration

    options = {"maxcor": _MEMORY, "maxfun": passes, "maxiter": passes, "ftol": 0.0, "gtol": 0.0}
    optimize.minimize(
        value, np.zeros(gradient.size), jac=True, method="L-BFGS-B", callback=stop, options=options
    )
    return best[1]
