"""How many spurious dimensions there are, by a test against sampling noise."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isrlearn.core.laws import complement, covariance_p_value, covariance_shifts
from isrlearn.core.moments import Moments
from isrlearn.core.whiten import equalised, reliable_coordinates

#: Squared shifts below this share of the largest are rounding errors (populations have no noise).
_NEGLIGIBLE = 1e-20
#: Rows from which the covariance of a cell is compared.
FEWEST_ROWS = 30


@dataclass(frozen=True, eq=False)
class RankTest:
    """Answer of a sequential test for the number of spurious dimensions."""

    rank: int  #: Smallest number of dimensions that leaves no significant shift.
    #: ``p_values[r]`` is that of "r dimensions are enough"; the last one is the first not rejected.
    p_values: tuple[float, ...]
    level: float  #: Level of each step.
    #: Squared shift along each direction (m,), in units of its sampling variance.
    spectrum: NDArray[np.floating]
    noise: float  #: Largest such value expected from sampling noise alone.
    limit: int  #: Largest number of dimensions that these environments and classes can show.
    note: str = ""  #: What could not be tested, and why; empty if everything was.

    @property
    def limited(self) -> bool:
        """Whether the environments, not the data, limit the rank: more of them may show more."""
        return self.rank == self.limit


def mean_rank(
    moments: Moments,
    classes: NDArray | None = None,
    *,
    level: float = 0.01,
    rows: Any = None,
    axes: tuple[NDArray, NDArray] | None = None,
) -> RankTest:
    r"""Number of dimensions in which cell means differ between environments.

    With each class divided by its own scale (`equalised`) and the features whitened by
    the pooled within-cell covariance, the squared singular values :math:`t_i` of the weighted
    mean shifts are sampling noise beyond the true rank r. Their sum is compared with its mean
    and variance under the covariances of the cells themselves (Box's approximation),

    .. math:: \sum_{i > r} t_i \approx a \, F_{f, g}, \quad
              a = \sum_{k,e} (1 - n_{ke}/n_k) \operatorname{tr} \Sigma_{ke}, \quad
              f = 2 a^2 / \operatorname{Var},

    so that covariances may differ between classes and between environments. With equal
    covariances it is the Lawley-Hotelling trace in McKeon's F approximation, which keeps its level
    when the number of features is not small beside the number of rows.

    Parameters
    ----------
    moments : Moments
        With a scatter per cell; with a pooled one, equal covariances are assumed. Population
        moments have no sampling noise: the rank is numerical.
    classes : ndarray of int, optional
        The classes to use; all when not given.
    level : float, default=0.01
        Level of each step of the sequence.
    rows : optional
        Ignored: means need no more than the moments.
    axes : (ndarray of shape (p,), ndarray of shape (d, p)), optional
        Squared singular values of the whitened shifts of equalised moments, and their right
        singular vectors times the whitening factor, where they are known.
    """
    if axes is None:
        factor = reliable_coordinates(moments).factor
        moments = equalised(moments, factor)
        _, s, Vt = np.linalg.svd(moments.mean_shifts(classes) @ factor)
        axes = s**2, factor @ Vt.T
    t, along = axes
    p, q = along.shape[1], independent_shifts(moments.count, classes)
    limit = min(p, q)
    if moments.ddof == 0:
        return _numerical(t[:limit], limit, level)
    scatter = np.asarray(moments.scatter)
    S = along.T @ (scatter if moments.pooled or classes is None else scatter[classes]) @ along
    rank, p_values = first_accepted(
        lambda r: mean_p_value(t[r:].sum(), S[..., r:, r:], moments, classes, found=r),
        limit,
        level,
    )
    # Edge of the Marchenko-Pastur law: the largest squared shift of pure noise.
    noise = float((np.sqrt(p - rank) + np.sqrt(max(q - rank, 0))) ** 2)
    return RankTest(rank, p_values, level, t[:limit], noise, limit)


def independent_shifts(count: NDArray, classes: NDArray | None = None) -> int:
    """Independent mean shifts of cells with these counts: per class, its environments less one."""
    seen = np.count_nonzero(count if classes is None else count[classes], axis=1)
    return int(np.maximum(seen - 1, 0).sum())


def mean_p_value(
    statistic: float, S: NDArray, moments: Moments, classes: NDArray | None, found: int = 0
) -> float:
    """Upper tail of the summed squared mean shifts of cells with scatters S (K, E, p, p) or (p, p).

    `found` directions were chosen to hold the largest shifts, and the statistic is of the others.
    """
    count = moments.count if classes is None else moments.count[classes]
    p, q, v = S.shape[-1], independent_shifts(count), np.maximum(count - 1, 2.0)
    n = (moments.dof - p - 1) / 2
    if n <= 1:
        # With too few rows the moments of the F approximation do not exist: no conclusion.
        return 1.0
    if moments.pooled:
        C = np.broadcast_to(S / max(moments.dof, 1.0), (*count.shape, p, p))
    else:
        dof = np.maximum(count - 1, 0.0)
        C = S / np.maximum(dof, 1.0)[..., None, None]
        for k in np.flatnonzero((dof < 2).any(axis=1)):  # few rows: the covariance of their class
            C[k, dof[k] < 2] = S[k, dof[k] > 0].sum(axis=0) / max(dof[k].sum(), 1.0)
    share = count / np.maximum(count.sum(axis=1, keepdims=True), 1.0)
    share = np.where(count > 0, share, 1.0)
    trace = np.trace(C, axis1=-2, axis2=-1)
    flat = C.reshape(*count.shape, -1)
    products = flat @ flat.swapaxes(1, 2)  # (K, E, E)
    if not moments.pooled:
        # tr S² is tr Σ² and, by sampling noise, about (tr Σ)² / v more.
        own = np.einsum("kee->ke", products)
        own = (own - trace**2 / v) / (1 + 1 / v - 2 / v**2)
        np.einsum("kee->ke", products)[...] = np.maximum(own, trace**2 / p)
    seen = count > 0
    root = np.sqrt(np.where(seen, share, 0.0))
    contrast = np.eye(count.shape[1]) * seen[:, None] - root[:, None] * root[:, :, None]
    mean = np.sum((1 - share) * trace)
    if mean <= 0:
        return float(statistic <= 0)  # no spread inside the cells: any difference is real
    variance = 2 * np.sum(contrast**2 * products)
    # McKeon's law of the Lawley-Hotelling trace, for the whitening was estimated.
    left = q - found
    b = (p + 2 * n) * (left + 2 * n) / (2 * (2 * n + 1) * (n - 1))
    whitening = 4 + (p * left + 2) / (b - 1)
    unit = p * left * (whitening - 2) / (2 * n * whitening) * moments.dof * mean / (p * q)
    spread = 0.0 if moments.pooled else np.sum(((1 - share) * trace) ** 2 / (v * p)) / mean**2
    degrees = 2 * mean**2 / variance * left / q
    return float(stats.f.sf(statistic / unit, degrees, 1 / (1 / whitening + spread)))


def covariance_rank(
    moments: Moments,
    classes: NDArray | None = None,
    *,
    level: float = 0.01,
    most: int | None = None,
    rows: Any = None,
    means: bool = False,
) -> RankTest:
    r"""Number of dimensions in which cell covariances differ between environments.

    In equalised, whitened features, on the m directions outside the r that shift most,

    .. math:: \sum_{k,e} \tfrac{n_{ke}}{2} \| N^\top (\Sigma_{ke} - \bar\Sigma_k) N \|_F^2

    is compared with its mean and variance when the environments of a class are exchangeable. Both
    follow from the fourth moments of the rows, so that skewed, discrete and heavy-tailed features
    keep the level; without rows the features are assumed Gaussian.

    Parameters are those of `mean_rank`; the moments need a scatter per cell, and cells of fewer
    than 30 rows are not compared. The sequence ends at `most` dimensions: ``most=1`` asks only
    whether covariances differ at all. `rows` is a `RowSample`: some rows of every class. With
    `means`, neither they nor covariances may shift in what is left, each tested at half the level;
    directions found give the test of means no credit, as covariances may have chosen them.
    """
    picked = np.arange(len(moments.classes)) if classes is None else classes
    exact = moments.ddof == 0
    # Fewer rows than this say too little about a covariance and its sampling noise.
    enough = np.where(exact | (moments.count >= FEWEST_ROWS), moments.count, 0.0)
    smallest = smallest_cell(replace(moments, count=enough), picked)
    factor = reliable_coordinates(moments, smallest_cell=smallest).factor
    equal = equalised(moments, factor)
    p, q = factor.shape[1], independent_shifts(moments.count, picked)
    compared = independent_shifts(enough, picked)
    mapped = equal.map(factor)
    scatter, large = np.asarray(mapped.scatter), replace(mapped, count=enough)
    shifts = covariance_shifts(large, picked)
    if means:
        shifts = replace(shifts, means=mapped.mean_shifts(picked))
    if exact:
        # Singular values of the shifts: squaring them first would hide the small in rounding.
        return _numerical(np.linalg.svd(shifts.stacked(), compute_uv=False) ** 2, p, level)
    spectrum = shifts.principal(0)[1]
    if rows is not None:
        # Residuals: rows less their cell's mean, in units of their class's scale, whitened.
        before, after = (np.einsum("keii->k", m.covariance) for m in (moments, equal))
        scale = np.sqrt(after / np.where(before > 0, before, 1.0))
        X = (rows.X - moments.mean[rows.k, rows.e]) * scale[rows.k, None]
        rows = rows._replace(X=X @ factor)

    def p_value(r: int) -> float:
        axes = complement(shifts.leading(r))
        values = [1.0]
        if means:
            total, S = np.sum((shifts.means @ axes) ** 2), axes.T @ scatter[picked] @ axes
            values.append(mean_p_value(total, S, moments, picked))
        if compared:
            values.append(covariance_p_value(large, axes, picked, rows))
        return min(1.0, (1 + means) * min(values))

    rank, p_values = first_accepted(p_value, p if most is None else min(most, p), level)
    # Edge for p rows of p·q entries of variance one half.
    noise = means * (np.sqrt(p) + np.sqrt(q)) ** 2 + p / 2 * (1 + np.sqrt(q)) ** 2
    few = f"no class has {FEWEST_ROWS} rows in two environments: covariances were not compared"
    return RankTest(rank, p_values, level, spectrum, float(noise), p, "" if compared else few)


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
    """Rank of exact moments: what is not rounding."""
    rank = int(np.count_nonzero(spectrum > spectrum.max(initial=0.0) * _NEGLIGIBLE))
    return RankTest(min(rank, limit), (), level, spectrum, 0.0, limit)


def smallest_cell(moments: Moments, classes: NDArray | None = None) -> float:
    """Degrees of freedom of the smallest covariance to be compared."""
    cell = moments.cell_dof if classes is None else moments.cell_dof[classes]
    return float(cell[cell > 0].min(initial=np.inf))
