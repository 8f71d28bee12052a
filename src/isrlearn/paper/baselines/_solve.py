"""From samples to linear weights: as published, or converged."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg, optimize
from sklearn.exceptions import ConvergenceWarning

from isrlearn.paper.baselines._losses import Loss
from isrlearn.paper.baselines._objectives import Objective
from isrlearn.paper.baselines._optimizers import Gradient, adam, initial_weights
from isrlearn.paper.baselines._risks import Risk, environment_risks

Shares = NDArray[np.float64]
#: Samples from which gradient descent is in single precision.
_MANY = 5_000


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples to fit, checked and encoded."""

    X: NDArray  # (n, d)
    target: NDArray  # (n, C)
    codes: NDArray[np.intp]  # (n,) environment or cell of each sample: 0 .. E-1
    weight: NDArray | None  # (n,) positive
    loss: Loss | None  # None: the squared error

    @property
    def precision(self) -> DTypeLike:
        """Precision of gradient descent.

        Single, as in the published runs, where it is many samples that cost the time.
        """
        few = len(self.X) < _MANY or self.loss is None
        return np.float64 if few else np.float32

    def start(self, random_state: int | np.random.RandomState | None) -> NDArray:
        """Random weights (d + 1, C) from which gradient descent starts."""
        W = initial_weights(self.X.shape[1], self.target.shape[1], random_state)
        return W.astype(self.precision)

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
    """Weights (d + 1, C) after full-batch Adam on the features as they are."""
    risks, shares = problem.risks(problem.precision)
    return adam(
        gradient(risks, shares),
        problem.start(random_state),
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


class Stage(NamedTuple):
    """An objective to minimise: to the tolerance, or roughly, on the way to the next one."""

    objective: Objective
    exact: bool = True


#: Gradient at which a stage that only leads to another is left.
_ROUGHLY = 1e-4
#: Weights up to which Newton steps, with a Hessian by differences, finish what L-BFGS began.
_FEW = 300


def converged(
    problem: Problem,
    stages: Callable[[Shares], Iterable[Stage]],
    *,
    weight_decay: float,
    tol: float,
    max_iter: int,
) -> Iterator[tuple[NDArray[np.float64], int]]:
    """Weights (d + 1, C) and number of iterations at a minimum of each objective in turn.

    In whitened coordinates, from zero; every stage after the first starts from the minimum of the
    one before. An exact stage warns if an entry of its gradient is still above ``tol``.
    """
    coordinates = Coordinates.of(problem.X, problem.weight)
    whitened = replace(problem, X=(problem.X - coordinates.mean) @ coordinates.factor)
    risks, shares = whitened.risks()
    shape = (whitened.X.shape[1] + 1, problem.target.shape[1])
    decay = np.full(shape, weight_decay)
    decay[-1] = 0.0  # the intercept
    V = np.zeros(shape)
    for objective, exact in stages(shares):
        evaluate = partial(_evaluate, objective, risks, decay)
        V, slope, n_iter = _minimum(evaluate, V, tol if exact else max(tol, _ROUGHLY), max_iter)
        if exact and slope > tol:
            warnings.warn(
                f"the gradient still has an entry of {slope:.1e} after {n_iter} iterations, above "
                f"tol={tol:.1e}; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        yield coordinates.weights(V), n_iter


Evaluate = Callable[[NDArray], tuple[float, NDArray]]


def _evaluate(
    objective: Objective, risks: Sequence[Risk], decay: NDArray, V: NDArray
) -> tuple[float, NDArray]:
    """Value and gradient at weights V, with the L2 penalty."""
    points = [risk.at(V) for risk in risks]
    value = objective.value(points) + 0.5 * float(np.vdot(decay * V, V))
    return value, objective.gradient(points) + decay * V


def _minimum(
    evaluate: Evaluate, start: NDArray, tol: float, max_iter: int
) -> tuple[NDArray, float, int]:
    """Weights at a minimum, the largest entry of the gradient there, the number of iterations."""

    def flat(v: NDArray) -> tuple[float, NDArray]:
        value, gradient = evaluate(v.reshape(start.shape))
        return value, gradient.ravel()

    options = {"maxiter": max_iter, "maxfun": 10 * max_iter, "maxcor": 30, "gtol": tol, "ftol": 0.0}
    result = optimize.minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    v, gradient, n_iter = result.x, result.jac, max(int(result.nit), 1)
    # L-BFGS stops where values no longer differ in double precision; gradients still do.
    while np.abs(gradient).max() > tol and v.size <= _FEW and n_iter < max_iter:
        step = linalg.lstsq(_hessian(flat, v), gradient)[0]
        value, closer = flat(v - step)
        uphill = value > result.fun + 1e-10 * max(1.0, abs(result.fun))  # to a saddle, then
        if uphill or np.abs(closer).max() >= 0.5 * np.abs(gradient).max():
            break
        v, gradient, n_iter = v - step, closer, n_iter + 1
    return v.reshape(start.shape), float(np.abs(gradient).max()), n_iter


def _hessian(flat: Evaluate, v: NDArray) -> NDArray:
    """Hessian by central differences of the gradient."""
    h = 1e-5 * max(1.0, float(np.abs(v).max()))
    columns = [(flat(v + h * e)[1] - flat(v - h * e)[1]) / (2 * h) for e in np.eye(v.size)]
    return (np.array(columns) + np.array(columns).T) / 2
