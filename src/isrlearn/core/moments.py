"""Counts, means and scatters of every (class, environment) cell; they add up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.core.labels import union

#: Relative size below which a singular value, or what is left of a variance, is a rounding error.
NEGLIGIBLE = 1e-10
MEANS_ONLY = "these moments keep means only; compute them with order=2"
NO_CELL_SCATTERS = (
    "these moments keep no scatter per cell; compute them with order=2 and pooled=False"
)


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of every (class, environment) cell of a sample.

    Moments add up: ``a + b`` are the moments of the two samples together, whichever classes and
    environments each of them contains. Fits in memory, in chunks and on a cluster differ only in
    how moments are summed. Moments are centred, so that data far from the origin lose no digits.
    `isrlearn.engine.cell_moments` computes them from rows.

    Examples
    --------
    >>> import numpy as np
    >>> names = np.array(["a"]), np.array(["e"])
    >>> rows = [[0.0, 1.0], [2.0, 1.0], [5.0, 5.0]]
    >>> parts = [Moments(*names, np.ones((1, 1)), np.array([[row]])) for row in rows]
    >>> total = sum(parts)
    >>> total.count.item(), total.mean[0, 0].round(2).tolist()
    (3.0, [2.33, 2.33])
    """

    classes: NDArray  #: Names of the classes (K,), sorted.
    environments: NDArray  #: Names of the environments (E,), sorted.
    count: NDArray[np.float64]  #: Rows, or summed sample weights, of each cell (K, E).
    mean: NDArray[np.float64]  #: Mean of each cell (K, E, d); zero where a cell is empty.
    #: Sum of outer products of the deviations from the cell's mean: per cell (K, E, d, d), or
    #: summed over all cells (d, d), "pooled", or not kept.
    scatter: NDArray[np.float64] | None = None
    #: Moments (K, 1) of the rows whose environment is unknown. They count in `by_class` and
    #: `total` and belong to no cell.
    unlabelled: Moments | None = None
    #: ``scatter / (count - ddof)`` is the covariance: 1 for samples, 0 for a population.
    ddof: int = 1

    @classmethod
    def population(
        cls, mean: ArrayLike, covariance: ArrayLike | None = None, count: ArrayLike = 1.0
    ) -> Moments:
        """Exact moments of known distributions, one per cell; names are 0, 1 and so on.

        Parameters
        ----------
        mean : array-like of shape (K, E, d)
        covariance : array-like broadcastable to (K, E, d, d), optional
        count : array-like broadcastable to (K, E), default=1.0
            Weight of each cell.
        """
        mean = np.array(mean, dtype=float)
        K, E, d = mean.shape
        count = np.array(np.broadcast_to(np.asarray(count, dtype=float), (K, E)))
        scatter = None
        if covariance is not None:
            scatter = np.broadcast_to(np.asarray(covariance, dtype=float), (K, E, d, d))
            scatter = scatter * count[..., None, None]
        return cls(np.arange(K), np.arange(E), count, mean, scatter, ddof=0)

    @property
    def n_features(self) -> int:
        """Number of features, appended targets included."""
        return self.mean.shape[-1]

    @property
    def pooled(self) -> bool:
        """Whether one scatter is kept for all cells together."""
        return self.scatter is not None and self.scatter.ndim == 2

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of each cell, (K, E, d, d); zero where a cell has too few rows for one."""
        if self.scatter is None or self.pooled:
            raise ValueError(NO_CELL_SCATTERS)
        dof = self.cell_dof
        return self.scatter / np.where(dof > 0, dof, 1.0)[..., None, None]

    @property
    def cell_dof(self) -> NDArray[np.float64]:
        """Degrees of freedom of each cell's covariance, (K, E)."""
        return np.maximum(self.count - self.ddof, 0.0)

    @property
    def dof(self) -> float:
        """Degrees of freedom of the pooled within-cell covariance."""
        return float(self.count.sum() - self.ddof * np.count_nonzero(self.count))

    def within(self) -> NDArray[np.float64]:
        """Within-cell scatter summed over the labelled cells, (d, d)."""
        if self.scatter is None:
            raise ValueError(MEANS_ONLY)
        return self.scatter if self.scatter.ndim == 2 else self.scatter.sum(axis=(0, 1))

    # Needed many times in a fit, and d×d each: computed once.
    @cached_property
    def by_class(self) -> tuple[NDArray, NDArray, NDArray | None]:
        """Count (K,), mean (K, d) and summed within-class scatter (d, d) of all the rows."""
        parts = [self] if self.unlabelled is None else [self, self.unlabelled]
        counts = np.concatenate([m.count for m in parts], axis=1)
        means = np.concatenate([m.mean for m in parts], axis=1)
        count, mean, rows = between(counts, means, axis=1)
        flat = rows.reshape(-1, self.n_features)
        within = None if self.scatter is None else sum((m.within() for m in parts), flat.T @ flat)
        return count, mean, within

    @cached_property
    def total(self) -> tuple[float, NDArray, NDArray | None]:
        """Count, mean (d,) and scatter (d, d) of all the rows, unlabelled ones included."""
        parts = [self] if self.unlabelled is None else [self, self.unlabelled]
        counts = np.concatenate([m.count.ravel() for m in parts])
        means = np.concatenate([m.mean.reshape(-1, self.n_features) for m in parts])
        count, mean, rows = between(counts, means, axis=0)
        scatter = None if self.scatter is None else sum((m.within() for m in parts), rows.T @ rows)
        return float(count), mean, scatter

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("by_class", "total")}

    def mean_shifts(self, classes: NDArray | None = None) -> NDArray[np.float64]:
        """Deviations of the cell means from their class mean, times root counts, (K·E, d).

        Cells without rows have a row of zeros, so each class contributes the environments in which
        it was seen.
        """
        picked = slice(None) if classes is None else classes
        rows = between(self.count[picked], self.mean[picked], axis=1)[2]
        return rows.reshape(-1, self.n_features)

    def total_scatter(self) -> NDArray[np.float64]:
        """Scatter of all the rows about their mean, (d, d)."""
        scatter = self.total[2]
        if scatter is None:
            raise ValueError(MEANS_ONLY)
        return scatter

    def map(self, matrix: ArrayLike, shift: ArrayLike = 0.0) -> Moments:
        """Moments of ``x @ matrix + shift`` from those of x; empty cells keep a mean of zero."""
        V = np.asarray(matrix, dtype=float)
        return replace(
            self,
            mean=np.where(self.count[..., None] > 0, self.mean @ V + np.asarray(shift), 0.0),
            scatter=None if self.scatter is None else V.T @ self.scatter @ V,
            unlabelled=None if self.unlabelled is None else self.unlabelled.map(V, shift),
        )

    def columns(self, stop: int) -> Moments:
        """Moments of the first `stop` features (what precedes appended targets)."""
        return replace(
            self,
            mean=self.mean[..., :stop],
            scatter=None if self.scatter is None else self.scatter[..., :stop, :stop],
            unlabelled=None if self.unlabelled is None else self.unlabelled.columns(stop),
        )

    def of_environments(self, picked: NDArray) -> Moments:
        """Moments of some environments, by mask or position; unlabelled rows remain."""
        if self.pooled:
            raise ValueError(NO_CELL_SCATTERS)
        return replace(
            self,
            environments=self.environments[picked],
            count=self.count[:, picked],
            mean=self.mean[:, picked],
            scatter=None if self.scatter is None else self.scatter[:, picked],
        )

    def reweighted(self, weight: ArrayLike, unlabelled: ArrayLike | None = None) -> Moments:
        """Moments with the rows of each cell weighted by `weight` (K, E)."""
        w = np.asarray(weight, dtype=float)
        if self.pooled and self.scatter is not None and not np.all(w == w.flat[0]):
            raise ValueError("cells can be reweighted only with a scatter per cell (pooled=False)")
        other = self.unlabelled
        if other is not None and unlabelled is not None:
            other = other.reweighted(np.asarray(unlabelled)[:, None])
        scatter = self.scatter
        if scatter is not None:
            scatter = scatter * (w.flat[0] if self.pooled else w[..., None, None])
        return replace(self, count=self.count * w, scatter=scatter, unlabelled=other)

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        kinds = {0: "no scatter", 2: "a pooled scatter", 4: "cell scatters"}
        mine, its = (kinds[0 if m.scatter is None else m.scatter.ndim] for m in (self, other))
        if mine != its:
            raise ValueError(f"moments with {mine} and with {its} do not add up")
        if self.n_features != other.n_features:
            sizes = f"{self.n_features} and of {other.n_features} features"
            raise ValueError(f"moments of {sizes} do not add up")
        if self.ddof != other.ddof:
            raise ValueError("moments of a sample and of a population do not add up")
        classes = union(self.classes, other.classes)
        names = union(self.environments, other.environments)
        a, b = self._spread(classes, names), other._spread(classes, names)
        count = np.stack([a.count, b.count])
        _, mean, rows = between(count, np.stack([a.mean, b.mean]), axis=0)
        scatter = None
        if a.scatter is not None and b.scatter is not None:
            # Chan's merge: the scatter of the whole is the parts' plus that between their means.
            each = np.moveaxis(rows, 0, -2)  # (K, E, 2, d)
            flat = rows.reshape(-1, self.n_features)
            gram = flat.T @ flat if a.pooled else np.swapaxes(each, -1, -2) @ each
            scatter = a.scatter + b.scatter + gram
        parts = [m.unlabelled for m in (a, b) if m.unlabelled is not None]
        unlabelled = None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return Moments(classes, names, count.sum(axis=0), mean, scatter, unlabelled, self.ddof)

    def __radd__(self, other: object) -> Moments:
        # sum() starts from the integer 0, the neutral element.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def _spread(self, classes: NDArray, names: NDArray) -> Moments:
        """The same moments with empty cells for the classes and environments not seen."""
        if len(classes) == len(self.classes) and len(names) == len(self.environments):
            return self
        seen = np.searchsorted(classes, self.classes), np.searchsorted(names, self.environments)

        def wide(part: NDArray) -> NDArray:
            empty = np.zeros((len(classes), len(names), *part.shape[2:]))
            empty[np.ix_(*seen)] = part
            return empty

        scatter, other = self.scatter, self.unlabelled
        scatter = scatter if scatter is None or self.pooled else wide(scatter)
        other = None if other is None else other._spread(classes, other.environments)
        count, mean = wide(self.count), wide(self.mean)
        return Moments(classes, names, count, mean, scatter, other, self.ddof)


def between(
    count: NDArray, mean: NDArray, axis: int
) -> tuple[NDArray, NDArray, NDArray[np.float64]]:
    """Count and mean merged along an axis, and the weighted deviations of the parts.

    The Gram matrix of the deviations is the scatter between the parts: Chan's merge for any
    number of parts. Empty parts have no weight.
    """
    total = count.sum(axis=axis)
    share = count / np.expand_dims(np.where(total > 0, total, 1.0), axis)
    # Averaging deviations from one of the parts, not the means themselves, keeps the digits of
    # means far from the origin; an empty part's zero mean must not be that reference.
    pick = np.expand_dims(count.argmax(axis=axis), axis)
    origin = np.take_along_axis(mean, pick[..., None], axis=axis)
    centre = origin + (share[..., None] * (mean - origin)).sum(axis=axis, keepdims=True)
    rows = np.sqrt(count)[..., None] * (mean - centre)
    return total, np.squeeze(centre, axis=axis), rows


def given_target(moments: Moments) -> Moments:
    r"""Moments of the features given the target, which is the last column of these moments.

    The features less what the target explains of them within environments,
    :math:`x - B y` with :math:`B = W_{xy} / W_{yy}` from the pooled within-environment scatter W:
    the adjusted means of an analysis of covariance. A mean that differs between environments
    because the target does is not a shift of these features. The slopes are estimates, and their
    errors grow with the shift s of the target; dividing the part of the shifts along s by
    :math:`\sqrt{1 + s^\top s / W_{yy}}` gives all shifts the same sampling noise, so that
    tests keep their level (the multivariate analysis of covariance). The span does not change.

    Examples
    --------
    >>> import numpy as np
    >>> covariance = [[2.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    >>> mean = [[[0.0, 0.0, 0.0], [3.0, 1.0, 3.0]]]  # x = (y + noise, noise), and y shifts by 3
    >>> shifts = given_target(Moments.population(mean, covariance)).mean_shifts()
    >>> np.abs(shifts[0] / shifts[0, 1]).round(12).tolist()
    [0.0, 1.0]
    """
    d, W = moments.n_features - 1, moments.within()
    slopes = W[:d, d] / W[d, d] if W[d, d] > 0 else np.zeros(d)
    found = moments.map(np.vstack([np.eye(d), -slopes]))
    target = between(moments.count, moments.mean, axis=1)[2][0, :, d]  # (E,)
    squared = target @ target
    if squared == 0:
        return found
    _, centre, shifts = between(found.count, found.mean, axis=1)
    along = np.outer(target, target @ shifts[0]) / squared
    shifts = shifts - (1.0 - np.sqrt(W[d, d] / (W[d, d] + squared))) * along
    root = np.sqrt(found.count)[..., None]
    return replace(found, mean=np.where(root > 0, centre + shifts / np.where(root > 0, root, 1), 0))
