"""Methods that minimise a mean or a maximum of risks: ERM, IB-ERM, reweighting and group DRO."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isrlearn.paper.baselines.linear import LinearBaseline, both_tasks, parameter
from isrlearn.paper.baselines.objectives import MeanRisk, Objective, OutputVariance, SoftMaximum
from isrlearn.paper.baselines.risks import Risk
from isrlearn.paper.baselines.solve import Gradient, Problem, Shares, adam, converged


@dataclass(eq=False, repr=False, kw_only=True)
class Minimizer(LinearBaseline):
    """A method that minimises an objective, by Adam as published or to convergence."""

    optimizer: str = parameter(
        "converged",
        '{"converged", "published"}',
        '"converged" is L-BFGS in whitened coordinates, until no entry of the gradient there '
        'exceeds ``tol``: the units of the features do not matter. "published" is ``max_iter`` '
        "steps of full-batch Adam on the features as they are, from small random weights, as in "
        "the published linear unit tests.",
        choices=("converged", "published"),
    )
    tol: float = parameter(
        1e-6,
        "float",
        'Largest entry of the gradient at convergence ("converged" only) of an objective in which '
        "the mean risk has weight 1.",
    )

    @abstractmethod
    def _objective(self, shares: Shares) -> Objective:
        """What is minimised, given each environment's share of the weight."""

    def _stages(self, shares: Shares) -> Sequence[Objective]:
        """The objectives that the converged form minimises in turn; the last one is meant."""
        return [self._objective(shares)]

    def _gradient(self, risks: Sequence[Risk], shares: Shares) -> Gradient:
        """The function that Adam follows: the gradient (p, C) at weights (p, C)."""
        objective = self._objective(shares)
        return lambda W: objective.gradient([risk.at(W) for risk in risks])

    def _weights(self, problem: Problem) -> tuple[NDArray[np.float64], int]:
        if self.optimizer == "converged":
            return converged(
                problem,
                self._stages,
                weight_decay=self.weight_decay,
                tol=self.tol,
                max_iter=self.max_iter,
            )
        W = adam(
            self._gradient(*problem.risks(problem.precision)),
            problem.start(self.random_state),
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            n_steps=self.max_iter,
        )
        return W.astype(np.float64), self.max_iter


@dataclass(eq=False, repr=False, kw_only=True)
class _ERM(Minimizer):
    """{model} on all samples, whatever their environment.

    Trained on samples whose spurious features were permuted, it is the oracle of the linear unit
    tests.
    """

    missing_environments: str = parameter(
        "single",
        '{"raise", "single"}',
        "Whether ``fit`` raises an error when environments are not passed. They change nothing.",
        choices=("raise", "single"),
    )
    _ignores_environments = True

    def _objective(self, shares: Shares) -> Objective:
        return Objective(((1.0, MeanRisk(tuple(shares))),))


ERMClassifier, ERMRegressor = both_tasks(_ERM)


@dataclass(eq=False, repr=False)
class _IBERM(_ERM):
    r"""{model} with a penalty on the variance of its outputs (IB-ERM).

    With outputs :math:`z = w^\top x + b` of all samples, whatever their environment, and the
    weight :math:`\gamma` of the bottleneck, minimises (Ahuja et al., 2021, whose variance divides
    by n - 1 where this one divides by n)

    .. math::
        R(z) + \gamma \operatorname{Var}(z) .
    """

    bottleneck: float = parameter(0.1, "float", "Weight of the variance of the outputs.")

    def _objective(self, shares: Shares) -> Objective:
        every = tuple(shares)
        return Objective(((1.0, MeanRisk(every)), (self.bottleneck, OutputVariance(every))))


IBERMClassifier, IBERMRegressor = both_tasks(_IBERM)


class _Reweighted(Minimizer):
    """{model} in which every cell, a class in an environment, has the same weight.

    A sample's weight is ``n / (n_cells * n_cell)``.
    """

    _by_cell = True

    def _objective(self, shares: Shares) -> Objective:
        return Objective(((1.0, MeanRisk()),))


ReweightedClassifier, ReweightedRegressor = both_tasks(_Reweighted)


@dataclass(eq=False, repr=False)
class _GroupDRO(Minimizer):
    r"""{model} for the worst cell, a class in an environment (group DRO).

    Minimises the largest of the cells' risks (Sagawa et al., 2020). The converged form smooths
    the maximum with the smoothing :math:`\tau`,

    .. math::
        \tau \log \sum_g \exp(R_g / \tau) ,

    which exceeds the maximum by at most :math:`\tau` times the logarithm of the number of cells.
    The published form is Adam on a weighted mean of the risks whose weights are multiplied by
    :math:`\exp(\eta R_g)` in each step, :math:`\eta` being the parameter ``step``.
    """

    smoothing: float = parameter(
        1e-3, "float", 'Smoothness of the maximum, above 0 ("converged" only).', low=1e-6
    )
    step: float = parameter(
        0.01, "float", 'Step size of the weights of the cells ("published" only).'
    )
    _by_cell = True

    def _objective(self, shares: Shares) -> Objective:
        return Objective(((1.0, SoftMaximum(self.smoothing)),))

    def _stages(self, shares: Shares) -> Sequence[Objective]:
        # Far from its minimum, a sharp maximum is hard to descend.
        smoothings = [s for s in (1.0, 0.1, 0.01) if s > self.smoothing]
        return [Objective(((1.0, SoftMaximum(s)),)) for s in (*smoothings, self.smoothing)]

    def _gradient(self, risks: Sequence[Risk], shares: Shares) -> Gradient:
        return adversary(risks, self.step)


def adversary(risks: Sequence[Risk], step: float) -> Gradient:
    """Gradient of a weighted mean risk whose weights grow, from call to call, where risk is high.

    Each call multiplies the weight of a cell by the exponential of step times its risk.
    """
    scores = np.zeros(len(risks))

    def gradient(W: NDArray) -> NDArray:
        nonlocal scores
        points = [risk.at(W) for risk in risks]
        scores = scores + step * np.array([p.risk for p in points])
        weights = special.softmax(scores)
        parts = [p.backward(p.gradient) * w for p, w in zip(points, weights, strict=True)]
        return np.add.reduce(parts)

    return gradient


GroupDROClassifier, GroupDRORegressor = both_tasks(_GroupDRO)
