"""How many spurious dimensions there are, by a test against sampling noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isrlearn.core._accumulate import between
from isrlearn.core.moments import Moments
from isrlearn.core.whiten import reliable_coordinates


@dataclass(frozen=True)
class RankTest:
    """Answer of a sequential test for the number of spurious dimensions.

    Parameters
    ----------
    rank : int
        Smallest number of dimensions that leaves no significant shift.
    p_values : tuple of float
        ``p_values[r]``: of "r dimensions are enough"; the last one is the first not rejected.
    level : float
        Level of each step.
    spectrum : ndarray of shape (m,)
        Squared shift of the cell means along each direction, in units of its sampling variance.
    noise : float
        Largest such value expected from sampling noise alone.
    limit : int
        Most dimensions that this many environments and classes can show.
    """

    rank: int
    p_values: tuple[float, ...]
    level: float
    spectrum: NDArray[np.floating]
    noise: float
    limit: int

    @property
    def limited(self) -> bool:
        """Whether the environments, not the data, set the rank: more of them may show more."""
        return self.rank == self.limit


def shift_rows(moments: Moments, classes: NDArray | None = None) -> NDArray[np.float64]:
    """Deviations of the cell means from their class mean, weighted by root counts, (K·E, d)."""
    picked = slice(None) if classes is None else classes
    _, _, rows = between(moments.count[picked], moments.mean[picked], axis=1)
    return rows.reshape(-1, moments.n_features)


def mean_rank(moments: Moments, classes: NDArray | None = None, *, level: float = 0.01) -> RankTest:
    r"""Number of dimensions in which cell means differ between environments.

    With the features whitened by the pooled within-cell covariance, the squared singular values
    :math:`t_i` of the weighted mean shifts are sampling noise beyond the true rank r, so that

    .. math:: \sum_{i > r} t_i \sim \chi^2_{(p - r)(q - r)}

    for p features and q independent shifts (environments less one, in each class). The chi-square
    law needs an exact covariance; with an estimated one of :math:`\nu` degrees of freedom the
    sum is a Lawley-Hotelling trace, whose F approximation (McKeon) is used: it tends to the
    chi-square law, and keeps its level when p is not small beside :math:`\nu`.

    Parameters
    ----------
    moments : Moments
        With a scatter. Population moments have no sampling noise: the rank is numerical.
    classes : ndarray of int, optional
        The classes to use; all when not given.
    level : float, default=0.01
        Level of each step of the sequence.
    """
    count = moments.count if classes is None else moments.count[classes]
    coordinates = reliable_coordinates(moments)
    rows = shift_rows(moments, classes) @ coordinates.factor
    t = np.linalg.svd(rows, compute_uv=False) ** 2
    p = rows.shape[1]
    q = int(np.count_nonzero(count) - np.count_nonzero(count.any(axis=1)))
    limit = min(p, q)
    if moments.ddof == 0:
        rank = int(np.count_nonzero(t > t.max(initial=0.0) * 1e-20)) if limit else 0
        return RankTest(min(rank, limit), (), level, t[:limit], 0.0, limit)
    p_values: list[float] = []
    rank = 0
    while rank < limit:
        p_values.append(_trace_p_value(t[rank:].sum(), p - rank, q - rank, moments.dof))
        if p_values[-1] > level:
            break
        rank += 1
    # Edge of the Marchenko-Pastur law of the dimensions that are left.
    noise = (np.sqrt(p - rank) + np.sqrt(max(q - rank, 0))) ** 2
    return RankTest(rank, tuple(p_values), level, t[:limit], float(noise), limit)


def _trace_p_value(statistic: float, p: int, q: int, dof: float) -> float:
    """Upper tail of the Lawley-Hotelling trace times its degrees of freedom."""
    n = (dof - p - 1) / 2
    if n <= 1:
        # Too few rows for the F approximation's moments to exist: nothing can be concluded.
        return 1.0
    b = (p + 2 * n) * (q + 2 * n) / (2 * (2 * n + 1) * (n - 1))
    dof2 = 4 + (p * q + 2) / (b - 1)
    scale = p * q * (dof2 - 2) / (2 * n * dof2)
    return float(stats.f.sf(statistic / dof / scale, p * q, dof2))
