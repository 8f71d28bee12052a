"""How far the subspace would rotate if the data were drawn again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.angles import principal_angles
from isrlearn.core.methods import METHODS
from isrlearn.core.moments import Moments
from isrlearn.core.rank import independent_shifts

#: Largest angle, in degrees, of a subspace that is called stable.
STABLE = 30.0


@dataclass(frozen=True)
class Stability:
    """Principal angles, in degrees, between the subspace and those found in data drawn again.

    Moments are drawn from their sampling distribution (Gaussian means, Wishart covariances)
    around the ones found, less what noise added to these; the subspace is found again in each
    draw. Angles are measured in whitened features, so that units do not matter.

    Examples
    --------
    >>> Stability((12.0, 3.0), (8.0, 2.0), (18.0, 5.0), 200, 0.2).stable
    True
    """

    #: Median of each principal angle, largest first, and the ends of the central 95 % of the draws.
    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    #: Number of draws.
    n_bootstrap: int
    #: Factor on the number of rows that would reduce the largest angle to 30 degrees: at most one
    #: if the angle is smaller already, infinite if the weakest direction is lost in noise.
    more_rows: float

    @property
    def stable(self) -> bool:
        """Whether the largest angle stays below 30 degrees in the median draw."""
        return not self.median or self.median[0] <= STABLE


def subspace_stability(
    moments: Moments,
    method: str,
    rank: int,
    *,
    noise: float = 1.0,
    n_bootstrap: int = 100,
    random_state: int = 0,
) -> Stability:
    """Stability of the subspace that a method finds in whitened moments.

    `noise` is the sampling variance of covariances divided by that of Gaussian features.
    """
    rng = np.random.default_rng(random_state)
    shifts_of = METHODS[method].shifts
    shifts = shifts_of(moments, None)
    N = shifts.leading(rank)
    if method == "mean":
        model, more_rows = _less_noise(shifts.means, rank, independent_shifts(moments.count))
        drawn = (model + _mean_noise(rng, moments) for _ in range(n_bootstrap))
        found = (np.linalg.svd(rows, full_matrices=False)[2][:rank].T for rows in drawn)
    else:
        draws = _drawn(rng, moments, N, max(noise, 1.0), n_bootstrap)
        found = (shifts_of(draw, None).leading(rank) for draw in draws)
    angles = np.degrees([principal_angles(N, other) for other in found])
    low, median, high = np.quantile(angles, [0.025, 0.5, 0.975], axis=0).tolist()
    if method != "mean":
        # Sines of angles shrink in proportion to the inverse root of the number of rows.
        more_rows = (np.sin(np.radians(median[0])) / np.sin(np.radians(STABLE))) ** 2
    return Stability(tuple(median), tuple(low), tuple(high), n_bootstrap, float(more_rows))


def _less_noise(rows: NDArray, rank: int, q: int) -> tuple[NDArray, float]:
    r"""Rank-r part of the mean shifts without the effect of noise, and how many more rows it needs.

    A true singular value x of q × p shifts with unit noise is observed as
    :math:`\sqrt{(x^2 + p)(x^2 + q)} / x` when p and q are large. Without the correction a
    direction of pure noise would look as stable as a real one. The squared tangent of the weakest
    direction's angle is then p (x² + q) / (x⁴ − p q). As x² grows with the number of rows, the
    factor is the one at which that is 1/3, the squared tangent of 30 degrees.
    """
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    p = rows.shape[1]
    excess = s[:rank] ** 2 - p - q
    inside = np.maximum(excess**2 - 4 * p * q, 0.0)
    squared = np.where(excess > 0, (excess + np.sqrt(inside)) / 2, 0.0)
    needed = (3 * p + np.sqrt(9 * p**2 + 16 * p * q)) / 2
    factor = needed / squared.min() if squared.min() > 0 else np.inf
    return (U[:, :rank] * np.sqrt(squared)) @ Vt[:rank], float(factor)


def _mean_noise(rng: np.random.Generator, moments: Moments) -> NDArray[np.float64]:
    """Sampling noise of weighted mean shifts: standard normal, less the class mean."""
    noise = rng.standard_normal(moments.mean.shape) / np.sqrt(moments.count.clip(1))[..., None]
    return replace(moments, mean=noise).mean_shifts()


def _drawn(
    rng: np.random.Generator, moments: Moments, N: NDArray, noise: float, n_bootstrap: int
) -> Iterator[Moments]:
    """Moments drawn from the sampling distribution of Gaussian cells that differ along N alone."""
    count, mean = moments.count, moments.mean @ N @ N.T
    inner = N.T @ moments.covariance @ N - np.eye(N.shape[1])
    inner[count == 0] = 0.0
    root = np.linalg.cholesky(np.eye(len(N)) + N @ inner @ N.T)  # (K, E, p, p)
    K, E, p = mean.shape
    dof = np.maximum((count - 1) / noise, p + 1.0)
    diagonal = np.arange(p)
    for _ in range(n_bootstrap):
        # Bartlett: a Wishart matrix is A Aᵀ of a triangular A of normals and roots of chi-squares.
        A = np.tril(rng.standard_normal((K, E, p, p)), -1)
        A[..., diagonal, diagonal] = np.sqrt(rng.chisquare(dof[..., None] - diagonal))
        A = root @ A
        scatter = A @ np.swapaxes(A, -1, -2) * ((count - 1) / dof)[..., None, None]
        normal = rng.standard_normal((K, E, p, 1))
        drawn = mean + (root @ normal)[..., 0] / np.sqrt(np.maximum(count, 1))[..., None]
        yield replace(moments, mean=drawn, scatter=scatter)
