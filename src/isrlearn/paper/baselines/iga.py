"""Inter-environmental gradient alignment."""

from __future__ import annotations

import numpy as np

from isrlearn.paper.baselines._docs import documented
from isrlearn.paper.baselines._estimator import LinearClassifier, LinearRegressor
from isrlearn.paper.baselines._minimizer import Penalized
from isrlearn.paper.baselines._objectives import GradientVariance, MeanRisk, Objective
from isrlearn.validation import check_between


class _IGA(Penalized):
    def __init__(
        self,
        penalty: float = 1000.0,
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
        return Objective(((1.0, MeanRisk()), (part * penalty, GradientVariance())))


@documented
class IGAClassifier(LinearClassifier, _IGA):
    r"""Logistic regression whose gradients agree between environments (IGA).

    With the risk :math:`R_e` of environment e and weights :math:`w` (intercept included), minimises

    .. math::
        \bar R(w) + \lambda \sum_e \| \nabla R_e(w) - \nabla \bar R(w) \|^2 ,
        \qquad \bar R = \frac1E \sum_e R_e .

    The penalty sums over environments, as in the published linear unit tests; Koyama and
    Yamaguchi (2020) average. Gradients depend on the units of the features: "published" takes
    them as they are, "converged" measures gradients in whitened coordinates. The objective is not
    convex: the converged form starts from the minimum of the mean risk and lets the penalty grow
    tenfold a stage.

    Parameters
    ----------
    penalty : float, default=1000.0
        Weight :math:`\lambda` of the penalty, 0 or more.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import IGAClassifier
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("2", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = IGAClassifier(10.0).fit(X, y, environments=e)
    >>> model.coef_.shape
    (1, 10)
    """


@documented
class IGARegressor(LinearRegressor, _IGA):
    """Least squares whose gradients agree between environments (IGA).

    The objective is that of `IGAClassifier`, with the squared error as the loss.

    Parameters
    ----------
    penalty : float, default=1000.0
        Weight of the penalty, 0 or more.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import IGARegressor
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("1", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = IGARegressor(10.0).fit(X, y, environments=e)
    >>> model.coef_.shape
    (10,)
    """
