"""The penalised logistic loss as a sum over blocks of rows: value, gradient, Hessian."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

Curved = Literal["full", "mean"]

#: Bytes of a block of rows in float64: it stays in the cache between its two products.
_BLOCK_BYTES = 1 << 20


class Block(NamedTuple):
    """Some rows: features, class codes and, unless all are one, weights."""

    Z: NDArray  # (b, p)
    codes: NDArray[np.intp]  # (b,)
    weight: NDArray[np.float64] | None  # (b,)


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Blocks of rows of an array; a float32 one is converted block by block, never whole."""

    Z: NDArray  # (n, p)
    codes: NDArray[np.intp]  # (n,)
    weight: NDArray[np.float64] | None = None  # (n,)

    def __iter__(self) -> Iterator[Block]:
        n, p = self.Z.shape
        step = max(64, _BLOCK_BYTES // (8 * max(1, p)))
        for start in range(0, n, step):
            rows = slice(start, start + step)
            weight = None if self.weight is None else self.weight[rows]
            yield Block(np.asarray(self.Z[rows], dtype=np.float64), self.codes[rows], weight)


class Value(NamedTuple):
    """The objective at a point, and its derivatives."""

    loss: float
    slope: NDArray[np.float64]  # (p, m)
    level: NDArray[np.float64]  # (m,): derivative by the intercepts
    curvature: NDArray[np.float64] | None  # (m, p+1, m, p+1) or (1, p+1, 1, p+1)


@dataclass(frozen=True, eq=False)
class LogisticObjective:
    """Penalised logistic loss of m linear scores of the rows.

    Two classes have one score. K classes have K−1: the coordinates of the K logits on
    orthonormal contrasts, so that logits add up to zero and nothing is left undetermined.

    Parameters
    ----------
    rows : iterable of Block
        Read once an evaluation, in the same order each time.
    n_classes : int
    penalty : ndarray of shape (p,)
        Of the squared coefficients, halved. Where it is infinite the coefficient must be zero.
    center : ndarray of shape (p,)
        Subtracted from the features: the intercept is the score of that point.
    """

    rows: Iterable[Block]
    n_classes: int
    penalty: NDArray[np.float64]  # (p,)
    center: NDArray[np.float64]  # (p,)

    @property
    def n_features(self) -> int:
        """Features a row, those left out included."""
        return len(self.penalty)

    @property
    def n_scores(self) -> int:
        """Linear scores a row."""
        return self.n_classes - 1

    @cached_property
    def kept(self) -> NDArray[np.intp]:
        """Positions of the features that are not left out."""
        return np.flatnonzero(np.isfinite(self.penalty))

    @cached_property
    def finite(self) -> NDArray[np.float64]:
        """The penalty, with zeros for what is left out."""
        return np.where(np.isfinite(self.penalty), self.penalty, 0.0)

    def __call__(self, V: NDArray, b: NDArray, curved: Curved | None = None) -> Value:
        """Value and gradient at coefficients V (p, m) and intercepts b (m,), in one pass.

        With ``curved="full"`` the Hessian of the loss as well, without the penalty; with
        ``curved="mean"`` its diagonal blocks averaged over the scores.
        """
        m, p = self.n_scores, self.n_features
        loss, slope, level = 0.0, np.zeros((p, m)), np.zeros(m)
        blocks = m if curved == "full" else 1
        curvature = None if curved is None else np.zeros((blocks, p + 1, blocks, p + 1))
        shift = b - self.center @ V
        link = _two_classes if self.n_classes == 2 else _many_classes
        for Z, codes, weight in self.rows:
            part = link(Z @ V + shift, codes, self.n_classes, curved)
            if weight is not None:
                part = part.weighted(weight)
            loss += float(part.loss.sum())
            slope += Z.T @ part.residual
            level += part.residual.sum(axis=0)
            if curvature is not None and part.bend is not None:
                _add_curvature(curvature, Z - self.center, part.bend)
        loss += 0.5 * float(self.finite @ (V * V).sum(axis=1))
        slope += self.finite[:, None] * V - np.outer(self.center, level)
        return Value(loss, slope, level, curvature)


class _Part(NamedTuple):
    """Loss of each row, its derivatives by the scores, and the second ones."""

    loss: NDArray[np.float64]  # (b,)
    residual: NDArray[np.float64]  # (b, m)
    bend: NDArray[np.float64] | None  # (b, m, m) or (b, 1, 1)

    def weighted(self, weight: NDArray) -> _Part:
        bend = None if self.bend is None else self.bend * weight[:, None, None]
        return _Part(self.loss * weight, self.residual * weight[:, None], bend)


def _two_classes(scores: NDArray, codes: NDArray, n_classes: int, curved: Curved | None) -> _Part:
    score = scores[:, 0]
    probability = special.expit(score)
    # log(1 + e^s) − y·s without overflow: for y = 1 it is log(1 + e^−s).
    loss = np.logaddexp(0.0, np.where(codes == 1, -score, score))
    bend = (probability * special.expit(-score))[:, None, None] if curved else None
    return _Part(loss, (probability - codes)[:, None], bend)


def _many_classes(scores: NDArray, codes: NDArray, n_classes: int, curved: Curved | None) -> _Part:
    Q = contrasts(n_classes)
    logits = scores @ Q.T
    rows = np.arange(len(codes))
    log_sum = special.logsumexp(logits, axis=1)
    probability = np.exp(logits - log_sum[:, None])
    mean = probability @ Q  # (b, m)
    bend = None
    if curved == "full":
        # About the mean, not as a difference of squares: the diagonal must not turn negative.
        spread = Q - mean[:, None, :]  # (b, K, m)
        bend = np.swapaxes(spread * probability[:, :, None], 1, 2) @ spread
    elif curved == "mean":
        # Orthonormal contrasts keep the trace of diag(π) − ππᵀ.
        rest = np.maximum(1.0 - probability, 0.0)
        bend = (probability * rest).sum(axis=1)[:, None, None] / (n_classes - 1)
    return _Part(log_sum - logits[rows, codes], mean - Q[codes], bend)


def contrasts(n_classes: int) -> NDArray[np.float64]:
    """Columns (K, m) that turn scores into logits; (1, 1) for two classes, whose score is one."""
    if n_classes <= 2:
        return np.ones((1, 1))
    return np.ascontiguousarray(linalg.helmert(n_classes).T)


def _add_curvature(total: NDArray, Z: NDArray, bend: NDArray) -> None:
    """Add a block's part of the Hessian: each pair of scores has a weighted Gram matrix."""
    A = np.concatenate([Z, np.ones((len(Z), 1))], axis=1)
    m = bend.shape[1]
    for i in range(m):
        # A non-negative weight can be split over both factors: BLAS then does half the work.
        half = A * np.sqrt(bend[:, i, i])[:, None]
        total[i, :, i] += half.T @ half
        for j in range(i):
            mixed = A.T @ (A * bend[:, i, j][:, None])
            total[i, :, j] += mixed
            total[j, :, i] += mixed
