"""Sums of rows by slot, in few reads: all that means need."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

#: Rows summed in their own precision before the sum goes on in float64.
SEGMENT = 256
#: Means so many standard deviations from the origin lose digits when rows are summed as they are,
#: and rows that are looked at to tell.
_FAR, _GLANCE = 8.0, 64
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


class RunningMeans:
    """Mutable sums of the means alone of some slots, for which rows need no gathering.

    Rows are summed as they are, some hundred in their own precision and float64 from there on;
    those far from the origin are moved there first. Float32 rows give means to about 1e-7 of the
    features' spread.
    """

    def __init__(self, slots: int, d: int) -> None:
        self.count = np.zeros(slots)
        self._sum = np.zeros((slots, d))
        self._origin: NDArray | None = None

    def add(self, block: NDArray, slots: NDArray, weight: NDArray | None) -> None:
        """Merge the rows of a block, each belonging to one slot, into the sums."""
        if not len(block):
            return
        block = block if block.dtype in FLOATS else block.astype(np.float64)
        if self._origin is None:
            first = block[0].astype(np.float64)
            self._origin = first if is_far(block) else np.zeros_like(first)
        if self._origin.any():
            block = block - self._origin.astype(block.dtype)
        self.count += np.bincount(slots, weight, len(self.count))
        self._sum += slot_sums(block, slots, len(self.count), weight)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean of each slot; zero where it is empty."""
        some = self.count > 0
        mean = self._sum / np.where(some, self.count, 1.0)[:, None]
        return mean if self._origin is None else np.where(some[:, None], mean + self._origin, 0.0)


def slot_sums(
    block: NDArray, slots: NDArray, n_slots: int, weight: NDArray | None = None
) -> NDArray[np.float64]:
    """Weighted sums of the rows of each slot, (n_slots, d)."""
    n, d = block.shape
    # Each column of the matrix puts a row where its slot is summed: so rows are read in order. Some
    # hundred of them have sums of their own, which float64 then adds up.
    segment = max(SEGMENT, 8 * n_slots)
    place = np.arange(n) // segment * n_slots + slots
    w = np.ones(n, dtype=block.dtype) if weight is None else weight.astype(block.dtype)
    parts = (w, place.astype(np.int32), np.arange(n + 1, dtype=np.int32))
    sums = sparse.csc_array(parts, shape=(-(-n // segment) * n_slots, n)) @ block
    return sums.reshape(-1, n_slots, d).sum(axis=0, dtype=np.float64)


def is_far(rows: NDArray) -> bool:
    """Whether some feature lies so far from zero that sums of its squares would lose digits.

    The first few rows tell.
    """
    rows = rows[:_GLANCE]
    mean, deviation = rows.mean(axis=0, dtype=np.float64), rows.std(axis=0, dtype=np.float64)
    return bool((np.abs(mean) > _FAR * deviation).any())


def by_slot(slots: NDArray, n_slots: int) -> tuple[NDArray, NDArray, NDArray]:
    """Order that gathers rows by slot, the slots that have any, and where each of them ends."""
    # Small integers are sorted by counting them.
    small = slots.astype(np.int16) if n_slots < 2**15 else slots
    count = np.bincount(slots, minlength=n_slots)
    present = np.flatnonzero(count)
    return np.argsort(small, kind="stable"), present, np.cumsum(count[present])
