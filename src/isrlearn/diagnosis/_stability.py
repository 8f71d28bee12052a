"""How far the subspace would turn if the data were drawn again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.angles import principal_angles
from isrlearn.core.moments import Moments
from isrlearn.core.shifts import Shifts, covariance_shifts, joint_shifts, mean_shifts

SHIFTS = {"mean": mean_shifts, "cov": covariance_shifts, "joint": joint_shifts}
#: Largest angle, in degrees, of a subspace that is called stable.
STABLE = 30.0


@dataclass(frozen=True)
class Stability:
    """Principal angles between the subspace found and those of data drawn again, in degrees.

    Moments are drawn from their sampling distribution (Gaussian means, Wishart covariances)
    around the ones found, less what noise added to these; the subspace is found again in each
    draw. Angles are those of whitened features, so that units do not matter.

    Parameters
    ----------
    median, low, high : tuple of float
        Of each principal angle, largest first: median and the middle 95 % of the draws.
    n_bootstrap : int
        Number of draws.
    more_rows : float
        How many times as many rows would bring the largest angle down to 30 degrees; at most
        one where it is there already, infinite where the weakest direction is lost in noise.

    Examples
    --------
    >>> Stability((12.0, 3.0), (8.0, 2.0), (18.0, 5.0), 200, 0.2).stable
    True
    """

    median: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    n_bootstrap: int
    more_rows: float

    @property
    def stable(self) -> bool:
        """Whether the largest angle stays below 30 degrees in the median draw."""
        return not self.median or self.median[0] <= STABLE


def stability(
    moments: Moments,
    classes: NDArray,
    method: str,
    rank: int,
    *,
    noise: float,
    n_bootstrap: int,
    random_state: int,
) -> Stability:
    """Stability of the subspace of a method.

    Parameters
    ----------
    moments : Moments
        In whitened coordinates; with a scatter a cell for "cov" and "joint".
    classes : ndarray of int
        Positions of the classes compared.
    method : {"mean", "cov", "joint"}
        What is compared.
    rank : int
        Dimensions of the subspace.
    noise : float
        Sampling variance of covariances over that of Gaussian features.
    n_bootstrap : int
        Number of draws.
    random_state : int
        Seed.
    """
    rng = np.random.default_rng(random_state)
    count = moments.count[classes]
    shifts = SHIFTS[method](moments, classes)
    N = leading(shifts, rank)
    if method == "mean":
        model, weakest = _less_noise(shifts.means, rank, _degrees(count))
        draws = (model + _mean_noise(rng, count, len(N)) for _ in range(n_bootstrap))
        found = (np.linalg.svd(rows, full_matrices=False)[2][:rank].T for rows in draws)
        angles = np.degrees([principal_angles(N, other) for other in found])
        more_rows = _more_rows(weakest, len(N), _degrees(count))
    else:
        cells = _Cells.of(moments, classes, N, noise)
        found = (cells.drawn(rng, method).leading(rank) for _ in range(n_bootstrap))
        angles = np.degrees([principal_angles(N, other) for other in found])
        # Sines of angles shrink as one over the root of the number of rows.
        more_rows = (np.sin(np.radians(np.median(angles[:, 0]))) / np.sin(np.radians(STABLE))) ** 2
    low, median, high = np.quantile(angles, [0.025, 0.5, 0.975], axis=0).tolist()
    return Stability(tuple(median), tuple(low), tuple(high), n_bootstrap, float(more_rows))


def leading(shifts: Shifts, rank: int) -> NDArray[np.float64]:
    """Orthonormal basis (p, rank) of the directions that move most."""
    if len(shifts.covariances):
        return shifts.leading(rank)
    # With means alone a thin decomposition does, without a p × p matrix.
    return np.ascontiguousarray(np.linalg.svd(shifts.means, full_matrices=False)[2][:rank].T)


def _degrees(count: NDArray) -> int:
    return count.shape[0] * (count.shape[1] - 1)


def _less_noise(rows: NDArray, rank: int, q: int) -> tuple[NDArray, float]:
    r"""Rank-r part of the mean shifts with what noise adds to singular values taken off.

    A true singular value x of q × p shifts with unit noise is seen as
    :math:`\sqrt{(x^2 + p)(x^2 + q)} / x` when p and q are large. Without this a direction made
    of nothing but noise would look as stable as a real one. Also returns the smallest x².
    """
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    excess = s[:rank] ** 2 - rows.shape[1] - q
    inside = np.maximum(excess**2 - 4 * rows.shape[1] * q, 0.0)
    squared = np.where(excess > 0, (excess + np.sqrt(inside)) / 2, 0.0)
    return (U[:, :rank] * np.sqrt(squared)) @ Vt[:rank], float(squared.min())


def _mean_noise(rng: np.random.Generator, count: NDArray, p: int) -> NDArray[np.float64]:
    """Sampling noise of weighted mean shifts: standard normal, orthogonal to the class mean."""
    K, E = count.shape
    noise = rng.standard_normal((K, E, p))
    weight = np.sqrt(count / count.sum(axis=1, keepdims=True))
    noise -= weight[..., None] * np.einsum("ke,kep->kp", weight, noise)[:, None]
    return noise.reshape(K * E, p)


def _more_rows(weakest: float, p: int, q: int) -> float:
    """Factor on the number of rows at which the weakest direction is 30 degrees off.

    The squared tangent of its angle is p (x² + q) / (x⁴ − p q), in the limit that `_less_noise`
    speaks of; x² grows with the number of rows, and a squared tangent of 1/3 is asked for.
    """
    if weakest <= 0:
        return float("inf")
    return float((3 * p + np.sqrt(9 * p**2 + 16 * p * q)) / (2 * weakest))


@dataclass(frozen=True, eq=False)
class _Cells:
    """Gaussian cells that differ along N alone, as the data do as far as is known."""

    count: NDArray  # (K, E)
    mean: NDArray  # (K, E, p)
    root: NDArray  # (K, E, p, p): covariance = root @ root.T
    noise: float
    names: tuple[NDArray, NDArray]

    @classmethod
    def of(cls, moments: Moments, classes: NDArray, N: NDArray, noise: float) -> _Cells:
        identity = np.eye(len(N))
        inner = N.T @ moments.covariance[classes] @ N - np.eye(N.shape[1])
        root = np.linalg.cholesky(identity + N @ inner @ N.T)
        mean = moments.mean[classes] @ N @ N.T
        names = moments.classes[classes], moments.environments
        return cls(moments.count[classes], mean, root, max(noise, 1.0), names)

    def drawn(self, rng: np.random.Generator, method: str) -> Shifts:
        """Shifts of moments drawn from their sampling distribution."""
        K, E, p = self.mean.shape
        dof = np.maximum((self.count - 1) / self.noise, p + 1.0)
        # Bartlett: a Wishart matrix is A Aᵀ of a triangular A of normals and roots of chi-squares.
        A = np.tril(rng.standard_normal((K, E, p, p)), -1)
        chi = np.sqrt(rng.chisquare(dof[..., None] - np.arange(p)))
        A[..., np.arange(p), np.arange(p)] = chi
        A = self.root @ A
        covariance = A @ np.swapaxes(A, -1, -2) / dof[..., None, None]
        normal = rng.standard_normal((K, E, p, 1))
        mean = self.mean + (self.root @ normal)[..., 0] / np.sqrt(self.count)[..., None]
        scatter = covariance * (self.count - 1)[..., None, None]
        return SHIFTS[method](Moments(*self.names, self.count, mean, scatter))
