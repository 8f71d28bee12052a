"""Methods that compare environments: IRMv1, IB-IRM, IGA, V-REx and ANDMask."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isrlearn.paper.baselines.erm import Minimizer
from isrlearn.paper.baselines.linear import LinearBaseline, both_tasks, parameter
from isrlearn.paper.baselines.objectives import (
    SQUARED,
    DummyGradient,
    GradientVariance,
    MeanRisk,
    Objective,
    OutputVariance,
    Risk,
    RiskVariance,
)
from isrlearn.paper.baselines.solve import Gradient, Problem, Shares

#: Fractions of a penalty that lead to the whole of it. The minimum without the penalty is easy to
#: find; a search with the whole penalty from zero weights gets stuck near them.
_ANNEALING = (0.0, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
#: The largest weight of IRM's penalty: it leaves the risk a weight that is not rounding error.
_ALMOST_ONE = 1.0 - 1e-6


class _Penalized(Minimizer):
    """A method that adds a penalty to the mean of the environments' risks."""

    @abstractmethod
    def _penalized(self, fraction: float) -> Objective:
        """The objective, divided by the weight of the mean risk, with a fraction of the penalty."""

    def _objective(self, shares: Shares) -> Objective:
        return self._penalized(1.0)

    def _stages(self, shares: Shares) -> Sequence[Objective]:
        return [self._penalized(fraction) for fraction in _ANNEALING]


@dataclass(eq=False, repr=False)
class _IRMv1(_Penalized):
    r"""{model} that rescaling or shifting improves in no environment (IRMv1).

    With outputs :math:`z = w^\top x + b`, the risk :math:`R_e` of environment e and the weight
    :math:`\lambda` of the penalty, minimises

    .. math::
        (1 - \lambda) \frac1E \sum_e R_e(z)
        + \lambda \sum_e \bigl\| \nabla_{\alpha, \beta} R_e(\alpha z + \beta)
        |_{\alpha = 1, \beta = 0} \bigr\|^2 .

    This is the form of the published linear unit tests. That of Arjovsky et al. (2019) has no
    :math:`\beta`. The objective is not convex: the converged form starts from the minimum of the
    mean risk and increases the penalty tenfold per stage.
    """

    penalty: float = parameter(
        0.9,
        "float",
        "Weight of the penalty, from 0 (the mean risk alone) to just below 1.",
        high=_ALMOST_ONE,
    )
    _side_by_side = True

    def _objective(self, shares: Shares) -> Objective:
        return self._penalized(1.0).scaled(1.0 - self.penalty)

    def _penalized(self, fraction: float) -> Objective:
        odds = self.penalty / (1.0 - self.penalty)
        return Objective(((1.0, MeanRisk()), (fraction * odds, DummyGradient())))

    def _gradient(self, risks: Sequence[Risk], shares: Shares) -> Gradient:
        if risks[0].loss is not SQUARED or len(self._penalized(1.0).terms) > 2:
            return super()._gradient(risks, shares)
        # The same from second moments, of all environments at once.
        A = 2 * np.stack([risk.X.T @ risk.X for risk in risks])
        b = 2 * np.stack([risk.X.T @ risk.target for risk in risks])

        def gradient(W: NDArray) -> NDArray:
            AW = A @ W
            g = AW - b  # (E, p, C): of the risks; their last rows are the derivatives by a shift
            scale = (W * g).sum(axis=1, keepdims=True)
            penalty = scale * (g + AW) + g[:, -1:] * A[:, -1, :, None]
            return (1 - self.penalty) * g.mean(axis=0) + 2 * self.penalty * penalty.sum(axis=0)

        return gradient


IRMv1Classifier, IRMv1Regressor = both_tasks(_IRMv1)


@dataclass(eq=False, repr=False)
class _IBIRM(_IRMv1):
    r"""IRMv1 with a penalty on the variance of its outputs (IB-IRM).

    Adds to the objective of `IRMv1Classifier` the variance of the outputs, computed in each
    environment and averaged, with the weight :math:`\gamma` of the bottleneck (Ahuja et al., 2021):

    .. math::
        \frac{\gamma}{E} \sum_e \operatorname{Var}_e(z) .
    """

    penalty: float = parameter(
        0.5, "float", "Weight of IRMv1's penalty, from 0 to just below 1.", high=_ALMOST_ONE
    )
    bottleneck: float = parameter(0.1, "float", "Weight of the variance of the outputs.")
    _side_by_side = False

    def _penalized(self, fraction: float) -> Objective:
        weight = self.bottleneck / (1.0 - self.penalty)
        return Objective((*super()._penalized(fraction).terms, (weight, OutputVariance())))


IBIRMClassifier, IBIRMRegressor = both_tasks(_IBIRM)


@dataclass(eq=False, repr=False)
class _IGA(_Penalized):
    r"""{model} whose gradients agree between environments (IGA).

    With the risk :math:`R_e` of environment e, weights :math:`w` (intercept included) and the
    weight :math:`\lambda` of the penalty, minimises

    .. math::
        \bar R(w) + \lambda \sum_e \| \nabla R_e(w) - \nabla \bar R(w) \|^2 ,
        \qquad \bar R = \frac1E \sum_e R_e .

    The penalty sums over environments, as in the published linear unit tests; Koyama and
    Yamaguchi (2020) average. Gradients depend on the units of the features: "published" uses the
    features as they are, "converged" measures gradients in whitened coordinates. The objective is
    not convex: the converged form starts from the minimum of the mean risk and increases the
    penalty tenfold per stage.
    """

    penalty: float = parameter(1000.0, "float", "Weight of the penalty.")
    _side_by_side = True

    def _penalized(self, fraction: float) -> Objective:
        return Objective(((1.0, MeanRisk()), (fraction * self.penalty, GradientVariance())))


IGAClassifier, IGARegressor = both_tasks(_IGA)


@dataclass(eq=False, repr=False)
class _VREx(_Penalized):
    r"""{model} with similar risks in all environments (V-REx).

    With the risk :math:`R_e` of environment e and the weight :math:`\lambda` of the penalty,
    minimises (Krueger et al., 2021)

    .. math::
        \frac1E \sum_e R_e + \lambda \operatorname{Var}_e(R_e) .
    """

    penalty: float = parameter(10.0, "float", "Weight of the penalty.")

    def _penalized(self, fraction: float) -> Objective:
        return Objective(((1.0, MeanRisk()), (fraction * self.penalty, RiskVariance())))


VRExClassifier, VRExRegressor = both_tasks(_VREx)


@dataclass(eq=False, repr=False)
class _ANDMask(LinearBaseline):
    """{model} by steps on which the environments agree (ANDMask).

    Gradient descent on the features as they are. In each environment the gradient of the
    coefficients is scaled to norm one. A weight changes only if its gradient's signs, added up
    over the E environments, exceed ``agreement * E`` in absolute value. All weights decay by
    ``learning_rate * weight_decay`` per step. These are the steps of the published linear unit
    tests. They do not descend an objective, so there is no converged form, and where environments
    disagree the result depends on the initial weights.
    """

    agreement: float = parameter(
        0.9, "float", "Share of the environments by which signs must agree, from 0 to 1.", high=1.0
    )
    weight_decay: float = parameter(
        0.0,
        "float",
        "Fraction of the weights, times ``learning_rate``, lost in each step.",
        kw_only=True,
    )

    def _weights(self, problem: Problem) -> tuple[NDArray[np.float64], int]:
        # Steps of a fixed length around the minimum make rounding errors grow.
        problem = problem.distinct()
        risks, _ = problem.risks(problem.precision)
        W = problem.start(self.random_state)
        for _ in range(self.max_iter):
            points = [risk.at(W) for risk in risks]
            gradients = np.stack([point.backward(point.gradient) for point in points])
            W = W * (1.0 - self.learning_rate * self.weight_decay)
            W -= self.learning_rate * masked_gradient(gradients, self.agreement)
        return W.astype(np.float64), self.max_iter


def masked_gradient(gradients: NDArray, agreement: float) -> NDArray:
    """Mean over environments of scaled gradients (E, p, C), zero where their signs disagree."""
    norms = np.linalg.norm(gradients[:, :-1], axis=(1, 2), keepdims=True)
    scaled = gradients.copy()
    scaled[:, :-1] /= np.where(norms > 0, norms, 1)
    agree = np.abs(np.sign(scaled).sum(axis=0)) > agreement * len(scaled)
    return scaled.mean(axis=0) * agree


ANDMaskClassifier, ANDMaskRegressor = both_tasks(_ANDMask)
