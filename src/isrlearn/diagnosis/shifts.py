"""Whether means, covariances and the target shift between environments, and how far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isrlearn.core.labels import Cells
from isrlearn.core.laws import RowSample
from isrlearn.core.methods import METHODS
from isrlearn.core.moments import Moments
from isrlearn.core.rank import FEWEST_ROWS, RankTest, mean_rank
from isrlearn.core.shifts import covariance_shifts, mean_shifts
from isrlearn.core.whiten import ROWS_PER_CELL_FEATURE, whitening
from isrlearn.diagnosis.sample import MOST_COMPARED, Cell, CellCounts, WhitenedSample
from isrlearn.engine import sum_cells

#: Share of the classes' shifts that may be left out when their patterns are counted: no two
#: classes of real data shift in exactly the same way.
_NEGLIGIBLE_SHARE = 0.02
#: Sampling variance of covariances, relative to Gaussian features, of heavy tails.
_HEAVY = 1.5


@dataclass(frozen=True)
class MeanShift:
    """How the means of a class shift between environments.

    Examples
    --------
    >>> found = MeanShift(True, 1e-9, (1e-9, 1e-4), 2, 10, 2, 1, 3.1, (0, "land", "sea"))
    >>> found.limited
    True
    """

    shifted: bool  #: Whether they shift, by a test at the level of the diagnosis.
    p_value: float  #: p-value of the hypothesis that they do not.
    p_values: tuple[float, ...]  #: Those of "0 dimensions are enough", "1 dimension is enough", …
    n_dimensions: int  #: Dimensions along which they shift by more than sampling noise.
    n_coordinates: int  #: Features, or principal components, in which they were compared.
    limit: int  #: Most dimensions that these environments could show.
    #: Classes that shift in ways of their own. If all classes shift in the same way, or mirror
    #: each other, they show no more dimensions than one of them.
    n_patterns: int
    #: Largest distance between the means of a class in two environments, in within-cell standard
    #: deviations, with the contribution of sampling noise subtracted.
    effect: float
    largest: tuple[Any, Any, Any]  #: Class (None for a regression) and environments of `effect`.

    @property
    def limited(self) -> bool:
        """Whether the number of environments, not the data, sets the number of dimensions."""
        return self.shifted and self.n_dimensions >= self.limit


def mean_shift(
    test: RankTest, moments: Moments, cells: CellCounts, n_coordinates: int
) -> MeanShift:
    """Mean shift of whitened moments along the dimensions that a test found."""
    N = mean_shifts(moments).leading(test.rank)
    patterns = _patterns(moments, N, test.level)
    mean = moments.mean @ N if test.rank else moments.mean
    noise = mean.shape[-1] / moments.count.clip(1)
    squared = np.sum(mean**2, axis=-1) - noise
    distance = squared[:, None] + squared[:, :, None] - 2 * mean @ mean.swapaxes(1, 2)
    square, largest = _largest(distance, moments, cells)
    return MeanShift(
        shifted=test.rank > 0,
        p_value=test.p_values[0] if test.p_values else 1.0,
        p_values=test.p_values,
        n_dimensions=test.rank,
        n_coordinates=n_coordinates,
        limit=min(patterns * (len(cells.environments) - 1), test.limit, moments.n_features),
        n_patterns=patterns,
        effect=float(np.sqrt(max(square, 0.0))),
        largest=largest,
    )


def target_shift(target: NDArray, cells: Cells, counts: CellCounts, level: float) -> MeanShift:
    """Shift of the mean of a regression's target between environments.

    ISR for regression compares means with no class to condition on: it assumes that the target,
    and with it the invariant features, have the same distribution in every environment.
    """
    moments = sum_cells(target[:, None], cells)
    test = mean_rank(moments, level=level)
    return mean_shift(test, moments.map(whitening(moments).factor), counts, 1)


def _largest(
    difference: NDArray, moments: Moments, cells: CellCounts
) -> tuple[float, tuple[Any, Any, Any]]:
    """Largest of the differences (K, E, E) between cells with rows; its class and environments."""
    seen = moments.count > 0
    pairs = seen[:, None] & seen[:, :, None] & ~np.eye(seen.shape[1], dtype=bool)
    k, a, b = np.unravel_index(np.where(pairs, difference, -np.inf).argmax(), difference.shape)
    names = cells.classes[k], cells.environments[a], cells.environments[b]
    return float(difference[k, a, b]), names


def _patterns(moments: Moments, N: NDArray, level: float) -> int:
    """Number of classes whose shifts are not combinations of those of the other classes.

    The shifts of each class along N, in the environments that all of them have, form one row; the
    rank of these rows is tested against noise.
    """
    seen = moments.count > 0
    compared = seen[seen.sum(axis=1) > 1]
    block = np.ix_(seen.sum(axis=1) > 1, compared.all(axis=0))
    count, mean = moments.count[block], moments.mean[block] @ N
    K, E = count.shape
    if not N.shape[1] or K == 1 or E < 2:
        return K if N.shape[1] else 1
    contrasts = np.linalg.svd(np.eye(E) - 1 / E)[0][:, : E - 1]
    shifts = np.einsum("ec,ker->kcr", contrasts, mean).reshape(K, -1)
    # Scaled to an average noise of one: scaling a row does not change the rank.
    scale = np.sqrt(E / (1 / count).sum(axis=1))
    squares = np.linalg.svd(scale[:, None] * shifts, compute_uv=False) ** 2
    for c in range(1, len(squares)):
        rest = squares[c:].sum()
        p_value = stats.chi2.sf(rest, (K - c) * (shifts.shape[1] - c))
        if rest <= _NEGLIGIBLE_SHARE * squares.sum() or p_value > level:
            return c
    return len(squares)


@dataclass(frozen=True)
class CovarianceShift:
    """How the covariances of a class differ between environments.

    Examples
    --------
    >>> from isrlearn.diagnosis import Cell
    >>> found = CovarianceShift(uncompared=(Cell(1, "land", 12),), n_needed=21)
    >>> found.shifted, found.p_value
    (False, None)
    """

    shifted: bool = False  #: Whether they differ, by a test at the level of the diagnosis.
    p_value: float | None = None  #: p-value of equality; None if not compared.
    n_dimensions: int = 0  #: Dimensions along which they differ by more than sampling noise.
    n_dimensions_joint: int = 0  #: Dimensions of means or covariances, tested together.
    n_coordinates: int = 0  #: Features, or principal components, in which they were compared.
    compared: tuple[Any, ...] = ()  #: Classes that are compared.
    uncompared: tuple[Cell, ...] = ()  #: The smallest cell of each other class, too small.
    n_needed: int = FEWEST_ROWS  #: Rows that a cell must have for a comparison.
    #: Sampling variance of covariances divided by that of Gaussian features of the same
    #: covariance; above one for heavy tails.
    noise: float = float("nan")
    #: Along the directions found, the largest difference of the variances of two environments
    #: divided by their mean (0 if equal, at most 2); median over the directions.
    ratio: float = float("nan")
    chance: float = float("nan")  #: The ratio that sampling noise alone can produce.
    largest: tuple[Any, Any, Any] | None = None  #: Class and environments of `ratio`.

    @property
    def weak(self) -> bool:
        """Whether covariances differ by so little that noise may hide some of the dimensions."""
        return self.shifted and self.ratio < 2 * self.chance

    @property
    def heavy_tailed(self) -> bool:
        """Whether covariances vary half as much again as those of Gaussian features, or more."""
        return self.noise >= _HEAVY


def covariance_shift(
    sample: WhitenedSample, Z: NDArray, cells: Cells, counts: CellCounts, means: RankTest
) -> tuple[CovarianceShift, WhitenedSample]:
    """Covariance shift, and the sample of the classes and coordinates that are compared.

    The rows Z are all of the data in the coordinates of the given sample.
    """
    p = min(sample.rows.shape[1], MOST_COMPARED)
    # A cell needs three rows for each coordinate in which means are compared, and all the cells
    # that share a whitening need ten. Fewer coordinates would need fewer rows, but what they
    # leave out is what ISR would leave in.
    shared = -(-10 * p // int(np.count_nonzero(sample.moments.count))) + 1
    needed = max(ROWS_PER_CELL_FEATURE * p + 1, shared, FEWEST_ROWS)
    smallest = [counts.smallest(label) for label in counts.compared]
    found = CovarianceShift(
        compared=tuple(cell.label for cell in smallest if cell.n >= needed),
        uncompared=tuple(cell for cell in smallest if cell.n < needed),
        n_needed=needed,
    )
    if not found.compared:
        return found, sample
    picked = np.array([label in found.compared for label in counts.classes])
    cells, own = (replace(c, e=np.where(picked[c.k], c.e, -1)) for c in (cells, sample.cells))
    moments = sum_cells(Z[:, :p], cells)
    sample = replace(sample, rows=sample.rows[:, :p], cells=own, moments=moments)
    noise = _noise(sample)
    count = moments.count[moments.count > 0]
    known = np.flatnonzero(own.e >= 0)
    rows = RowSample(sample.rows[known], own.k[known], own.e[known])

    def tested(method: str) -> RankTest:
        return METHODS[method].rank(moments, level=means.level, rows=rows)

    test = tested("cov")
    joint = tested("joint").rank if means.rank and test.rank else max(means.rank, test.rank)
    ratio, largest = 0.0, None
    if test.rank:
        ratio, largest = _largest(_ratios(moments, test.rank), moments, counts)
    found = replace(
        found,
        shifted=test.rank > 0,
        p_value=test.p_values[0],
        n_dimensions=test.rank,
        n_dimensions_joint=joint,
        n_coordinates=p,
        noise=noise,
        ratio=ratio,
        # Edge of the spectrum of the difference of two sample covariances of p coordinates.
        chance=float(2 * np.sqrt(2 * p * max(noise, 1.0) / (np.median(count) - 1))),
        largest=largest,
    )
    return found, replace(sample, method="joint" if means.rank else "cov", rank=joint)


def _noise(sample: WhitenedSample) -> float:
    r"""Sampling variance of the cells' covariances, divided by that of Gaussian features.

    All entries of zzᵀ together have variance E‖z‖⁴ − tr Σ², which is (tr Σ)² + tr Σ² for a
    Gaussian. Each cell is compared with its own covariance Σ, so that covariances that differ
    between cells do not look like heavy tails; tr S² and (tr S)² are made unbiased.
    """
    found, expected = 0.0, 0.0
    for cell in np.unique(sample.cell[sample.known]):
        Z = sample.rows[sample.known & (sample.cell == cell)]
        n, v = len(Z), len(Z) - 1.0
        Z = Z - Z.mean(axis=0)
        S = Z.T @ Z / v
        trace2, square = np.trace(S) ** 2, np.sum(S**2)
        # E (tr S)² = a + 2b/v and E tr S² = b (1 + 1/v) + a/v, with a = (tr Σ)², b = tr Σ².
        b = (square - trace2 / v) / (1 + 1 / v - 2 / v**2)
        a = trace2 - 2 * b / v
        fourth = np.mean(np.sum(Z**2, axis=1) ** 2) / (1 - 1 / n) ** 2
        found += n * (fourth - b)
        expected += n * (a + b)
    return float(found / expected)


def _ratios(moments: Moments, rank: int) -> NDArray[np.float64]:
    """Relative differences (K, E, E) of the cells' variances, median over the directions found."""
    N = covariance_shifts(moments).leading(rank)
    variance = np.einsum("pr,kepq,qr->ker", N, moments.covariance, N)
    one, other = variance[:, None], variance[:, :, None]
    both = np.where(one + other > 0, one + other, 1.0)  # cells without rows have no variance
    return np.median(2 * np.abs(one - other) / both, axis=-1)
