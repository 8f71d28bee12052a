"""What is examined: the cells of the data, and a sample of rows in whitened coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core.labels import Cells
from isrlearn.core.methods import METHODS
from isrlearn.core.moments import Moments
from isrlearn.core.whiten import Whitening, principal_components, reliable_coordinates
from isrlearn.engine import sum_cells

#: Rows below which a cell is called small: the standard error of its mean is then more than
#: 0.3 standard deviations along every direction.
SMALL = 10
#: Most coordinates that are examined, and most in which covariances are compared: the search for
#: a subspace of covariances is slow in more.
MOST_COORDINATES, MOST_COMPARED = 200, 100
#: Most rows that are examined one by one, with and without an environment.
MOST_ROWS = 10_000
#: Variance of a whitened coordinate, one in theory, below which it holds only rounding errors.
_REDUNDANT = 1e-3


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


@dataclass(frozen=True)
class CellCounts:
    """Rows of every class in every environment.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn import diagnose
    >>> y, e = np.arange(90) % 2, np.array(["land", "lake", "sea"])[np.arange(90) // 30]
    >>> y[e == "sea"] = 0
    >>> cells = diagnose(np.random.default_rng(0).normal(size=(90, 2)), y, e).cells
    >>> cells.empty, cells.single_class
    ((Cell(label=1, environment='sea', n=0),), (Cell(label=0, environment='sea', n=30),))
    """

    classes: tuple[Any, ...]  #: Names of the classes; a regression has the single class None.
    environments: tuple[Any, ...]  #: Names of the environments.
    count: tuple[tuple[int, ...], ...]  #: Rows of each class (outer) in each environment (inner).
    unlabelled: tuple[int, ...]  #: Rows of each class whose environment is unknown.
    compared: tuple[Any, ...]  #: Classes seen in several environments, compared between them.
    empty: tuple[Cell, ...]  #: Cells without rows.
    small: tuple[Cell, ...]  #: Cells with one to nine rows.
    single_class: tuple[Cell, ...]  #: Environments with only one of several classes.

    @classmethod
    def of(cls, cells: Cells, *, regression: bool = False) -> CellCounts:
        """Counts of the cells that rows belong to."""
        classes = (None,) if regression else tuple(cells.classes.tolist())
        names = tuple(cells.environments.tolist())
        count = cells.count()
        every = [Cell(classes[k], names[e], int(n)) for (k, e), n in np.ndenumerate(count)]
        alone = np.count_nonzero(count, axis=0) == 1
        lone = [names[e] for e in np.flatnonzero(alone) if len(classes) > 1]
        return cls(
            classes=classes,
            environments=names,
            count=tuple(map(tuple, count.tolist())),
            unlabelled=tuple((np.bincount(cells.k) - count.sum(axis=1)).tolist()),
            compared=tuple(classes[k] for k in np.flatnonzero((count > 0).sum(axis=1) > 1)),
            empty=tuple(c for c in every if c.n == 0),
            small=tuple(c for c in every if 0 < c.n < SMALL),
            single_class=tuple(c for e in lone for c in every if c.n and c.environment == e),
        )

    def smallest(self, label: Any) -> Cell:
        """The cell of a class with the fewest rows, at least one."""
        row = zip(self.count[self.classes.index(label)], self.environments, strict=True)
        n, environment = min(((n, e) for n, e in row if n), key=lambda pair: pair[0])
        return Cell(label, environment, n)


@dataclass(frozen=True, eq=False)
class WhitenedSample:
    """Rows in whitened coordinates, and the method that finds a subspace in them.

    The rows are all of the data, or as many of each cell as can be examined: cell by cell, in
    random order inside a cell, those of unknown environment last.
    """

    rows: NDArray[np.float64]  #: (n, p), with identity within-cell covariance
    cells: Cells  #: class and environment of each row
    weight: NDArray[np.float64]  #: (n,), number of rows of the data that each row stands for
    target: NDArray[np.float64] | None  #: (n,), what a regression predicts
    moments: Moments  #: of all of the data in these coordinates, as the method needs them
    method: str = "mean"  #: what is compared: "mean", "cov" or "joint"
    rank: int = 0  #: dimensions of the subspace

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which rows have a known environment."""
        return self.cells.e >= 0

    @property
    def compared(self) -> NDArray[np.bool_]:
        """Which of them are of a class that was seen in several environments."""
        return self.known & (np.count_nonzero(self.moments.count, axis=1) > 1)[self.cells.k]

    @property
    def cell(self) -> NDArray[np.intp]:
        """The cell of each row with a known environment, as a number."""
        return self.cells.k * len(self.cells.environments) + self.cells.e

    @property
    def value(self) -> NDArray:
        """What is predicted: the class of each row, or the target of a regression."""
        return self.cells.k if self.target is None else self.target

    @property
    def varies(self) -> NDArray[np.bool_]:
        """Which rows are in a known environment in which that value is not constant."""
        places = range(len(self.cells.environments))
        varies = [np.ptp(self.value[self.cells.e == e]) > 0 for e in places]
        return self.known & np.array(varies)[self.cells.e]

    @property
    def quarter(self) -> NDArray[np.intp]:
        """A split of the rows in four, every cell spread over all; -1 for unknown environments."""
        return np.where(self.known, np.arange(len(self.rows)) % 4, -1)

    def erased(self, found: NDArray) -> NDArray[np.float64]:
        """All the rows without the subspace found in some of them, which a mask selects."""
        cells = replace(self.cells, k=self.cells.k[found], e=self.cells.e[found])
        method = METHODS[self.method]
        moments = sum_cells(self.rows[found], cells, order=2 if method.second_order else 1)
        N = method.shifts(moments, None).leading(self.rank)
        return self.rows - self.rows @ N @ N.T


def whitened_sample(
    X: NDArray, cells: Cells, target: NDArray | None, moments: Moments, rank: int, seed: int
) -> tuple[NDArray, WhitenedSample]:
    """All rows in whitened coordinates, and the sample of them that is examined.

    The moments are those of X; their means shift along `rank` dimensions.
    """
    center, factor = moments.total[1], _factor(moments, rank)
    Z = (X - center.astype(X.dtype)) @ factor.astype(X.dtype)
    index, weight = _thinned(cells, np.random.default_rng(seed))
    drawn = replace(cells, k=cells.k[index], e=cells.e[index])
    moments = moments.moved(-center).map(factor)
    value = None if target is None else target[index]
    return Z, WhitenedSample(Z[index].astype(np.float64), drawn, weight, value, moments)


def _factor(moments: Moments, rank: int) -> NDArray[np.float64]:
    """Whitening factor (d, p)."""
    used = reliable_coordinates(moments)
    if moments.unlabelled is not None:
        # Few rows with an environment whiten few coordinates, but the subspace is searched for in
        # more. All the rows of a class whiten those: without environments, only the directions
        # that shift have a larger variance.
        count, mean, scatter = moments.by_class
        one = np.array(["all"])
        whole = Moments(moments.classes, one, count[:, None], mean[:, None], scatter)
        used = max(used, reliable_coordinates(whole), key=lambda w: w.factor.shape[1])
    factor = _leading(moments, used, rank)
    values, vectors = linalg.eigh(factor.T @ moments.total_scatter() @ factor / moments.dof)
    real = values > _REDUNDANT
    return factor if real.all() else factor @ vectors[:, real][:, ::-1]


def _leading(moments: Moments, whitening: Whitening, rank: int) -> NDArray[np.float64]:
    """Whitening factor (d, p) of the coordinates that matter most, at most 200 of them.

    The directions along which means shift come first, then those along which classes differ, then
    the leading principal components: the first two must not be lost among features of little
    variance. Directions beyond the rank are noise selected for its size; it would mislead tests.
    """
    d, p = whitening.factor.shape
    if p < d or p <= MOST_COMPARED:
        return whitening.factor  # few principal components, or features, as they are
    m = min(p, MOST_COORDINATES)
    shifts = np.linalg.svd(moments.mean_shifts() @ whitening.factor, full_matrices=False)[2]
    means = moments.by_class[1] @ whitening.factor
    classes = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)[2]
    chosen = [shifts[: min(rank, m // 4)].T, classes[: min(len(means) - 1, m // 4)].T]
    # x @ components, as a function of the whitened coordinates.
    chosen.append(whitening.inverse @ principal_components(moments, m)[0])
    return whitening.factor @ np.linalg.qr(np.hstack(chosen)[:, :m])[0]


def _thinned(cells: Cells, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Positions of the rows to examine, and how many rows each of them stands for.

    Of too many rows with an environment, the same number is drawn from each cell, so that small
    cells stay whole; of too many rows without one, the same number from each class.
    """
    index, weight = [], []
    for rows in (np.flatnonzero(cells.e >= 0), np.flatnonzero(cells.e < 0)):
        rows = rng.permutation(rows)
        cell = cells.k[rows] * len(cells.environments) + cells.e[rows]
        ends = np.cumsum(np.unique(cell, return_counts=True)[1])
        groups = np.split(rows[np.argsort(cell, kind="stable")], ends)[:-1]
        most = len(rows) if len(rows) <= MOST_ROWS else max(1, MOST_ROWS // len(groups))
        for group in groups:
            index.append(group[:most])
            weight.append(np.full(len(group[:most]), len(group) / len(group[:most])))
    return np.concatenate(index), np.concatenate(weight)
