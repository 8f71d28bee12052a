"""The one streaming update behind all moments: blocks of rows into running sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK_BYTES = 8 << 20


def default_chunk_size(n_features: int) -> int:
    """Rows a block: a few MB, but enough of them for the matrix products to pay."""
    return max(1024, _BLOCK_BYTES // (8 * max(1, n_features)))


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
    """Mutable sums of the moments of `n_cells` labelled and `n_other` unlabelled slots."""

    def __init__(self, n_cells: int, n_other: int, d: int, order: int, pooled: bool) -> None:
        slots = n_cells + n_other
        self.count = np.zeros(slots)
        self.mean = np.zeros((slots, d))
        self.scatter = None
        if order == 2:
            # Where each slot's scatter goes: its own, or one for cells and one for the rest.
            self.target = np.arange(slots)
            if pooled:
                self.target = np.repeat([0, 1], [n_cells, n_other])
            self.scatter = np.zeros((2 if pooled else slots, d, d))
        self.pooled = pooled

    def add(self, block: NDArray, slots: NDArray, weight: NDArray | None) -> None:
        """Merge the rows of a block, each belonging to one slot, into the sums."""
        if weight is not None:
            keep = weight > 0
            block, slots, weight = block[keep], slots[keep], weight[keep]
        if not len(block):
            return
        order = np.argsort(slots, kind="stable")
        block = _as_float(block[order])
        present, starts, rows = np.unique(slots[order], return_index=True, return_counts=True)
        w = None if weight is None else weight[order]
        count = rows.astype(float) if w is None else np.add.reduceat(w, starts)
        mean = _centre(block, w, starts, rows, count)
        self._merge(present, count, mean)
        if self.scatter is None:
            return
        if w is not None:
            block *= np.sqrt(w)[:, None].astype(block.dtype)
        for slot, start, n in zip(present, starts, rows, strict=True):
            part = block[start : start + n]
            self.scatter[self.target[slot]] += part.T @ part

    def _merge(self, present: NDArray, count: NDArray, mean: NDArray) -> None:
        """Merge counts and means, and the scatter between old and new means."""
        counts = np.stack([self.count[present], count])
        merged, centre, rows = between(counts, np.stack([self.mean[present], mean]), axis=0)
        self.count[present], self.mean[present] = merged, centre
        if self.scatter is not None:
            for i, slot in enumerate(present):
                if counts[0, i] > 0:
                    self.scatter[self.target[slot]] += rows[:, i].T @ rows[:, i]

    def scatters(self, K: int, E: int) -> tuple[NDArray | None, NDArray | None]:
        """The scatter of the labelled cells and of the unlabelled rows, shaped."""
        if self.scatter is None:
            return None, None
        if self.pooled:
            return self.scatter[0], self.scatter[1]
        d = self.mean.shape[-1]
        inner, outer = self.scatter[: K * E], self.scatter[K * E :]
        return inner.reshape(K, E, d, d), outer.reshape(K, 1, d, d)


def _as_float(block: NDArray) -> NDArray:
    """A block the sums may write to: float32 stays, everything else becomes float64."""
    return block if block.dtype in (np.float32, np.float64) else block.astype(np.float64)


def _centre(
    block: NDArray, w: NDArray | None, starts: NDArray, rows: NDArray, count: NDArray
) -> NDArray[np.float64]:
    """Subtract each slot's mean from its rows in place; return the means in float64."""
    mean = np.zeros((len(starts), block.shape[1]))
    # The second round averages what rounding left of the first: with data far from the origin
    # the mean of a block is off by n·eps·|mean|, the mean of the deviations is not.
    for _ in range(2):
        weighted = block if w is None else block * w[:, None]
        step = np.add.reduceat(weighted, starts, axis=0, dtype=np.float64) / count[:, None]
        # What is subtracted, float32 where the rows are, is what the mean must gain.
        step = step.astype(block.dtype)
        mean += step
        block -= np.repeat(step, rows, axis=0)
    return mean
