"""From samples to linear weights: as published, or converged."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg, optimize
from sklearn.exceptions import ConvergenceWarning

from isrlearn.baselines._losses import Loss
from isrlearn.baselines._objectives import Objective
from isrlearn.baselines._optimizers import Gradient, adam, initial_weights
from isrlearn.baselines._risks import Risk, environment_risks

Shares = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples to fit, checked and encoded."""

    X: NDArray  # (n, d)
    target: NDArray  # (n, C)
    codes: NDArray[np.intp]  # (n,) environment or cell of each sample: 0 .. E-1
    weight: NDArray | None  # (n,) positive
    loss: Loss | None  # None: the squared error

    def risks(self, dtype: DTypeLike = np.float64) -> tuple[list[Risk], Shares]:
        """The risk in each environment, and its share of the weight."""
        return environment_risks(self.X, self.target, self.codes, self.weight, self.loss, dtype)


def published(
    problem: Problem,
    gradient: Callable[[Sequence[Risk], Shares], Gradient],
    *,
    learning_rate: float,
    weight_decay: float,
    n_steps: int,
    random_state: int | np.random.RandomState | None,
) -> NDArray[np.float64]:
    """Weights (d + 1, C) after full-batch Adam on the features as they are.

    Sums over samples are in single precision, as in the published runs; a squared error is
    summed up in double precision once, and the steps are then the same.
    """
    risks, shares = problem.risks(np.float64 if problem.loss is None else np.float32)
    start = initial_weights(problem.X.shape[1], problem.target.shape[1], random_state)
    if problem.loss is None:
        start = start.astype(np.float64)
    return adam(
        gradient(risks, shares),
        start,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        n_steps=n_steps,
    ).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Whitened coordinates ``(x - mean) @ factor``: mean zero, covariance the identity."""

    mean: NDArray[np.float64]  # (d,)
    factor: NDArray[np.float64]  # (d, r)

    @classmethod
    def of(cls, X: NDArray, weight: NDArray | None) -> Coordinates:
        """Coordinates that whiten these samples, of as many dimensions as they span."""
        mean = np.average(X, axis=0, weights=weight)
        centred = X - mean
        weighted = centred if weight is None else centred * weight[:, None]
        covariance = weighted.T @ centred / (len(X) if weight is None else weight.sum())
        # Standardised before it is diagonalised: a feature 1e8 times smaller than another is
        # not rounding error. One that varies less than its own rounding is constant.
        scale = np.sqrt(np.diag(covariance))
        scale[scale <= 4 * np.finfo(float).eps * np.abs(X).max(axis=0, initial=0.0)] = np.inf
        values, vectors = linalg.eigh(covariance / scale / scale[:, None])
        kept = values > len(values) * np.finfo(float).eps * max(values[-1], 1.0)
        return cls(mean, vectors[:, kept] / np.sqrt(values[kept]) / scale[:, None])

    def weights(self, V: NDArray) -> NDArray:
        """Weights (d + 1, C) on the features, from weights (r + 1, C) in these coordinates."""
        coef = self.factor @ V[:-1]
        return np.vstack([coef, V[-1] - self.mean @ coef])


def converged(
    problem: Problem,
    objectives: Callable[[Shares], Iterable[Objective]],
    *,
    weight_decay: float,
    tol: float,
    max_iter: int,
) -> Iterator[tuple[NDArray[np.float64], int]]:
    """Weights (d + 1, C) and number of iterations at a minimum of each objective in turn.

    L-BFGS in whitened coordinates, from zero; every objective after the first starts from the
    minimum of the one before. The last one warns when no entry of its gradient, in whitened
    coordinates, came below ``tol``.
    """
    coordinates = Coordinates.of(problem.X, problem.weight)
    whitened = replace(problem, X=(problem.X - coordinates.mean) @ coordinates.factor)
    risks, shares = whitened.risks()
    V = np.zeros((whitened.X.shape[1] + 1, problem.target.shape[1]))
    for objective in objectives(shares):
        V, n_iter = _minimum(objective, risks, V, weight_decay, tol, max_iter)
        yield coordinates.weights(V), n_iter


def _minimum(
    objective: Objective,
    risks: Sequence[Risk],
    start: NDArray,
    weight_decay: float,
    tol: float,
    max_iter: int,
) -> tuple[NDArray, int]:
    """Weights at a minimum, and the number of iterations."""
    decay = np.full(start.shape, weight_decay)
    decay[-1] = 0.0

    def evaluate(flat: NDArray) -> tuple[float, NDArray]:
        W = flat.reshape(start.shape)
        points = [risk.at(W) for risk in risks]
        value = objective.value(points) + 0.5 * float(np.vdot(decay * W, W))
        return value, (objective.gradient(points) + decay * W).ravel()

    result = optimize.minimize(
        evaluate,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={
            "maxiter": max_iter,
            "maxfun": 10 * max_iter,
            "gtol": tol,
            "ftol": 0.0,
            "maxcor": 30,
        },
    )
    steepest = float(np.abs(result.jac).max())
    if steepest > tol:
        warnings.warn(
            f"the gradient still has an entry of {steepest:.1e} after {result.nit} iterations, "
            f"above tol={tol:.1e}; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    return result.x.reshape(start.shape), max(int(result.nit), 1)
