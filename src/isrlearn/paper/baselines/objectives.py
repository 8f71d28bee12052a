r"""Losses, risks and objectives of a linear model, with their derivatives.

A risk, the mean loss in one environment, is evaluated at weights ``W`` (p, C) whose last row is
the intercept. The resulting `Point` differentiates with respect to the outputs ``z = X W``;
`Point.backward` carries such an *output gradient* (n, C) to the weights. An objective therefore
adds up the output gradients of its terms and multiplies by X once.

Several models can be evaluated at once, side by side: C columns of W for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import special


class Loss(NamedTuple):
    """A loss of outputs ``z`` (n, C) given targets (n, C), and its derivatives in z."""

    value: Callable[[NDArray, NDArray], NDArray]  # (z, target) -> (n,)
    gradient: Callable[[NDArray, NDArray], NDArray]  # (z, target) -> (n, C)
    #: Product of each sample's Hessian with v: (gradient, target, v) -> (n, C).
    hessian: Callable[[NDArray, NDArray, NDArray], NDArray]


def _logistic(z: NDArray, target: NDArray) -> NDArray:
    # Ten times faster than logaddexp. log1p would keep digits that the mean over samples loses.
    softplus = np.log(1 + np.exp(-np.abs(z))) + np.maximum(z, 0)
    return (softplus - (target + 0.5) * z)[:, 0]


def _logistic_gradient(z: NDArray, target: NDArray) -> NDArray:
    return np.tanh(z * 0.5) * 0.5 - target  # the sigmoid minus 1/2, which cannot overflow


def _logistic_hessian(gradient: NDArray, target: NDArray, v: NDArray) -> NDArray:
    return (0.25 - np.square(gradient + target)) * v


def _cross_entropy(z: NDArray, target: NDArray) -> NDArray:
    top = z.max(axis=1)
    return top + np.log(np.exp(z - top[:, None]).sum(axis=1)) - (target * z).sum(axis=1)


def _cross_entropy_gradient(z: NDArray, target: NDArray) -> NDArray:
    p = z.T.reshape(-1, target.shape[1], len(z))
    p = np.exp(p - p.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p -= target.T
    return p.reshape(-1, len(z)).T


def _cross_entropy_hessian(gradient: NDArray, target: NDArray, v: NDArray) -> NDArray:
    p = gradient + target
    pv = p * v
    return pv - p * pv.sum(axis=1, keepdims=True)


#: Binary cross-entropy of one output. The target is the class, 0 or 1, minus 1/2.
LOGISTIC = Loss(_logistic, _logistic_gradient, _logistic_hessian)
#: Cross-entropy of K outputs. The target is the unit vector of the class.
SOFTMAX = Loss(_cross_entropy, _cross_entropy_gradient, _cross_entropy_hessian)
#: Squared error, summed over the outputs.
SQUARED = Loss(
    lambda z, target: np.square(z - target).sum(axis=1),
    lambda z, target: 2.0 * (z - target),
    lambda gradient, target, v: 2.0 * v,
)


@dataclass(frozen=True, eq=False)
class Risk:
    """Mean loss over the samples of one environment, a function of the weights."""

    X: NDArray  # (n, p), last column ones; column-major: faster to multiply when p is small
    target: NDArray  # (n, C)
    weight: NDArray | float  # (n, 1) adding up to one, or 1/n
    loss: Loss

    def at(self, W: NDArray) -> Point:
        """The risk at weights W (p, C)."""
        return Point(self, W)


class Point:
    """A `Risk` at some weights: the quantities that the terms of an objective are made of."""

    def __init__(self, of: Risk, W: NDArray) -> None:
        self.of = of
        # Column-major: sums over few classes are slow in numpy unless samples are contiguous.
        self.z = np.matmul(of.X, W, order="F")
        self.ones = of.X[:, -1:]  # not all one if the rows stand for samples; `environment_risks`
        self.gradient = of.loss.gradient(self.z, of.target)  # output gradient of the risk

    def backward(self, output_gradient: NDArray) -> NDArray:
        """Gradient (p, C) with respect to the weights."""
        if isinstance(self.of.weight, float):  # cheaper after the product
            return self.of.X.T @ output_gradient * self.of.weight
        return self.of.X.T @ (self.of.weight * output_gradient)

    def hessian(self, U: NDArray) -> NDArray:
        """Output gradient of the derivative of the risk in the direction U (p, C)."""
        return self.of.loss.hessian(self.gradient, self.of.target, self.of.X @ U)

    @cached_property
    def risk(self) -> float:
        """The mean loss."""
        return float((self.of.weight * self.of.loss.value(self.z, self.of.target)[:, None]).sum())

    @cached_property
    def dummy(self) -> tuple[NDArray, NDArray]:
        """Derivatives of the risk of ``a z + b`` with respect to a and b, at a = 1, b = 0."""
        found = (self.of.weight * self.z * self.gradient).sum(axis=0), self.mean(self.gradient)
        if self.of.loss is SOFTMAX:
            return found[0].sum(), found[1].sum()
        return found  # of each of the models side by side

    def dummy_gradient(self, a: NDArray, b: NDArray) -> NDArray:
        """Output gradient of a times the first of these derivatives plus b times the second."""
        line = self.z * a + self.ones * b
        return self.of.loss.hessian(self.gradient, self.of.target, line) + self.gradient * a

    def spread(self, centre: NDArray) -> float:
        """Mean squared distance of the outputs from a centre (C,), averaged over the outputs."""
        away = self.z - self.ones * centre
        return float(np.vdot(self.of.weight * away, away)) / away.shape[1]

    def spread_gradient(self, centre: NDArray) -> NDArray:
        """Output gradient of `spread` with the centre held fixed."""
        return (self.z - self.ones * centre) * (2.0 / self.z.shape[1])

    def mean(self, v: NDArray) -> NDArray:
        """Weighted mean of v (n, C) over samples."""
        return self.ones[:, 0] @ (self.of.weight * v)


def environment_risks(
    X: NDArray,
    target: NDArray,
    codes: NDArray[np.intp],
    weight: NDArray | None,
    loss: Loss,
    dtype: DTypeLike = np.float64,
) -> tuple[list[Risk], NDArray[np.float64]]:
    """The risk in each environment 0 .. E-1, and its share of the samples' weight."""
    risks, p = [], X.shape[1] + 1
    shares = np.bincount(codes, weight).astype(np.float64)
    for e, share in enumerate(shares):
        rows = np.flatnonzero(codes == e)
        w = 1.0 / len(rows) if weight is None else (weight[rows, None] / share).astype(dtype)
        homogeneous = np.ones((len(rows), p), dtype, order="F")
        homogeneous[:, :-1] = X[rows]
        if loss is SQUARED:
            # The squared error depends on second moments only, so the R of a QR decomposition,
            # which has as many rows as columns, can stand for the samples.
            R: NDArray = np.linalg.qr(np.hstack([homogeneous, target[rows]]) * np.sqrt(w)).R
            risks.append(Risk(R[:, :p], R[:, p:], 1.0, loss))
        else:
            risks.append(Risk(homogeneous, target[rows].astype(dtype), w, loss))
    return risks, shares / shares.sum()


Points = Sequence[Point]


class Term(Protocol):
    """A function of the risks in all environments."""

    def _value(self, points: Points) -> float:
        """The term at these points."""

    def _gradients(self, points: Points) -> list[NDArray]:
        """Its output gradient in each environment; see `Point.backward`."""


@dataclass(frozen=True)
class Objective:
    """A weighted sum of terms."""

    terms: tuple[tuple[float, Term], ...]

    def scaled(self, factor: float) -> Objective:
        """The objective times a factor."""
        return Objective(tuple((factor * weight, term) for weight, term in self.terms))

    def value(self, points: Points) -> float:
        """The objective at these points."""
        return sum(weight * term._value(points) for weight, term in self.terms if weight)

    def gradient(self, points: Points) -> NDArray:
        """Its gradient with respect to the weights (p, C)."""
        dtype = points[0].z.dtype  # kept by weights, one or one per column, of the same precision
        parts = [
            (np.asarray(weight, dtype), term._gradients(points))
            for weight, term in self.terms
            if np.any(weight)
        ]
        slopes = []
        for e, point in enumerate(points):
            total = reduce(np.add, [w * gradients[e] for w, gradients in parts])
            slopes.append(point.backward(total))
        return np.add.reduce(slopes)


@dataclass(frozen=True)
class MeanRisk:
    """Mean of the risks: unweighted over environments, or over all samples given the shares."""

    shares: tuple[float, ...] | None = None

    def _shares(self, points: Points) -> Sequence[float]:
        return self.shares or [1.0 / len(points)] * len(points)

    def _value(self, points: Points) -> float:
        return sum(s * p.risk for s, p in zip(self._shares(points), points, strict=True))

    def _gradients(self, points: Points) -> list[NDArray]:
        return [p.gradient * float(s) for s, p in zip(self._shares(points), points, strict=True)]


class DummyGradient:
    """Sum over environments of the squared gradient of the risk of ``a z + b`` in (a, b)."""

    def _value(self, points: Points) -> float:
        return float(sum(np.sum(a * a + b * b) for a, b in (p.dummy for p in points)))

    def _gradients(self, points: Points) -> list[NDArray]:
        return [p.dummy_gradient(2.0 * p.dummy[0], 2.0 * p.dummy[1]) for p in points]


class GradientVariance:
    """Sum over environments of the squared distance of the risk's gradient from their mean."""

    @staticmethod
    def _away(points: Points) -> NDArray:
        gradients = np.stack([p.backward(p.gradient) for p in points])  # (E, p, C)
        return gradients - gradients.mean(axis=0)

    def _value(self, points: Points) -> float:
        return float(np.square(self._away(points)).sum())

    def _gradients(self, points: Points) -> list[NDArray]:
        # The derivative of the mean drops out because the distances add up to zero.
        away = self._away(points)
        return [p.hessian(2.0 * u) for p, u in zip(points, away, strict=True)]


class RiskVariance:
    """Variance of the risk between environments."""

    def _value(self, points: Points) -> float:
        return float(np.var([p.risk for p in points]))

    def _gradients(self, points: Points) -> list[NDArray]:
        risks = np.array([p.risk for p in points])
        weights = 2.0 * (risks - risks.mean()) / len(risks)
        return [p.gradient * float(w) for w, p in zip(weights, points, strict=True)]


@dataclass(frozen=True)
class SoftMaximum:
    """A smooth maximum of the risks: at most ``smoothing * log(E)`` above the largest."""

    smoothing: float

    def _value(self, points: Points) -> float:
        risks = np.array([p.risk for p in points])
        return float(self.smoothing * special.logsumexp(risks / self.smoothing))

    def _gradients(self, points: Points) -> list[NDArray]:
        weights = special.softmax([p.risk / self.smoothing for p in points])
        return [p.gradient * float(w) for w, p in zip(weights, points, strict=True)]


@dataclass(frozen=True)
class OutputVariance:
    """Variance of the outputs: of all samples given the shares, else the mean over environments."""

    shares: tuple[float, ...] | None = None

    def _parts(self, points: Points) -> list[tuple[Point, float, NDArray]]:
        """Each point with its share and the mean that its outputs are compared with."""
        means = np.array([p.mean(p.z) for p in points])
        if self.shares is None:
            return [(p, 1.0 / len(points), m) for p, m in zip(points, means, strict=True)]
        overall = np.asarray(self.shares, means.dtype) @ means
        return [(p, float(s), overall) for p, s in zip(points, self.shares, strict=True)]

    def _value(self, points: Points) -> float:
        return sum(share * p.spread(centre) for p, share, centre in self._parts(points))

    def _gradients(self, points: Points) -> list[NDArray]:
        # A mean minimises the spread around it, so its own derivative drops out.
        return [p.spread_gradient(centre) * share for p, share, centre in self._parts(points)]
