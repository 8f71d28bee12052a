"""From samples to linear weights: by Adam as published, or to convergence."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import linalg, optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from isrlearn.core import whitening
from isrlearn.engine import cell_moments
from isrlearn.paper.baselines.objectives import SQUARED, Loss, Objective, Risk, environment_risks

Shares = NDArray[np.float64]
Gradient = Callable[[NDArray], NDArray]
Evaluate = Callable[[NDArray], tuple[float, NDArray]]
RandomState = int | np.random.RandomState | None

#: Number of samples from which gradient descent runs in single precision.
_MANY = 5_000
#: Bytes allocated and freed once before many steps. The C library then keeps the memory that a step
#: frees for the next one: 20 trials of IGA with seven environments take half the time.
_FREED_ONCE = 31 << 20
#: Largest entry of the gradient at which an intermediate objective is left for the next one.
_ROUGHLY = 1e-4
#: Number of weights up to which Newton steps, with a finite-difference Hessian, follow L-BFGS.
_FEW = 300


@dataclass(frozen=True, eq=False)
class Problem:
    """Samples to fit, checked and encoded."""

    X: NDArray  # (n, d)
    target: NDArray  # (n, C)
    codes: NDArray[np.intp]  # (n,) environment or cell of each sample: 0 .. E-1
    weight: NDArray | None  # (n,) positive
    loss: Loss

    def distinct(self) -> Problem:
        """The same samples with equal ones merged: weights then do what repetitions do, exactly."""
        rows = np.column_stack([self.codes, self.target, self.X])
        _, first, index = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        if self.weight is None and len(first) == len(rows):
            return self
        weight = np.bincount(index.ravel(), self.weight)
        X, target, codes = (a[first] for a in (self.X, self.target, self.codes))
        return replace(self, X=X, target=target, codes=codes, weight=weight)

    @property
    def precision(self) -> DTypeLike:
        """Precision of gradient descent: single, as published, where samples dominate the time."""
        few = len(self.X) < _MANY or self.loss is SQUARED
        return np.float64 if few else np.float32

    def start(self, random_state: RandomState) -> NDArray:
        """Random weights (d + 1, C) from which gradient descent starts."""
        W = initial_weights(self.X.shape[1], self.target.shape[1], random_state)
        return W.astype(self.precision)

    def risks(self, dtype: DTypeLike = np.float64) -> tuple[list[Risk], Shares]:
        """The risk in each environment, and its share of the weight."""
        return environment_risks(self.X, self.target, self.codes, self.weight, self.loss, dtype)


def initial_weights(
    n_features: int, n_outputs: int, random_state: RandomState
) -> NDArray[np.float32]:
    """Weights (d + 1, C), uniform within 1/sqrt(d); the last row is the intercept.

    With a seed they are those of PyTorch's linear layer after ``torch.manual_seed``: both take 24
    bits of a Mersenne Twister per weight. Published runs can be repeated without PyTorch.
    """
    stream = check_random_state(random_state)
    size = (n_features + 1) * n_outputs
    bits = stream.randint(0, 2**32, size=size, dtype=np.uint32) & np.uint32(2**24 - 1)
    bound = np.float32(1.0 / np.sqrt(n_features))
    drawn = bits.astype(np.float32) * np.float32(2.0**-24) * (2 * bound) - bound
    coef, intercept = np.split(drawn, [n_features * n_outputs])
    return np.vstack([coef.reshape(n_outputs, n_features).T, intercept[None, :]])


def adam(
    gradient: Gradient,
    start: NDArray,
    learning_rate: float | NDArray,
    weight_decay: float | NDArray,
    n_steps: int,
) -> NDArray:
    """Weights after full-batch Adam (0.9, 0.999) with an L2 penalty on all, intercept included."""
    np.empty(_FREED_ONCE, np.uint8)
    W = start.copy()
    first, second = np.zeros_like(W), np.zeros_like(W)
    for t in range(1, n_steps + 1):
        g = gradient(W).astype(W.dtype, copy=False)
        if np.any(weight_decay):
            g = g + W * weight_decay
        first += (g - first) * 0.1
        second = second * 0.999 + np.square(g) * 0.001
        scale = np.sqrt(second) / math.sqrt(1.0 - 0.999**t) + 1e-8
        W -= first / scale * (learning_rate / (1.0 - 0.9**t))
    return W


def whitened_coordinates(X: NDArray, weight: NDArray | None) -> tuple[NDArray, NDArray]:
    """Mean (d,) and factor (d, d) with which ``(X - mean) @ factor`` has identity covariance."""
    one = np.zeros(len(X), dtype=int)
    moments = replace(cell_moments(X, None, one, pooled=True, sample_weight=weight), ddof=0)
    return moments.total[1], whitening(moments, total=True).factor


def converged(
    problem: Problem,
    stages: Callable[[Shares], Sequence[Objective]],
    weight_decay: float,
    tol: float,
    max_iter: int,
) -> tuple[NDArray[np.float64], int]:
    """Weights (d + 1, C) at a minimum of the last stage's objective, and its iterations."""
    mean, factor = whitened_coordinates(problem.X, problem.weight)
    whitened = replace(problem, X=(problem.X - mean) @ factor)
    risks, shares = whitened.risks()
    decay = np.full((whitened.X.shape[1] + 1, problem.target.shape[1]), float(weight_decay))
    decay[-1] = 0.0  # the intercept

    def evaluate(objective: Objective, V: NDArray) -> tuple[float, NDArray]:
        points = [risk.at(V) for risk in risks]
        value = objective.value(points) + 0.5 * float(np.vdot(decay * V, V))
        return value, objective.gradient(points) + decay * V

    V = np.zeros(decay.shape)
    *intermediate, final = stages(shares)
    for objective in intermediate:
        V, _, _ = _minimum(partial(evaluate, objective), V, max(tol, _ROUGHLY), max_iter)
    V, gradient, n_iter = _minimum(partial(evaluate, final), V, tol, max_iter)
    if gradient > tol:
        warnings.warn(
            f"the gradient still has an entry of {gradient:.1e} after {n_iter} iterations, above "
            f"tol={tol:.1e}; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=4,
        )
    coef = factor @ V[:-1]
    return np.vstack([coef, V[-1] - mean @ coef]), n_iter


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
        uphill = value > result.fun + 1e-10 * max(1.0, abs(result.fun))  # towards a saddle point
        if uphill or np.abs(closer).max() >= 0.5 * np.abs(gradient).max():
            break
        v, gradient, n_iter = v - step, closer, n_iter + 1
    return v.reshape(start.shape), float(np.abs(gradient).max()), n_iter


def _hessian(flat: Evaluate, v: NDArray) -> NDArray:
    """Hessian by central differences of the gradient."""
    h = 1e-5 * max(1.0, float(np.abs(v).max()))
    columns = [(flat(v + h * e)[1] - flat(v - h * e)[1]) / (2 * h) for e in np.eye(v.size)]
    return (np.array(columns) + np.array(columns).T) / 2
