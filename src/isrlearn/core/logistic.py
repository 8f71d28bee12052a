"""Penalised logistic regression in few passes over the rows, whatever the features' scale."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.core._log_loss import (
    ArrayRows,
    Block,
    FeatureMap,
    LogisticObjective,
    SummedRows,
    contrasts,
)
from isrlearn.core._minimise import Point, lbfgs, newton
from isrlearn.core._range import LowRank
from isrlearn.core.moments import Moments

#: Coefficients up to which a Newton step is cheaper than the gradient steps it saves.
_NEWTON_SIZE = 150


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
    order = 1 if suits_newton(K, len(lam)) else 2
    environment = np.zeros(len(Z))
    moments = Moments.from_data(Z, None, environment, order=order, pooled=True, sample_weight=w)
    _, mean, scatter = moments.total()
    found = solve_logistic(rows, lam, count, mean, scatter, start, tol, max_passes)
    return replace(found, n_passes=found.n_passes + 1)


def solve_logistic(
    rows: Iterable[Block] | SummedRows,
    penalty: NDArray,
    count: NDArray,
    mean: NDArray,
    scatter: NDArray | LowRank | None,
    start: LogisticFit | None = None,
    tol: float = 1e-9,
    max_passes: int = 1000,
    features: FeatureMap | None = None,
    draft: Iterable[Block] | SummedRows | None = None,
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
    scatter : ndarray of shape (p, p) or (p,), LowRank or None
        About that mean. None where there are coefficients few enough for Newton's method.
    start : LogisticFit, optional
    tol : float, default=1e-9
    max_passes : int, default=1000
    features : FeatureMap, optional
        Linear coordinates, for example `Coordinates`, that penalty, scatter and start belong to.
        The fit's coefficients are then of the rows' own features, and so is the mean.
    draft : iterable of (Z, codes, weight), optional
        The same rows, rounded and faster to read, for the first steps with a scatter of low rank.

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
    if scatter is None or suits_newton(len(count), len(penalty)):
        point = newton(objective, point, float(count.sum()), tol, max_passes)
    else:
        rough = None if draft is None else replace(objective, rows=draft)
        point = lbfgs(objective, point, count, scatter, tol, max_passes, rough)
    Q = contrasts(objective.n_classes)
    V = point.V if features is None else features.lift(point.V)
    intercept = Q @ (point.b - mean @ V)
    norm = float(point.gradient_norm)
    return LogisticFit(Q @ V.T, intercept, point.passes, norm, norm <= tol)


def suits_newton(n_classes: int, p: int) -> bool:
    """Whether a Newton step for p features is cheaper than the gradient steps it saves."""
    return (n_classes - 1) * p <= _NEWTON_SIZE


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
