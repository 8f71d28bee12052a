"""Counts, means and scatters of every (class, environment) cell, in one pass over the rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from isrlearn.core.labels import Cells, as_array, unmasked
from isrlearn.core.moments import Moments
from isrlearn.engine.rows import BLOCK, FEWEST, MOST, SparseRows

#: Numbers centred and summed at a time, so that they stay in the cache; rows that are summed in
#: float32 at a time; features below which float32 saves nothing; rows whose average is the first
#: guess of a mean.
_PART, _PART_ROWS, _NARROW, _GLANCE = 1 << 16, 256, 64, 32
#: Mean square of a float32 column below which some of its squares have too few digits, and largest
#: mean of a feature: sums of products of rows must not overflow.
_TINY, _LARGEST = 1e-30, 1e150


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
    """Moments of a sample, read once, block by block; those of two parts of a sample add up.

    The rows of a block are sorted by cell and centred, multiplied in their own precision, and
    merged into float64 sums (Chan, Golub and LeVeque's update). Float32 rows thus give means to
    about 1e-7 and scatters to about 1e-6 of the features' own spread, however far they lie from
    the origin, and float64 rows give both to rounding.

    Parameters
    ----------
    X : array-like of shape (n, d)
        An array, a memory map, `Rows`, or any object that slices by rows; never copied as a whole.
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

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [2.0, 1.0], [5.0, 5.0]])
    >>> moments = cell_moments(X, ["a", "a", "b"], ["e", "e", "e"])
    >>> moments.count.tolist(), moments.mean[0, 0].tolist()
    ([[2.0], [1.0]], [1.0, 1.0])
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order!r}")
    if chunk_size is not None and not (isinstance(chunk_size, int | np.integer) and chunk_size > 0):
        raise ValueError(f"chunk_size must be an integer of at least 1; got {chunk_size!r}")
    X = unmasked(X) if hasattr(X, "shape") else np.asarray(X)
    cells = Cells.of(np.zeros(len(X), dtype=int) if y is None else y, as_array(environments))
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
    for name, values in (("y", cells.k), ("environments", cells.e), ("sample_weight", weight)):
        if values is not None and values.shape != X.shape[:1]:
            raise ValueError(f"{name} has shape {values.shape}, but X has {X.shape[0]} rows")
    if (cells.k < 0).any():
        raise ValueError(f"the class of row {np.argmin(cells.k)} is missing")
    if weight is not None and not (np.isfinite(weight) & (weight >= 0)).all():
        row = int(np.argmin(np.isfinite(weight) & (weight >= 0)))
        raise ValueError(f"sample_weight must be finite and not negative; row {row}: {weight[row]}")
    return sum_cells(X, cells, order, pooled, targets, weight, chunk_size)


def sum_cells(
    X: Any,
    cells: Cells,
    order: int = 2,
    pooled: bool = False,
    targets: ArrayLike | None = None,
    weight: NDArray | None = None,
    chunk_size: int | None = None,
) -> Moments:
    """`cell_moments` of checked rows whose class and environment are encoded already."""
    n, d = X.shape
    K, E = len(cells.classes), len(cells.environments)
    extra = None if targets is None else np.asarray(targets).reshape(n, -1)
    width, S = d + (0 if extra is None else extra.shape[1]), K * E + K
    # One slot per cell; the rows of class k without an environment go to slot K·E + k.
    slots = np.where(cells.e < 0, K * E + cells.k, cells.k * E + cells.e)
    slots = slots.astype(np.int16 if S < 2**15 else np.intp)  # int16 sorts in linear time
    target = np.repeat([0, 1], [K * E, K]) if pooled else np.arange(S)
    scatter = None if order == 1 else np.zeros((2 if pooled else S, width, width))
    sums = _Sums(np.zeros(S), np.zeros((S, width)), scatter, target)
    step = chunk_size or max(min(max(FEWEST, BLOCK // max(1, d)), MOST), 64 * K * E)
    thin = order == 1 and isinstance(X, SparseRows)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        block = X.matrix[rows] if thin else np.asarray(X[rows])
        slot, w = slots[rows], None if weight is None else weight[rows]
        if extra is not None:
            both = [block, extra[rows]]
            block = sparse.hstack(both, format="csr") if thin else np.column_stack(both)
        if w is not None:
            keep = w > 0
            block, slot, w = block[keep], slot[keep], w[keep]
        if thin or block.dtype != np.float32 or width < _NARROW:
            block = block.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):  # found in the sums, and reported
            (_add_sparse if thin else _add_rows)(sums, block, slot, w)
    # What follows needs squares of squares in float64, and coefficients in float32.
    limit = 1e70 if getattr(X, "dtype", None) == np.float32 else 1e140
    squares = np.zeros(1) if scatter is None else np.einsum("...ii->...i", scatter)
    legal = ((squares >= 1 / limit) & (squares <= limit)) | (squares == 0)
    if not (legal.all() and (np.abs(sums.mean) <= _LARGEST).all()):
        raise _out_of_range(sums.mean, squares, limit, cells, d)
    count, mean = (a.reshape(K, E, *a.shape[1:]) for a in (sums.count[: K * E], sums.mean[: K * E]))
    inside = outside = unlabelled = None
    if scatter is not None:
        inside = scatter[0] if pooled else scatter[: K * E].reshape(K, E, width, width)
        outside = scatter[1] if pooled else scatter[K * E :].reshape(K, 1, width, width)
    if sums.count[K * E :].any():
        name, (other, means) = np.array(["unlabelled"]), (sums.count[K * E :], sums.mean[K * E :])
        unlabelled = Moments(cells.classes, name, other[:, None], means[:, None], outside)
    return Moments(cells.classes, cells.environments, count, mean, inside, unlabelled)


@dataclass(eq=False)
class _Sums:
    """Running sums of S slots of rows, and of the T scatters they join."""

    count: NDArray[np.float64]  # (S,)
    mean: NDArray[np.float64]  # (S, d)
    scatter: Any  # (T, d, d) or None
    target: NDArray[np.intp]  # (S,): scatter of each slot; slots of one scatter follow each other
    memory: Any = None


def _add_rows(sums: _Sums, block: NDArray, slots: NDArray, weight: NDArray | None) -> None:
    """Merge counts, means and scatters of the rows of a block: Chan's update."""
    order, length = np.argsort(slots, kind="stable"), np.bincount(slots)
    present, d = np.flatnonzero(length), block.shape[1]
    # Rows sorted by slot, and behind those of a slot the difference of its mean from the old one.
    size = (len(block) + len(present), d)
    # Memory that is used again: new pages would cost as much as the work on them.
    if sums.memory is None or sums.memory.dtype != block.dtype or len(sums.memory) < size[0]:
        sums.memory = np.empty(size, dtype=block.dtype)
    ends = np.cumsum(length)
    begin = ends[present] - length[present] + np.arange(len(present))
    for i, slot in enumerate(present.tolist()):
        n, stop = int(length[slot]), begin[i] + length[slot]
        rows, out = order[ends[slot] - n : ends[slot]], sums.memory[begin[i] : stop]
        w = np.ones(n) if weight is None else weight[rows]
        some = block[rows[:: -(-n // _GLANCE)]]
        # Relative to one of the rows: equal values then have a mean that is exact to the last bit.
        origin = some[0] + (some - some[0]).mean(axis=0)
        total, step = np.zeros(d), min(_PART // d, _PART_ROWS if block.dtype == np.float32 else n)
        for part in (slice(start, start + max(32, step)) for start in range(0, n, max(32, step))):
            np.take(block, rows[part], axis=0, out=out[part], mode="clip")
            out[part] -= origin
            total += w[part].astype(block.dtype) @ out[part]
        seen, count = sums.count[slot], float(w.sum())
        out -= (total / count).astype(block.dtype)
        if weight is not None:
            out *= np.sqrt(w[:, None]).astype(block.dtype)
        mean, share = origin + total / count, count / (seen + count)
        move = mean - sums.mean[slot]
        sums.memory[stop] = np.sqrt(seen * share) * move
        # The first mean is taken as it is: a difference from zero would lose digits.
        sums.mean[slot] = sums.mean[slot] + share * move if seen else mean
        sums.count[slot] += count
    if sums.scatter is None:
        return
    stops = begin + length[present] + 1
    for target in np.unique(sums.target[present]):
        # Rows of the slots of one scatter are contiguous: one product for all of them.
        mine = np.flatnonzero(sums.target[present] == target)
        rows = sums.memory[begin[mine[0]] : stops[mine[-1]]]
        sums.scatter[target] += rows.T @ rows if rows.dtype == np.float64 else _gram(rows)


def _add_sparse(sums: _Sums, block: Any, slots: NDArray, weight: NDArray | None) -> None:
    """Merge counts and means of sparse rows, without making them dense."""
    n, S = len(slots), len(sums.count)
    w = np.ones(n) if weight is None else weight
    # Column i of the indicator adds row i to the sum of its slot.
    indicator = sparse.csr_array((w, (slots.astype(np.intp), np.arange(n))), shape=(S, n))
    count = np.bincount(slots, w, S)
    seen = np.flatnonzero(count)
    mean = (indicator @ block).toarray()[seen] / count[seen, None]
    share = (count[seen] / (sums.count[seen] + count[seen]))[:, None]
    sums.mean[seen] += share * (mean - sums.mean[seen])
    sums.count += count


def _gram(rows: NDArray) -> NDArray:
    """``rows.T @ rows`` of float32 rows, in float64 where squares do not fit in float32."""
    product = rows.T @ rows
    # Cauchy-Schwarz: where the squares are in range, so is every product.
    squares = np.diagonal(product)
    small = np.flatnonzero(squares < _TINY * len(rows))
    if np.isfinite(squares).all() and not rows[:, small].any():
        return product
    wide = rows.astype(np.float64)
    return wide.T @ wide


def _out_of_range(
    mean: NDArray, squares: NDArray, limit: float, cells: Cells, n_features: int
) -> ValueError:
    """The error that names the first mean that is not finite, or else the first bad spread."""
    bad = np.argwhere(~(np.abs(mean) <= _LARGEST))
    large, small = ~(squares <= limit), (squares > 0) & (squares < 1 / limit)
    slot, j = bad[0].tolist() if len(bad) else (0, int(np.argwhere(large | small)[0][-1]))
    name, power = f"feature {j}" if j < n_features else "the target", np.log10(limit) / 2
    if len(bad):
        K, E = len(cells.classes), len(cells.environments)
        k, e = divmod(slot, E) if slot < K * E else (slot - K * E, None)
        where = "unknown" if e is None else repr(cells.environments.tolist()[e])
        return ValueError(
            f"{name} holds NaN or infinity (or values too large to be summed) in class "
            f"{cells.classes.tolist()[k]!r}, environment {where}; drop or impute those rows"
        )
    return ValueError(
        f"{name} has values too {'large' if large[..., j].any() else 'small'} to be squared: "
        f"their spread must lie between 1e-{power:.0f} and 1e{power:.0f}. Change its unit, for "
        "example divide it by its standard deviation."
    )
