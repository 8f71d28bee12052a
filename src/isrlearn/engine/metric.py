"""Coordinates in which a loss of known curvature has unit curvature."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Features up to which all eigenvectors are computed, and how many there are of more features.
LARGE, _LEADING = 1024, 256
#: Share of the largest eigenvalue below which products with float32 rows hold rounding.
_SEEN = 1e-5


class Spectrum(NamedTuple):
    """Eigenvectors and values of symmetric matrices, and one value for all other directions."""

    vectors: NDArray[np.float64]  # (g, q, k)
    values: NDArray[np.float64]  # (g, k)
    rest: float

    @classmethod
    def of(cls, matrices: NDArray) -> Spectrum:
        """All eigenvectors of some matrices, (g, q, q)."""
        values, vectors = np.linalg.eigh(matrices)
        return cls(vectors, values, 0.0)

    @classmethod
    def diagonal(cls, values: NDArray) -> Spectrum:
        """Of a diagonal matrix."""
        q = len(values)
        if np.ptp(values) == 0:
            return cls(np.zeros((1, q, 0)), np.zeros((1, 0)), float(values[0]))
        return cls(np.eye(q)[None], values[None], 0.0)

    @classmethod
    def sketched(cls, times: Callable[[NDArray], NDArray], q: int) -> Spectrum:
        """Leading eigenvectors, about, of a semidefinite matrix known by its products.

        Nyström's approximation from one product with random directions, which also estimates the
        trace. Directions of which only rounding is seen are left out.
        """
        start = np.random.default_rng(0).standard_normal((q, _LEADING))
        images = times(start)
        inner = start.T @ images
        trace = float(np.trace(inner)) / _LEADING
        values, vectors = np.linalg.eigh((inner + inner.T) / 2)
        seen = values > _SEEN * values[-1]
        factor = images @ (vectors[:, seen] / np.sqrt(values[seen]))
        values, vectors = np.linalg.eigh(factor.T @ factor)
        rest = max(trace - values.sum(), 1e-6 * trace) / (q - len(values))
        return cls((factor @ (vectors / np.sqrt(values)))[None], values[None], rest)

    def times(self, factor: float) -> Spectrum:
        """Of a multiple of the matrices."""
        return Spectrum(self.vectors, factor * self.values, factor * self.rest)


class Metric(NamedTuple):
    """Coordinates u (q + 1, m) of coefficients and intercepts, for all scores or for each."""

    root: Spectrum  # inverse square root of the curvature along the coefficients
    level: NDArray[np.float64]  # (1 or m,): the same along the intercepts
    mean: NDArray[np.float64]  # (q, 1 or m): where coefficients and intercepts are uncoupled

    @classmethod
    def of(
        cls, curvature: Spectrum, level: NDArray, mean: NDArray, penalty: float, total: float
    ) -> Metric:
        """Metric of a loss with these curvatures, divided by a total."""
        vectors, values, rest = curvature
        values = values + penalty
        # Directions without curvature, such as those of constant features, are left alone.
        real = values > np.finfo(float).eps * vectors.shape[1] * values.max(initial=0.0)
        roots = np.sqrt(total / np.where(real, values, np.inf))
        outer = float(np.sqrt(total / (rest + penalty))) if rest + penalty > 0 else 0.0
        return cls(Spectrum(vectors, roots, outer), np.sqrt(total / level), mean)

    def step(self, u: NDArray) -> tuple[NDArray, NDArray]:
        """Coefficients (q, m) and intercepts (m,) at u."""
        V = self._times(u[:-1])
        return V, self.level * u[-1] - (self.mean * V).sum(axis=0)

    def gradient(self, by_V: NDArray, by_b: NDArray) -> NDArray[np.float64]:
        """Derivatives by u from those by coefficients and intercepts."""
        return np.vstack([self._times(by_V - self.mean * by_b), self.level * by_b])

    def _times(self, columns: NDArray) -> NDArray:
        """The roots times columns (q, m)."""
        vectors, values, rest = self.root
        if len(vectors) == 1:
            inner = (values[0] - rest)[:, None] * (vectors[0].T @ columns)
            return rest * columns + vectors[0] @ inner
        inner = (values - rest)[:, :, None] * (np.swapaxes(vectors, 1, 2) @ columns.T[:, :, None])
        return rest * columns + (vectors @ inner)[:, :, 0].T
