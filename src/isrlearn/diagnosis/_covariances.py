"""Whether class covariances differ between environments, and whether that can be seen at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import Cells
from isrlearn.core.methods import METHODS
from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest, covariance_rank, joint_rank
from isrlearn.core.shifts import covariance_shifts
from isrlearn.core.whiten import ROWS_PER_CELL_FEATURE
from isrlearn.diagnosis._cells import Cell
from isrlearn.diagnosis._frame import Frame
from isrlearn.diagnosis._value import label
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.permutation import permutation_rank

#: Most coordinates whose covariances are compared: the search among more is slow.
MOST_COMPARED = 100
#: Fewest rows of a cell whose covariance is looked at, however few the coordinates.
_FEWEST = 20
#: Largest bias of the chi-square statistic by tails, in its standard deviations, let pass.
_HARMLESS_BIAS = 0.5


@dataclass(frozen=True)
class Uncompared:
    """A class whose covariances cannot be compared: the cell that is too small, and why.

    Parameters
    ----------
    cell : Cell
        Its smallest cell.
    needed : int
        Rows that this cell would have to have.

    Examples
    --------
    >>> Uncompared(Cell(1, "land", 12), needed=21).cell.n
    12
    """

    cell: Cell
    needed: int


@dataclass(frozen=True)
class CovarianceShift:
    """How the covariances of a class differ between environments.

    Parameters
    ----------
    moved : bool
        Whether they do, by a test at the level of the diagnosis; False where they cannot be
        compared.
    p_value : float or None
        Of "they do not"; None where they cannot be compared.
    n_dimensions : int
        Dimensions along which covariances differ by more than chance.
    n_dimensions_joint : int
        Dimensions along which means or covariances differ, tested together.
    compared : tuple
        Classes that are compared.
    uncompared : tuple of Uncompared
        Classes with a cell too small for it.
    n_coordinates : int
        Coordinates that are compared: features, or leading principal components.
    noise : float
        Sampling variance of covariances over that of Gaussian features of the same
        covariance; above one with heavy tails.
    form : {"chi-square", "permutation"}
        How the null distribution was found: from moments, or by permuting environments inside
        a class where tails are too heavy for the former.
    ratio : float
        Along the directions found, the largest difference of the variances of two environments
        over their mean: 0 if equal, 2 at most; median over the directions.
    chance : float
        What that ratio could be by sampling noise alone, along the direction that shows most.
    largest : tuple or None
        Class and the two environments of that difference.

    Examples
    --------
    >>> found = no_comparison((Uncompared(Cell(1, "land", 12), needed=21),))
    >>> found.moved, found.p_value
    (False, None)
    """

    moved: bool
    p_value: float | None
    n_dimensions: int
    n_dimensions_joint: int
    compared: tuple[Any, ...]
    uncompared: tuple[Uncompared, ...]
    n_coordinates: int
    noise: float
    form: str
    ratio: float
    chance: float
    largest: tuple[Any, Any, Any] | None

    @property
    def weak(self) -> bool:
        """Whether covariances differ by so little that noise may hide some of the dimensions."""
        return self.moved and self.ratio < 2 * self.chance

    @property
    def heavy_tailed(self) -> bool:
        """Whether tails were too heavy for the chi-square form."""
        return self.form == "permutation"


def comparable(
    moments: Moments, classes: NDArray, n_coordinates: int
) -> tuple[NDArray, int, tuple[Uncompared, ...]]:
    """Positions of the classes whose covariances can be compared, in how many coordinates.

    A cell needs two rows for each coordinate in which means are compared. Fewer coordinates
    would need fewer rows, and are not worth it: what is left out is what ISR would leave in.
    """
    p = min(n_coordinates, MOST_COMPARED)
    E = len(moments.environments)
    # Two rows a coordinate in each cell, and ten in all the cells that share a whitening.
    needed = max(ROWS_PER_CELL_FEATURE * p + 1, -(-10 * p // (len(classes) * E)) + 1, _FEWEST)
    enough = [k for k in classes if moments.count[k].min() >= needed]
    names, places = moments.classes, moments.environments
    short = [
        Uncompared(Cell(label(names[k]), label(places[e]), int(moments.count[k, e])), needed)
        for k in classes
        if k not in enough
        for e in [moments.count[k].argmin()]
    ]
    return np.array(enough, dtype=int), p, tuple(short)


def covariance_shift(
    frame: Frame,
    moments: Moments,
    classes: NDArray,
    uncompared: tuple[Uncompared, ...],
    *,
    n_means: int,
    level: float,
    random_state: int,
) -> CovarianceShift:
    """Covariance shift, tested and measured.

    Parameters
    ----------
    frame : Frame
        Of the rows, in the coordinates compared.
    moments : Moments
        In the same coordinates, with a scatter a cell.
    classes : ndarray of int
        Positions of the classes compared.
    uncompared : tuple of Uncompared
        The others.
    n_means : int
        Dimensions along which means move.
    level : float
        Level of each step of the tests.
    random_state : int
        Seed of the permutations.
    """
    p = moments.n_features
    noise = _noise(frame, classes)
    q = len(classes) * (len(moments.environments) - 1)
    heavy = bool((noise - 1) * np.sqrt(q * p * (p + 1) / 4) > _HARMLESS_BIAS)

    def tested(method: str) -> RankTest:
        if heavy:
            return _permuted(frame, classes, method, level, random_state)
        return {"cov": covariance_rank, "joint": joint_rank}[method](moments, classes, level=level)

    test = tested("cov")
    joint = max(n_means, test.rank)
    if n_means and test.rank:
        joint = tested("joint").rank
    ratio, largest = _ratio(moments, classes, test.rank)
    cell = (moments.count[classes] - 1) / max(noise, 1.0)
    return CovarianceShift(
        moved=test.rank > 0,
        p_value=test.p_values[0],
        n_dimensions=test.rank,
        n_dimensions_joint=joint,
        compared=tuple(label(moments.classes[k]) for k in classes),
        uncompared=uncompared,
        n_coordinates=p,
        noise=noise,
        form="permutation" if heavy else "chi-square",
        ratio=ratio,
        # Edge of the spectrum of the difference of two sample covariances of p coordinates.
        chance=float(2 * np.sqrt(p * 2 / np.median(cell))),
        largest=largest,
    )


def no_comparison(uncompared: tuple[Uncompared, ...]) -> CovarianceShift:
    """What is known of covariances when no class has rows enough in every environment."""
    nan = float("nan")
    return CovarianceShift(False, None, 0, 0, (), uncompared, 0, nan, "chi-square", nan, nan, None)


def _permuted(frame: Frame, classes: NDArray, method: str, level: float, seed: int) -> RankTest:
    """The test by permutation, on the rows of the frame."""
    used = np.isin(frame.classes, classes)
    return permutation_rank(
        Sample(frame.rows[used], Cells.of(frame.classes[used], frame.environments[used])),
        METHODS[method],
        level=level,
        n_permutations=max(199, int(np.ceil(2 / level - 1))),
        random_state=seed,
    )


def _noise(frame: Frame, classes: NDArray) -> float:
    r"""Sampling variance of the cells' covariances, over what Gaussian features would have.

    All entries of zzᵀ together have variance E‖z‖⁴ − tr Σ², which is (tr Σ)² + tr Σ² for a
    Gaussian. Each cell is compared with its own covariance Σ, so that covariances that differ
    between cells are not taken for tails; the sample's tr S² and (tr S)² are made unbiased.
    """
    found, expected = 0.0, 0.0
    E = len(frame.moments.environments)
    for k in classes:
        for e in range(E):
            Z = frame.rows[(frame.classes == k) & (frame.environments == e)]
            n = len(Z)
            Z = Z - Z.mean(axis=0)
            S = Z.T @ Z / (n - 1)
            v = n - 1.0
            trace2, square = np.trace(S) ** 2, np.sum(S**2)
            # E (tr S)² = a + 2b/v and E tr S² = b (1 + 1/v) + a/v, with a = (tr Σ)², b = tr Σ².
            b = (square - trace2 / v) / (1 + 1 / v - 2 / v**2)
            a = trace2 - 2 * b / v
            fourth = np.mean(np.sum(Z**2, axis=1) ** 2) / (1 - 1 / n) ** 2
            found += n * (fourth - b)
            expected += n * (a + b)
    return float(found / expected)


def _ratio(
    moments: Moments, classes: NDArray, rank: int
) -> tuple[float, tuple[Any, Any, Any] | None]:
    """Largest relative difference of variances along the directions found, and where it is."""
    if rank == 0:
        return 0.0, None
    N = covariance_shifts(moments, classes).leading(rank)
    variance = np.einsum("pr,kepq,qr->ker", N, moments.covariance[classes], N)  # (K, E, r)
    gap = np.abs(variance[:, :, None] - variance[:, None]) * 2
    ratio = np.median(gap / (variance[:, :, None] + variance[:, None]), axis=-1)  # (K, E, E)
    k, a, b = np.unravel_index(ratio.argmax(), ratio.shape)
    names = moments.environments
    where = (label(moments.classes[classes[k]]), label(names[a]), label(names[b]))
    return float(ratio[k, a, b]), where
