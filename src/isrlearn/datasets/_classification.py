"""The paper's Gaussian models of classification: section 3.1 (binary) and 3.2 (k classes)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isrlearn.core import Moments
from isrlearn.datasets.truth import LinearTruth, span_of_shifts


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianTruth(LinearTruth):
    """Gaussian classes: ``z_c ~ N(mu_k, sigma_c^2 I)``, ``z_e ~ N(mu_ke, sigma_e^2 I)``.

    Parameters
    ----------
    mixing : ndarray of shape (d, d)
        R.
    n_invariant : int
        Dimension of z_c.
    class_priors : ndarray of shape (K,)
        Probability of each class, the same in every environment.
    invariant_means : ndarray of shape (K, d_c)
        Mean of z_c in each class.
    spurious_means : ndarray of shape (K, E, d_s)
        Mean of z_e in each class and environment.
    sigma_invariant : float
        Standard deviation of z_c.
    sigma_spurious : ndarray of shape (E,)
        Standard deviation of z_e in each environment.
    stratified : bool, default=False
        Class counts are n times the priors, rounded, instead of drawn.
    """

    class_priors: NDArray[np.float64]  # (K,)
    invariant_means: NDArray[np.float64]  # (K, d_c)
    spurious_means: NDArray[np.float64]  # (K, E, d_s)
    sigma_invariant: float
    sigma_spurious: NDArray[np.float64]  # (E,)
    stratified: bool = False

    @property
    def n_environments(self) -> int:
        """Number of environments, E."""
        return self.spurious_means.shape[1]

    @property
    def n_classes(self) -> int:
        """Number of classes, K."""
        return len(self.class_priors)

    @property
    def mean_rank(self) -> int:
        """Spurious dimensions along which cell means move between environments."""
        return span_of_shifts(self.spurious_means)

    @property
    def covariance_rank(self) -> int:
        """Spurious dimensions along which covariances differ: all, or none."""
        return self.n_spurious if np.ptp(self.sigma_spurious) > 0 else 0

    @cached_property
    def moments(self) -> Moments:
        """Exact moments of every cell, weighed by the class priors."""
        mean = (self.invariant_means @ self.A.T)[:, None] + self.spurious_means @ self.B.T
        variance = self.sigma_spurious[:, None, None] ** 2
        covariance = self.sigma_invariant**2 * self.A @ self.A.T + variance * (self.B @ self.B.T)
        return Moments.population(mean, covariance, self.class_priors[:, None])

    def _draw(self, e: int, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
        y = self._labels(len(Z), rng)
        rng.standard_normal(out=Z)
        Z[:, : self.n_invariant] *= self.sigma_invariant
        Z[:, self.n_invariant :] *= self.sigma_spurious[e]
        Z += np.hstack([self.invariant_means, self.spurious_means[:, e]])[y]
        return y

    def _labels(self, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """n class labels, by the priors."""
        edges = np.cumsum(self.class_priors)[:-1]
        if self.stratified:
            counts = np.diff(np.round(edges * n), prepend=0, append=n).astype(int)
            return rng.permutation(np.repeat(np.arange(self.n_classes), counts))
        return np.searchsorted(edges, rng.random(n), side="right")

    def _invariant_head(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Proposition 1's predictor, and its form for K classes: linear discriminants of z_c."""
        mu = self.invariant_means
        coef = mu / self.sigma_invariant**2
        intercept = np.log(self.class_priors) - (mu**2).sum(axis=1) / (2 * self.sigma_invariant**2)
        if self.n_classes == 2:
            return coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        # Logits are defined up to a common term: the one that sums to zero over classes.
        return coef - coef.mean(axis=0), intercept - intercept.mean()
