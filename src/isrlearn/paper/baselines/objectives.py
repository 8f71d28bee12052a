"""Objectives: weighted sums of terms, each a function of the risks in the environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isrlearn.paper.baselines.risks import Point

Points = Sequence[Point]


class Term(Protocol):
    """A function of the risks in all environments."""

    def value(self, points: Points) -> float:
        """The term at these points."""

    def gradients(self, points: Points) -> list[NDArray]:
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
        return sum(weight * term.value(points) for weight, term in self.terms if weight)

    def gradient(self, points: Points) -> NDArray:
        """Its gradient with respect to the weights (p, C)."""
        dtype = points[0].z.dtype  # kept by weights, one or one per column, of the same precision
        parts = [
            (np.asarray(weight, dtype), term.gradients(points))
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

    def value(self, points: Points) -> float:
        """The term at these points."""
        return sum(s * p.risk for s, p in zip(self._shares(points), points, strict=True))

    def gradients(self, points: Points) -> list[NDArray]:
        """Its output gradient in each environment."""
        return [p.gradient * float(s) for s, p in zip(self._shares(points), points, strict=True)]


@dataclass(frozen=True)
class DummyGradient:
    """Sum over environments of the squared gradient of the risk of ``a z + b`` in (a, b)."""

    def value(self, points: Points) -> float:
        """The term at these points."""
        return float(sum(np.sum(a * a + b * b) for a, b in (p.dummy for p in points)))

    def gradients(self, points: Points) -> list[NDArray]:
        """Its output gradient in each environment."""
        return [p.dummy_gradient(2.0 * p.dummy[0], 2.0 * p.dummy[1]) for p in points]


@dataclass(frozen=True)
class GradientVariance:
    """Sum over environments of the squared distance of the risk's gradient from their mean."""

    @staticmethod
    def _away(points: Points) -> NDArray:
        gradients = np.stack([p.backward(p.gradient) for p in points])  # (E, p, C)
        return gradients - gradients.mean(axis=0)

    def value(self, points: Points) -> float:
        """The term at these points."""
        return float(np.square(self._away(points)).sum())

    def gradients(self, points: Points) -> list[NDArray]:
        """Its output gradient in each environment."""
        # The derivative of the mean drops out because the distances add up to zero.
        away = self._away(points)
        return [p.hessian(2.0 * u) for p, u in zip(points, away, strict=True)]


@dataclass(frozen=True)
class RiskVariance:
    """Variance of the risk between environments."""

    def value(self, points: Points) -> float:
        """The term at these points."""
        return float(np.var([p.risk for p in points]))

    def gradients(self, points: Points) -> list[NDArray]:
        """Its output gradient in each environment."""
        risks = np.array([p.risk for p in points])
        weights = 2.0 * (risks - risks.mean()) / len(risks)
        return [p.gradient * float(w) for w, p in zip(weights, points, strict=True)]


@dataclass(frozen=True)
class SoftMaximum:
    """A smooth maximum of the risks: at most ``smoothing * log(E)`` above the largest."""

    smoothing: float

    def value(self, points: Points) -> float:
        """The term at these points."""
        risks = np.array([p.risk for p in points])
        return float(self.smoothing * special.logsumexp(risks / self.smoothing))

    def gradients(self, points: Points) -> list[NDArray]:
        """Its output gradient in each environment."""
        weights = special.softmax([p.risk / self.smoothing for p in points])
        return [p.gradient * float(w) for w, p in zip(weights, points, strict=True)]


@dataclass(frozen=True)
class OutputVariance:
    """Variance of the outputs: of all samples given the shares, else the mean over environments."""

    shares: tuple[float, ...] | None = None

    def _parts(self, points: Points) -> list[tuple[Point, float, NDArray]]:
        """Each point with its share and the mean that its outputs are compared with."""
        means = np.array([p.mean for p in points])
        if self.shares is None:
            return [(p, 1.0 / len(points), m) for p, m in zip(points, means, strict=True)]
        overall = np.asarray(self.shares, means.dtype) @ means
        return [(p, float(s), overall) for p, s in zip(points, self.shares, strict=True)]

    def value(self, points: Points) -> float:
        """The term at these points."""
        return sum(share * p.spread(centre) for p, share, centre in self._parts(points))

    def gradients(self, points: Points) -> list[NDArray]:
        """Its output gradient in each environment."""
        # A mean minimises the spread around it, so its own derivative drops out.
        return [p.spread_gradient(centre) * share for p, share, centre in self._parts(points)]
