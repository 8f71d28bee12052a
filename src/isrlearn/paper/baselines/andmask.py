"""Gradient descent along the weights whose gradients agree in sign: the AND mask."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isrlearn.paper.baselines import _solve
from isrlearn.paper.baselines._docs import documented
from isrlearn.paper.baselines._estimator import LinearBaseline, LinearClassifier, LinearRegressor
from isrlearn.paper.baselines._risks import Risk
from isrlearn.validation import check_between


def masked_gradient(gradients: NDArray, agreement: float) -> NDArray:
    """Mean over environments of gradients (E, p, C), zero where their signs disagree.

    In each environment the gradient of the coefficients is divided by its norm; that of the
    intercept, the last row, is not. A weight passes if its signs add up to more than
    ``agreement * E`` in absolute value.
    """
    norms = np.linalg.norm(gradients[:, :-1], axis=(1, 2), keepdims=True)
    scaled = gradients.copy()
    scaled[:, :-1] /= np.where(norms > 0, norms, 1)
    agree = np.abs(np.sign(scaled).sum(axis=0)) > agreement * len(scaled)
    return scaled.mean(axis=0) * agree


def masked_descent(
    risks: Sequence[Risk],
    start: NDArray,
    *,
    agreement: float,
    learning_rate: float,
    weight_decay: float,
    n_steps: int,
) -> NDArray:
    """Weights after gradient descent with masked gradients and decaying weights."""
    W = start.copy()
    gradients = np.empty((len(risks), *W.shape), W.dtype)
    for _ in range(n_steps):
        for e, risk in enumerate(risks):
            point = risk.at(W)
            gradients[e] = point.pull(point.slope)
        W = W * (1.0 - learning_rate * weight_decay)
        W -= learning_rate * masked_gradient(gradients, agreement)
    return W


class _ANDMask(LinearBaseline):
    def __init__(
        self,
        agreement: float = 0.9,
        *,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
        missing_environments: str = "raise",
    ) -> None:
        self.agreement = agreement
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.max_iter = max_iter
        self.random_state = random_state
        self.missing_environments = missing_environments

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_between("agreement", self.agreement, 0.0, 1.0)

    def _weights(self, problem: _solve.Problem) -> tuple[NDArray[np.float64], int]:
        risks, _ = problem.risks(problem.precision)
        W = masked_descent(
            risks,
            problem.start(self.random_state),
            agreement=self.agreement,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            n_steps=self.max_iter,
        )
        return W.astype(np.float64), self.max_iter


@documented
class ANDMaskClassifier(LinearClassifier, _ANDMask):
    """Logistic regression by steps that every environment agrees on (ANDMask).

    Gradient descent on the features as they are. In each environment the gradient of the
    coefficients is scaled to norm one; a weight moves only if its gradient's signs, added up over
    the E environments, exceed ``agreement * E`` in absolute value; all weights decay by
    ``learning_rate * weight_decay`` a step. These are the steps of the published linear unit
    tests. They descend no objective, so there is no converged form, and where environments
    disagree the result depends on the first weights.

    Parameters
    ----------
    agreement : float, default=0.9
        How far signs must agree, from 0 to 1.
    learning_rate : float, default=1e-3
        Size of a step.
    weight_decay : float, default=0.0
        Part of the weights, times ``learning_rate``, that is lost in each step.
    max_iter : int, default=10000
        Number of steps.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import ANDMaskClassifier
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("2", n_environments=2, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = ANDMaskClassifier(max_iter=100, random_state=0).fit(X, y, environments=e)
    >>> model.n_iter_
    100
    """


@documented
class ANDMaskRegressor(LinearRegressor, _ANDMask):
    """Least squares by steps that every environment agrees on (ANDMask).

    Gradient descent on the features as they are. In each environment the gradient of the
    coefficients is scaled to norm one; a weight moves only if its gradient's signs, added up over
    the E environments, exceed ``agreement * E`` in absolute value; all weights decay by
    ``learning_rate * weight_decay`` a step. These are the steps of the published linear unit
    tests. They descend no objective, so there is no converged form, and where environments
    disagree the result depends on the first weights.

    Parameters
    ----------
    agreement : float, default=0.9
        How far signs must agree, from 0 to 1.
    learning_rate : float, default=1e-3
        Size of a step.
    weight_decay : float, default=0.0
        Part of the weights, times ``learning_rate``, that is lost in each step.
    max_iter : int, default=10000
        Number of steps.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import ANDMaskRegressor
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("1", n_environments=2, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = ANDMaskRegressor(max_iter=100, random_state=0).fit(X, y, environments=e)
    >>> model.n_iter_
    100
    """
