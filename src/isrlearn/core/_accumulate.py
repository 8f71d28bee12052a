"""The one streaming update behind all moments: blocks of rows into running sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isrlearn.core._slots import FLOATS, SEGMENT, by_slot, slot_sums

#: Bytes of float64 rows that stay in the outer cache between the steps of an update.
_BLOCK_BYTES = 8 << 20
#: Bytes of float32 rows that are gathered by slot at a time.
_GATHERED_BYTES = 64 << 20
#: Rows of a product that make adding it to its float64 sum cheap, and most for float32's digits.
_ENOUGH, _MOST = 2048, 16384
#: How many times the variance the square of a mean may be for rows to stay where they are.
_NEAR = 16.0
#: Differences of means that are collected before their scatter is added.
_WAITING = 64
#: Columns of a product that are made at a time.
_BAND = 128
#: Rows of a triangle that are transposed at a time: few enough for the cache.
_STRIP = 32
#: Mean square of a float32 column below which some of its squares have too few digits left.
_TINY = 1e-30


def default_chunk_size(n_features: int, slots: int = 1, *, apart: bool = False) -> int:
    """Rows a block: of the cache's size, but enough of them for the matrix products to pay.

    With a scatter a slot (`apart`), each slot should have enough of them.
    """
    d = max(1, n_features)
    rows = max(_ENOUGH, min(_MOST, _BLOCK_BYTES // (8 * d)))
    if apart:
        rows = max(rows, min(slots * min(rows, 8 * d), _GATHERED_BYTES // (4 * d)))
    return max(rows, 64 * slots)


def between(
    count: NDArray, mean: NDArray, axis: int
) -> tuple[NDArray, NDArray, NDArray[np.float64]]:
    """Count and mean merged along an axis, and the weighted deviations of the parts.

    The Gram matrix of the deviations is the scatter between the parts: Chan's merge for any
    number of parts. Empty parts weigh nothing.
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


class Running:
    """Mutable sums of the moments of `n_cells` labelled and `n_other` unlabelled slots.

    Rows of a block are gathered by slot, and centred on their slot's mean there unless they lie
    around the origin, so that every product is one of small numbers; a slot (or, pooled, all of
    them) is one symmetric product a block, in the rows' own precision, added to a float64 sum.
    Float32 rows thus give means to about 1e-7 and scatters to about 1e-6 of the features' own
    spread, however far they lie from the origin, and float64 rows both to rounding.
    """

    def __init__(self, n_cells: int, n_other: int, d: int, pooled: bool) -> None:
        slots = n_cells + n_other
        self.count = np.zeros(slots)
        self.mean = np.zeros((slots, d))
        self.pooled = pooled
        # Where each slot's scatter goes: its own, or one for cells and one for the rest.
        self.target = np.repeat([0, 1], [n_cells, n_other]) if pooled else np.arange(slots)
        # Only the lower triangles are kept up.
        self.scatter = np.zeros((2 if pooled else slots, d, d))
        # Terms of Chan's merge, set aside until there are enough of them for a product: those to
        # add, and those to subtract.
        self._waiting: tuple[dict[int, list[NDArray]], ...] = ({}, {})
        self._rows = np.empty((0, d))

    def add(self, block: NDArray, slots: NDArray, weight: NDArray | None) -> None:
        """Merge the rows of a block, each belonging to one slot, into the sums."""
        if weight is not None:
            keep = weight > 0
            block, slots, weight = block[keep], slots[keep], weight[keep]
        if not len(block):
            return
        block = block if block.dtype in FLOATS else block.astype(np.float64)
        if self.pooled and weight is None and self._add_together(block, slots):
            return
        order, present, ends = by_slot(slots, len(self.count))
        starts = np.append(0, ends[:-1])
        rows = self._gathered(block, order)
        w = None if weight is None else weight[order]
        for slot, start, end in zip(present, starts, ends, strict=True):
            self._merge(slot, rows[start:end], None if w is None else w[start:end])
        if w is not None:
            rows *= np.sqrt(w)[:, None].astype(rows.dtype)
        targets = self.target[present]
        for target in np.unique(targets):
            # Slots of one target follow each other: one product for all of them.
            mine = np.flatnonzero(targets == target)
            self._add_gram(target, rows[starts[mine[0]] : ends[mine[-1]]])

    def _add_together(self, block: NDArray, slots: NDArray) -> bool:
        """Merge a block by one product, without gathering, if means are known well enough."""
        count = np.bincount(slots, minlength=len(self.count))
        present = np.flatnonzero(count)
        target = self.target[present[0]]
        if (self.target[present] != target).any() or not self.count[present].all():
            return False
        reach, rows, origin = self._reach(target), block, np.zeros_like(self.mean)
        if (self.mean[present] ** 2 > reach).any():
            near = self.mean.astype(block.dtype)
            rows, origin = self._buffer(block), near.astype(np.float64)
            np.subtract(block, np.take(near, slots, axis=0, out=rows, mode="clip"), out=rows)
        steps = slot_sums(rows, slots, len(count))[present] / count[present, None]
        if not (steps**2 <= reach).all():
            return False
        self._move(present, count[present], origin[present] + steps, steps)
        self._add_gram(target, rows)
        return True

    def _buffer(self, block: NDArray) -> NDArray:
        """Memory for the rows of a block, the same every time."""
        if self._rows.dtype != block.dtype or len(self._rows) < len(block):
            self._rows = np.empty(block.shape, dtype=block.dtype)
        return self._rows[: len(block)]

    def _gathered(self, block: NDArray, order: NDArray) -> NDArray:
        """The rows of a block in another order."""
        rows, place = self._buffer(block), np.empty_like(order)
        place[order] = np.arange(len(order))
        # Reading the rows as they come and writing them to their places is the faster way round.
        rows[place] = block
        return rows

    def _merge(self, slot: int, rows: NDArray, w: NDArray | None) -> None:
        """Centre the rows of one slot, and merge their count and mean into its own."""
        seen, old = self.count[slot], self.mean[slot]
        count = float(len(rows) if w is None else w.sum())
        origin, reach = None, self._reach(self.target[slot]) if seen > 0 else np.float64(-1.0)
        if (old**2 > reach).any():
            origin = (old if seen > 0 else _near(rows)).astype(rows.dtype)
            rows -= origin
        step = _summed(rows, w) / count
        mean = step if origin is None else origin + step
        near = bool((step**2 <= reach).all())
        if not near:
            rows -= step.astype(rows.dtype)
        one = np.array([slot]), np.array([count]), mean[None]
        self._move(*one, step[None] if near else None)

    def _move(self, slots: NDArray, count: NDArray, mean: NDArray, steps: NDArray | None) -> None:
        """Merge counts and means of new rows, which are multiplied those steps off their means.

        The slots have one target.
        """
        seen, target = self.count[slots], int(self.target[slots[0]])
        move, share = mean - self.mean[slots], count / (seen + count)
        if seen.any():
            self._wait(target, np.sqrt(seen * share)[:, None] * move)
        if steps is not None:
            self._wait(target, np.sqrt(count)[:, None] * steps, sign=-1)
        self.count[slots] += count
        # Not a difference where there is nothing to differ from: it would lose digits.
        self.mean[slots] = np.where(
            seen[:, None] > 0, self.mean[slots] + share[:, None] * move, mean
        )

    def _reach(self, target: int) -> NDArray[np.float64]:
        """Squares of a mean, or of a step, up to which rows need not be moved by it.

        Those that are small beside the variances: to take them off the rows' products afterwards
        then loses no digits.
        """
        count = self.count[self.target == target].sum()
        return _NEAR / count * np.einsum("ii->i", self.scatter[target])

    def _wait(self, target: int, rows: NDArray, sign: int = 1) -> None:
        waiting = self._waiting[sign < 0]
        waiting.setdefault(target, []).append(rows)
        if sum(map(len, waiting[target])) >= _WAITING:
            self._add_gram(target, np.concatenate(waiting.pop(target)), sign)

    def _add_gram(self, target: int, rows: NDArray, sign: int = 1) -> None:
        """Add ``rows.T @ rows``, or subtract it, in the lower triangle of a scatter."""
        # By columns: so the upper triangle is left out, and no part leaves the cache before it is
        # added. All by NumPy: another library's threads would be waited for actively.
        for start in range(0, rows.shape[1], _BAND):
            part = _product(rows, start)
            below = self.scatter[target][start:, start : start + _BAND]
            np.add(below, part if sign > 0 else -part, out=below)

    def scatters(self, K: int, E: int) -> tuple[NDArray | None, NDArray | None]:
        """The scatter of the labelled cells and of the unlabelled rows, shaped."""
        for sign, waiting in zip((1, -1), self._waiting, strict=True):
            for target, rows in waiting.items():
                self._add_gram(target, np.concatenate(rows), sign)
            waiting.clear()
        for target in np.unique(self.target[self.count > 0]):
            _mirror(self.scatter[target])
        if self.pooled:
            return self.scatter[0], self.scatter[1]
        d = self.mean.shape[-1]
        inner, outer = self.scatter[: K * E], self.scatter[K * E :]
        return inner.reshape(K, E, d, d), outer.reshape(K, 1, d, d)


def _summed(rows: NDArray, w: NDArray | None) -> NDArray[np.float64]:
    """Weighted sum of some rows: of few at a time in their own precision."""
    total = np.zeros(rows.shape[1])
    whole = len(rows) // SEGMENT * SEGMENT
    for part, length in ((slice(0, whole), SEGMENT), (slice(whole, None), len(rows) - whole)):
        if not length:
            continue
        parts = rows[part].reshape(-1, length, rows.shape[1])
        if w is None:
            sums = parts.sum(axis=1)
        else:
            sums = w[part].astype(rows.dtype).reshape(-1, 1, length) @ parts
        total += sums.reshape(-1, len(total)).sum(axis=0, dtype=np.float64)
    return total


def _near(rows: NDArray) -> NDArray[np.float64]:
    """About the mean of some rows, from the first of them: differences from it are nearly exact."""
    first = rows[0].astype(np.float64)
    return first + (rows[:SEGMENT] - first).mean(axis=0)


def _product(rows: NDArray, start: int) -> NDArray:
    """Some columns of ``rows.T @ rows``, from the diagonal down."""
    part = rows[:, start:].T @ rows[:, start : start + _BAND]
    if part.dtype == np.float64:  # their range is checked when all is summed
        return part
    squares = np.einsum("ii->i", part[: part.shape[1]])
    small = np.flatnonzero(squares < _TINY * len(rows))
    if np.isfinite(squares).all() and not rows[:, start + small].any():
        return part
    return _product(rows.astype(np.float64), start)


def _mirror(matrix: NDArray) -> None:
    """Copy the lower triangle of a square matrix to the upper one."""
    upper = ~np.tri(_STRIP, dtype=bool)
    for start in range(0, len(matrix), _STRIP):
        end = min(start + _STRIP, len(matrix))
        square = matrix[start:end, start:end]
        np.copyto(square, square.T.copy(), where=upper[: end - start, : end - start])
        matrix[:start, start:end] = matrix[start:end, :start].T
