"""The one streaming update behind all moments: blocks of rows into running sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isrlearn.core._slots import FLOATS, SEGMENT, by_slot, slot_sums
from isrlearn.core._threads import Share, one_by_one

#: Bytes of float32 rows in a block, unless too few rows for matrix products to pay.
_BLOCK_BYTES, _ENOUGH = 64 << 20, 2048
#: Rows of a block, for each scatter: so steps are long enough to be shared out; and most of all.
_EACH, _MOST = 4096, 32768
#: How many times the variance the square of a mean may be for rows to stay where they are.
_NEAR = 16.0
#: Differences of means that are collected before their scatter is added.
_WAITING = 64
#: Columns of a product that are made at a time: enough to pay, few enough for the cache; and the
#: pieces that they should leave all products of a block in, to be shared out.
_BANDS, _PIECES = (64, 384), 3
#: Rows of a piece of work that only reads and writes them.
_PART = 2048
#: Rows of a triangle that are transposed at a time: one line of the cache each.
_STRIP = 8
#: Mean square of a float32 column below which some of its squares have too few digits left.
_TINY = 1e-30


def default_chunk_size(n_features: int, slots: int = 1, *, apart: bool = False) -> int:
    """Rows a block: enough of them for the matrix products to pay, and no more than memory likes.

    With a scatter a slot (`apart`), each slot should have enough of them.
    """
    wanted = min(_MOST, _EACH * max(2, slots if apart else 0))
    return max(min(wanted, _BLOCK_BYTES // (4 * max(1, n_features))), _ENOUGH, 64 * slots)


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

    Every step is work for independent pieces, for `share` to do; the sums are the same, to the
    last bit, whoever does which.
    """

    def __init__(
        self, n_cells: int, n_other: int, d: int, pooled: bool, share: Share = one_by_one
    ) -> None:
        slots = n_cells + n_other
        self.count = np.zeros(slots)
        self.mean = np.zeros((slots, d))
        self.pooled = pooled
        # Where each slot's scatter goes: its own, or one for cells and one for the rest.
        self.target = np.repeat([0, 1], [n_cells, n_other]) if pooled else np.arange(slots)
        # The first product makes both triangles, the others go on with the upper ones alone.
        self.scatter = np.zeros((2 if pooled else slots, d, d))
        self._products = np.zeros(len(self.scatter), dtype=int)
        # Terms of Chan's merge, set aside until there are enough of them for a product: those to
        # add, and those to subtract.
        self._waiting: tuple[dict[int, list[NDArray]], ...] = ({}, {})
        self._rows = np.empty((0, d))
        self._share = share
        wide = d * (1 if pooled else n_cells) // _PIECES
        self._band = min(max(_BANDS[0], wide // 32 * 32), _BANDS[1])

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
        rows = self._gathered(block, order)
        w = None if weight is None else weight[order]
        parts = list(map(slice, np.append(0, ends[:-1]), ends))
        found = self._share(
            lambda i: self._centred(present[i], rows[parts[i]], None if w is None else w[parts[i]]),
            range(len(parts)),
        )
        for slot, (count, mean, step) in zip(present, found, strict=True):
            self._move(np.array([slot]), np.array([count]), mean[None], step)
        targets = self.target[present]
        products = []
        for target in np.unique(targets):
            # Slots of one target follow each other: one product for all of them.
            mine = np.flatnonzero(targets == target)
            products.append((target, rows[parts[mine[0]].start : parts[mine[-1]].stop]))
        self._add_grams(products)

    def _add_together(self, block: NDArray, slots: NDArray) -> bool:
        """Merge a block by one product, without gathering, if means are known well enough."""
        count = np.bincount(slots, minlength=len(self.count))
        present = np.flatnonzero(count)
        target = self.target[present[0]]
        if (self.target[present] != target).any() or not self.count[present].all():
            return False
        reach, rows, near = self._reach(target), block, None
        if (self.mean[present] ** 2 > reach).any():
            rows, near = self._buffer(block), self.mean.astype(block.dtype)

        def sums(part: slice) -> NDArray[np.float64]:
            if near is not None:
                np.take(near, slots[part], axis=0, out=rows[part], mode="clip")
                np.subtract(block[part], rows[part], out=rows[part])
            return slot_sums(rows[part], slots[part], len(count))

        steps = np.sum(self._share(sums, _parts(len(block))), axis=0)[present]
        steps /= count[present, None]
        if not (steps**2 <= reach).all():
            return False
        mean = steps if near is None else near[present] + steps
        self._move(present, count[present], mean, steps)
        self._add_grams([(target, rows)])
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

        def write(part: slice) -> None:
            # Reading rows as they come and writing them to their places is the faster way round.
            rows[place[part]] = block[part]

        self._share(write, _parts(len(block)))
        return rows

    def _centred(
        self, slot: int, rows: NDArray, w: NDArray | None
    ) -> tuple[float, NDArray, NDArray | None]:
        """Centre and weigh the rows of one slot in place.

        Their count and mean, and how far off it they were left.
        """
        seen, count = self.count[slot] > 0, float(len(rows) if w is None else w.sum())
        if seen:
            old, reach = self.mean[slot], self._reach(self.target[slot])
        else:
            old, variance = _glance(rows)
            reach = _NEAR * variance
        origin = None
        if (old**2 > reach).any():
            origin = old.astype(rows.dtype)
            rows -= origin
        step = _summed(rows, w) / count
        mean = step if origin is None else origin + step
        # New slots are centred once and for all: for few rows that is less than another product.
        near = seen and bool((step**2 <= reach).all())
        if not near:
            rows -= step.astype(rows.dtype)
        if w is not None:
            rows *= np.sqrt(w)[:, None].astype(rows.dtype)
        return count, mean, step[None] if near else None

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
            self._add_grams([(target, np.concatenate(waiting.pop(target)))], sign)

    def _add_grams(self, products: list[tuple[int, NDArray]], sign: int = 1) -> None:
        """Add ``rows.T @ rows``, or subtract it, in the upper triangle of each target's scatter."""
        # By bands of the sum's rows: so the lower triangle is left out, and no part leaves the
        # cache before it is added. All by NumPy: another library's threads would be waited for
        # actively.
        d = self.mean.shape[1]
        bands = range(0, d, self._band)
        pieces = [(target, rows, start) for target, rows in products for start in bands]
        # The largest first: so nobody waits long at the end.
        pieces.sort(key=lambda piece: -len(piece[1]) * (d - piece[2]))
        self._share(lambda piece: self._add_band(sign, *piece), pieces)
        self._products[[target for target, _ in products]] += 1

    def _add_band(self, sign: int, target: int, rows: NDArray, start: int) -> None:
        stop, scatter = start + self._band, self.scatter[target]
        square, beyond = _products(rows, start, stop)
        for part, columns in ((square, slice(start, stop)), (beyond, slice(stop, None))):
            into = scatter[start:stop, columns]
            if self._products[target]:
                (np.add if sign > 0 else np.subtract)(into, part, out=into)
            else:  # never to subtract: what waits is of rows that were multiplied before
                into[...] = part
        if not self._products[target]:  # perhaps the only one: it is still in the cache
            _mirror(scatter, start, stop)

    def scatters(self, K: int, E: int) -> tuple[NDArray | None, NDArray | None]:
        """The scatter of the labelled cells and of the unlabelled rows, shaped."""
        for sign, waiting in zip((1, -1), self._waiting, strict=True):
            self._add_grams([(i, np.concatenate(rows)) for i, rows in waiting.items()], sign)
            waiting.clear()
        bands = range(0, self.mean.shape[1], self._band)
        targets = np.flatnonzero(self._products > 1)
        self._share(
            lambda piece: _mirror(self.scatter[piece[0]], piece[1], piece[1] + self._band),
            [(target, start) for target in targets for start in bands],
        )
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


def _glance(rows: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """About the mean and variance of some rows, from the first of them."""
    first = rows[0].astype(np.float64)
    off = rows[:SEGMENT] - first
    return first + off.mean(axis=0), off.var(axis=0)


def _parts(n: int) -> list[slice]:
    """Rows in parts, to be shared out."""
    return [slice(start, start + _PART) for start in range(0, n, _PART)]


def _products(rows: NDArray, start: int, stop: int) -> tuple[NDArray, NDArray]:
    """A band of ``rows.T @ rows``: the square on the diagonal, and what is beyond it."""
    band = rows[:, start:stop]
    # NumPy sees that the first is symmetric: half the work, and equal to the last bit.
    square, beyond = band.T @ band, band.T @ rows[:, stop:]
    if rows.dtype == np.float64:  # their range is checked when all is summed
        return square, beyond
    squares = np.einsum("ii->i", square)
    small = np.flatnonzero(squares < _TINY * len(rows))
    sound = np.isfinite(squares).all() and np.isfinite(beyond).all() and not band[:, small].any()
    return (square, beyond) if sound else _products(rows.astype(np.float64), start, stop)


def _mirror(matrix: NDArray, start: int, stop: int) -> None:
    """Copy a band of a square matrix's upper triangle, beyond the square, to the lower one."""
    for i in range(start, min(stop, len(matrix)), _STRIP):
        end = min(i + _STRIP, stop)
        matrix[stop:, i:end] = matrix[i:end, stop:].T
