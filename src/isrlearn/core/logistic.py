"""The logistic loss of rows, and coordinates in which it has about unit curvature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.special import expit

#: Eigenvectors (p, k) and eigenvalues (k,) of a scatter, and one value for all other directions.
Metric = tuple[NDArray, NDArray, float]
#: The product of parameters (m, p + 1), the intercepts last, with a symmetric matrix.
Root = Callable[[NDArray], NDArray]

#: Coordinates up to which all eigenvectors precondition the solver; beyond, this many of them.
_FULL, _LEADING = 512, 128
#: Curvature, as a share of the largest, below which a direction stays as it is.
_NEGLIGIBLE = 1e-13


def check_problem(
    n: int, codes: NDArray, weight: NDArray | None, n_classes: int, penalty: float
) -> None:
    """Raise unless each row has a class and a weight, and the penalty is legal."""
    for name, values in (("codes", codes), ("weight", weight)):
        if values is not None and values.shape != (n,):
            raise ValueError(f"{name} has shape {values.shape}, but X has {n} rows")
    low, high = codes.min(initial=0), codes.max(initial=0)
    if n_classes < 2 or low < 0 or high >= n_classes:
        legal = f"0, …, {max(n_classes, 2) - 1} for {n_classes} classes"
        raise ValueError(f"codes must lie in {legal}; they run from {low} to {high}")
    if not penalty >= 0:
        raise ValueError(f"penalty must not be negative; got {penalty}")


def row_losses(scores: NDArray, codes: NDArray) -> tuple[NDArray, NDArray]:
    """Logistic loss of each row (n,), and its derivatives by the scores (n, m)."""
    if scores.shape[1] == 1:
        score = scores[:, 0]
        losses = np.logaddexp(0.0, np.where(codes == 1, -score, score))
        return losses, (expit(score) - codes)[:, None]
    rows = np.arange(len(codes))
    scores -= scores.max(axis=1, keepdims=True)
    losses = -scores[rows, codes]
    np.exp(scores, out=scores)
    total = scores.sum(axis=1)
    losses += np.log(total)
    scores /= total[:, None]
    scores[rows, codes] -= 1.0
    return losses, scores


def row_metric(rows: NDArray) -> Metric:
    """Metric of the scatter ``rows.T @ rows``."""
    p = rows.shape[1]
    if p > 8 * _LEADING:
        step = max(1, len(rows) // (16 * _LEADING))  # some of the rows show the leading directions
        some, trace = rows[::step], float(np.einsum("ij,ij->", rows, rows))
        return leading_metric(lambda V: step * (some.T @ (some @ V)), trace, p)
    scatter = rows.T @ rows  # costs less than two products with as many vectors
    return leading_metric(lambda V: scatter @ V, float(np.trace(scatter)), p)


def leading_metric(times: Callable[[NDArray], NDArray], trace: float, p: int) -> Metric:
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


def common_root(share: NDArray, total: float, penalty: float, metric: Metric) -> Root:
    """Root of the inverse curvature of the mean loss, the same for every class.

    The curvature is that of rows which all have the class frequencies as probabilities.

    Parameters
    ----------
    share : ndarray of shape (K,)
        Class frequencies.
    total : float
        Summed weight of the rows.
    penalty : float
    metric : Metric
        Of the scatter of the rows.
    """
    vectors, values, rest = metric
    along = (1.0 - share @ share) / max(2, len(share) - 1)
    curvature = along * np.append(values, rest) + penalty
    curvature[curvature <= _NEGLIGIBLE * curvature.max()] = np.inf
    root = np.sqrt(total / curvature)
    scale, other = root[:-1], root[-1]

    def times(A: NDArray) -> NDArray:
        coef = A[:, :-1]
        coef = other * coef + ((coef @ vectors) * (scale - other)) @ vectors.T
        return np.column_stack([coef, A[:, -1] / np.sqrt(along)])

    return times


def class_roots(curvature: NDArray) -> Root:
    """Roots of the inverse curvatures (K, p + 1, p + 1) of the classes."""
    values, vectors = np.linalg.eigh(curvature)
    values = np.where(values > _NEGLIGIBLE * values.max(), values, np.inf)
    roots = (vectors / np.sqrt(values)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    return lambda A: (roots @ A[:, :, None])[:, :, 0]
