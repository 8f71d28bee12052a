"""The logistic loss as a sum over blocks of rows: value, gradient and curvature."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

#: Bytes of a block of float64 rows: it stays in the cache between its two products.
_BLOCK_BYTES = 4 << 20
#: Least second derivative of a row's loss: with none, a mean weighted by them would not exist.
_FLAT = 1e-12


class LogisticLoss:
    r"""Logistic loss of linear scores, summed over rows that are read block by block.

    .. math:: \sum_i w_i\,\ell(y_i,\; W x_i + b)

    Two classes have one score; K > 2 classes have K scores and the multinomial loss. Float32 rows
    become float64 block by block: in the gradient, large terms cancel.

    Parameters
    ----------
    X : array-like of shape (n, d)
        An array, a memory map, `Rows`, or any object with a shape that slices by rows.
    codes : array-like of int of shape (n,)
        Classes 0, …, K−1.
    weight : array-like of shape (n,), optional
        Weights of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> rows = LogisticLoss(np.array([[0.0], [1.0]]), [0, 1])
    >>> loss, by_coef, by_intercept = rows.loss_and_gradient(np.zeros((1, 1)), np.zeros(1))
    >>> round(loss, 4), by_coef.tolist(), by_intercept.tolist()
    (1.3863, [[-0.5]], [0.0])
    """

    def __init__(self, X: Any, codes: ArrayLike, weight: ArrayLike | None = None) -> None:
        self.shape = X.shape
        self.X, self.codes = X, np.asarray(codes, dtype=np.intp)
        self.weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        for name, values in (("codes", self.codes), ("weight", self.weight)):
            if values is not None and values.shape != self.shape[:1]:
                raise ValueError(f"{name} has shape {values.shape}, but X has {self.shape[0]} rows")

    def loss_and_gradient(
        self, coef: NDArray, intercept: NDArray
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Loss, and its derivatives by coef (m, d) and by intercept (m,), in one pass."""
        loss, by_coef, by_intercept = 0.0, np.zeros(coef.shape[::-1]), np.zeros(len(coef))
        for Z, codes, weight in self._blocks(len(coef)):
            losses, residual = _losses(Z @ coef.T + intercept, codes)
            if weight is not None:
                losses, residual = losses * weight, residual * weight[:, None]
            loss += float(losses.sum())
            by_coef += Z.T @ residual
            by_intercept += residual.sum(axis=0)
        return loss, by_coef.T, by_intercept

    def curvature(
        self, coef: NDArray, intercept: NDArray, center: NDArray, *, each: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Second derivatives of the loss by each score, or their average over the scores.

        They weigh the rows. Returns their sums (g,), and the means (g, d) and scatters (g, d, d)
        of the rows less `center`, with g the number of scores or one.
        """
        d, g = self.shape[1], len(coef) if each else 1
        total, first, second = np.zeros(g), np.zeros((g, d)), np.zeros((g, d, d))
        for Z, _, weight in self._blocks(len(coef)):
            scores = Z @ coef.T + intercept
            chance = special.expit(scores) if len(coef) == 1 else special.softmax(scores, axis=1)
            bend = chance * (1.0 - chance)
            if not each:
                bend = bend.sum(axis=1, keepdims=True) / max(1, len(coef) - 1)
            bend = np.maximum(bend, _FLAT) * (1.0 if weight is None else weight[:, None])
            Z = Z - center
            total += bend.sum(axis=0)
            first += bend.T @ Z
            for k, root in enumerate(np.sqrt(bend).T):
                weighted = Z * root[:, None]
                second[k] += weighted.T @ weighted
        mean = first / total[:, None]
        second -= total[:, None, None] * mean[:, :, None] * mean[:, None, :]
        return total, mean, second

    def _blocks(self, width: int) -> Iterator[tuple[NDArray, NDArray, NDArray | None]]:
        """Float64 rows, codes and weights, block by block; the next block overwrites the rows."""
        n, d = self.shape
        step = max(64, _BLOCK_BYTES // (8 * max(d, width)))
        memory = np.empty((min(step, n), d))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            Z = np.asarray(self.X[rows])
            if Z.dtype != np.float64:
                # One piece of memory for all blocks: new pages cost more than the conversion.
                memory[: len(Z)] = Z
                Z = memory[: len(Z)]
            yield Z, self.codes[rows], None if self.weight is None else self.weight[rows]


def _losses(scores: NDArray, codes: NDArray) -> tuple[NDArray, NDArray]:
    """Loss of each row (b,), and its derivatives by the scores (b, m)."""
    if scores.shape[1] == 1:
        score = scores[:, 0]
        small = np.exp(-np.abs(score))  # overflows nowhere
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
