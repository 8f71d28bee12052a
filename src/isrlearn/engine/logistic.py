"""Penalised logistic regression by L-BFGS, in few passes over the rows."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize
from scipy.special import expit, softmax

from isrlearn.core.heads import Root, Sketch, class_roots, inverse_root, row_scatter
from isrlearn.core.whiten import Coordinates

#: Bytes of a block of float64 rows, which stays in the cache between its two products, and of all
#: the rows in the head's coordinates that are kept in memory.
_BLOCK_BYTES, _COPY_BYTES = 4 << 20, 1 << 28
#: Number of classes from which, if they outnumber the coordinates, each has its own preconditioner,
#: number of coefficients up to which it has one if rows are few, the gradient norm at which these
#: are computed, and the share of the tolerance that few rows get.
_MANY_CLASSES, _FEW, _NEAR, _CERTAIN = 32, 1024, 0.03, 1e-3
#: Steps that L-BFGS remembers, the relative change of the loss that is all rounding error, the
#: number of steps without a smaller gradient after which it is rounding error too, the curvature,
#: of about one, below which a change of the gradient is, the gradient norm below which a fit counts
#: as converged, and the number of passes after which it ends in any case.
_MEMORY, _RESOLVED, _IDLE, _FLAT, _CONVERGED, _MOST_PASSES = 30, 1e-14, 3, 1e-3, 1e-5, 1000


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression in the head's coordinates, and how they were found."""

    coef: NDArray[np.float64]  #: (1, p), or (K, p) for K > 2 classes.
    intercept: NDArray[np.float64]  #: (1, G) or (K, G): one column per group of rows.
    converged: bool  #: Whether the gradient vanished.
    n_passes: int  #: Number of passes over the rows.
    #: Norm of the gradient of the mean loss at the end, in coordinates of unit curvature: about the
    #: distance from the minimum, in root mean square change of a score.
    gradient_norm: float


@dataclass(frozen=True, eq=False)
class LogisticLoss:
    r"""Logistic loss of linear scores, :math:`\sum_i w_i\,\ell(y_i, W z_i + b)`, block by block.

    Two classes have one score; K > 2 classes have K scores and the multinomial loss.

    Examples
    --------
    >>> import numpy as np
    >>> loss = LogisticLoss(np.array([[0.0], [1.0]]), np.array([0, 1]))
    >>> value, by_coef, by_intercept = loss.loss_and_gradient(np.zeros((1, 1)), np.zeros((1, 1)))
    >>> round(value, 4), by_coef.tolist(), by_intercept.tolist()
    (1.3863, [[-0.5]], [[0.0]])
    """

    X: Any  #: Rows (n, d): an array, a memory map or `Rows`.
    codes: NDArray  #: Classes 0, …, K−1 of the rows (n,).
    weight: NDArray | None = None  #: Weights of the rows (n,).
    coordinates: Any = None  #: Function from rows to z; by default z are the rows themselves.
    groups: NDArray | None = None  #: Rows with intercepts of their own (n,), 0, …, G−1.
    compared: NDArray | None = None  #: Which of K > 2 classes each group compares (K, G).

    def loss_and_gradient(
        self, coef: NDArray, intercept: NDArray
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Loss, and its derivatives by coef (m, p) and by intercept (m, G), in one pass."""
        space = self.coordinates
        dense = space if isinstance(space, Coordinates) and space.linear.ndim == 2 else None
        if dense is not None:
            # Rows in these coordinates would cost n·d·p in every pass, coefficients cost d·p.
            coef, shift = dense.fold(coef, np.zeros(len(coef)))
            intercept = intercept + shift[:, None]
        value, by_coef, by_intercept = 0.0, np.zeros(coef.shape), np.zeros(intercept.shape)
        group = np.eye(intercept.shape[1])
        for rows, Z in _blocks(self.X, len(coef), space if dense is None else None):
            members = np.ones((len(Z), 1)) if self.groups is None else group[self.groups[rows]]
            scores, codes = Z @ coef.T, self.codes[rows]
            scores += members @ intercept.T
            own = np.arange(len(codes)), codes
            if self.compared is not None:
                absent = members @ self.compared.T == 0
                absent[own] = False
                scores[absent] = -np.inf
            if len(coef) == 1:
                losses = np.logaddexp(0.0, np.where(codes == 1, -1.0, 1.0) * scores[:, 0])
                residual = expit(scores) - codes[:, None]
            else:
                scores -= scores.max(axis=1, keepdims=True)
                losses, residual = -scores[own], np.exp(scores, out=scores)
                total = residual.sum(axis=1)
                losses += np.log(total)
                residual /= total[:, None]
                residual[own] -= 1.0
            if self.weight is not None:
                losses = losses * self.weight[rows]
                residual *= self.weight[rows, None]
            value += float(losses.sum())
            by_coef += residual.T @ Z
            by_intercept += residual.T @ members
        if dense is not None:
            by_coef -= np.outer(by_intercept.sum(axis=1), dense.eraser.center)
            by_coef = by_coef @ dense.linear
        return value, by_coef, by_intercept

    def class_curvature(self, coef: NDArray, intercept: NDArray) -> NDArray[np.float64]:
        """Second derivatives (m, p + G, p + G) by each score's coefficients and intercepts."""
        (m, p), G = coef.shape, intercept.shape[1]
        found = np.zeros((m, p + G, p + G))
        for rows, Z in _blocks(self.X, p, self.coordinates):
            members = np.ones((len(Z), 1)) if self.groups is None else np.eye(G)[self.groups[rows]]
            scores = Z @ coef.T + members @ intercept.T
            P = expit(scores) if m == 1 else softmax(scores, axis=1)
            P *= (1.0 - P) if self.weight is None else (1.0 - P) * self.weight[rows, None]
            Z = np.hstack([Z, members])
            for k in range(m):
                found[k] += (Z * P[:, k, None]).T @ Z
        return found


def _blocks(X: Any, width: int, coordinates: Any) -> Iterator[tuple[slice, NDArray]]:
    """Blocks of rows in the coordinates, for repeated work on `width` numbers per row."""
    n, d = X.shape
    step = max(64, _BLOCK_BYTES // (8 * max(d, 4 * width)))
    for rows in (slice(start, min(start + step, n)) for start in range(0, n, step)):
        # In float64 whatever the rows' type: large terms cancel in the gradient.
        Z = np.ascontiguousarray(X[rows], dtype=np.float64)
        yield rows, Z if coordinates is None else coordinates(Z)


def fit_logistic(
    X: Any,
    codes: ArrayLike,
    *,
    n_classes: int,
    penalty: float = 1.0,
    coordinates: Coordinates | None = None,
    weight: ArrayLike | None = None,
    scatter: NDArray | None = None,
    tol: float | None = None,
    groups: NDArray | None = None,
    compared: NDArray | None = None,
) -> LogisticFit:
    r"""Minimiser of the penalised logistic loss, binary or multinomial.

    .. math:: \sum_i w_i\,\ell(y_i,\; W z_i + b) + \tfrac{\lambda}{2} \lVert W \rVert^2

    with z the head's coordinates of a row: scikit-learn's LogisticRegression with C = 1/λ. SciPy's
    L-BFGS minimises it in coordinates in which the loss has about unit curvature, from the second
    moments of the rows and, if there are many classes, from second derivatives per class near the
    minimum. With fewer rows than coordinates it works in the span of the rows.

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
    tol : float, optional
        Length of the last step, in unit curvature; default: 1e-6 for float32 rows, else 1e-10.
    groups, compared
        As in `LogisticLoss`: intercepts of groups of rows.

    Examples
    --------
    >>> import numpy as np
    >>> Z = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fit = fit_logistic(Z, [0, 1, 0, 1], n_classes=2, penalty=0.5)
    >>> fit.coef.round(4).tolist(), fit.intercept.round(4).tolist(), fit.converged
    ([[0.5953]], [[-0.8929]], True)
    """
    codes, n = np.asarray(codes), X.shape[0]
    w = None if weight is None else np.asarray(weight, dtype=np.float64)
    for name, values in (("codes", codes), ("weight", w), ("groups", groups)):
        if values is not None and values.shape != (n,):
            raise ValueError(f"{name} has shape {values.shape}, but X has {n} rows")
    low, high = codes.min(initial=0), codes.max(initial=0)
    if n_classes < 2 or low < 0 or high >= n_classes:
        legal = f"0, …, {max(n_classes, 2) - 1} for {n_classes} classes"
        raise ValueError(f"codes must lie in {legal}; they run from {low} to {high}")
    if not penalty >= 0:
        raise ValueError(f"penalty must not be negative; got {penalty}")
    own, n_groups = (0, 1) if groups is None else (groups, int(groups.max()) + 1)
    count = np.bincount(codes * n_groups + own, w, n_classes * n_groups).astype(float)
    count = count.reshape(n_classes, n_groups)
    tol = tol or (1e-6 if X.dtype == np.float32 else 1e-10)
    p = X.shape[1] if coordinates is None else coordinates.linear.shape[-1]
    whitened = coordinates is not None and coordinates.linear.ndim == 2
    known: Any = None
    if scatter is not None and coordinates is not None and not whitened and n >= p:
        known = count.sum() / n * coordinates.scatter(scatter)
    # Without a scatter of the features, only rows in memory can give a preconditioner. Many
    # whitened coordinates need no preconditioner, and cost more to compute than all the passes.
    large = n * p * 8 > (4 * _COPY_BYTES if scatter is None else _COPY_BYTES)
    if large or (whitened and 2 * p > X.shape[1]):
        loss = LogisticLoss(X, codes, w, coordinates, groups, compared)
        return minimise(loss, p, count, penalty, known, tol)
    Z = np.empty((n, p))
    for rows, block in _blocks(X, p, coordinates):
        Z[rows] = block
    mean, span = np.zeros(p), None
    if coordinates is None or (w is not None and not whitened):  # else they are centred
        mean = np.average(Z, axis=0, weights=w)
        Z -= mean
    if n < p:
        span, triangle = linalg.qr(Z.T, mode="economic")  # (p, n), orthonormal
        Z = triangle.T
    if not whitened and known is None:
        known = row_scatter(Z if w is None else Z * np.sqrt(w)[:, None])
    loss = LogisticLoss(Z, codes, w, None, groups, compared)
    fit = minimise(loss, Z.shape[1], count, penalty, known, tol)
    coef = fit.coef if span is None else fit.coef @ span.T
    return replace(fit, coef=coef, intercept=fit.intercept - (coef @ mean)[:, None])


def minimise(
    loss: Any,
    p: int,
    count: NDArray,
    penalty: float,
    scatter: NDArray | Sketch | None,
    tol: float = 1e-9,
) -> LogisticFit:
    """Minimiser of a summed loss of rows in p coordinates, with an isotropic penalty.

    Parameters
    ----------
    loss : object
        With `loss_and_gradient`, and perhaps `class_curvature`, of a `LogisticLoss`.
    p : int
    count : ndarray of shape (K,) or (K, G)
        Summed weight of the rows of each class, in each group that has its own intercepts.
    penalty : float
    scatter : ndarray of shape (p, p), Sketch or None
        Of the rows; None if every coordinate has unit variance. An approximation costs passes.
    tol : float, default=1e-9
        As in `fit_logistic`.
    """
    count = count.reshape(len(count), -1)
    size, total = count.sum(axis=0), float(count.sum())
    share, m = count.sum(axis=1) / total, 1 if len(count) == 2 else len(count)
    ridge = np.append(np.full(p, penalty), np.zeros(len(size)))  # none on intercepts
    prior, W = np.log(np.maximum(count / size, 1e-12)), np.zeros((m, p + len(size)))
    W[:, p:] = prior[1:] - prior[:1] if m == 1 else prior - prior.mean(axis=0)
    # Curvature of rows which all have the class frequencies as probabilities, the same per class.
    along = (1.0 - share @ share) / max(2, len(share) - 1)
    scale = np.sqrt(total / (along * total + penalty))
    inner = None if scatter is None else inverse_root(scatter, along / total, penalty / total)

    def root(A: NDArray, transposed: bool = False) -> NDArray:
        coef = scale * A[:, :p] if inner is None else inner(A[:, :p], transposed)
        return np.column_stack([coef, A[:, p:] / np.sqrt(along * size / total)])

    passes, descended = 0, root
    few = scatter is not None and m * p <= _FEW and len(getattr(loss, "codes", ())) <= 2 * p
    few = few and tol < 1e-6  # float32 rows hold no more digits
    if hasattr(loss, "class_curvature") and (few or m >= max(p, _MANY_CLASSES)):
        W, _, passes = _descend(loss, p, W, ridge, total, root, _NEAR, _MOST_PASSES)
        curvature = (loss.class_curvature(W[:, :p], W[:, p:]) + np.diag(ridge)) / total
        descended = inverse_root(curvature[0], 1.0, 0.0) if m == 1 else class_roots(curvature)
        tol = _CERTAIN * tol if few else tol  # few rows determine the minimum poorly
    W, norm, more = _descend(loss, p, W, ridge, total, descended, tol, _MOST_PASSES - passes)
    if m > 1:  # scores of all classes may be shifted together; their coefficients sum to zero
        W = W - W.mean(axis=0)
    return LogisticFit(W[:, :p], W[:, p:], norm <= max(10 * tol, _CONVERGED), passes + more, norm)


def _descend(
    loss: Any,
    p: int,
    start: NDArray,
    ridge: NDArray,
    total: float,
    root: Root,
    tol: float,
    most: int,
) -> tuple[NDArray, float, int]:
    """Where L-BFGS ends in coordinates of unit curvature, its gradient norm there, and passes."""
    passes, unit, first = 0, 1.0, 0.0
    value, norm, gradient = 0.0, 0.0, np.zeros(start.size)

    def at(u: NDArray) -> tuple[float, NDArray]:
        """Mean penalised loss and its gradient, in these coordinates."""
        nonlocal passes, value, gradient, norm
        if passes != 1 or u.any():  # the start is asked for twice
            W = start + unit * root(u.reshape(start.shape))
            value, *gradients = loss.loss_and_gradient(W[:, :p], W[:, p:])
            value = (value + 0.5 * float((ridge * W * W).sum())) / total
            by_W = (np.column_stack(gradients) + ridge * W) / total
            gradient = root(by_W, True).ravel() / unit
            passes, norm = passes + 1, unit * float(np.linalg.norm(gradient))
        return (value - first) / unit**2, gradient

    at(np.zeros(start.size))
    if norm <= tol:
        return start, norm, passes
    # In these units the first step of L-BFGS, of length one, is Newton's.
    gradient /= norm
    unit, first, before = norm, value, value
    trail = deque([(np.zeros(start.size), gradient)], _MEMORY + 1)

    def stop(u: NDArray) -> None:
        nonlocal before
        trail.append((u.copy(), gradient))
        if before - value <= max(tol**2 / 2, _RESOLVED * value):
            raise StopIteration
        before = value

    options = {"maxcor": _MEMORY, "maxfun": most, "maxiter": most, "gtol": 0, "ftol": 0}
    optimize.minimize(at, trail[0][0], jac=True, method="L-BFGS-B", callback=stop, options=options)
    best, least = trail[-1][0], unit * float(np.linalg.norm(trail[-1][1]))
    # Smaller changes of the loss are rounding errors: the last steps follow gradients alone, until
    # the next one is shorter than the tolerance or rounding errors are all that is left of them.
    idle = 0 if len(trail) > 1 and least <= _CONVERGED else _IDLE
    while idle < _IDLE and passes < most:
        points, gradients = map(np.array, zip(*trail, strict=True))
        steps, changes = np.diff(points, axis=0), np.diff(gradients, axis=0)
        convex = np.sum(steps * (changes - _FLAT * steps), axis=1) > 0  # not those of length zero
        inverse = optimize.LbfgsInvHessProduct(steps[convex], changes[convex])
        step = -(inverse @ gradients[-1])
        if unit * float(max(np.linalg.norm(step), np.linalg.norm(gradients[-1]))) <= tol:
            break
        trail.append((points[-1] + step, at(points[-1] + step)[1]))
        idle += 1
        if norm < least:
            best, least, idle = trail[-1][0], norm, 0
    return start + unit * root(best.reshape(start.shape)), least, passes


def fit_intercept(loss: Any, coef: NDArray, total: float) -> NDArray[np.float64]:
    """Intercepts (1,) or (K,) that minimise a summed loss of these total weights, given coef."""
    if isinstance(loss, LogisticLoss) and loss.coordinates is not None:  # scores are enough
        coef, shift = loss.coordinates.fold(coef, np.zeros(len(coef)))
        scores = [Z @ coef.T + shift for _, Z in _blocks(loss.X, len(coef), None)]
        loss, coef = replace(loss, X=np.vstack(scores), coordinates=None), np.eye(len(coef))
    start = np.column_stack([coef, np.zeros(len(coef))])
    # Coefficients do not move; the curvature along an intercept is at most a quarter.
    free = np.append(np.zeros(coef.shape[1]), 2.0)
    how = (0 * free, total, lambda A, _=False: A * free, 1e-9, 1000)
    intercept = _descend(loss, coef.shape[1], start, *how)[0][:, -1]
    return intercept if len(coef) == 1 else intercept - intercept.mean()
