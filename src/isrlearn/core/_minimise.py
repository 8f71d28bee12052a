"""Two ways down a logistic loss: Newton's method, and L-BFGS with a full preconditioner."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core._log_loss import LogisticObjective, Value
from isrlearn.core._range import LowRank

#: Passes of L-BFGS after which a preconditioner made from the curvature at hand pays: so many at
#: least, and one for so many features, since a second moment costs that much more than a gradient.
_PATIENCE, _FEATURES_A_PASS = 25, 24
#: Coefficients of several scores up to which a Newton step is worth it in hard cases.
_DENSE_SIZE = 1500
#: Pairs of steps and gradients that L-BFGS remembers.
_MEMORY = 30
#: Gradient norm below which the loss changes by less than its rounding, and only the gradient
#: can tell whether a step was good.
_VISIBLE = 1e-6
#: Share of what its slope promises that a step must make the loss fall by, and share of that slope
#: that must be gone at its end.
_FALL, _FLATTER = 1e-4, 0.9
#: Most points tried along a step, and steps that gain nothing before the minimum counts as reached.
_TRIALS, _IDLE = 20, 4
#: Relative rounding of a sum over rows: smaller changes of the loss mean nothing.
_ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Point:
    """Coefficients of centred features, intercepts, and what it took to get there."""

    V: NDArray[np.float64]  # (p, m)
    b: NDArray[np.float64]  # (m,)
    passes: int = 0
    gradient_norm: float = np.inf


def newton(
    objective: LogisticObjective, start: Point, total: float, tol: float, max_passes: int
) -> Point:
    """Newton's method with a halving line search; a pass a step.

    The norm of the gradient is Newton's decrement of the mean loss.
    """
    here, at = start, objective(start.V, start.b, curved="full")
    passes = start.passes + 1
    while True:
        step = _newton_step(objective, at)
        slope = float((step.V * at.slope).sum() + step.b @ at.level)
        here = replace(here, passes=passes, gradient_norm=np.sqrt(max(-slope, 0.0) / total))
        if here.gradient_norm <= tol or passes >= max_passes:
            return here
        size = 1.0
        while True:
            there = Point(here.V + size * step.V, here.b + size * step.b)
            new = objective(there.V, there.b, curved="full")
            passes += 1
            if new.loss <= at.loss + _FALL * size * slope + _ROUNDING * abs(at.loss):
                break
            size /= 2
            if passes >= max_passes or size < 1e-8:
                return replace(here, passes=passes)
        here, at = there, new


def lbfgs(
    objective: LogisticObjective,
    start: Point,
    count: NDArray,
    scatter: NDArray | LowRank,
    tol: float,
    max_passes: int,
) -> Point:
    """L-BFGS in coordinates where the mean loss has about unit curvature.

    They come from the scatter of the features (p, p), or its diagonal (p,), as if every row had
    the probabilities of the classes' counts (K,). Where the classes are nearly separated that is
    far from the curvature at the minimum; so after some passes they are made anew, from the
    curvature at the point reached; not so where the scatter is of low rank, since p is too large
    for a matrix then.
    """
    share, total = count / count.sum(), float(count.sum())
    bend = (1.0 - share @ share) / objective.n_scores
    metric = _Metric.of(objective, bend * scatter, bend * total, total)
    patience = max(_PATIENCE, objective.n_features // _FEATURES_A_PASS)
    if isinstance(scatter, LowRank):
        return _descend(objective, metric, start, tol, max_passes)
    here, stuck = start, 0
    while True:
        before, allowed = here.passes, min(patience, max_passes - here.passes)
        here = _descend(objective, metric, here, tol, allowed)
        # No step was good: a new metric may find one, but not twice.
        stuck = stuck + 1 if here.passes - before < allowed else 0
        if here.gradient_norm <= tol or stuck == 2 or here.passes >= max_passes:
            return here
        if 1 < objective.n_scores <= _DENSE_SIZE / objective.n_features:
            # The scores' curvatures are coupled, which the metric does not see.
            return newton(objective, here, total, tol, max_passes)
        curvature = objective(here.V, here.b, curved="mean").curvature
        here = replace(here, passes=here.passes + 1)
        patience *= 2
        if curvature is not None:
            H = curvature[0, :, 0]
            metric = _Metric.of(objective, H[:-1, :-1], H[-1, -1], total)


class _Trial(NamedTuple):
    """A point in the coordinates of a metric, and the mean loss there."""

    u: NDArray[np.float64]
    value: float
    gradient: NDArray[np.float64]

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(self.gradient))


class _MeanLoss:
    """Mean loss and its gradient by u; counts passes."""

    def __init__(self, objective: LogisticObjective, metric: _Metric, start: Point) -> None:
        self.objective, self.metric, self.start = objective, metric, start
        self.passes = 0

    def __call__(self, u: NDArray) -> _Trial:
        at = self.objective(*self.metric.move(self.start, u))
        self.passes += 1
        return _Trial(u, at.loss / self.metric.total, self.metric.pull(at))


#: A step, the change of the gradient that it made, and the product of the two.
_Pair = tuple[NDArray, NDArray, float]


def _descend(
    objective: LogisticObjective, metric: _Metric, start: Point, tol: float, max_passes: int
) -> Point:
    """L-BFGS from a point, in the coordinates of a metric.

    Not SciPy's: that one compares values, which near the minimum differ by less than their
    rounding, and its products start threads that then compete with those of the passes.
    """
    loss, pairs = _MeanLoss(objective, metric, start), deque[_Pair](maxlen=_MEMORY)
    here = best = loss(np.zeros((len(objective.kept) + 1) * objective.n_scores))
    idle = 0
    while best.norm > tol and loss.passes < max_passes and idle < _IDLE:
        there = _search(loss, here, -_times_inverse_curvature(pairs, here.gradient), max_passes)
        if there is None:
            break
        step, change = there.u - here.u, there.gradient - here.gradient
        if (product := float(step @ change)) > 0:
            pairs.append((step, change, product))
        here = there
        better = here.norm < best.norm or best.norm > _VISIBLE
        best, idle = (here, 0) if better else (best, idle + 1)
    V, b = metric.move(start, best.u)
    return Point(V, b, gradient_norm=best.norm, passes=start.passes + loss.passes)


def _search(loss: _MeanLoss, here: _Trial, step: NDArray, max_passes: int) -> _Trial | None:
    """A point along a step where the loss is smaller and flatter; None if none is to be seen.

    Wolfe's conditions; close to the minimum of a convex loss its slope alone can tell.
    """
    slope = float(here.gradient @ step)
    low, high, size = 0.0, np.inf, 1.0
    slopes = {low: slope}
    while loss.passes < max_passes and len(slopes) <= _TRIALS:
        there = loss(here.u + size * step)
        slopes[size] = float(there.gradient @ step)
        fell = there.value <= here.value + _FALL * size * slope
        if not (slopes[size] <= -_FLATTER * slope if here.norm <= _VISIBLE else fell):
            high = size
        elif slopes[size] < _FLATTER * slope:
            low = size
        else:
            return there
        if np.isinf(high):
            size *= 4.0
            continue
        # Where the slope would vanish, were it to change evenly; not too near to either end.
        share = slopes[low] / (slopes[low] - slopes[high]) if slopes[high] > 0 else 0.5
        size = low + float(np.clip(share, 0.1, 0.9)) * (high - low)
    return None


def _times_inverse_curvature(pairs: deque[_Pair], gradient: NDArray) -> NDArray:
    """Gradient times the inverse Hessian that steps and the changes they made tell of."""
    gradient, shares = gradient.copy(), []
    for step, change, product in reversed(pairs):
        shares.append(float(step @ gradient) / product)
        gradient -= shares[-1] * change
    if pairs:
        _, change, product = pairs[-1]
        gradient *= product / float(change @ change)
    for (step, change, product), share in zip(pairs, reversed(shares), strict=True):
        gradient += (share - float(change @ gradient) / product) * step
    return gradient


@dataclass(frozen=True, eq=False)
class _Metric:
    """Coordinates u, (kept + 1, m) raveled, with unit curvature if the given one is right."""

    kept: NDArray[np.intp]
    root: NDArray[np.float64] | LowRank  # (kept, kept) or (kept,)
    level: float
    total: float

    @classmethod
    def of(
        cls, objective: LogisticObjective, curvature: NDArray | LowRank, level: float, total: float
    ) -> _Metric:
        """Metric of a loss with this curvature along coefficients and along intercepts."""
        kept, penalty = objective.kept, objective.penalty[objective.kept]
        root: NDArray | LowRank
        if isinstance(curvature, LowRank):
            root = np.sqrt(total) * curvature.inverse_root(float(penalty.mean()))
        elif curvature.ndim == 1:
            diagonal = curvature[kept] + penalty
            root = np.sqrt(total / np.where(diagonal > 0, diagonal, np.inf))
        else:
            root = inverse_root(curvature[np.ix_(kept, kept)] + np.diag(penalty))
            root *= np.sqrt(total)
        return cls(kept, root, np.sqrt(total / level), total)

    def move(self, start: Point, u: NDArray) -> tuple[NDArray, NDArray]:
        """Coefficients and intercepts at u, the start being at zero."""
        u = u.reshape(len(self.kept) + 1, -1)
        V = start.V.copy()
        V[self.kept] += _times(self.root, u[:-1])
        return V, start.b + self.level * u[-1]

    def pull(self, at: Value) -> NDArray:
        """Gradient of the mean loss by u."""
        slope = _times(self.root.T, at.slope[self.kept])
        return np.concatenate([slope, self.level * at.level[None]]).ravel() / self.total


def _times(root: NDArray | LowRank, columns: NDArray) -> NDArray[np.float64]:
    """A matrix, or a diagonal one given by its diagonal, times some columns."""
    if isinstance(root, np.ndarray) and root.ndim == 1:
        return root[:, None] * columns
    return root @ columns


def _newton_step(objective: LogisticObjective, at: Value) -> Point:
    """Step to the minimum of the quadratic model; none along features that are left out."""
    if at.curvature is None:
        raise ValueError("a Newton step needs the curvature")
    m, p, kept = objective.n_scores, objective.n_features, objective.kept
    H, gradient = at.curvature, np.concatenate([at.slope, at.level[None]]).T  # (m, p + 1)
    H[np.arange(m), :p, np.arange(m), :p] += np.diag(objective.finite)
    if len(kept) < p:
        with_intercept = np.append(kept, p)
        H, gradient = H[:, with_intercept][..., with_intercept], gradient[:, with_intercept]
    size = gradient.size
    step = -_solve(H.reshape(size, size), gradient.ravel()).reshape(m, -1).T  # (kept + 1, m)
    V = np.zeros((p, m))
    V[kept] = step[:-1]
    return Point(V, step[-1])


def _solve(matrix: NDArray, right: NDArray) -> NDArray[np.float64]:
    """Solution of a symmetric system; the least one where directions have no curvature."""
    diagonal = np.diag(matrix)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, np.inf))
    scaled = matrix * scale * scale[:, None]
    try:
        # NumPy's, whose overhead is a tenth of SciPy's: most of these systems are small.
        np.linalg.cholesky(scaled)
        return scale * np.linalg.solve(scaled, scale * right)
    except np.linalg.LinAlgError:
        root = inverse_root(matrix)
        return root @ (root.T @ right)


def inverse_root(matrix: NDArray) -> NDArray[np.float64]:
    """T with ``T @ T.T`` the inverse of a symmetric matrix, or its pseudo-inverse."""
    diagonal = np.diag(matrix)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, np.inf))
    scaled = matrix * scale * scale[:, None]
    try:
        lower = linalg.cholesky(scaled, lower=True, overwrite_a=True)
        return scale[:, None] * linalg.lapack.dtrtri(lower, lower=True)[0].T
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(matrix * scale * scale[:, None])
        real = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
        return scale[:, None] * vectors / np.sqrt(np.where(real, values, np.inf))
