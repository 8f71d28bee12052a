"""Settings that differ in the head alone share their rows: one job for all of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from isrlearn.core.moments import Moments
from isrlearn.core.subspace import Subspace
from isrlearn.estimators.search._reduced import Reduced
from isrlearn.estimators.search._splits import Sample


@dataclass(frozen=True, eq=False)
class Job:
    """Settings, by their positions, that erase the same subspace to the same scale."""

    subspace: Subspace
    scale: float
    members: tuple[int, ...]


def jobs_of(
    estimators: Sequence[Any],
    reduced: Reduced,
    moments: Moments,
    train: Sample,
    y: NDArray | None,
) -> list[Job]:
    """The jobs of one split.

    Every count of dimensions is looked for once. Where nothing is erased, or "auto" agrees with
    one of the counts, settings fall together.
    """
    found: dict[Hashable, Subspace] = {}
    members: dict[Hashable, list[int]] = {}
    picked: dict[Hashable, tuple[Subspace, float]] = {}
    for i, estimator in enumerate(estimators):
        method = getattr(estimator, "method", "regression")
        asked = (method, estimator.n_spurious)
        if asked not in found:
            recovery = estimator._recovery().settled(moments, train.X, y, train.environments)
            found[asked] = reduced.subspace(recovery)
        subspace = found[asked]
        idle = subspace.rank == 0 or estimator.scale == 1
        key = None if idle else (method, subspace.rank, estimator.scale)
        picked.setdefault(key, (subspace, 1.0 if idle else float(estimator.scale)))
        members.setdefault(key, []).append(i)
    return [Job(*picked[key], tuple(members[key])) for key in members]


def by_weighting(estimators: Sequence[Any], members: Sequence[int]) -> dict[tuple, list[int]]:
    """Members of a job that have the same head and the same weights."""
    shared: dict[tuple, list[int]] = {}
    for i in members:
        estimator = estimators[i]
        head = estimator.head if isinstance(estimator.head, str) else id(estimator.head)
        key = (head, getattr(estimator, "class_weight", None), estimator.group_weight)
        shared.setdefault(key, []).append(i)
    return shared
