"""Whether means, covariances and the target shift between cells, and how certain that is."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import Cells
from isrlearn.core.laws import RowSample, covariance_shifts, mean_shifts
from isrlearn.core.moments import Moments
from isrlearn.core.rank import covariance_rank, independent_shifts, mean_rank
from isrlearn.core.subspace import principal_angles
from isrlearn.core.whiten import reliable_components, reliable_coordinates
from isrlearn.estimators.folds import empty_cells
from isrlearn.estimators.pipeline import Fitter, Settings

#: Rows below which a cell is called small: the standard error of its mean is then more than
#: 0.3 standard deviations along every direction.
_SMALL = 10
#: Environments up to which every cell is shown.
_MOST_SHOWN = 8
#: Largest angle, in degrees, of a subspace that is called stable.
_STABLE = 30.0


class Cell(NamedTuple):
    """A class in an environment and its number of rows; the class of a regression is None.

    Examples
    --------
    >>> Cell("waterbird", "land", 56).n
    56
    """

    label: Any
    environment: Any
    n: int

    def __str__(self) -> str:
        """The rows in words."""
        of_class = "" if self.label is None else f"class {self.label!r} in "
        rows = "row" if self.n == 1 else "rows"
        return f"{self.n:,} {rows} of {of_class}environment {self.environment!r}"


@dataclass(frozen=True)
class CellCounts:
    """Rows of every class in every environment.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.core.labels import Cells
    >>> cells = CellCounts.of(Cells.of([0, 1, 0, 0], ["land", "land", "land", "sea"]))
    >>> cells.empty, cells.compared
    ((Cell(label=1, environment='sea', n=0),), (0,))
    """

    classes: tuple[Any, ...]  #: Names of the classes; a regression has the single class None.
    environments: tuple[Any, ...]  #: Names of the environments.
    count: tuple[tuple[int, ...], ...]  #: Rows of each class (outer) in each environment (inner).
    unlabelled: tuple[int, ...]  #: Rows of each class whose environment is unknown.
    compared: tuple[Any, ...]  #: Classes seen in several environments, compared between them.
    empty: tuple[Cell, ...]  #: Cells without rows, those of unknown environment included.
    small: tuple[Cell, ...]  #: Cells with one to nine rows.

    @classmethod
    def of(cls, cells: Cells, *, regression: bool = False) -> Self:
        """Counts of the cells that rows belong to."""
        classes = (None,) if regression else tuple(cells.classes.tolist())
        names = tuple(cells.environments.tolist())
        count = cells.count()
        every = [Cell(classes[k], names[e], int(n)) for (k, e), n in np.ndenumerate(count)]
        return cls(
            classes=classes,
            environments=names,
            count=tuple(map(tuple, count.tolist())),
            unlabelled=tuple((np.bincount(cells.k) - count.sum(axis=1)).tolist()),
            compared=tuple(classes[k] for k in np.flatnonzero((count > 0).sum(axis=1) > 1)),
            empty=tuple(every[i] for i in np.flatnonzero(empty_cells(cells))),
            small=tuple(c for c in every if 0 < c.n < _SMALL),
        )

    def table(self) -> tuple[list[list[str]], str]:
        """Rows of a table of the counts, or of their range if there are many; sides of columns."""
        unknown = sum(self.unlabelled)
        if len(self.environments) > _MOST_SHOWN:
            counts = sorted(n for row in self.count for n in row)
            middle = counts[len(counts) // 2]
            note = f", {unknown:,} more without an environment" if unknown else ""
            line = f"Rows per cell: {counts[0]:,} to {counts[-1]:,}, median {middle:,}{note}"
            return [[line]], "<"
        rows = [["rows", *map(str, self.environments), *["(unknown)"] * bool(unknown)]]
        for k, row, rest in zip(self.classes, self.count, self.unlabelled, strict=True):
            name = "all" if k is None else f"class {k}"
            rows.append([name, *(f"{n:,}" for n in row), *[f"{rest:,}"] * bool(unknown)])
        return rows, "<" + ">" * len(rows[0][1:])


@dataclass(frozen=True)
class Shift:
    """How the means, or the covariances, of a class differ between environments.

    Examples
    --------
    >>> found = Shift(1e-9, 2, 10, 2, 3.1, (0, "land", "sea"))
    >>> found.shifted, found.limited
    (True, True)
    """

    p_value: float | None  #: Of the hypothesis that they do not differ; None if not tested.
    n_dimensions: int  #: Dimensions along which they differ by more than sampling noise.
    n_coordinates: int  #: Features, or principal components, in which they were compared.
    limit: int  #: Most dimensions that these environments could show.
    #: Largest distance between two means in within-cell standard deviations, with the contribution
    #: of sampling noise subtracted; or the largest ratio of two variances.
    effect: float = 0.0
    largest: tuple[Any, Any, Any] | None = None  #: Class and two environments of `effect`.
    note: str = ""  #: What could not be tested, and why.

    @property
    def shifted(self) -> bool:
        """Whether they differ, by a test at the level of the diagnosis."""
        return self.n_dimensions > 0

    @property
    def limited(self) -> bool:
        """Whether the number of environments, not the data, sets the number of dimensions."""
        return self.shifted and self.limit <= self.n_dimensions < self.n_coordinates

    def described(self, effect: str) -> str:
        """Whether they differ, and where most; `effect` is a phrase with a place for the size."""
        if self.p_value is None:
            return f"unknown: {self.note}"
        p = "< 1e-16" if self.p_value < 1e-16 else f"= {self.p_value:.2g}"
        if not self.shifted or self.largest is None:
            return f"{'yes' if self.shifted else 'no'}, p {p}"
        (k, a, b), m = self.largest, self.n_coordinates
        where = f"{'' if k is None else f'class {k!r}, '}{a!r} against {b!r}"
        along = f"along {self.n_dimensions} of {m} dimensions; " * (m > 1)
        return f"yes, p {p}; {along}{effect.format(self.effect)} ({where})"


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
    n_bootstrap: int  #: Number of draws.
    #: Factor on the number of rows that would reduce the largest angle to 30 degrees: at most one
    #: if the angle is smaller already, infinite if the weakest direction is lost in noise.
    more_rows: float

    @property
    def stable(self) -> bool:
        """Whether the largest angle stays below 30 degrees in the median draw."""
        return not self.median or self.median[0] <= _STABLE

    def __str__(self) -> str:
        """The largest angle in words."""
        angle, low, high = self.median[0], self.low[0], self.high[0]
        answer = "yes" if self.stable else "no"
        return f"{answer}: largest angle {angle:.1f}°, 95 % of draws {low:.1f}° to {high:.1f}°"


def with_scatter(fitter: Fitter) -> Fitter:
    """The same rows with a scatter: of wide rows, on as many components as a test can whiten."""
    features = fitter.features
    p = reliable_components(features) if features.scatter is None else None
    return fitter if p is None else Fitter(fitter.sample, [Settings(n_components=p)])


def mean_shift(moments: Moments, cells: CellCounts, level: float) -> Shift:
    """Shift of the means of a class between environments."""
    test = mean_rank(moments, level=level)
    whitened = moments.map(reliable_coordinates(moments).factor)
    p = whitened.n_features
    N = mean_shifts(whitened).leading(test.rank)
    mean = whitened.mean @ N if test.rank else whitened.mean
    squared = np.sum(mean**2, axis=-1) - mean.shape[-1] / moments.count.clip(1)
    distance = squared[:, None] + squared[:, :, None] - 2 * mean @ mean.swapaxes(1, 2)
    square, largest = _largest(distance, moments, cells)
    # Classes that shift alike, or mirror each other, show no more dimensions than one of them.
    alike = len(cells.environments) - 1
    limit = min(p, alike if test.rank <= alike else test.limit)
    effect = float(np.sqrt(max(square, 0.0)))
    return Shift(test.p_values[0], test.rank, p, limit, effect, largest)


def covariance_shift(
    moments: Moments, rows: RowSample | None, cells: CellCounts, level: float
) -> Shift:
    """Difference of the covariances of a class between environments."""
    p = moments.n_features
    if moments.pooled:
        note = "there are too many classes, environments and features to keep each covariance"
        return Shift(None, 0, p, p, note=note)
    test = covariance_rank(moments, level=level, rows=rows)
    if test.note or not test.rank:
        p_value = None if test.note else test.p_values[0]
        return Shift(p_value, 0, p, test.limit, note=test.note)
    whitened = moments.map(reliable_coordinates(moments).factor)
    N = covariance_shifts(whitened).leading(min(test.rank, whitened.n_features))
    variance = np.einsum("pr,kepq,qr->ker", N, whitened.covariance, N)
    one, other = variance[:, None], variance[:, :, None]
    ratio = np.where(other > 0, one / np.where(other > 0, other, 1.0), 0.0).max(axis=-1)
    effect, largest = _largest(ratio, moments, cells)
    return Shift(test.p_values[0], test.rank, p, test.limit, effect, largest)


def coordinates(moments: Moments) -> NDArray[np.float64]:
    """Whitening factor (d, p) of the coordinates in which a subspace is searched for.

    Few rows with an environment whiten few coordinates; all the rows of a class whiten the others.
    """
    used = reliable_coordinates(moments)
    if moments.unlabelled is not None:
        count, mean, scatter = moments.by_class
        whole = Moments(moments.classes, np.array(["all"]), count[:, None], mean[:, None], scatter)
        used = max(used, reliable_coordinates(whole), key=lambda w: w.factor.shape[1])
    return used.factor


def _largest(
    difference: NDArray, moments: Moments, cells: CellCounts
) -> tuple[float, tuple[Any, Any, Any]]:
    """Largest of the differences (K, E, E) between cells with rows; its class and environments."""
    seen = moments.count > 0
    pairs = seen[:, None] & seen[:, :, None] & ~np.eye(seen.shape[1], dtype=bool)
    k, a, b = np.unravel_index(np.where(pairs, difference, -np.inf).argmax(), difference.shape)
    names = cells.classes[k], cells.environments[a], cells.environments[b]
    return float(difference[k, a, b]), names


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
    """Rank-r part of the mean shifts without noise, and the factor on the rows that it needs."""
    # A true singular value x of q × p shifts with unit noise is observed as
    # sqrt((x² + p) (x² + q)) / x when p and q are large. Without the correction a direction of pure
    # noise would look as stable as a real one.
    U, s, Vt = np.linalg.svd(rows, full_matrices=False)
    p = rows.shape[1]
    excess = s[:rank] ** 2 - p - q
    inside = np.maximum(excess**2 - 4 * p * q, 0.0)
    squared = np.where(excess > 0, (excess + np.sqrt(inside)) / 2, 0.0)
    # The squared tangent of the weakest direction's angle is p (x² + q) / (x⁴ − p q), and x² grows
    # with the number of rows: the factor at which it is 1/3, that of 30 degrees.
    needed = (3 * p + np.sqrt(9 * p**2 + 16 * p * q)) / 2
    factor = needed / squared.min() if squared.min() > 0 else np.inf
    return (U[:, :rank] * np.sqrt(squared)) @ Vt[:rank], float(factor)
