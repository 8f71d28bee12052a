"""Group reweighting: every cell counts alike, however few its samples."""

from __future__ import annotations

import numpy as np

from isrlearn.paper.baselines._docs import documented
from isrlearn.paper.baselines._estimator import LinearClassifier, LinearRegressor
from isrlearn.paper.baselines._minimizer import Minimizer
from isrlearn.paper.baselines._objectives import MeanRisk, Objective
from isrlearn.paper.baselines._solve import Shares


class _Reweighted(Minimizer):
    _by_cell = True

    def __init__(
        self,
        *,
        optimizer: str = "converged",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
        missing_environments: str = "raise",
    ) -> None:
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.missing_environments = missing_environments

    def _objective(self, shares: Shares) -> Objective:
        return Objective(((1.0, MeanRisk()),))


@documented
class ReweightedClassifier(LinearClassifier, _Reweighted):
    """Logistic regression in which every cell, a class in an environment, has the same weight.

    A sample's weight is ``n / (n_cells * n_cell)``.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import ReweightedClassifier
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("2", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = ReweightedClassifier().fit(X, y, environments=e)
    >>> model.score(splits.test.X, splits.test.y) > 0.99
    True
    """


@documented
class ReweightedRegressor(LinearRegressor, _Reweighted):
    """Least squares in which every environment has the same weight.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import ReweightedRegressor
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("1", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = ReweightedRegressor().fit(X, y, environments=e)
    >>> model.coef_.shape
    (10,)
    """
