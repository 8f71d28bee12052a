"""Invariant risk minimisation, its practical form IRMv1."""

from __future__ import annotations

import numpy as np

from isrlearn.paper.baselines._docs import documented
from isrlearn.paper.baselines._estimator import LinearClassifier, LinearRegressor
from isrlearn.paper.baselines._minimizer import Penalized
from isrlearn.paper.baselines._objectives import DummyGradient, MeanRisk, Objective
from isrlearn.paper.baselines._solve import Shares
from isrlearn.validation import check_between

#: The largest weight of the penalty: it leaves the risk a weight that is not rounding error.
ALMOST_ONE = 1.0 - 1e-6


class _IRMv1(Penalized):
    def __init__(
        self,
        penalty: float = 0.9,
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
        check_between("penalty", self.penalty, 0.0, ALMOST_ONE)

    def _objective(self, shares: Shares) -> Objective:
        return super()._objective(shares).scaled(1.0 - self.penalty)

    def _penalized(self, penalty: float, part: float) -> Objective:
        odds = penalty / (1.0 - penalty)
        return Objective(((1.0, MeanRisk()), (part * odds, DummyGradient())))


@documented
class IRMv1Classifier(LinearClassifier, _IRMv1):
    r"""Logistic regression that no environment would rescale or shift (IRMv1).

    With outputs :math:`z = w^\top x + b` and the risk :math:`R_e` of environment e, minimises

    .. math::
        (1 - \lambda) \frac1E \sum_e R_e(z)
        + \lambda \sum_e \bigl\| \nabla_{\alpha, \beta} R_e(\alpha z + \beta)
        |_{\alpha = 1, \beta = 0} \bigr\|^2 .

    This is the form of the published linear unit tests. That of Arjovsky et al. (2019) has no
    :math:`\beta`. The objective is not convex: the converged form starts from the minimum of the
    mean risk and lets the penalty grow tenfold a stage.

    Parameters
    ----------
    penalty : float, default=0.9
        Weight :math:`\lambda` of the penalty, from 0 (the mean risk alone) to just below 1.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import IRMv1Classifier
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("2", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = IRMv1Classifier(0.5).fit(X, y, environments=e)
    >>> model.score(splits.test.X, splits.test.y) > 0.9
    True
    """


@documented
class IRMv1Regressor(LinearRegressor, _IRMv1):
    """Least squares that no environment would rescale or shift (IRMv1).

    The objective is that of `IRMv1Classifier`, with the squared error as the loss.

    Parameters
    ----------
    penalty : float, default=0.9
        Weight of the penalty, from 0 (the mean risk alone) to just below 1.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import IRMv1Regressor
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("1", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = IRMv1Regressor(0.9).fit(X, y, environments=e)
    >>> model.coef_.shape
    (10,)
    """
