"""Methods that minimise a mean or a maximum of risks: ERM, IB-ERM, reweighting and group DRO."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import special
from sklearn.base import clone

from isrlearn.paper.baselines.linear import LinearBaseline, both_tasks, parameter
from isrlearn.paper.baselines.objectives import (
    LOGISTIC,
    MeanRisk,
    Objective,
    OutputVariance,
    Risk,
    SoftMaximum,
)
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

    #: Whether the gradients of models of one output can be computed together, one column each.
    _side_by_side: ClassVar[bool] = False

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
            return converged(problem, self._stages, self.weight_decay, self.tol, self.max_iter)
        return self._steps(problem, problem.start(self.random_state)), self.max_iter

    def _steps(self, problem: Problem, start: NDArray) -> NDArray[np.float64]:
        """Weights that the published steps reach from some weights."""
        gradient = self._gradient(*problem.risks(problem.precision))
        W = adam(gradient, start, self.learning_rate, self.weight_decay, self.max_iter)
        return W.astype(np.float64)

    @staticmethod
    def fit_together(models: Sequence[Any], X: Any, y: Any, environments: Any) -> None:
        """Fit models that differ in numbers only by the published steps, together if possible."""
        joint: Any = clone(models[0])
        *_, problem = (model._problem(X, y, environments, None) for model in models)
        n_outputs = problem.target.shape[1]
        if not joint._side_by_side or (n_outputs > 1 and not joint._ignores_environments):
            for model in models:
                model.fit(X, y, environments)
            return
        start = np.hstack([problem.start(model.random_state) for model in models])
        for f in fields(joint):
            values = [getattr(model, f.name) for model in models]
            if f.name != "random_state" and isinstance(values[0], float):
                setattr(joint, f.name, np.repeat(values, n_outputs))
        found = np.split(joint._steps(problem, start), len(models), axis=1)
        for model, W in zip(models, found, strict=True):
            model._store(W)
            model.n_iter_ = model.max_iter


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
    _side_by_side = True

    def _objective(self, shares: Shares) -> Objective:
        return Objective(((1.0, MeanRisk(tuple(shares))),))

    def _gradient(self, risks: Sequence[Risk], shares: Shares) -> Gradient:
        plain = len(self._objective(shares).terms) == 1
        if not plain or any(r.loss is not LOGISTIC or np.ndim(r.weight) for r in risks):
            return super()._gradient(risks, shares)
        # The same in fewer passes: the sigmoid of z, minus 1/2, is half the tanh of z / 2.
        halves, n = [risk.X / 2 for risk in risks], sum(len(risk.X) for risk in risks)
        targets = np.add.reduce([risk.X.T @ risk.target for risk in risks])

        def gradient(W: NDArray) -> NDArray:
            return (np.add.reduce([X.T @ np.tanh(X @ W) for X in halves]) - targets) / n

        return gradient


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
    _side_by_side = False

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
    """Gradient of a weighted mean risk; with each call the weights grow where risk is high."""
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
