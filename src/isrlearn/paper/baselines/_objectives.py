"""Objectives: sums of weighted terms, each a function of the risks in the environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import special

from isrlearn.paper.baselines._risks import Point


class Term(Protocol):
    """A function of the risks in all environments."""

    def value(self, points: Sequence[Point]) -> float:
        """The term at these points."""

    def slopes(self, points: Sequence[Point]) -> list[NDArray]:
        """Its slope in each environment, to be pulled by that environment's point."""


@dataclass(frozen=True)
class Objective:
    """A sum of weighted terms."""

    terms: tuple[tuple[float, Term], ...]

    def scaled(self, factor: float) -> Objective:
        """The objective times a factor."""
        return Objective(tuple((factor * weight, term) for weight, term in self.terms))

    def value(self, points: Sequence[Point]) -> float:
        """The objective at these points."""
        return sum(weight * term.value(points) for weight, term in self.terms if weight)

    def gradient(self, points: Sequence[Point]) -> NDArray:
        """Its gradient with respect to the weights (p, C)."""
        parts = [(weight, term.slopes(points)) for weight, term in self.terms if weight]
        pulled = [
            point.pull(_combination([(c, slopes[e]) for c, slopes in parts]))
            for e, point in enumerate(points)
        ]
        return np.add.reduce(pulled)


def _combination(parts: list[tuple[float, NDArray]]) -> NDArray:
    """Sum of c * slope. Plain floats keep the precision of the slopes."""
    (c, slope), *rest = parts
    if c == 1.0 and not rest:
        return slope
    combined = slope * float(c)
    for c, slope in rest:
        combined += slope * float(c)
    return combined


@dataclass(frozen=True)
class MeanRisk:
    """Mean of the risks: of environments counted alike, or of all samples with their shares."""

    shares: tuple[float, ...] | None = None

    def _shares(self, points: Sequence[Point]) -> Sequence[float]:
        return self.shares or [1.0 / len(points)] * len(points)

    def value(self, points: Sequence[Point]) -> float:
        return sum(s * p.risk for s, p in zip(self._shares(points), points, strict=True))

    def slopes(self, points: Sequence[Point]) -> list[NDArray]:
        return [p.slope * float(s) for s, p in zip(self._shares(points), points, strict=True)]


@dataclass(frozen=True)
class DummyGradient:
    """Sum over environments of the squared gradient of the risk of ``a z + b`` in (a, b).

    It is zero where rescaling or shifting the outputs would help in no environment.
    """

    def value(self, points: Sequence[Point]) -> float:
        return sum(a * a + b * b for a, b in (p.dummy for p in points))

    def slopes(self, points: Sequence[Point]) -> list[NDArray]:
        return [self._slope(p) for p in points]

    @staticmethod
    def _slope(point: Point) -> NDArray:
        a, b = point.dummy
        return point.dummy_slope(2.0 * a, 2.0 * b)


@dataclass(frozen=True)
class GradientVariance:
    """Sum over environments of the squared distance of the risk's gradient from their mean."""

    @staticmethod
    def _away(points: Sequence[Point]) -> NDArray:
        gradients = np.stack([p.pull(p.slope) for p in points])  # (E, p, C)
        return gradients - gradients.mean(axis=0)

    def value(self, points: Sequence[Point]) -> float:
        return float(np.square(self._away(points)).sum())

    def slopes(self, points: Sequence[Point]) -> list[NDArray]:
        # The mean's own derivative drops out: the distances add up to zero.
        away = self._away(points)
        return [p.curved(2.0 * u) for p, u in zip(points, away, strict=True)]


@dataclass(frozen=True)
class RiskVariance:
    """Variance of the risk between environments."""

    def value(self, points: Sequence[Point]) -> float:
        return float(np.var([p.risk for p in points]))

    def slopes(self, points: Sequence[Point]) -> list[NDArray]:
        risks = np.array([p.risk for p in points])
        weights = 2.0 * (risks - risks.mean()) / len(risks)
        return [p.slope * float(w) for w, p in zip(weights, points, strict=True)]


@dataclass(frozen=True)
class SoftMaximum:
    """A smooth maximum of the risks: above the largest, by the smoothing times log E at most."""

    smoothing: float

    def value(self, points: Sequence[Point]) -> float:
        risks = np.array([p.risk for p in points])
        return float(self.smoothing * special.logsumexp(risks / self.smoothing))

    def slopes(self, points: Sequence[Point]) -> list[NDArray]:
        weights = special.softmax([p.risk / self.smoothing for p in points])
        return [p.slope * float(w) for w, p in zip(weights, points, strict=True)]


@dataclass(frozen=True)
class OutputVariance:
    """Variance of the outputs: of all samples, given shares, or the mean of environments' own."""

    shares: tuple[float, ...] | None = None

    def _parts(self, points: Sequence[Point]) -> list[tuple[Point, float, NDArray]]:
        """Each point with its share and the centre that its outputs are compared with."""
        centres = np.array([p.centre for p in points])
        if self.shares is None:
            return [(p, 1.0 / len(points), c) for p, c in zip(points, centres, strict=True)]
        overall = np.asarray(self.shares, centres.dtype) @ centres
        return [(p, float(s), overall) for p, s in zip(points, self.shares, strict=True)]

    def value(self, points: Sequence[Point]) -> float:
        return sum(share * p.spread(centre) for p, share, centre in self._parts(points))

    def slopes(self, points: Sequence[Point]) -> list[NDArray]:
        # A mean minimises the spread around it, so its own derivative drops out.
        return [p.spread_slope(centre) * share for p, share, centre in self._parts(points)]
