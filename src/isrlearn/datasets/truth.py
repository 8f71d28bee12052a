"""What a generator knows: latent features, linearly mixed, and the best invariant predictor."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.core import Moments
from isrlearn.datasets.data import EnvironmentData
from isrlearn.datasets.parameters import RandomState, Streams, counts


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearTruth(ABC):
    """A model of latent features ``z = (z_c, z_e)`` observed as ``x = R z = A z_c + B z_e``.

    The relation of the invariant features z_c to the target is the same everywhere; that of the
    spurious features z_e changes with the environment. Every model has ``spurious_means``, a field
    or a property: the means of z_e, (E, d_s), or in each class, (K, E, d_s).
    """

    mixing: NDArray[np.float64]  # (d, d), R: invertible, its first columns are A, the others B
    n_invariant: int  # dimension of z_c

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return len(self.mixing)

    @property
    def n_spurious(self) -> int:
        """Dimension of z_e."""
        return self.n_features - self.n_invariant

    @property
    def n_environments(self) -> int:
        """Number of environments, E."""
        return int(self.spurious_means.shape[-2])  # type: ignore[attr-defined]

    @property
    def mean_rank(self) -> int:
        """Spurious dimensions along which cell means shift between environments."""
        means = self.spurious_means  # type: ignore[attr-defined]
        shifts = means - means.mean(axis=-2, keepdims=True)
        return int(np.linalg.matrix_rank(shifts.reshape(-1, means.shape[-1]))) if means.size else 0

    @property
    def A(self) -> NDArray[np.float64]:
        """The map of invariant features into x, (d, d_c)."""
        return self.mixing[:, : self.n_invariant]

    @property
    def B(self) -> NDArray[np.float64]:
        """The map of spurious features into x, (d, d_s)."""
        return self.mixing[:, self.n_invariant :]

    @cached_property
    def unmixing(self) -> NDArray[np.float64]:
        """The inverse of R, (d, d)."""
        return np.asarray(np.linalg.inv(self.mixing), dtype=np.float64)

    @cached_property
    def spurious_basis(self) -> NDArray[np.float64]:
        """An orthonormal basis of the span of B, (d, d_s)."""
        return np.asarray(np.linalg.qr(self.B)[0], dtype=np.float64)

    @property
    def coef(self) -> NDArray[np.float64]:
        """Weights of the optimal invariant predictor on x, in scikit-learn's shape."""
        return self._invariant_head()[0] @ self.unmixing[: self.n_invariant]

    @property
    def intercept(self) -> Any:
        """Intercept of the optimal invariant predictor, in scikit-learn's shape."""
        return self._invariant_head()[1]

    def latent(self, X: ArrayLike) -> NDArray[np.float64]:
        """The latent features of samples X, (n, d): invariant columns first."""
        return np.asarray(X, dtype=np.float64) @ self.unmixing.T

    def sample(
        self,
        n_samples: int | ArrayLike,
        *,
        random_state: RandomState | Streams = None,
        permuted: bool = False,
    ) -> EnvironmentData:
        """As many samples of every environment, or of each, one environment after the other.

        With `permuted`, z_e is permuted among the samples of each environment: its distribution
        stays the same, its relation to the target is lost.
        """
        each = counts("n_samples", n_samples, (self.n_environments,))
        streams = Streams.of(random_state)
        Z = np.empty((each.sum(), self.n_features))
        targets = []
        for e, block in enumerate(np.split(Z, np.cumsum(each)[:-1])):
            rng = streams.generator(e)
            targets.append(self._draw(e, block, rng))
            if permuted:
                block[:, self.n_invariant :] = rng.permutation(block[:, self.n_invariant :])
        environments = np.repeat(np.arange(len(each)), each)
        return EnvironmentData(Z @ self.mixing.T, np.concatenate(targets), environments, self)

    @abstractmethod
    def _draw(self, e: int, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[Any]:
        """Fill Z, (n, d), with latent features of environment e and return their targets."""

    @abstractmethod
    def _invariant_head(self) -> tuple[NDArray[np.float64], Any]:
        """Weights on z_c and intercept of the optimal invariant predictor."""


@dataclass(frozen=True, eq=False, kw_only=True)
class GaussianTruth(LinearTruth):
    """Gaussian classes, two (section 3.1 of the paper) or more (section 3.2).

    ``z_c ~ N(mu_k, sigma_c^2 I)``, ``z_e ~ N(mu_ke, sigma_e^2 I)`` in class k and environment e.
    """

    class_priors: NDArray[np.float64]  # (K,) probabilities, the same in every environment
    invariant_means: NDArray[np.float64]  # (K, d_c), mu_k
    spurious_means: NDArray[np.float64]  # (K, E, d_s), mu_ke
    sigma_invariant: float  # sigma_c
    sigma_spurious: NDArray[np.float64]  # (E,), sigma_e
    stratified: bool = False  # class counts are n times the priors, rounded, instead of drawn

    @cached_property
    def moments(self) -> Moments:
        """Exact moments of every cell, weighted by the class priors."""
        mean = (self.invariant_means @ self.A.T)[:, None] + self.spurious_means @ self.B.T
        variance = self.sigma_spurious[:, None, None] ** 2
        covariance = self.sigma_invariant**2 * self.A @ self.A.T + variance * (self.B @ self.B.T)
        return Moments.population(mean, covariance, self.class_priors[:, None])

    def _draw(self, e: int, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
        n, edges = len(Z), np.cumsum(self.class_priors)[:-1]
        if self.stratified:
            sizes = np.diff(np.round(edges * n), prepend=0, append=n).astype(int)
            y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
        else:
            y = np.searchsorted(edges, rng.random(n), side="right")
        rng.standard_normal(out=Z)
        Z[:, : self.n_invariant] *= self.sigma_invariant
        Z[:, self.n_invariant :] *= self.sigma_spurious[e]
        Z += np.hstack([self.invariant_means, self.spurious_means[:, e]])[y]
        return y

    def _invariant_head(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Proposition 1's predictor, and its form for K classes: linear discriminants of z_c."""
        mu = self.invariant_means
        coef = mu / self.sigma_invariant**2
        intercept = np.log(self.class_priors) - (mu**2).sum(axis=1) / (2 * self.sigma_invariant**2)
        if len(mu) == 2:
            return coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        # Logits are defined up to a common term; here they sum to zero over the classes.
        return coef - coef.mean(axis=0), intercept - intercept.mean()


@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionTruth(LinearTruth):
    r"""Linear regression on z_c, with z_e a function of z_c, of the target, or of both.

    .. math:: y = w_c^\top z_c + b_c + \varepsilon, \qquad z_e = W_e z_c + a_e y + b_e + \eta

    with ``z_c ~ N(mu_c, sigma_c^2 I)``. The model of the paper's section 3.3 has neither noise
    nor ``a_e``.
    """

    invariant_mean: NDArray[np.float64]  # (d_c,), mu_c
    sigma_invariant: float  # sigma_c
    weights: NDArray[np.float64]  # (d_c,), w_c
    bias: float  # b_c
    maps: NDArray[np.float64]  # (E, d_s, d_c), W_e
    gains: NDArray[np.float64]  # (E, d_s), a_e
    offsets: NDArray[np.float64]  # (E, d_s), b_e
    target_noise: float = 0.0  # standard deviation of the noise in y
    spurious_noise: float = 0.0  # standard deviation of the noise in z_e

    @property
    def spurious_means(self) -> NDArray[np.float64]:
        """Mean of z_e in each environment, (E, d_s)."""
        expected_target = self.weights @ self.invariant_mean + self.bias
        return self.maps @ self.invariant_mean + self.gains * expected_target + self.offsets

    @cached_property
    def moments(self) -> Moments:
        """Exact moments of x in every environment, in one class."""
        # x follows three sources of variation: z_c, the noise in y and the noise in z_e.
        gains = self.gains[:, :, None]
        parts = [
            self.sigma_invariant * (self.A + self.B @ (self.maps + gains * self.weights)),
            self.target_noise * (self.B @ gains),
            self.spurious_noise * self.B[None],
        ]
        mean = self.invariant_mean @ self.A.T + self.spurious_means @ self.B.T
        covariance = sum(part @ part.swapaxes(1, 2) for part in parts)
        return Moments.population(mean[None], covariance)

    def _draw(self, e: int, Z: NDArray, rng: np.random.Generator) -> NDArray[np.float64]:
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
