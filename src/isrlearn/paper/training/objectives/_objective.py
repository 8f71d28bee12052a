"""An objective: the loss of a batch, and what of it must survive an interruption."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from isrlearn.torch.batches import UNKNOWN, Batch, batches, outputs_of
from isrlearn.torch.task import Task


class Groups(NamedTuple):
    """Groups of a training set: each class in each environment, or each environment."""

    index: Tensor  # (K, E) number of each group, -1 where a class is not in an environment
    count: Tensor  # (G,) samples of each group

    @classmethod
    def of(cls, loader: Iterable[Any], task: Task) -> Groups:
        """Groups counted in one pass over a loader."""
        cpu = torch.device("cpu")
        found = torch.cat([task.groups(batch) for batch in batches(loader, cpu)])
        if len(found) and int(found[:, 1].min()) == UNKNOWN:
            unknown = int((found[:, 1] == UNKNOWN).sum())
            raise ValueError(
                f"this objective needs the environment of every sample, and {unknown} of "
                f"{len(found)} are unknown (-1): leave them out"
            )
        names, count = torch.unique(found, dim=0, return_counts=True)
        size = (int(names[:, 0].max()) + 1, int(names[:, 1].max()) + 1)
        index = torch.full(size, -1, dtype=torch.long)
        index[names[:, 0], names[:, 1]] = torch.arange(len(names))
        return cls(index, count)

    def members(self, batch: Batch, task: Task) -> Tensor:
        """Number of the group of each sample, (n,)."""
        pairs = task.groups(batch)
        index = self.index.to(pairs.device)
        inside = (pairs >= 0).all() and (pairs < torch.tensor(index.shape).to(pairs)).all()
        members = index[pairs[:, 0], pairs[:, 1]] if inside else None
        if members is None or (members < 0).any():
            raise ValueError(
                "the loader gives a group that was not there when groups were counted: it must "
                "give the same samples in every epoch"
            )
        return members


@dataclass
class Objective(ABC):
    """The loss to descend on a batch. Subclasses add parameters, and state if they have one."""

    #: Whether the groups of the training set must be counted first.
    counts_groups: ClassVar[bool] = False
    #: Those groups, set before the first batch.
    groups: Groups = field(init=False, repr=False, compare=False)

    @abstractmethod
    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """The loss of a batch, a scalar with a gradient."""

    def state(self) -> dict[str, Any]:
        """What changes from step to step, as tensors and numbers."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:  # noqa: B027 - most have no state
        """Go on from a state."""


def losses_of(model: nn.Module, batch: Batch, task: Task) -> Tensor:
    """Loss of each sample of a batch, (n,)."""
    return task.losses(outputs_of(model, batch.x), batch.y)


def present(environments: Tensor) -> tuple[Tensor, Tensor]:
    """Place of each sample's environment among those present, (n,), and their sizes, (E,)."""
    if (environments == UNKNOWN).any():
        unknown = int((environments == UNKNOWN).sum())
        raise ValueError(
            f"this objective needs the environment of every sample, and {unknown} of "
            f"{len(environments)} in a batch are unknown (-1): leave them out"
        )
    _, place, count = torch.unique(environments, return_inverse=True, return_counts=True)
    return place, count


def means(values: Tensor, place: Tensor, count: Tensor) -> Tensor:
    """Mean of the values (n, ...) at each place, (E, ...)."""
    sums = values.new_zeros((len(count), *values.shape[1:])).index_add(0, place, values)
    return sums / count.to(values.dtype).reshape(-1, *[1] * (values.ndim - 1))
