"""Counts, means and scatters of every (class, environment) cell, in one pass over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from isrlearn.core.labels import Cells
from isrlearn.core.moments import Moments
from isrlearn.engine.rows import block_length, row_blocks

#: Numbers centred and summed at a time: they stay in the cache. Float32 rows are at most so many,
#: before their sum goes on in float64; with fewer features float32 saves nothing.
_PART, _PART_ROWS, _NARROW = 1 << 16, 256, 64
#: Rows whose average is the first guess of a mean, and the distance of a mean from the origin, in
#: standard deviations, beyond which sums of rows as they are would lose digits.
_GLANCE, _FAR = 32, 8.0
#: Rank-one terms of Chan's merge that are collected before their product is added to a scatter.
_PENDING = 64
#: Mean square of a float32 column below which some of its squares have too few digits.
_TINY = 1e-30


def cell_moments(
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
    """Moments of a sample, read once, block by block.

    The rows of a block are sorted by cell and centred, multiplied in their own precision, and
    merged into float64 sums (Chan, Golub and LeVeque's update). Float32 rows thus give means to
    about 1e-7 and scatters to about 1e-6 of the features' own spread, however far they lie from
    the origin, and float64 rows give both to rounding.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Features: an array, a memory map, `Rows`, or any object with a shape that slices by rows.
        Never copied as a whole.
    y : array-like of shape (n,) or None
        Class of each row; None puts all rows in one class.
    environments : array-like of shape (n,)
        Environment of each row; None or NaN where it is unknown.
    order : {1, 2}, default=2
        1 keeps means only.
    pooled : bool, default=False
        Keep one scatter summed over the cells instead of one per cell.
    targets : array-like of shape (n,) or (n, t), optional
        Continuous targets, appended to the features as the last columns.
    sample_weight : array-like of shape (n,), optional
        Frequency weights: a weight of 2 counts the row twice.
    chunk_size : int, optional
        Rows per block; default: about 64 MB of float32 rows.

    Returns
    -------
    Moments
        They add up: the moments of two parts of a sample are ``a + b``.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0]])
    >>> moments = cell_moments(X, ["a", "a", "b"], ["e", "e", "e"])
    >>> moments.count.tolist(), moments.mean[0, 0].tolist()
    ([[2.0], [1.0]], [1.0, 1.0])
    """
    _check_reading(order, chunk_size)
    X = X if hasattr(X, "shape") else np.asarray(X)
    cells = Cells.of(np.zeros(len(X), dtype=int) if y is None else y, environments)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    _check_rows(X.shape[0], cells.k, cells.e, weight)
    return sum_cells(
        X,
        cells,
        order=order,
        pooled=pooled,
        targets=targets,
        weight=weight,
        chunk_size=chunk_size,
    )


def sum_cells(
    X: Any,
    cells: Cells,
    *,
    order: int = 2,
    pooled: bool = False,
    targets: ArrayLike | None = None,
    weight: NDArray | None = None,
    chunk_size: int | None = None,
) -> Moments:
    """`cell_moments` of checked rows whose class and environment are encoded already."""
    n, d = X.shape
    classes, class_codes, names, codes = cells.classes, cells.k, cells.environments, cells.e
    extra = None if targets is None else np.asarray(targets).reshape(n, -1)
    K, E, width = len(classes), len(names), d + (0 if extra is None else extra.shape[1])
    # One slot per cell; the rows of class k without an environment go to slot K·E + k.
    slots = np.where(codes < 0, K * E + class_codes, class_codes * E + codes)
    slots = slots.astype(np.int16 if K * E + K < 2**15 else np.intp)  # int16 sorts in linear time
    target = np.repeat([0, 1], [K * E, K]) if pooled else np.arange(K * E + K)
    n_scatters = None if order == 1 else 2 if pooled else len(target)
    sums = _SlotSums(target, width, n_scatters)
    for rows, block in row_blocks(X, chunk_size or max(block_length(d), 64 * K * E)):
        if extra is not None:
            block = np.column_stack([block, extra[rows]])
        with np.errstate(over="ignore", invalid="ignore"):  # found in the sums, and reported
            sums.add(block, slots[rows], None if weight is None else weight[rows])
    inside = _part(sums, slice(0, K * E), classes, names, pooled)
    rest = _part(sums, slice(K * E, None), classes, None, pooled)
    _check_spread(sums.scatter, getattr(X, "dtype", np.float64), d)
    unlabelled = rest if rest.count.any() else None
    return Moments(classes, names, inside.count, inside.mean, inside.scatter, unlabelled)


def _part(
    sums: _SlotSums, slots: slice, classes: NDArray, names: NDArray | None, pooled: bool
) -> Moments:
    """Moments of the labelled cells, or of the rows without an environment (`names` is None)."""
    K, E, d = len(classes), 1 if names is None else len(names), sums.mean.shape[1]
    mean = sums.mean[slots].reshape(K, E, d)
    _check_finite(mean, classes, names)
    scatter = sums.scatter
    if scatter is not None:
        scatter = scatter[int(names is None)] if pooled else scatter[slots].reshape(K, E, d, d)
    labels = np.array(["unlabelled"]) if names is None else names
    return Moments(classes, labels, sums.count[slots].reshape(K, E), mean, scatter)


class _SlotSums:
    """Running counts and means of slots of rows, and the scatters that slots contribute to.

    Parameters
    ----------
    target : ndarray of int of shape (S,)
        Scatter that each slot belongs to. Slots with the same target follow each other.
    d : int
    n_scatters : int or None
        None to keep means only.
    """

    def __init__(self, target: NDArray, d: int, n_scatters: int | None) -> None:
        self.count = np.zeros(len(target))
        self.mean = np.zeros((len(target), d))
        self._target = target
        self._scatter = None if n_scatters is None else np.zeros((n_scatters, d, d))
        # Vectors whose outer products are yet to be added to each scatter.
        self._pending: dict[int, list[NDArray]] = {}
        self._memory = np.empty((0, d))

    def add(self, block: NDArray, slots: NDArray, weight: NDArray | None) -> None:
        """Merge the rows of a block, each of which belongs to one slot."""
        if weight is not None:
            keep = weight > 0
            block, slots, weight = block[keep], slots[keep], weight[keep]
        if block.dtype != np.float32 or block.shape[1] < _NARROW:
            block = block.astype(np.float64, copy=False)
        if self._scatter is None:
            self._add_means(block, slots, weight)
        elif len(block):
            self._add_products(block, slots, weight, self._scatter)

    def _add_products(
        self, block: NDArray, slots: NDArray, weight: NDArray | None, scatter: NDArray
    ) -> None:
        """Merge counts, means and scatters."""
        # Memory that is used again: new pages would cost as much as the work on them.
        if self._memory.dtype != block.dtype or len(self._memory) < len(block):
            self._memory = np.empty(block.shape, dtype=block.dtype)
        order, length = np.argsort(slots, kind="stable"), np.bincount(slots)
        ends, present = np.cumsum(length), np.flatnonzero(length)
        starts = ends - length
        for slot in present.tolist():
            where = slice(starts[slot], ends[slot])
            w = None if weight is None else weight[order[where]]
            self._merge(slot, *_centred(block, order[where], w, self._memory[where]))
        for target in np.unique(self._target[present]):
            # Sorted rows of the slots of one scatter are contiguous: one product for all of them.
            mine = present[self._target[present] == target]
            scatter[target] += _gram(self._memory[starts[mine[0]] : ends[mine[-1]]])

    def _add_means(self, block: NDArray, slots: NDArray, weight: NDArray | None) -> None:
        """Merge counts and means, without sorting the rows."""
        (n, d), S = block.shape, len(self.count)
        if not n:
            return
        origin, distance = _rough_mean(block, np.arange(n))
        if (distance > _FAR).any():
            block = block - origin
        else:
            origin = np.zeros(d)
        # Column i of the indicator adds row i to the sum of its slot. Every few rows have sums of
        # their own, which float64 then adds up.
        segment = max(_PART_ROWS, 8 * S)
        place = (np.arange(n) // segment * S + slots).astype(np.int32)
        w = np.ones(n) if weight is None else weight
        entries = (w.astype(block.dtype), place, np.arange(n + 1, dtype=np.int32))
        indicator = sparse.csc_array(entries, shape=(-(-n // segment) * S, n))
        sums = (indicator @ block).reshape(-1, S, d)
        total, count = sums.sum(axis=0, dtype=np.float64), np.bincount(slots, w, S)
        for slot in np.flatnonzero(count).tolist():
            self._merge(slot, count[slot], origin + total[slot] / count[slot])

    def _merge(self, slot: int, count: float, mean: NDArray) -> None:
        """Merge the count and the mean of new rows of a slot: Chan's update."""
        seen, move = self.count[slot], mean - self.mean[slot]
        share = count / (seen + count)
        # The first mean is taken as it is: a difference from zero would lose digits.
        self.mean[slot] = self.mean[slot] + share * move if seen else mean
        self.count[slot] += count
        if seen and self._scatter is not None:
            # One product of many vectors is far cheaper than a product of each.
            terms = self._pending.setdefault(self._target[slot], [])
            terms.append(np.sqrt(seen * share) * move)
            if len(terms) == _PENDING:
                self._settle()

    def _settle(self) -> None:
        """Add the collected terms to the scatters."""
        for target, terms in self._pending.items():
            self._scatter[target] += _gram(np.array(terms))  # type: ignore[index]
        self._pending.clear()

    @property
    def scatter(self) -> NDArray[np.float64] | None:
        """Scatter of each target, (T, d, d)."""
        self._settle()
        return self._scatter


def _centred(
    block: NDArray, rows: NDArray, weight: NDArray | None, out: NDArray
) -> tuple[float, NDArray[np.float64]]:
    """Weight and mean of some rows; `out` becomes their deviations, times root weights."""
    n, origin = len(rows), _rough_mean(block, rows)[0]
    total, w = np.zeros(block.shape[1]), np.ones(n) if weight is None else weight
    length = max(32, min(_PART // block.shape[1], _PART_ROWS if block.dtype == np.float32 else n))
    for start in range(0, n, length):
        part = slice(start, start + length)
        np.take(block, rows[part], axis=0, out=out[part], mode="clip")
        out[part] -= origin
        total += w[part].astype(block.dtype) @ out[part]
    count = float(w.sum())
    out -= (total / count).astype(block.dtype)
    if weight is not None:
        out *= np.sqrt(w[:, None]).astype(block.dtype)
    return count, origin + total / count


def _rough_mean(block: NDArray, rows: NDArray) -> tuple[NDArray, NDArray]:
    """Mean of a few of the given rows, in their precision, and its distance in deviations."""
    some = block[rows[:: -(-len(rows) // _GLANCE)]]
    # Relative to one of the rows: equal values then have a mean that is exact to the last bit.
    mean = some[0] + (some - some[0]).mean(axis=0)
    return mean, np.abs(mean) / np.maximum(some.std(axis=0), np.finfo(block.dtype).tiny)


def _gram(rows: NDArray) -> NDArray:
    """``rows.T @ rows``, in float64 where squares do not fit in float32."""
    product = rows.T @ rows
    if rows.dtype == np.float64:  # its range is checked once, in the sums
        return product
    # Cauchy-Schwarz: where the squares are in range, so is every product.
    squares = np.diagonal(product)
    small = np.flatnonzero(squares < _TINY * len(rows))
    if np.isfinite(squares).all() and not rows[:, small].any():
        return product
    wide = rows.astype(np.float64)
    return wide.T @ wide


def _check_reading(order: Any, chunk_size: Any) -> None:
    """Raise unless rows can be read this way."""
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order!r}")
    if chunk_size is not None and not (isinstance(chunk_size, int | np.integer) and chunk_size > 0):
        raise ValueError(f"chunk_size must be an integer of at least 1; got {chunk_size!r}")


def _check_rows(n: int, classes: NDArray, environments: NDArray, weight: NDArray | None) -> None:
    """Raise unless each of n rows has a class, an environment code and a weight."""
    for name, values in (("y", classes), ("environments", environments), ("sample_weight", weight)):
        if values is not None and values.shape != (n,):
            raise ValueError(f"{name} has shape {values.shape}, but X has {n} rows")
    if (classes < 0).any():
        raise ValueError(f"the class of row {np.argmin(classes)} is missing")
    if weight is not None and not (np.isfinite(weight) & (weight >= 0)).all():
        row = int(np.argmin(np.isfinite(weight) & (weight >= 0)))
        raise ValueError(f"sample_weight must be finite and not negative; row {row}: {weight[row]}")


def _check_finite(mean: NDArray, classes: NDArray, environments: NDArray | None) -> None:
    """Raise if a cell (or the rows without an environment) contains NaN or infinity."""
    bad = np.argwhere(~np.isfinite(mean))
    if len(bad):
        k, e, j = bad[0]
        where = "unknown" if environments is None else repr(environments.tolist()[e])
        raise ValueError(
            f"feature {j} holds NaN or infinity (or values too large to be summed) in class "
            f"{classes.tolist()[k]!r}, environment {where}; drop or impute those rows"
        )


def _check_spread(scatter: NDArray | None, dtype: DTypeLike, n_features: int) -> None:
    """Raise if the spread of a column is out of the range that its type can work with.

    What follows needs squares of squares in float64, and coefficients in float32. Targets come
    after the features.
    """
    if scatter is None:
        return
    power = 35 if np.dtype(dtype) == np.float32 else 70
    squares = np.einsum("...ii->...i", scatter)
    fine = (squares == 0) | ((squares >= 10.0 ** (-2 * power)) & (squares <= 10.0 ** (2 * power)))
    if not fine.all():
        j = int(np.argwhere(~fine)[0][-1])
        large = bool((~fine & ~(squares < 1.0))[..., j].any())
        name = f"feature {j}" if j < n_features else "the target"
        raise ValueError(
            f"{name} has values too {'large' if large else 'small'} to be squared: their spread "
            f"must lie between 1e-{power} and 1e{power}. Change its unit, for example divide it "
            "by its standard deviation."
        )
