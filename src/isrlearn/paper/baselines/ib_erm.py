"""Empirical risk minimisation with an information bottleneck: IB-ERM."""

from __future__ import annotations

import numpy as np

from isrlearn.paper.baselines._docs import documented
from isrlearn.paper.baselines._estimator import LinearClassifier, LinearRegressor
from isrlearn.paper.baselines._minimizer import Minimizer
from isrlearn.paper.baselines._objectives import MeanRisk, Objective, OutputVariance
from isrlearn.paper.baselines._solve import Shares
from isrlearn.validation import check_between


class _IBERM(Minimizer):
    _ignores_environments = True

    def __init__(
        self,
        bottleneck: float = 0.1,
        *,
        optimizer: str = "converged",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.bottleneck = bottleneck
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_between("bottleneck", self.bottleneck, 0.0, np.inf)

    def _objective(self, shares: Shares) -> Objective:
        everyone = tuple(shares)
        return Objective(((1.0, MeanRisk(everyone)), (self.bottleneck, OutputVariance(everyone))))


@documented
class IBERMClassifier(LinearClassifier, _IBERM):
    r"""Logistic regression with a penalty on the variance of its outputs (IB-ERM).

    With outputs :math:`z = w^\top x + b` of all samples, whatever their environment, minimises
    (Ahuja et al., 2021, who divide by n - 1 where this variance divides by n)

    .. math::
        R(z) + \gamma \operatorname{Var}(z) .

    Parameters
    ----------
    bottleneck : float, default=0.1
        Weight :math:`\gamma` of the outputs' variance, 0 or more.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import IBERMClassifier
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("2", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y = splits.train.X, splits.train.y
    >>> model = IBERMClassifier().fit(X, y)
    >>> model.coef_.shape
    (1, 10)
    """


@documented
class IBERMRegressor(LinearRegressor, _IBERM):
    """Least squares with a penalty on the variance of its outputs (IB-ERM).

    The objective is that of `IBERMClassifier`, with the squared error as the loss.

    Parameters
    ----------
    bottleneck : float, default=0.1
        Weight of the outputs' variance, 0 or more.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import IBERMRegressor
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("1", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y = splits.train.X, splits.train.y
    >>> model = IBERMRegressor().fit(X, y)
    >>> model.coef_.shape
    (10,)
    """
