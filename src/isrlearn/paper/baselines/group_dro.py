"""Distributionally robust optimisation over groups: the worst cell decides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isrlearn.paper.baselines._docs import documented
from isrlearn.paper.baselines._estimator import LinearClassifier, LinearRegressor
from isrlearn.paper.baselines._minimizer import Minimizer
from isrlearn.paper.baselines._objectives import Objective, SoftMaximum
from isrlearn.paper.baselines._optimizers import Gradient
from isrlearn.paper.baselines._risks import Risk
from isrlearn.paper.baselines._solve import Shares, Stage
from isrlearn.validation import check_between


class _GroupDRO(Minimizer):
    _by_cell = True

    def __init__(
        self,
        smoothing: float = 1e-3,
        step: float = 0.01,
        *,
        optimizer: str = "converged",
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
        missing_environments: str = "raise",
    ) -> None:
        self.smoothing = smoothing
        self.step = step
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.missing_environments = missing_environments

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_between("smoothing", self.smoothing, 1e-6, np.inf)
        check_between("step", self.step, 0.0, np.inf)

    def _objective(self, shares: Shares) -> Objective:
        return Objective(((1.0, SoftMaximum(self.smoothing)),))

    def _stages(self, shares: Shares) -> Iterable[Stage]:
        # A sharp maximum is hard to descend from afar.
        for smoothing in (1.0, 0.1, 0.01):
            if smoothing > self.smoothing:
                yield Stage(Objective(((1.0, SoftMaximum(smoothing)),)), exact=False)
        yield Stage(self._objective(shares))

    def _gradient(self, risks: Sequence[Risk], shares: Shares) -> Gradient:
        return _adversary(risks, self.step)


def _adversary(risks: Sequence[Risk], step: float) -> Gradient:
    """Gradient of a weighted mean risk whose weights grow, from call to call, where risk is high.

    Each call multiplies a weight by the exponential of step times the risk.
    """
    scores = np.zeros(len(risks))

    def gradient(W: NDArray) -> NDArray:
        nonlocal scores
        points = [risk.at(W) for risk in risks]
        scores = scores + step * np.array([p.risk for p in points])
        weights = special.softmax(scores)
        return np.add.reduce([p.pull(p.slope) * w for p, w in zip(points, weights, strict=True)])

    return gradient


@documented
class GroupDROClassifier(LinearClassifier, _GroupDRO):
    r"""Logistic regression for the worst cell, a class in an environment (group DRO).

    Minimises the largest of the cells' risks (Sagawa et al., 2020): smoothed when converged,

    .. math::
        \tau \log \sum_g \exp(R_g / \tau) ,

    which is above the maximum by :math:`\tau` times the logarithm of the number of cells at most;
    or, as published, by Adam on a weighted mean of the risks whose weights are multiplied by
    :math:`\exp(\eta R_g)` in each step.

    Parameters
    ----------
    smoothing : float, default=1e-3
        How smooth the maximum is, :math:`\tau`, above 0 ("converged" only).
    step : float, default=0.01
        Step of the cells' weights, :math:`\eta` ("published" only).
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import GroupDROClassifier
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("2", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = GroupDROClassifier().fit(X, y, environments=e)
    >>> model.score(splits.test.X, splits.test.y) > 0.99
    True
    """


@documented
class GroupDRORegressor(LinearRegressor, _GroupDRO):
    """Least squares for the worst environment (group DRO).

    The objective is that of `GroupDROClassifier`, with the squared error as the loss and
    environments for cells.

    Parameters
    ----------
    smoothing : float, default=1e-3
        How smooth the maximum is, above 0 ("converged" only).
    step : float, default=0.01
        Step of the environments' weights ("published" only).
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from isrlearn.paper.baselines import GroupDRORegressor
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("1", n_environments=3, n_samples=1000, random_state=0)
    >>> X, y, e = splits.train.X, splits.train.y, splits.train.environments
    >>> model = GroupDRORegressor().fit(X, y, environments=e)
    >>> model.coef_.shape
    (10,)
    """
