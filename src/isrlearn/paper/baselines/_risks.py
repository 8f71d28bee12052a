r"""The risk of a linear model in one environment, and its derivatives.

A risk is evaluated at weights ``W`` (p, C), whose last row is the intercept. What comes back is a
point: the risk there, and *slopes*, derivatives with respect to the outputs ``z = X W``, which
`pull` carries to the weights. Slopes are plain arrays, so an objective adds up the slopes of
its terms and pulls once.

Logistic and softmax risks work on samples. The squared error needs second moments only, so its
points cost nothing in the number of samples; its slopes are already those of the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from isrlearn.paper.baselines._losses import Loss


class Point(Protocol):
    """A risk at some weights: what the terms of an objective are made from."""

    @property
    def risk(self) -> float:
        """The mean loss."""

    @property
    def slope(self) -> NDArray:
        """Slope of the risk."""

    def pull(self, slope: NDArray) -> NDArray:
        """Gradient with respect to the weights (p, C) that a slope stands for."""

    def curved(self, U: NDArray) -> NDArray:
        """Slope of the risk's directional derivative along the weights U."""

    @property
    def dummy(self) -> tuple[float, float]:
        """Derivatives of the risk of ``a z + b`` with respect to a and b, at a = 1, b = 0."""

    def dummy_slope(self, a: float, b: float) -> NDArray:
        """Slope of a times the first of these derivatives plus b times the second."""

    @property
    def centre(self) -> NDArray:
        """Mean output (C,)."""

    def spread(self, centre: NDArray) -> float:
        """Mean squared distance of the outputs from a centre, averaged over the C outputs."""

    def spread_slope(self, centre: NDArray) -> NDArray:
        """Slope of `spread` with the centre held fixed."""


class Risk(Protocol):
    """The risk of a linear model in one environment, a function of its weights."""

    def at(self, W: NDArray) -> Point:
        """The risk at some weights."""


@dataclass(frozen=True, eq=False)
class SampleRisk:
    """Mean loss over samples, for any loss."""

    X: NDArray  # (n, p), column-major: several times faster to multiply when p is small
    target: NDArray  # (n, C)
    weight: NDArray | float  # (n, 1) adding up to one, or 1/n
    loss: Loss

    def at(self, W: NDArray) -> SamplePoint:
        """The risk at weights W."""
        return SamplePoint(self, W)


class SamplePoint:
    """A `SampleRisk` at some weights. Slopes have one row a sample."""

    def __init__(self, of: SampleRisk, W: NDArray) -> None:
        self.of = of
        self.z = of.X @ W
        self.activation = of.loss.activation(self.z)
        self.slope = self.activation - of.target

    def _mean(self, v: NDArray) -> NDArray:
        """Weighted mean of v (n, C) over samples."""
        if isinstance(self.of.weight, float):
            return (self.of.X[:, -1] @ v) * self.of.weight  # the column of ones
        return self.of.weight[:, 0] @ v

    def _dot(self, u: NDArray, v: NDArray) -> float:
        """Weighted mean over samples of the inner product of u and v."""
        if isinstance(self.of.weight, float):
            return float(np.vdot(u, v)) * self.of.weight
        return float(np.vdot(self.of.weight * u, v))

    def pull(self, slope: NDArray) -> NDArray:
        if isinstance(self.of.weight, float):
            return (self.of.X.T @ slope) * self.of.weight
        return self.of.X.T @ (self.of.weight * slope)

    def curved(self, U: NDArray) -> NDArray:
        return self.of.loss.curve(self.activation, self.of.X @ U)

    @cached_property
    def risk(self) -> float:
        return float(self._mean(self.of.loss.value(self.z, self.of.target)[:, None])[0])

    @cached_property
    def dummy(self) -> tuple[float, float]:
        return self._dot(self.z, self.slope), float(self._mean(self.slope).sum())

    def dummy_slope(self, a: float, b: float) -> NDArray:
        line = self.z * a
        line += b
        slope = self.of.loss.curve(self.activation, line)
        slope += self.slope * a
        return slope

    @property
    def centre(self) -> NDArray:
        return self._mean(self.z)

    def spread(self, centre: NDArray) -> float:
        away = self.z - centre
        return self._dot(away, away) / away.shape[1]

    def spread_slope(self, centre: NDArray) -> NDArray:
        return (self.z - centre) * (2.0 / self.z.shape[1])


@dataclass(frozen=True, eq=False)
class SquaredRisk:
    """Mean squared error, from second moments alone."""

    second: NDArray  # (p, p) mean of x xᵀ; its last row is the mean of x
    cross: NDArray  # (p, C) mean of x y
    square: float  # mean of y², summed over the C targets

    @classmethod
    def of_samples(cls, X: NDArray, target: NDArray, weight: NDArray | float) -> SquaredRisk:
        """The risk of given samples; see `SampleRisk` for the arguments."""
        weighted = X * weight
        square = float(np.vdot(target * weight, target))
        return cls(weighted.T @ X, weighted.T @ target, square)

    def at(self, W: NDArray) -> SquaredPoint:
        """The risk at weights W."""
        return SquaredPoint(self, W)


class SquaredPoint:
    """A `SquaredRisk` at some weights. Slopes have one row a weight: `pull` has nothing to do."""

    def __init__(self, of: SquaredRisk, W: NDArray) -> None:
        self.of = of
        self.W = W
        self.forward = of.second @ W
        self.slope = 2.0 * (self.forward - of.cross)

    def pull(self, slope: NDArray) -> NDArray:
        return slope

    def curved(self, U: NDArray) -> NDArray:
        return 2.0 * (self.of.second @ U)

    @property
    def risk(self) -> float:
        return float(np.vdot(self.W, self.forward - 2.0 * self.of.cross)) + self.of.square

    @property
    def dummy(self) -> tuple[float, float]:
        return float(np.vdot(self.W, self.slope)), float(self.slope[-1].sum())

    def dummy_slope(self, a: float, b: float) -> NDArray:
        return 2.0 * (a * self.forward + b * self.of.second[:, -1:]) + a * self.slope

    @property
    def centre(self) -> NDArray:
        return self.forward[-1]

    def spread(self, centre: NDArray) -> float:
        total = np.vdot(self.W, self.forward) - 2.0 * centre @ self.forward[-1] + centre @ centre
        return float(total) / self.W.shape[1]

    def spread_slope(self, centre: NDArray) -> NDArray:
        return (self.forward - self.of.second[:, -1:] * centre) * (2.0 / self.W.shape[1])


def environment_risks(
    X: NDArray,
    target: NDArray,
    codes: NDArray[np.intp],
    weight: NDArray | None,
    loss: Loss | None,
    dtype: DTypeLike = np.float64,
) -> tuple[list[Risk], NDArray[np.float64]]:
    """The risk in each environment, and its share of the samples' weight.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    target : ndarray of shape (n, C)
    codes : ndarray of shape (n,)
        Environment of each sample: 0 .. E-1, each with samples of positive weight.
    weight : ndarray of shape (n,) or None
        Weight of each sample; None: all equal.
    loss : Loss or None
        None: the squared error.
    dtype : dtype
        Precision of the sums over samples. The moments of a squared error keep double precision.
    """
    risks: list[Risk] = []
    shares = np.bincount(codes, weight).astype(np.float64)
    for e in range(len(shares)):
        rows = np.flatnonzero(codes == e)
        homogeneous = np.ones((len(rows), X.shape[1] + 1), dtype, order="F")
        homogeneous[:, :-1] = X[rows]
        w = 1.0 / len(rows) if weight is None else _column(weight[rows] / shares[e], dtype)
        if loss is None:
            risks.append(SquaredRisk.of_samples(homogeneous, target[rows], w))
        else:
            risks.append(SampleRisk(homogeneous, target[rows].astype(dtype), w, loss))
    return risks, shares / shares.sum()


def _column(v: NDArray, dtype: DTypeLike) -> NDArray:
    return v.astype(dtype)[:, None]
