"""The Gaussian models of regression: section 3.3 of the paper, and an anti-causal one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isrlearn.core import Moments
from isrlearn.datasets.truth import LinearTruth, span_of_shifts


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionTruth(LinearTruth):
    r"""Linear regression on z_c, with z_e made of z_c, of the target, or of both.

    .. math:: y = w_c^\top z_c + b_c + \varepsilon, \qquad z_e = W_e z_c + a_e y + b_e + \eta

    with ``z_c ~ N(mu_c, sigma_c^2 I)``. The paper's model has neither noise nor ``a_e``.

    Parameters
    ----------
    mixing : ndarray of shape (d, d)
        R.
    n_invariant : int
        Dimension of z_c.
    invariant_mean : ndarray of shape (d_c,)
        Mean of z_c.
    sigma_invariant : float
        Standard deviation of z_c.
    weights : ndarray of shape (d_c,)
        w_c.
    bias : float
        b_c.
    maps : ndarray of shape (E, d_s, d_c)
        W_e.
    gains : ndarray of shape (E, d_s)
        a_e.
    offsets : ndarray of shape (E, d_s)
        b_e.
    target_noise, spurious_noise : float
        Standard deviations of the noise in y and in z_e.
    """

    invariant_mean: NDArray[np.float64]  # (d_c,)
    sigma_invariant: float
    weights: NDArray[np.float64]  # (d_c,)
    bias: float
    maps: NDArray[np.float64]  # (E, d_s, d_c)
    gains: NDArray[np.float64]  # (E, d_s)
    offsets: NDArray[np.float64]  # (E, d_s)
    target_noise: float = 0.0
    spurious_noise: float = 0.0

    @property
    def n_environments(self) -> int:
        """Number of environments, E."""
        return len(self.offsets)

    @property
    def spurious_means(self) -> NDArray[np.float64]:
        """Mean of z_e in each environment, (E, d_s)."""
        expected_target = self.weights @ self.invariant_mean + self.bias
        return self.maps @ self.invariant_mean + self.gains * expected_target + self.offsets

    @property
    def mean_rank(self) -> int:
        """Spurious dimensions along which means move between environments."""
        return span_of_shifts(self.spurious_means)

    @cached_property
    def moments(self) -> Moments:
        """Exact moments of x in every environment, in one class."""
        mean = self.invariant_mean @ self.A.T + self.spurious_means @ self.B.T
        return Moments.population(mean[None], self._covariance()[None])

    def _covariance(self) -> NDArray[np.float64]:
        """Covariance of x in every environment, (E, d, d)."""
        # Each column is one source of variation in z: z_c, the noise in y, the noise in z_e.
        E, d_c, d_s = self.n_environments, self.n_invariant, self.n_spurious
        sources = np.zeros((E, d_c + d_s, d_c + 1 + d_s))
        sources[:, :d_c, :d_c] = np.eye(d_c)
        sources[:, d_c:, :d_c] = self.maps + self.gains[:, :, None] * self.weights
        sources[:, :, :d_c] *= self.sigma_invariant
        sources[:, d_c:, d_c] = self.gains * self.target_noise
        sources[:, d_c:, d_c + 1 :] = self.spurious_noise * np.eye(d_s)
        mixed = self.mixing @ sources
        return mixed @ mixed.transpose(0, 2, 1)

    def _draw(
        self, e: int, Z: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        n, d_c = len(Z), self.n_invariant
        invariant, spurious = Z[:, :d_c], Z[:, d_c:]
        invariant[:] = self.invariant_mean + self.sigma_invariant * rng.standard_normal((n, d_c))
        y = invariant @ self.weights + self.bias
        if self.target_noise > 0:
            y += self.target_noise * rng.standard_normal(n)
        spurious[:] = invariant @ self.maps[e].T + y[:, None] * self.gains[e] + self.offsets[e]
        if self.spurious_noise > 0:
            spurious += self.spurious_noise * rng.standard_normal(spurious.shape)
        return y

    def _invariant_head(self) -> tuple[NDArray[np.float64], float]:
        return self.weights, self.bias
