"""Penalised logistic regression by L-BFGS, in few passes over the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from isrlearn.core.whiten import Coordinates

#: Bytes of a block of float64 rows: it stays in the cache between its two products.
_BLOCK_BYTES = 2 << 20
#: Rows that are mapped to the head's coordinates at a time.
_BLOCK_ROWS = 4096
#: Largest number of bytes of rows in the head's coordinates that are kept in memory.
_COPY_BYTES = 1 << 28
#: Coordinates up to which all eigenvectors precondition the solver; beyond, so many leading ones.
_FULL, _LEADING = 512, 128
#: Steps that L-BFGS remembers, and coefficients times steps that are then made by gradients alone.
_MEMORY, _POLISH = 30, 4000
#: Gradient norm from which a fit counts as converged.
_CONVERGED = 1e-5


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression in the head's coordinates, and how they were found.

    Parameters
    ----------
    coef : ndarray of shape (1, p), or (K, p) for K > 2 classes
    intercept : ndarray of shape (1,) or (K,)
    converged : bool
        Whether the gradient vanished.
    n_passes : int
        Number of passes over the rows.
    gradient_norm : float
        Norm of the gradient of the mean loss at the end, in coordinates of unit curvature: about
        the distance from the minimum, in root mean square change of a score.
    """

    coef: NDArray[np.float64]  # (1 or K, p)
    intercept: NDArray[np.float64]  # (1,) or (K,)
    converged: bool
    n_passes: int
    gradient_norm: float


class SummedLoss(Protocol):
    """A logistic loss that is summed over rows, wherever they are."""

    def loss_and_gradient(
        self, coef: NDArray, intercept: NDArray
    ) -> tuple[float, NDArray, NDArray]:
        """Loss, and its derivatives by coef (m, p) and by intercept (m,)."""


@dataclass(frozen=True, eq=False)
class LogisticLoss:
    r"""Logistic loss of linear scores, :math:`\sum_i w_i\,\ell(y_i, W z_i + b)`, block by block.

    Two classes have one score; K > 2 classes have K scores and the multinomial loss.

    Parameters
    ----------
    X : array-like of shape (n, d)
        An array, a memory map or `Rows`.
    codes : ndarray of int of shape (n,)
        Classes 0, …, K−1.
    weight : ndarray of shape (n,), optional
        Weights of the rows.
    coordinates : callable, optional
        From rows to z; default: the rows themselves.

    Examples
    --------
    >>> import numpy as np
    >>> loss = LogisticLoss(np.array([[0.0], [1.0]]), np.array([0, 1]))
    >>> value, by_coef, by_intercept = loss.loss_and_gradient(np.zeros((1, 1)), np.zeros(1))
    >>> round(value, 4), by_coef.tolist(), by_intercept.tolist()
    (1.3863, [[-0.5]], [0.0])
    """

    X: Any
    codes: NDArray
    weight: NDArray | None = None
    coordinates: Callable[[NDArray], NDArray] | None = None

    def loss_and_gradient(
        self, coef: NDArray, intercept: NDArray
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Loss, and its derivatives by coef (m, p) and by intercept (m,), in one pass."""
        space = self.coordinates
        dense: Coordinates | None = None
        if isinstance(space, Coordinates) and space.linear.ndim == 2:
            # Rows in these coordinates would cost n·d·p in every pass, coefficients cost d·p.
            dense = space
            coef, intercept = space.fold(coef, intercept)
        value, by_coef, by_intercept = 0.0, np.zeros(coef.shape), np.zeros(len(coef))
        n, d = self.X.shape
        step = max(64, _BLOCK_BYTES // (8 * max(d, len(coef))))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            # In float64 whatever the rows' type: large terms cancel in the gradient.
            Z = np.ascontiguousarray(self.X[rows], dtype=np.float64)
            Z = Z if space is None or dense is not None else space(Z)
            losses, residual = row_losses(Z @ coef.T + intercept, self.codes[rows])
            if self.weight is not None:
                losses = losses * self.weight[rows]
                residual *= self.weight[rows, None]
            value += float(losses.sum())
            by_coef += residual.T @ Z
            by_intercept += residual.sum(axis=0)
        if dense is not None:
            by_coef = (by_coef - np.outer(by_intercept, dense.eraser.center)) @ dense.matrix
        return value, by_coef, by_intercept


def row_losses(scores: NDArray, codes: NDArray) -> tuple[NDArray, NDArray]:
    """Logistic loss of each row (n,), and its derivatives by the scores (n, m)."""
    if scores.shape[1] == 1:
        score = scores[:, 0]
        small = np.exp(-np.abs(score))  # never overflows
        losses = np.log1p(small) + np.maximum(np.where(codes == 1, -score, score), 0.0)
        probability = np.where(score >= 0, 1.0, small) / (1.0 + small)
        return losses, (probability - codes)[:, None]
    rows = np.arange(len(codes))
    scores -= scores.max(axis=1, keepdims=True)
    losses = -scores[rows, codes]
    np.exp(scores, out=scores)
    total = scores.sum(axis=1)
    losses += np.log(total)
    scores /= total[:, None]
    scores[rows, codes] -= 1.0
    return losses, scores


def fit_logistic(
    X: Any,
    codes: ArrayLike,
    *,
    n_classes: int,
    penalty: float = 1.0,
    coordinates: Coordinates | None = None,
    weight: ArrayLike | None = None,
    scatter: NDArray | None = None,
    start: LogisticFit | None = None,
    tol: float | None = None,
    max_passes: int = 1000,
) -> LogisticFit:
    r"""Minimiser of the penalised logistic loss, binary or multinomial.

    .. math:: \sum_i w_i\,\ell(y_i,\; W z_i + b) + \tfrac{\lambda}{2} \lVert W \rVert^2

    with z the head's coordinates of a row: scikit-learn's LogisticRegression with C = 1/λ. SciPy's
    L-BFGS minimises it in coordinates in which the loss has about unit curvature, from the second
    moments of the rows. With fewer rows than coordinates it works in the span of the rows.

    Parameters
    ----------
    X : array-like of shape (n, d)
        An array, a memory map or `Rows`.
    codes : array-like of int of shape (n,)
        Classes 0, …, K−1.
    n_classes : int
        K.
    penalty : float, default=1.0
        λ; 0 for none.
    coordinates : Coordinates, optional
        The head's coordinates; default: the features themselves.
    weight : array-like of shape (n,), optional
        Weights of the rows.
    scatter : ndarray of shape (d, d), optional
        Scatter of the features, where it is known; without it, rows that are too many to be kept
        in the coordinates take more passes.
    start : LogisticFit, optional
        Where to begin, for example a fit with another penalty.
    tol : float, optional
        Gradient norm to reach; default: 1e-6 for float32 rows, else 1e-11.
    max_passes : int, default=1000

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fit = fit_logistic(Z, [0, 1, 0, 1], n_classes=2, penalty=0.5)
    >>> fit.coef.round(4).tolist(), fit.intercept.round(4).tolist(), fit.converged
    ([[0.5953]], [-0.8929], True)
    """
    codes = np.asarray(codes)
    w = None if weight is None else np.asarray(weight, dtype=np.float64)
    for name, values in (("codes", codes), ("weight", w)):
        if values is not None and values.shape != (X.shape[0],):
            raise ValueError(f"{name} has shape {values.shape}, but X has {X.shape[0]} rows")
    low, high = codes.min(initial=0), codes.max(initial=0)
    if n_classes < 2 or low < 0 or high >= n_classes:
        raise ValueError(
            f"codes must lie in 0, …, {max(n_classes, 2) - 1} for {n_classes} classes; they run "
            f"from {low} to {high}"
        )
    if not penalty >= 0:
        raise ValueError(f"penalty must not be negative; got {penalty}")
    count = np.bincount(codes, w, n_classes).astype(float)
    if tol is None:
        tol = 1e-6 if X.dtype == np.float32 else 1e-11
    n, p = X.shape[0], X.shape[1] if coordinates is None else coordinates.linear.shape[-1]
    whitened = coordinates is not None and coordinates.linear.ndim == 2
    # Without a scatter of the features, only rows in memory can tell how to precondition. Many
    # whitened coordinates need no preconditioner, and cost more to compute than all the passes.
    large = n * p * 8 > (4 * _COPY_BYTES if scatter is None else _COPY_BYTES)
    if large or (whitened and 2 * p > X.shape[1]):
        metric = None
        if coordinates is not None and scatter is not None and not whitened:
            T, share = coordinates.matrix, count.sum() / n
            trace = float(np.einsum("ij,ik,kj->", T, scatter, T, optimize=True))
            metric = leading_metric(lambda V: share * (T.T @ (scatter @ (T @ V))), share * trace, p)
        loss = LogisticLoss(X, codes, w, coordinates)
        return minimise(loss, p, count, penalty, metric, start, tol, max_passes)
    Z = np.empty((n, p))
    for start_row in range(0, n, _BLOCK_ROWS):
        rows = slice(start_row, start_row + _BLOCK_ROWS)
        block = np.ascontiguousarray(X[rows], dtype=np.float64)
        Z[rows] = block if coordinates is None else coordinates(block)
    mean = np.zeros(p)
    if not whitened:
        mean = np.average(Z, axis=0, weights=w)
        Z = Z - mean
    span = None
    if n < p:
        values, vectors = linalg.eigh(Z @ Z.T)
        real = values > n * np.finfo(float).eps * values[-1]
        root = np.sqrt(values[real])
        span = Z.T @ (vectors[:, real] / root)  # (p, r), orthonormal
        Z = vectors[:, real] * root
    if start is not None:
        coef = start.coef if span is None else start.coef @ span
        start = LogisticFit(coef, start.intercept + start.coef @ mean, True, 0, 0.0)
    metric = None
    if not whitened:
        root = Z if w is None else Z * np.sqrt(w)[:, None]
        trace = float(np.einsum("ij,ij->", root, root))
        metric = leading_metric(lambda V: root.T @ (root @ V), trace, Z.shape[1])
    loss = LogisticLoss(Z, codes, w)
    fit = minimise(loss, Z.shape[1], count, penalty, metric, start, tol, max_passes)
    coef = fit.coef if span is None else fit.coef @ span.T
    intercept = fit.intercept - coef @ mean
    return LogisticFit(coef, intercept, fit.converged, fit.n_passes, fit.gradient_norm)


def leading_metric(
    times: Callable[[NDArray], NDArray], trace: float, p: int
) -> tuple[NDArray, NDArray, float]:
    """Eigenvectors (p, k) and values of a scatter, and one value for all other directions.

    ``times(V)`` multiplies the scatter by V (p, k). All eigenvectors of a small one; else Nyström's
    approximation: the largest matrix below the scatter that has the same image of random vectors.
    """
    if p <= _FULL:
        values, vectors = linalg.eigh(times(np.eye(p)))
        return vectors, np.maximum(values, 0.0), 0.0
    start = np.random.default_rng(0).standard_normal((p, _LEADING))
    images = times(start)
    inner = start.T @ images
    values, vectors = linalg.eigh((inner + inner.T) / 2)
    seen = values > 1e-12 * values[-1]
    factor = images @ (vectors[:, seen] / np.sqrt(values[seen]))
    vectors, singular, _ = linalg.svd(factor, full_matrices=False)
    rest = max(trace - float((singular**2).sum()), 1e-6 * trace) / (p - len(singular))
    return vectors, singular**2, rest


def minimise(
    loss: SummedLoss,
    p: int,
    count: NDArray,
    penalty: float,
    metric: tuple[NDArray, NDArray, float] | None,
    start: LogisticFit | None = None,
    tol: float = 1e-11,
    max_passes: int = 1000,
) -> LogisticFit:
    """Minimiser of a summed loss of rows in p coordinates, with an isotropic penalty.

    Parameters
    ----------
    loss : SummedLoss
    p : int
    count : ndarray of shape (K,)
        Summed weight of the rows of each class.
    penalty : float
    metric : (vectors, values, rest) or None
        Eigenvectors (p, k) and eigenvalues of the scatter of the rows, and the value for all other
        directions; None if every coordinate has unit variance. An approximation costs only passes.
    start, tol, max_passes
        As in `fit_logistic`.
    """
    total, share = float(count.sum()), count / count.sum()
    m = 1 if len(count) == 2 else len(count)
    # Curvature of the mean loss along scores, as if every row had the class frequencies.
    bend = (1.0 - share @ share) / (2.0 if m == 1 else m - 1)
    vectors, values, rest = (np.zeros((p, 0)), np.zeros(0), total) if metric is None else metric
    curvature = bend * np.append(values, rest) + penalty
    # Directions without rows and without a penalty stay as they are.
    curvature[curvature <= 1e-13 * curvature.max()] = np.inf
    root = np.sqrt(total / curvature)
    scale, other = root[:-1], root[-1]
    level, passes = 1.0 / np.sqrt(bend), 0

    def scaled(A: NDArray) -> NDArray:
        """A (m, p) times the symmetric root of the inverse curvature."""
        known = A @ vectors
        return other * A + (known * (scale - other)) @ vectors.T

    def objective(theta: NDArray) -> tuple[float, NDArray]:
        """Mean penalised loss and its gradient, at coordinates of unit curvature."""
        nonlocal passes
        passes += 1
        coef, b = base + scaled(theta[m:].reshape(m, p)), base_b + level * theta[:m]
        value, by_coef, by_b = loss.loss_and_gradient(coef, b)
        value += 0.5 * penalty * float((coef * coef).sum())
        slope = scaled(by_coef + penalty * coef)
        return value / total, np.append(level * by_b, slope.ravel()) / total

    prior = np.log(np.maximum(share, 1e-12))
    base, base_b = np.zeros((m, p)), prior[1:] - prior[:1] if m == 1 else prior - prior.mean()
    if start is not None and start.coef.shape != base.shape:
        raise ValueError(
            f"start has coefficients of shape {start.coef.shape}; this problem needs {base.shape}"
        )
    if start is not None:
        base, base_b = start.coef, start.intercept
    options = {"maxcor": _MEMORY, "maxfun": max_passes, "maxiter": max_passes, "ftol": 0.0}
    theta = np.zeros(m * (p + 1))
    first = objective(theta)
    gradient, norm = first[1], float(np.linalg.norm(first[1]))
    unit = norm or 1.0

    def in_units(u: NDArray) -> tuple[float, NDArray]:
        """The objective in units in which the first step of L-BFGS, of length one, is Newton's."""
        value, slope = objective(unit * u) if u.any() else first
        return (value - first[0]) / unit**2, slope / unit

    options["gtol"] = tol / np.sqrt(theta.size) / unit
    options["maxiter"] = max_passes if norm > tol else 0
    found = optimize.minimize(in_units, theta, jac=True, method="L-BFGS-B", options=options)
    theta, gradient, inverse = unit * found.x, unit * found.jac, found.hess_inv
    norm, best = float(np.linalg.norm(gradient)), theta
    # Values of the loss hardly differ any more in floating point. Gradients still do: go on by
    # them alone, without a line search.
    steps = min(max(_POLISH // theta.size, 10), 100)  # each gains less with many coefficients
    for _ in range(steps if norm < _CONVERGED else 0):
        if norm <= tol or passes >= max_passes:
            break
        step = -(inverse @ gradient)
        slope = objective(theta + step)[1]
        change = slope - gradient
        theta, gradient = theta + step, slope
        if np.linalg.norm(slope) < norm:
            best, norm = theta, float(np.linalg.norm(slope))
        if change @ step > 0:
            pairs = np.vstack([inverse.sk, step]), np.vstack([inverse.yk, change])
            inverse = optimize.LbfgsInvHessProduct(*pairs)
    theta = best
    coef, b = base + scaled(theta[m:].reshape(m, p)), base_b + level * theta[:m]
    if m > 1:
        # Scores of all classes may be shifted together; their coefficients sum to zero.
        coef, b = coef - coef.mean(axis=0), b - b.mean()
    return LogisticFit(coef, b, norm <= max(tol, _CONVERGED), passes, norm)
