"""How many spurious dimensions there are, by a test against sampling noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isrlearn.core.moments import Moments
from isrlearn.core.shifts import Shifts, covariance_shifts, joint_shifts
from isrlearn.core.whiten import reliable_coordinates

#: Squared shifts below this share of the largest are rounding errors (populations have no noise).
_NEGLIGIBLE = 1e-20


@dataclass(frozen=True, eq=False)
class RankTest:
    """Answer of a sequential test for the number of spurious dimensions.

    Parameters
    ----------
    rank : int
        Smallest number of dimensions that leaves no significant shift.
    p_values : tuple of float
        ``p_values[r]`` is that of "r dimensions are enough"; the last one is the first not
        rejected.
    level : float
        Level of each step.
    spectrum : ndarray of shape (m,)
        Squared shift along each direction, in units of its sampling variance.
    noise : float
        Largest such value expected from sampling noise alone.
    limit : int
        Largest number of dimensions that these environments and classes can show.
    """

    rank: int
    p_values: tuple[float, ...]
    level: float
    spectrum: NDArray[np.floating]
    noise: float
    limit: int

    @property
    def limited(self) -> bool:
        """Whether the environments, not the data, limit the rank: more of them may show more."""
        return self.rank == self.limit


def mean_rank(moments: Moments, classes: NDArray | None = None, *, level: float = 0.01) -> RankTest:
    r"""Number of dimensions in which cell means differ between environments.

    With the features whitened by the pooled within-cell covariance, the squared singular values
    :math:`t_i` of the weighted mean shifts are sampling noise beyond the true rank r, so that

    .. math:: \sum_{i > r} t_i \sim \chi^2_{(p - r)(q - r)}

    for p features and q independent shifts (environments less one, in each class). The chi-square
    law needs an exact covariance; with an estimated one of :math:`\nu` degrees of freedom the
    sum is a Lawley-Hotelling trace, whose F approximation (McKeon) is used: it tends to the
    chi-square law, and keeps its level when p is not small compared with :math:`\nu`.

    Parameters
    ----------
    moments : Moments
        With a scatter. Population moments have no sampling noise: the rank is numerical.
    classes : ndarray of int, optional
        The classes to use; all when not given.
    level : float, default=0.01
        Level of each step of the sequence.
    """
    rows = moments.mean_shifts(classes) @ reliable_coordinates(moments).factor
    t = np.linalg.svd(rows, compute_uv=False) ** 2
    return mean_rank_of(t, rows.shape[1], moments, classes, level=level)


def mean_rank_of(
    spectrum: NDArray, p: int, moments: Moments, classes: NDArray | None, *, level: float
) -> RankTest:
    """`mean_rank` from the squared singular values of the shifts in p whitened features."""
    t, q = spectrum, independent_shifts(moments.count, classes)
    limit = min(p, q)
    if moments.ddof == 0:
        return _numerical(t[:limit], limit, level)
    rank, p_values = first_accepted(
        lambda r: _trace_p_value(t[r:].sum(), p - r, q - r, moments.dof), limit, level
    )
    # Edge of the Marchenko-Pastur law: the largest squared shift of pure noise.
    noise = float((np.sqrt(p - rank) + np.sqrt(max(q - rank, 0))) ** 2)
    return RankTest(rank, p_values, level, t[:limit], noise, limit)


def covariance_rank(
    moments: Moments,
    classes: NDArray | None = None,
    *,
    level: float = 0.01,
    most: int | None = None,
) -> RankTest:
    r"""Number of dimensions in which cell covariances differ between environments.

    In whitened features, on the m directions outside the r that shift most,

    .. math:: \sum_{k,e} \tfrac{n_{ke}}{2} \| N^\top (\Sigma_{ke} - \bar{\Sigma_k}) N \|_F^2
              \sim \chi^2_{q m (m+1)/2} .

    The chi-square law is that of large cells. Its mean is replaced by the exact one of the
    (matrix beta) null distribution and its degrees of freedom by those of a variance inflated by
    2m/n per cell, so that the level holds when cells are not much larger than m. Gaussian
    features are assumed: with heavy tails covariances vary more and the test rejects too often;
    use the permutation form there.

    Parameters are those of `mean_rank`; the moments need a scatter per cell. The sequence ends at
    `most` dimensions: ``most=1`` asks only whether covariances differ at all.
    """
    return _shift_rank(moments, classes, level, covariance_shifts, most)


def joint_rank(
    moments: Moments, classes: NDArray | None = None, *, level: float = 0.01
) -> RankTest:
    """Number of dimensions in which means or covariances differ between environments.

    The smallest number that leaves neither a significant shift of means nor one of covariances,
    each tested at half the level as in `mean_rank` (with no credit for directions chosen by
    their means: they may have been chosen by covariances) and `covariance_rank`.
    """
    return _shift_rank(moments, classes, level, joint_shifts)


def _shift_rank(
    moments: Moments,
    classes: NDArray | None,
    level: float,
    shifts_of: Callable[[Moments, NDArray | None], Shifts],
    most: int | None = None,
) -> RankTest:
    cell = moments.cell_dof if classes is None else moments.cell_dof[classes]
    factor = reliable_coordinates(moments, smallest_cell=smallest_cell(moments, classes)).factor
    shifts = shifts_of(moments.map(factor), classes)
    p, q = factor.shape[1], independent_shifts(moments.count, classes)
    if moments.ddof == 0:
        # Singular values of the shifts: squaring first would lose the small ones to rounding.
        return _numerical(np.linalg.svd(shifts.stacked(), compute_uv=False) ** 2, p, level)
    spectrum = shifts.principal(0)[1]
    tests = bool(len(shifts.means)) + bool(len(shifts.covariances))

    def p_value(r: int) -> float:
        rest = shifts.outside(shifts.leading(r))
        values = [1.0]
        if len(rest.means):
            values.append(_trace_p_value(np.sum(rest.means**2), p - r, q, moments.dof))
        if len(rest.covariances):
            values.append(_covariance_p_value(np.sum(rest.covariances**2), p - r, cell))
        return min(1.0, tests * min(values))

    rank, p_values = first_accepted(p_value, p if most is None else min(most, p), level)
    noise = ((np.sqrt(p) + np.sqrt(q)) ** 2 if len(shifts.means) else 0.0) + (
        # Edge for p rows of p·q entries of variance one half.
        p / 2 * (1 + np.sqrt(q)) ** 2 if len(shifts.covariances) else 0.0
    )
    return RankTest(rank, p_values, level, spectrum, float(noise), p)


def first_accepted(
    p_value: Callable[[int], float], limit: int, level: float
) -> tuple[int, tuple[float, ...]]:
    """Smallest rank whose p-value exceeds the level, and the p-values up to there."""
    p_values: list[float] = []
    for rank in range(limit):
        p_values.append(p_value(rank))
        if p_values[-1] > level:
            return rank, tuple(p_values)
    return limit, tuple(p_values)


def _numerical(spectrum: NDArray, limit: int, level: float) -> RankTest:
    """Rank of exact moments: the shifts that are not rounding errors."""
    rank = int(np.count_nonzero(spectrum > spectrum.max(initial=0.0) * _NEGLIGIBLE))
    return RankTest(min(rank, limit), (), level, spectrum, 0.0, limit)


def independent_shifts(count: NDArray, classes: NDArray | None = None) -> int:
    """Independent mean shifts of cells with these counts: per class, its environments less one."""
    seen = np.count_nonzero(count if classes is None else count[classes], axis=1)
    return int(np.maximum(seen - 1, 0).sum())


def smallest_cell(moments: Moments, classes: NDArray | None = None) -> float:
    """Degrees of freedom of the smallest covariance to be compared."""
    cell = moments.cell_dof if classes is None else moments.cell_dof[classes]
    return float(cell[cell > 0].min(initial=np.inf))


def _trace_p_value(statistic: float, p: int, q: int, dof: float) -> float:
    """Upper tail of the Lawley-Hotelling trace times its degrees of freedom."""
    n = (dof - p - 1) / 2
    if n <= 1:
        # With too few rows the moments of the F approximation do not exist: no conclusion.
        return 1.0
    b = (p + 2 * n) * (q + 2 * n) / (2 * (2 * n + 1) * (n - 1))
    dof2 = 4 + (p * q + 2) / (b - 1)
    scale = p * q * (dof2 - 2) / (2 * n * dof2)
    return float(stats.f.sf(statistic / dof / scale, p * q, dof2))


def _covariance_p_value(statistic: float, p: int, cell: NDArray) -> float:
    """Upper tail of the summed squared covariance shifts under equal Gaussian covariances."""
    total = np.broadcast_to(cell.sum(axis=1, keepdims=True), cell.shape)
    compared = (cell > 0) & (cell < total)  # the only covariance of a class is its mean
    if not compared.any():
        return 1.0
    cell, total = cell[compared], total[compared]
    share = cell / total
    a, t = cell / 2, total / 2
    # E tr(B²) of the matrix beta B = share · S̄^(-1/2) S S̄^(-1/2), by zonal polynomials.
    square = a * (a + 1) / (t * (t + 1)) * p * (p + 2) / 3
    square = square - a * (a - 0.5) / (t * (t - 0.5)) * p * (p - 1) / 3
    mean = np.sum(cell / 2 * (square / share**2 - p))
    variance = np.sum((1 - share) * p * (p + 1) * (1 + 2 * p / cell))
    degrees = 2 * mean**2 / variance
    return float(stats.chi2.sf(statistic / mean * degrees, degrees))
