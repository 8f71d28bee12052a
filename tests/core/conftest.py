"""Population moments written out by hand: a model that owes nothing to the package's generators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from isrlearn.core import Moments


@dataclass(frozen=True)
class Planted:
    """x = A z_c + B z_e with known means and deviations, and its exact moments."""

    A: np.ndarray  # (d, d_c)
    B: np.ndarray  # (d, d_s)
    mu_c: np.ndarray  # (K, d_c)
    sigma_c: float
    prior: np.ndarray  # (K,)
    moments: Moments

    @property
    def predictor(self) -> tuple[np.ndarray, np.ndarray]:
        """Proposition 1 in x: Bayes' logits from z_c alone, one row for two classes."""
        unmix = np.linalg.inv(np.hstack([self.A, self.B]))[: self.A.shape[1]]
        coef = self.mu_c / self.sigma_c**2
        intercept = np.log(self.prior) - (self.mu_c**2).sum(axis=1) / (2 * self.sigma_c**2)
        if len(self.prior) == 2:
            coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return coef @ unmix, intercept


def well_conditioned(rng: np.random.Generator, d: int) -> np.ndarray:
    """A matrix that is not orthogonal, with singular values between 1 and 4."""
    U, V = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    return U * rng.uniform(1.0, 4.0, d) @ V


def plant(
    seed, d_c: int, d_s: int, K: int, E: int, *, sigma_e=1.0, opposite: bool = False
) -> Planted:
    """A random model; `opposite` gives two classes with means of opposite signs, as section 3.1."""
    rng = np.random.default_rng(seed)
    R = well_conditioned(rng, d_c + d_s)
    A, B = R[:, :d_c], R[:, d_c:]
    mu_c, mu_e = rng.normal(size=(K, d_c)), rng.normal(size=(K, E, d_s))
    if opposite:
        mu_c[1], mu_e[1] = -mu_c[0], -mu_e[0]
    sigma_c = rng.uniform(0.5, 2.0)
    prior = rng.dirichlet(np.full(K, 5.0))
    variance = np.broadcast_to(np.asarray(sigma_e, dtype=float) ** 2, E)[:, None, None]
    mean = (mu_c @ A.T)[:, None] + mu_e @ B.T
    covariance = sigma_c**2 * A @ A.T + variance * (B @ B.T)
    moments = Moments.population(mean, covariance, prior[:, None] / E)
    return Planted(A, B, mu_c, sigma_c, prior, moments)


@pytest.fixture(name="plant", scope="session")
def plant_fixture():
    return plant


@pytest.fixture(name="outside", scope="session")
def outside_fixture():
    """Largest sine between a subspace's vectors and another that should contain it."""

    def outside(basis: np.ndarray, container: np.ndarray) -> float:
        Q = np.linalg.qr(container)[0]
        rest = basis - Q @ (Q.T @ basis)
        return float(np.linalg.norm(rest, 2)) if basis.shape[1] else 0.0

    return outside
