"""The cells of the data, and whether means, covariances and the target shift between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import Cells
from isrlearn.core.laws import RowSample, covariance_shifts, mean_shifts
from isrlearn.core.moments import Moments
from isrlearn.core.rank import covariance_rank, mean_rank
from isrlearn.core.whiten import reliable_coordinates, whitening
from isrlearn.engine import sum_cells

#: Rows below which a cell is called small: the standard error of its mean is then more than
#: 0.3 standard deviations along every direction.
SMALL = 10


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
        return f"{self.n:,} rows of {of_class}environment {self.environment!r}"


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
    empty: tuple[Cell, ...]  #: Cells without rows.
    small: tuple[Cell, ...]  #: Cells with one to nine rows.

    @classmethod
    def of(cls, cells: Cells, *, regression: bool = False) -> CellCounts:
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
            empty=tuple(c for c in every if c.n == 0),
            small=tuple(c for c in every if 0 < c.n < SMALL),
        )


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
        return self.shifted and self.n_dimensions >= self.limit


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


def target_shift(target: NDArray, cells: Cells, counts: CellCounts, level: float) -> Shift:
    """Shift of the mean of a regression's target between environments.

    ISR for regression compares means with no class to condition on: it assumes that the target,
    and with it the invariant features, have the same distribution in every environment.
    """
    moments = sum_cells(target[:, None], cells)
    return mean_shift(moments.map(whitening(moments).factor), counts, level)


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
