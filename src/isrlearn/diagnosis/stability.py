"""How far the subspace would rotate if the data were drawn again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.laws import mean_shifts
from isrlearn.core.moments import Moments
from isrlearn.core.rank import independent_shifts
from isrlearn.core.subspace import principal_angles

#: Largest angle, in degrees, of a subspace that is called stable.
STABLE = 30.0


@dataclass(frozen=True)
class Stability:
    """Principal angles, in degrees, between the subspace and those found in data drawn again.

    Means are drawn from their sampling distribution around the estimated means, from which the
    contribution of noise is subtracted; the subspace is found again in each draw. Angles are
    measured in whitened features, so that units do not matter.

    Examples
    --------
    >>> Stability((12.0, 3.0), (8.0, 2.0), (18.0, 5.0), 200, 0.2).stable
    True
    """

    median: tuple[float, ...]  #: Median of each principal angle, largest first.
    low: tuple[float, ...]  #: Where the central 95 % of the draws begin.
    high: tuple[float, ...]  #: Where they end.
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
    moments: Moments, rank: int, *, n_bootstrap: int = 100, random_state: int = 0
) -> Stability:
    """Stability of the subspace along which the means of whitened moments shift."""
    rng = np.random.default_rng(random_state)
    shifts = mean_shifts(moments)
    N = shifts.leading(rank)
    model, more_rows = _less_noise(shifts.means, rank, independent_shifts(moments.count))
    found = []
    for _ in range(n_bootstrap):
        noise = rng.standard_normal(moments.mean.shape) / np.sqrt(moments.count.clip(1))[..., None]
        drawn = model + replace(moments, mean=noise).mean_shifts()
        other = np.linalg.svd(drawn, full_matrices=False)[2][:rank].T
        found.append(np.degrees(principal_angles(N, other)))
    low, median, high = np.quantile(found, [0.025, 0.5, 0.975], axis=0).tolist()
    return Stability(tuple(median), tuple(low), tuple(high), n_bootstrap, more_rows)


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
