"""What tasks compute: moments of their rows, and sums of the logistic loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray

from isrlearn.core._log_loss import ArrayRows, Block, Query, Sums, loss_sums
from isrlearn.core._threads import libraries
from isrlearn.core.heads import Coordinates
from isrlearn.core.labels import encode
from isrlearn.core.moments import Moments
from isrlearn.dask._parts import Parts, Sample, joined
from isrlearn.dask._run import computed


@dataclass(frozen=True)
class Kept:
    """What moments are to keep, and of what."""

    order: int
    pooled: bool
    classes: bool
    targets: bool


def moments_of(parts: Parts, kept: Kept) -> Moments:
    """Moments of all the parts, merged in the order of the rows."""
    groups = parts.groups(moments=kept.order > 1)
    tasks = [dask.delayed(_group_moments)(parts.read, group, kept) for group in groups]
    # Pairs of neighbours, again and again: the same sums wherever they are made, and never more
    # than two of them in one place.
    while len(tasks) > 1:
        pairs = [tasks[i : i + 2] for i in range(0, len(tasks), 2)]
        tasks = [dask.delayed(_merged)(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
    return computed(tasks)[0]


def _group_moments(read: Any, group: Sequence[Any], kept: Kept) -> Moments:
    total: Any = 0
    with libraries().limit(limits=1):
        samples = [sample for sample in map(read, group) if len(sample.y)]
        for sample in joined(samples):
            total = total + _moments(sample, kept)
    return total


def _moments(sample: Sample, kept: Kept) -> Moments:
    environments = sample.environments
    return Moments.from_data(
        sample.X,
        sample.y if kept.classes else None,
        np.zeros(len(sample.y), dtype=int) if environments is None else environments,
        order=kept.order,
        pooled=kept.pooled,
        targets=sample.y if kept.targets else None,
        sample_weight=sample.weight,
    )


def _merged(a: Any, b: Any) -> Any:
    # A group without rows has the neutral element, which only adds from the left.
    return a if isinstance(b, int) else a + b


@dataclass(frozen=True, eq=False)
class DaskRows:
    """Rows in parts that sum the logistic loss where they are.

    Parameters
    ----------
    parts : Parts
    classes, environments : ndarray
        Names that codes refer to.
    weights : (ndarray, ndarray) or None
        Weight of a row of each cell, and of a row of each class without an environment.
    coordinates : Coordinates or None
        Coordinates the rows are taken to inside the tasks.
    """

    parts: Parts
    classes: NDArray
    environments: NDArray
    weights: tuple[NDArray, NDArray] | None
    coordinates: Coordinates | None

    def loss_sums(self, query: Query) -> Sums:
        """Sums over all the rows, added in their order."""
        rest = dask.delayed((self, query), traverse=False, pure=False)
        groups = self.parts.groups(moments=False)
        tasks = [dask.delayed(_group_sums)(self.parts.read, group, rest) for group in groups]
        first, *others = computed(tasks)
        for sums in others:
            first = first + sums
        return first

    def __getstate__(self) -> dict[str, Any]:
        # The parts are the tasks' own arguments: they must not travel twice.
        return {**self.__dict__, "parts": None}

    def blocks(self, sample: Sample) -> Iterator[Block]:
        """Blocks of a sample, coded, weighted and in the head's coordinates."""
        codes = encode(sample.y, self.classes)[1]
        weight = sample.weight
        if self.weights is not None:
            inside, outside = self.weights
            e = encode(self._names(sample), self.environments)[1]
            own = np.where(e < 0, outside[codes], inside[codes, e])
            weight = own if weight is None else own * weight
        for block in ArrayRows(sample.X, codes, weight):
            Z = block.Z if self.coordinates is None else self.coordinates(block.Z)
            yield block._replace(Z=Z)

    def _names(self, sample: Sample) -> NDArray:
        if sample.environments is None:
            return np.zeros(len(sample.y), dtype=int)
        return sample.environments


def _group_sums(read: Any, group: Sequence[Any], rest: Any) -> Sums:
    rows, query = rest
    with libraries().limit(limits=1):
        return loss_sums((block for part in group for block in rows.blocks(read(part))), query)
