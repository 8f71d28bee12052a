"""Two ways down a logistic loss: Newton's method, and L-BFGS with a full preconditioner."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core._lbfgs import Descent
from isrlearn.core._log_loss import LogisticObjective, Value
from isrlearn.core._range import LowRank

#: Passes of L-BFGS after which a preconditioner made from the curvature at hand pays: so many at
#: least, and one for so many features, since a second moment costs that much more than a gradient.
_PATIENCE, _FEATURES_A_PASS = 25, 24
#: Coefficients of several scores up to which a Newton step is worth it in hard cases.
_DENSE_SIZE = 1500
#: Gradient norm below which the loss changes by less than its rounding, and only the gradient
#: can tell whether a step was good; the same of a draft, and down to where it will do.
_VISIBLE, _VISIBLE_DRAFT, _DRAFT = 1e-6, 1e-3, 1e-4
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
            if new.loss <= at.loss + 1e-4 * size * slope + _ROUNDING * abs(at.loss):
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
    draft: LogisticObjective | None = None,
) -> Point:
    """L-BFGS in coordinates where the mean loss has about unit curvature.

    They come from the scatter of the features (p, p), or its diagonal (p,), as if every row had
    the probabilities of the classes' counts (K,). Where the classes are nearly separated that is
    far from the curvature at the minimum; so after some passes they are made anew, from the
    curvature at the point reached; not so where the scatter is of low rank, since p is too large
    for a matrix then. Such steps may begin with a `draft` of the objective, cheaper and rounded.
    """
    share, total = count / count.sum(), float(count.sum())
    bend = (1.0 - share @ share) / objective.n_scores
    metric = _Metric.of(objective, bend * scatter, bend * total, total)
    patience = max(_PATIENCE, objective.n_features // _FEATURES_A_PASS)
    if isinstance(scatter, LowRank):
        return _descend(objective, metric, start, tol, max_passes, draft)
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


def _descend(
    objective: LogisticObjective,
    metric: _Metric,
    start: Point,
    tol: float,
    max_passes: int,
    draft: LogisticObjective | None = None,
) -> Point:
    """L-BFGS from a point, in the coordinates of a metric."""
    descent = Descent(np.zeros((len(objective.kept) + 1) * objective.n_scores))
    if draft is not None:
        descent(
            metric.mean_loss(draft, start),
            goal=max(tol, _DRAFT),
            visible=_VISIBLE_DRAFT,
            most=max_passes - 1,
        )
    loss = metric.mean_loss(objective, start)
    best = descent(loss, goal=tol, visible=_VISIBLE, most=max_passes)
    V, b = metric.move(start, best.u)
    return Point(V, b, gradient_norm=best.norm, passes=start.passes + descent.calls)


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

    def mean_loss(
        self, objective: LogisticObjective, start: Point
    ) -> Callable[[NDArray], tuple[float, NDArray]]:
        """Mean loss and its gradient by u, the start being at zero."""

        def loss(u: NDArray) -> tuple[float, NDArray]:
            at = objective(*self.move(start, u))
            return at.loss / self.total, self.pull(at)

        return loss

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
