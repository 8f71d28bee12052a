"""The penalised logistic loss as a sum over blocks of rows: value, gradient, Hessian."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg, special

Curved = Literal["full", "mean"]

#: Bytes of a block of rows: it stays in the outer cache between its two products, and is
#: large enough for two threads.
_BLOCK_BYTES = 4 << 20
#: Rows that make adding their second moments to a sum cheap.
_ENOUGH = 2048


class Block(NamedTuple):
    """Some rows: features, class codes and, unless all are one, weights."""

    Z: NDArray  # (b, p)
    codes: NDArray[np.intp]  # (b,)
    weight: NDArray[np.float64] | None  # (b,)


@dataclass(frozen=True, eq=False)
class ArrayRows:
    """Blocks of rows of an array, or of what slices like one; never copied whole.

    Float32 rows become float64 block by block, unless told otherwise: with float32 products,
    gradients would be known to too few digits in whitened coordinates, where large directions must
    cancel.
    """

    Z: Any  # (n, p)
    codes: NDArray[np.intp]  # (n,)
    weight: NDArray[np.float64] | None = None  # (n,)
    dtype: DTypeLike = np.float64

    def __iter__(self) -> Iterator[Block]:
        """Blocks, each of which is overwritten by the next where rows have to be converted."""
        n, p = self.Z.shape
        # Half as much of rows to convert: products of so few are made by one thread, and another
        # that waits actively for the next one would slow the conversion down.
        size = _BLOCK_BYTES if self.Z.dtype == self.dtype else _BLOCK_BYTES // 2
        step = max(64, size // (np.dtype(self.dtype).itemsize * max(1, p)))
        # One piece of memory for all of them: to ask for new pages costs more than to convert.
        memory = np.empty((min(step, n), p), dtype=self.dtype)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            Z = np.asarray(self.Z[rows])
            if Z.dtype != self.dtype:
                memory[: len(Z)] = Z
                Z = memory[: len(Z)]
            yield Block(Z, self.codes[rows], None if self.weight is None else self.weight[rows])


class Sums(NamedTuple):
    """Sums over rows: the loss without its penalty, and its derivatives by scores' coefficients."""

    loss: float
    slope: NDArray[np.float64]  # (d, m)
    level: NDArray[np.float64]  # (m,): derivative by the intercepts
    curvature: NDArray[np.float64] | None  # (m, d+1, m, d+1) or (1, d+1, 1, d+1)

    def __add__(self, other: Sums) -> Sums:  # type: ignore[override]
        both = self.curvature is not None and other.curvature is not None
        return Sums(
            self.loss + other.loss,
            self.slope + other.slope,
            self.level + other.level,
            self.curvature + other.curvature if both else None,  # type: ignore[operator]
        )


class Query(NamedTuple):
    """A point at which sums over rows are asked for: scores are ``x @ V + shift``."""

    V: NDArray[np.float64]  # (d, m)
    shift: NDArray[np.float64]  # (m,)
    center: NDArray[np.float64]  # (d,): where the features' origin is for the curvature
    n_classes: int
    curved: Curved | None


def loss_sums(rows: Iterable[Block], query: Query) -> Sums:
    """Sums over blocks of rows, in one pass."""
    V, shift, center, n_classes, curved = query
    d, m = V.shape
    loss, slope, level = 0.0, np.zeros((d, m)), np.zeros(m)
    curvature = None if curved is None else _Curvature(m if curved == "full" else 1, center)
    link = _two_classes if n_classes == 2 else _many_classes
    for Z, codes, weight in rows:
        part = link(Z @ V.astype(Z.dtype, copy=False) + shift, codes, n_classes, curved)
        if weight is not None:
            part = part.weighted(weight)
        loss += float(part.loss.sum())
        slope += Z.T @ part.residual.astype(Z.dtype, copy=False)
        level += part.residual.sum(axis=0)
        if curvature is not None and part.bend is not None:
            curvature.add(Z, part.bend)
    return Sums(loss, slope, level, None if curvature is None else curvature.summed())


@runtime_checkable
class SummedRows(Protocol):
    """Rows that sum by themselves, wherever they are."""

    def loss_sums(self, query: Query) -> Sums:
        """Sums over all the rows."""


class FeatureMap(Protocol):
    """Linear coordinates of rows that stay as they are: z is a linear map of x less its center."""

    @property
    def n_coordinates(self) -> int:
        """How many there are."""

    def lift(self, V: NDArray) -> NDArray:
        """Coefficients of x from those of z, (p, m) to (d, m)."""

    def pull(self, slope: NDArray) -> NDArray:
        """Derivatives by z's coefficients from those by x's, (d, m) to (p, m)."""


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
    rows : iterable of Block, or SummedRows
        Read once an evaluation, in the same order each time.
    n_classes : int
    penalty : ndarray of shape (p,)
        Of the squared coefficients, halved. Where it is infinite the coefficient must be zero.
    center : ndarray of shape (d,)
        Subtracted from the features: the intercept is the score of that point.
    features : FeatureMap, optional
        The coordinates that coefficients and penalty belong to, where they are not the rows' own.
    """

    rows: Iterable[Block] | SummedRows
    n_classes: int
    penalty: NDArray[np.float64]  # (p,)
    center: NDArray[np.float64]  # (d,)
    features: FeatureMap | None = None

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
        lifted = V if self.features is None else self.features.lift(V)
        query = Query(lifted, b - self.center @ lifted, self.center, self.n_classes, curved)
        mine = isinstance(self.rows, SummedRows)
        sums = self.rows.loss_sums(query) if mine else loss_sums(self.rows, query)  # type: ignore
        loss = sums.loss + 0.5 * float(self.finite @ (V * V).sum(axis=1))
        slope, curvature = sums.slope - np.outer(self.center, sums.level), sums.curvature
        if self.features is not None:
            slope = self.features.pull(slope)
            curvature = None if curvature is None else _mapped(curvature, self.features)
        return Value(loss, slope + self.finite[:, None] * V, sums.level, curvature)


def _mapped(curvature: NDArray, features: FeatureMap) -> NDArray:
    """Curvature in mapped coordinates, (m, p+1, m, p+1)."""
    m, p = len(curvature), features.n_coordinates
    out = np.empty((m, p + 1, m, p + 1))
    for i in range(m):
        for j in range(m):
            H = curvature[i, :, j]
            out[i, :p, j, :p] = features.pull(features.pull(H[:-1, :-1]).T).T
            out[i, :p, j, p:] = features.pull(H[:-1, -1:])
            out[i, p:, j, :p] = features.pull(H[-1:, :-1].T).T
            out[i, p, j, p] = H[-1, -1]
    return out


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
    # e^−|s| overflows nowhere, and is all that loss, probability and bend need.
    small = np.exp(-np.abs(score))
    inverse = 1.0 / (1.0 + small)
    loss = np.log1p(small) + np.where(codes == 1, np.maximum(-score, 0.0), np.maximum(score, 0.0))
    probability = np.where(score >= 0, inverse, small * inverse)
    bend = (small * inverse * inverse)[:, None, None] if curved else None
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


class _Curvature:
    """The Hessian as a sum over blocks: each pair of scores has a weighted Gram matrix."""

    def __init__(self, m: int, center: NDArray) -> None:
        d = len(center)
        self._center, self._total = center, np.zeros((m, d + 1, m, d + 1))
        self._waiting: list[tuple[NDArray, NDArray]] = []
        # Rows to multiply, and multiplied: to ask for new pages each time costs as much.
        self._memory = np.empty((2, 0, d))

    def add(self, Z: NDArray, bend: NDArray) -> None:
        """Add the part of some rows, of few together with the next."""
        if len(Z) < _ENOUGH:
            Z = Z.copy()  # the next block may take its place
        self._waiting.append((Z, bend))
        if sum(len(Z) for Z, _ in self._waiting) >= _ENOUGH:
            self._flush()

    def summed(self) -> NDArray[np.float64]:
        """The sum, (m, d+1, m, d+1)."""
        if self._waiting:
            self._flush()
        return self._total

    def _flush(self) -> None:
        rows, bend = (
            parts[0] if len(parts) == 1 else np.concatenate(parts)
            for parts in zip(*self._waiting, strict=True)
        )
        self._waiting = []
        if self._memory.shape[1] < len(rows):
            self._memory = np.empty((2, *rows.shape))
        Z, scaled = self._memory[:, : len(rows)]
        np.subtract(rows, self._center, out=Z)
        m, total = bend.shape[1], self._total
        for i in range(m):
            for j in range(i + 1):
                weight = bend[:, i, j]
                edge, corner = Z.T @ weight, weight.sum()
                if i == j:
                    # Not negative, it can be split over both factors: BLAS does half the work.
                    half = np.multiply(Z, np.sqrt(weight)[:, None], out=Z if m == 1 else scaled)
                    inner = half.T @ half
                else:
                    inner = Z.T @ np.multiply(Z, weight[:, None], out=scaled)
                for a, b in {(i, j), (j, i)}:
                    total[a, :-1, b, :-1] += inner
                    total[a, :-1, b, -1] += edge
                    total[a, -1, b, :-1] += edge
                    total[a, -1, b, -1] += corner
