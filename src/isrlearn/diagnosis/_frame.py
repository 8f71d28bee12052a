"""The coordinates everything is measured in: few, and with identity within-cell covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core.labels import encode
from isrlearn.core.moments import Moments
from isrlearn.core.rank import mean_rank
from isrlearn.core.shifts import mean_shifts
from isrlearn.core.whiten import Whitening, reliable_coordinates
from isrlearn.engine import cell_moments

#: Most coordinates that are looked at, whatever the number of features.
MOST_COORDINATES = 200
#: Variance, of coordinates whose variance should be one, below which there is none.
_REDUNDANT = 1e-3
#: Most rows that are looked at one by one; moments are always those of all the rows.
MOST_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows with a known environment, in whitened coordinates.

    Parameters
    ----------
    moments : Moments
        Of all the rows in these coordinates, with a pooled scatter.
    rows : ndarray of shape (n, p)
        The rows themselves, or a sample that keeps small cells whole.
    classes, environments : ndarray of shape (n,)
        Positions of each row's class and environment among those of the moments.
    index : ndarray of shape (n,)
        Which rows of the data these are.
    other_rows, other_classes : ndarray of shape (m, p) and (m,)
        Rows, or a sample of them, whose environment is unknown: heads are trained on them too.
    factor : ndarray of shape (d, p)
        ``(x - center) @ factor`` are these coordinates.
    center : ndarray of shape (d,)
    n_tested : int
        Coordinates that rows allow to test means along; there may be fewer here.
    """

    moments: Moments
    rows: NDArray[np.float64]  # (n, p)
    classes: NDArray[np.intp]  # (n,)
    environments: NDArray[np.intp]  # (n,)
    index: NDArray[np.intp]  # (n,)
    other_rows: NDArray[np.float64]  # (m, p)
    other_classes: NDArray[np.intp]  # (m,)
    factor: NDArray[np.float64]  # (d, p)
    center: NDArray[np.float64]  # (d,)
    n_tested: int

    @classmethod
    def of(
        cls, X: NDArray, moments: Moments, y: NDArray | None, environments: NDArray, seed: int
    ) -> Frame:
        """Frame of rows and their pooled moments."""
        tested, center = reliable_coordinates(moments), moments.total[1]
        factor = _few_coordinates(moments, _searched(moments, tested))
        k = np.zeros(len(X), np.intp) if y is None else encode(y, moments.classes)[1]
        e = encode(environments, moments.environments)[1]
        rng = np.random.default_rng(seed)
        index = _sample(k, e, moments.count, rng)
        other = np.flatnonzero(e < 0)
        if len(other) > MOST_ROWS:
            other = np.sort(rng.choice(other, MOST_ROWS, replace=False))
        empty = (moments.count == 0)[..., None]
        shifted = replace(moments, mean=np.where(empty, 0.0, moments.mean - center))
        if moments.unlabelled is not None:
            known = moments.unlabelled.mean - center
            shifted = replace(shifted, unlabelled=replace(moments.unlabelled, mean=known))
        return cls(
            moments=shifted.map(factor),
            rows=_mapped(X[index], center, factor),
            classes=k[index],
            environments=e[index],
            index=index,
            other_rows=_mapped(X[other], center, factor),
            other_classes=k[other],
            factor=factor,
            center=center,
            n_tested=tested.factor.shape[1],
        )

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        return self.factor.shape[1]

    def first(self, p: int) -> Frame:
        """The same rows in the first p coordinates."""
        if p == self.n_coordinates:
            return self
        return replace(
            self,
            moments=self.moments.columns(p),
            rows=self.rows[:, :p],
            other_rows=self.other_rows[:, :p],
            factor=self.factor[:, :p],
        )

    def cell_moments(self, X: NDArray, y: NDArray, environments: NDArray) -> Moments:
        """Moments with a scatter a cell of all the rows in these coordinates."""
        parts = [slice(i, i + MOST_ROWS) for i in range(0, len(X), MOST_ROWS)]
        each = (
            cell_moments(_mapped(X[s], self.center, self.factor), y[s], environments[s])
            for s in parts
        )
        return reduce(add, each)


def _mapped(X: NDArray, center: NDArray, factor: NDArray) -> NDArray[np.float64]:
    """Rows in coordinates; centred first, in the features' own precision."""
    return ((X - center.astype(X.dtype)) @ factor.astype(X.dtype)).astype(np.float64)


def _searched(moments: Moments, tested: Whitening) -> Whitening:
    """Coordinates in which a subspace is looked for, as many as all the rows allow.

    With an environment known for few rows, these whiten few coordinates; the subspace is looked
    for among more of them, and its noise is that of them all. Rows of a class, whatever their
    environment, whiten those: only the direction that moves has more variance then.
    """
    if moments.unlabelled is None:
        return tested
    count, mean, scatter = moments.by_class
    one = np.array(["all"])
    found = reliable_coordinates(
        Moments(moments.classes, one, count[:, None], mean[:, None], scatter)
    )
    return found if found.factor.shape[1] > tested.factor.shape[1] else tested


def _few_coordinates(moments: Moments, whitening: Whitening) -> NDArray[np.float64]:
    """Whitening factor (d, p), with p at most as large as is quick to work with.

    Coordinates come in the order of the principal components they are made of, so that the
    first few are those of most variance.
    """
    d, p = whitening.factor.shape
    scatter = moments.total_scatter()
    if p > MOST_COORDINATES:
        return whitening.factor @ _leading_functionals(moments, whitening, scatter)
    if p < d:
        return whitening.factor  # made of principal components in their order
    # Of standardised features: whatever their units, all of them are compared.
    scale = np.sqrt(np.diag(scatter))
    scale = np.where(scale > 0, scale, 1.0)
    vectors = linalg.eigh(scatter / scale / scale[:, None])[1][:, ::-1]
    # x / scale @ vectors, as a function of the whitened coordinates.
    functionals = whitening.inverse @ (vectors / scale[:, None])
    return _varying(whitening.factor @ np.linalg.qr(functionals)[0], scatter, moments.dof)


def _leading_functionals(
    moments: Moments, whitening: Whitening, scatter: NDArray
) -> NDArray[np.float64]:
    """Orthonormal functions (p, m) of too many whitened coordinates, those that matter most.

    The directions along which means move, those along which classes differ, and the leading
    principal components: the first two must not be lost among features of little variance.
    """
    d, m = len(scatter), MOST_COORDINATES
    # Directions beyond the rank are noise picked for its size: it would mislead later tests.
    rank = min(mean_rank(moments).rank, m // 4)
    shifts = np.linalg.svd(mean_shifts(moments).means @ whitening.factor, full_matrices=False)[2]
    means = moments.by_class[1] @ whitening.factor
    classes = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)[2]
    classes = classes[: min(len(means) - 1, m // 4)]
    components = linalg.eigh(scatter, subset_by_index=[d - m, d - 1])[1][:, ::-1]
    # x @ components, as a function of the whitened coordinates.
    functionals = np.hstack([shifts[:rank].T, classes.T, whitening.inverse @ components])
    return np.linalg.qr(functionals[:, :m])[0]


def _varying(factor: NDArray, scatter: NDArray, dof: float) -> NDArray[np.float64]:
    """The coordinates without those that a redundant feature adds: they hold rounding alone."""
    values, vectors = linalg.eigh(factor.T @ scatter @ factor / dof)
    real = values > _REDUNDANT
    return factor if real.all() else factor @ vectors[:, real][:, ::-1]


def _sample(k: NDArray, e: NDArray, count: NDArray, rng: np.random.Generator) -> NDArray[np.intp]:
    """Rows with a known environment; where they are too many, as many of each cell."""
    known = np.flatnonzero(e >= 0)
    if len(known) <= MOST_ROWS:
        return known
    cell = k[known] * count.shape[1] + e[known]
    share = max(1, MOST_ROWS // int(np.count_nonzero(count)))
    order = np.lexsort((rng.random(len(known)), cell))
    starts = np.flatnonzero(np.diff(cell[order], prepend=-1))
    position = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
    return np.sort(known[order[position < int(share)]])
