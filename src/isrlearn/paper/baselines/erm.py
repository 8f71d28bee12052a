"""Empirical risk minimisation: the environments are not looked at."""

from __future__ import annotations

import numpy as np

from isrlearn.paper.baselines._docs import documented
from isrlearn.paper.baselines._estimator import LinearClassifier, LinearRegressor
from isrlearn.paper.baselines._minimizer import Minimizer
from isrlearn.paper.baselines._objectives import MeanRisk, Objective
from isrlearn.paper.baselines._solve import Shares


class _ERM(Minimizer):
    _ignores_environments = True

    def __init__(
        self,
        *,
        optimizer: str = "converged",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _objective(self, shares: Shares) -> Objective:
        return Objective(((1.0, MeanRisk(tuple(shares))),))


@documented
class ERMClassifier(LinearClassifier, _ERM):
    """Logistic regression on all samples, whatever their environment.

    Trained on samples whose spurious part was permuted, it is the oracle of the linear unit
    tests.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import ERMClassifier
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("2", n_environments=3, n_samples=1000, random_state=0)
    >>> erm = ERMClassifier().fit(splits.train.X, splits.train.y)
    >>> erm.score(splits.test.X, splits.test.y) > 0.99
    True
    """


@documented
class ERMRegressor(LinearRegressor, _ERM):
    """Least squares on all samples, whatever their environment.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import ERMRegressor
    >>> erm = ERMRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> erm.coef_.round(6), round(erm.intercept_, 6)
    (array([2.]), 1.0)
    """
