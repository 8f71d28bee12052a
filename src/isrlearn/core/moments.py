"""Counts, means and scatters of every (class, environment) cell; they add up."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.core import _checks
from isrlearn.core._accumulate import Running, between, default_chunk_size
from isrlearn.core._slots import RunningMeans
from isrlearn.core._spread import spread
from isrlearn.core._threads import crew, one_by_one
from isrlearn.core.labels import encode, union

#: Multiplications that are worth threads of their own.
_MUCH = 1 << 30
_MEANS_ONLY = "these moments keep means only; make them with order=2"


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of every (class, environment) cell of a sample.

    Moments add up: ``a + b`` are the moments of the two samples together, whatever classes and
    environments each of them saw. In memory, in chunks or on a cluster differ only in how
    moments are summed. They are centred, so data far from the origin lose no digits.

    Parameters
    ----------
    classes : ndarray of shape (K,)
        Names of the classes, sorted.
    environments : ndarray of shape (E,)
        Names of the environments, sorted.
    count : ndarray of shape (K, E)
        Rows (or summed sample weights) of each cell.
    mean : ndarray of shape (K, E, d)
        Mean of each cell; zero where a cell is empty.
    scatter : ndarray of shape (K, E, d, d) or (d, d), or None
        Sum of outer products of deviations from the cell's mean: for each cell, or summed over
        all cells ("pooled"), or not kept.
    unlabelled : Moments, optional
        Moments of the rows whose environment is unknown, a (K, 1) value. They count in
        `by_class` and `total` and belong to no cell.
    ddof : int, default=1
        ``scatter / (count - ddof)`` is the covariance: 1 for samples, 0 for a population.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0]])
    >>> parts = [Moments.from_data(X[[i]], y=["a"], environments=["e"]) for i in range(3)]
    >>> total = sum(parts)
    >>> total.count.item(), total.mean[0, 0].round(2).tolist()
    (3.0, [2.33, 2.33])
    """

    classes: NDArray  # (K,)
    environments: NDArray  # (E,)
    count: NDArray[np.float64]  # (K, E)
    mean: NDArray[np.float64]  # (K, E, d)
    scatter: NDArray[np.float64] | None = None  # (K, E, d, d) or (d, d)
    unlabelled: Moments | None = None  # (K, 1)
    ddof: int = 1

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: ArrayLike | None,
        environments: ArrayLike,
        *,
        order: int = 2,
        pooled: bool = False,
        targets: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        chunk_size: int | None = None,
    ) -> Moments:
        """Moments of a sample, read once and by rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Features; anything that slices by rows into arrays (an array, a memory map). Never
            copied whole. Accumulators are float64 whatever its type.
        y : array-like of shape (n,) or None
            Class of each row; None puts all rows in one class.
        environments : array-like of shape (n,)
            Environment of each row; None or NaN where unknown.
        order : {1, 2}, default=2
            1 keeps means only.
        pooled : bool, default=False
            Keep one scatter summed over the cells instead of one a cell.
        targets : array-like of shape (n,) or (n, t), optional
            Continuous targets, appended to the features as last columns.
        sample_weight : array-like of shape (n,), optional
            Frequency weights: a weight of 2 is the row twice.
        chunk_size : int, optional
            Rows read at a time.
        """
        _checks.check_reading(order, chunk_size)
        X = X if hasattr(X, "shape") else np.asarray(X)
        n, d = X.shape
        classes, class_codes = encode(np.zeros(n, dtype=int) if y is None else y)
        names, codes = encode(environments)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        _checks.check_rows(n, class_codes, codes, weight)
        extra = None if targets is None else np.asarray(targets).reshape(n, -1)
        K, E = len(classes), len(names)
        # One slot a cell; unlabelled rows of class k go to slot K·E + k.
        slots = np.where(codes < 0, K * E + class_codes, class_codes * E + codes)
        width = d + (0 if extra is None else extra.shape[1])
        step = chunk_size or default_chunk_size(d, K * E, apart=order == 1 or not pooled)
        is_much = order == 2 and n * width * width >= _MUCH
        with crew() if is_much else nullcontext(one_by_one) as share:
            running: Running | RunningMeans = RunningMeans(K * E + K, width)
            if order == 2:
                running = Running(K * E, K, width, pooled, share)
            for start in range(0, n, step):
                rows = slice(start, start + step)
                block = np.asarray(X[rows])
                if extra is not None:
                    block = np.column_stack([block, extra[rows]])
                with np.errstate(over="ignore", invalid="ignore"):  # seen in the sums, and named
                    running.add(block, slots[rows], None if weight is None else weight[rows])
            made = cls._from_running(running, classes, names)
        if isinstance(running, Running):
            _checks.check_spread(running.scatter, getattr(X, "dtype", np.float64), d)
        return made

    @classmethod
    def _from_running(
        cls, running: Running | RunningMeans, classes: NDArray, names: NDArray
    ) -> Moments:
        K, E = len(classes), len(names)
        means = running.mean
        d = means.shape[-1]
        cells, rest = slice(0, K * E), slice(K * E, None)
        _checks.check_finite(means[cells].reshape(K, E, d), classes, names)
        _checks.check_finite(means[rest].reshape(K, 1, d), classes, None)
        inner = outer = None
        if isinstance(running, Running):
            inner, outer = running.scatters(K, E)
        unlabelled = None
        if running.count[rest].any():
            unlabelled = cls(
                classes,
                np.array(["unlabelled"]),
                running.count[rest].reshape(K, 1),
                means[rest].reshape(K, 1, d),
                outer,
            )
        return cls(
            classes,
            names,
            running.count[cells].reshape(K, E),
            means[cells].reshape(K, E, d),
            inner,
            unlabelled,
        )

    @classmethod
    def population(
        cls,
        mean: ArrayLike,
        covariance: ArrayLike | None = None,
        count: ArrayLike = 1.0,
        *,
        classes: ArrayLike | None = None,
        environments: ArrayLike | None = None,
    ) -> Moments:
        """Exact moments of known distributions, one a cell.

        Parameters
        ----------
        mean : array-like of shape (K, E, d)
        covariance : array-like broadcastable to (K, E, d, d), optional
        count : array-like broadcastable to (K, E), default=1.0
            Weight of each cell.
        classes, environments : array-like, optional
            Names; 0, 1, … when not given.
        """
        mean = np.array(mean, dtype=float)
        K, E, d = mean.shape
        count = np.array(np.broadcast_to(np.asarray(count, dtype=float), (K, E)))
        scatter = None
        if covariance is not None:
            scatter = np.broadcast_to(np.asarray(covariance, dtype=float), (K, E, d, d))
            scatter = scatter * count[..., None, None]
        return cls(
            np.arange(K) if classes is None else np.asarray(classes),
            np.arange(E) if environments is None else np.asarray(environments),
            count,
            mean,
            scatter,
            ddof=0,
        )

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
        """Covariance of each cell, (K, E, d, d)."""
        if self.scatter is None or self.pooled:
            raise ValueError("these moments keep no scatter a cell; make them with order=2")
        return self.scatter / (self.count - self.ddof)[..., None, None]

    @property
    def dof(self) -> float:
        """Degrees of freedom of the pooled within-cell covariance."""
        return float(self.count.sum() - self.ddof * np.count_nonzero(self.count))

    def within(self) -> NDArray[np.float64]:
        """Within-cell scatter summed over the labelled cells, (d, d)."""
        if self.scatter is None:
            raise ValueError(_MEANS_ONLY)
        return self.scatter if self.pooled else self.scatter.sum(axis=(0, 1))

    def by_class(self) -> tuple[NDArray, NDArray, NDArray | None]:
        """Count (K,), mean (K, d) and summed within-class scatter (d, d) of all the rows."""
        return self._by_class

    def total(self) -> tuple[float, NDArray, NDArray | None]:
        """Count, mean (d,) and scatter (d, d) of all the rows, unlabelled ones included."""
        return self._total

    # Asked for many times in a fit, and d×d each: made once.
    @cached_property
    def _by_class(self) -> tuple[NDArray, NDArray, NDArray | None]:
        count, mean, rows = between(self.count, self.mean, axis=1)
        scatter = None if self.scatter is None else self.within() + _gram(rows)
        if self.unlabelled is not None:
            other = self.unlabelled
            stacked_count = np.stack([count, other.count[:, 0]], axis=1)
            stacked_mean = np.stack([mean, other.mean[:, 0]], axis=1)
            count, mean, rows = between(stacked_count, stacked_mean, axis=1)
            scatter = None if scatter is None else scatter + other.within() + _gram(rows)
        return count, mean, scatter

    @cached_property
    def _total(self) -> tuple[float, NDArray, NDArray | None]:
        class_count, class_mean, scatter = self.by_class()
        count, mean, rows = between(class_count, class_mean, axis=0)
        return float(count), mean, None if scatter is None else scatter + _gram(rows)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_by_class", "_total")}

    def total_scatter(self) -> NDArray[np.float64]:
        """Scatter of all the rows about their mean, (d, d)."""
        scatter = self.total()[2]
        if scatter is None:
            raise ValueError(_MEANS_ONLY)
        return scatter

    def map(self, matrix: ArrayLike) -> Moments:
        """Moments of ``x @ matrix`` from those of x."""
        V = np.asarray(matrix, dtype=float)
        return replace(
            self,
            mean=self.mean @ V,
            scatter=None if self.scatter is None else V.T @ self.scatter @ V,
            unlabelled=None if self.unlabelled is None else self.unlabelled.map(V),
        )

    def moved(self, shift: ArrayLike) -> Moments:
        """Moments of ``x + shift`` from those of x; empty cells stay where they are."""
        mean = np.where(self.count[..., None] > 0, self.mean + np.asarray(shift), 0.0)
        other = None if self.unlabelled is None else self.unlabelled.moved(shift)
        return replace(self, mean=mean, unlabelled=other)

    def columns(self, stop: int) -> Moments:
        """Moments of the first `stop` features (what precedes appended targets)."""
        return replace(
            self,
            mean=self.mean[..., :stop],
            scatter=None if self.scatter is None else self.scatter[..., :stop, :stop],
            unlabelled=None if self.unlabelled is None else self.unlabelled.columns(stop),
        )

    def reweighted(self, weight: ArrayLike, unlabelled: ArrayLike | None = None) -> Moments:
        """Moments with the rows of each cell weighing `weight` (K, E) times as much."""
        w = np.asarray(weight, dtype=float)
        if self.pooled and self.scatter is not None and not np.all(w == w.flat[0]):
            raise ValueError("cells can be reweighted only with a scatter a cell (pooled=False)")
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
        _checks.check_mergeable(self, other)
        classes = union(self.classes, other.classes)
        names = union(self.environments, other.environments)
        a, b = spread(self, classes, names), spread(other, classes, names)
        count = np.stack([a.count, b.count])
        _, mean, rows = between(count, np.stack([a.mean, b.mean]), axis=0)
        scatter = None
        if a.scatter is not None and b.scatter is not None:
            # Chan's merge: the scatter of the whole is the parts' plus that between their means.
            cells = np.moveaxis(rows, 0, -2)  # (K, E, 2, d)
            gram = _gram(rows) if a.pooled else np.swapaxes(cells, -1, -2) @ cells
            scatter = a.scatter + b.scatter + gram
        parts = [m.unlabelled for m in (a, b) if m.unlabelled is not None]
        unlabelled = None if not parts else parts[0] if len(parts) == 1 else parts[0] + parts[1]
        return Moments(classes, names, count.sum(axis=0), mean, scatter, unlabelled, self.ddof)

    def __radd__(self, other: object) -> Moments:
        # sum() starts from the integer 0, the neutral element.
        return self if isinstance(other, int) and other == 0 else NotImplemented


def _gram(rows: NDArray) -> NDArray:
    """Scatter of a stack of rows, whatever their leading axes."""
    flat = rows.reshape(-1, rows.shape[-1])
    return flat.T @ flat
