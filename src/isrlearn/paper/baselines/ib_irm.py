"""Invariant risk minimisation with an information bottleneck: IB-IRM."""

from __future__ import annotations

import numpy as np

from isrlearn.paper.baselines._docs import documented
from isrlearn.paper.baselines._estimator import LinearClassifier, LinearRegressor
from isrlearn.paper.baselines._minimizer import Penalized
from isrlearn.paper.baselines._objectives import DummyGradient, MeanRisk, Objective, OutputVariance
from isrlearn.paper.baselines._solve import Shares
from isrlearn.paper.baselines.irm import ALMOST_ONE
from isrlearn.validation import check_between


class _IBIRM(Penalized):
    def __init__(
        self,
        penalty: float = 0.5,
        bottleneck: float = 0.1,
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
        self.bottleneck = bottleneck
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.missing_environments = missing_environments

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_between("penalty", self.penalty, 0.0, ALMOST_ONE)
        check_between("bottleneck", self.bottleneck, 0.0, np.inf)

    def _objective(self, shares: Shares) -> Objective:
        return super()._objective(shares).scaled(1.0 - self.penalty)

    def _penalized(self, penalty: float, part: float) -> Objective:
        rest = 1.0 - penalty
        return Objective(
            (
                (1.0, MeanRisk()),
                (part * penalty / rest, DummyGradient()),
                (self.bottleneck / rest, OutputVariance()),
            )
        )


@documented
class IBIRMClassifier(LinearClassifier, _IBIRM):
    r"""IRMv1 with a penalty on the variance of its outputs (IB-IRM).

    Adds to the objective of `IRMv1Classifier` the variance of the outputs, taken in each
    environment and averaged (Ahuja et al., 2021):

    .. math::
        \frac{\gamma}{E} \sum_e \operatorname{Var}_e(z) .

    Parameters
    ----------
    penalty : float, default=0.5
        Weight of IRMv1's penalty, from 0 to just below 1.
    bottleneck : float, default=0.1
        Weight :math:`\gamma` of the outputs' variance, 0 or more.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import IBIRMClassifier
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("2", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = IBIRMClassifier().fit(X, y, environments=e)
    >>> model.coef_.shape
    (1, 10)
    """


@documented
class IBIRMRegressor(LinearRegressor, _IBIRM):
    """IRMv1 for regression with a penalty on the variance of its outputs (IB-IRM).

    The objective is that of `IBIRMClassifier`, with the squared error as the loss.

    Parameters
    ----------
    penalty : float, default=0.5
        Weight of IRMv1's penalty, from 0 to just below 1.
    bottleneck : float, default=0.1
        Weight of the outputs' variance, 0 or more.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import IBIRMRegressor
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("1", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = IBIRMRegressor().fit(X, y, environments=e)
    >>> model.coef_.shape
    (10,)
    """
