"""Risk extrapolation by the variance of the risks: V-REx."""

from __future__ import annotations

import numpy as np

from isrlearn.paper.baselines._docs import documented
from isrlearn.paper.baselines._estimator import LinearClassifier, LinearRegressor
from isrlearn.paper.baselines._minimizer import Penalized
from isrlearn.paper.baselines._objectives import MeanRisk, Objective, RiskVariance
from isrlearn.validation import check_between


class _VREx(Penalized):
    def __init__(
        self,
        penalty: float = 10.0,
        *,
        optimizer: str = "converged",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
        missing_environments: str = "raise",
    ) -> None:
        self.penalty = penalty
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.missing_environments = missing_environments

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_between("penalty", self.penalty, 0.0, np.inf)

    def _penalized(self, penalty: float, part: float) -> Objective:
        return Objective(((1.0, MeanRisk()), (part * penalty, RiskVariance())))


@documented
class VRExClassifier(LinearClassifier, _VREx):
    r"""Logistic regression with risks that are alike in all environments (V-REx).

    With the risk :math:`R_e` of environment e, minimises (Krueger et al., 2021)

    .. math::
        \frac1E \sum_e R_e + \lambda \operatorname{Var}_e(R_e) .

    Parameters
    ----------
    penalty : float, default=10.0
        Weight :math:`\lambda` of the penalty, 0 or more.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import VRExClassifier
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("2", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = VRExClassifier(1.0).fit(X, y, environments=e)
    >>> model.score(splits.test.X, splits.test.y) > 0.9
    True
    """


@documented
class VRExRegressor(LinearRegressor, _VREx):
    """Least squares with errors that are alike in all environments (V-REx).

    The objective is that of `VRExClassifier`, with the squared error as the loss.

    Parameters
    ----------
    penalty : float, default=10.0
        Weight of the penalty, 0 or more.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import VRExRegressor
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("1", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = VRExRegressor(1.0).fit(X, y, environments=e)
    >>> model.coef_.shape
    (10,)
    """
