"""What training needs to know about the kind of target: losses, groups, the better score."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from isrlearn.torch.batches import (
    UNKNOWN,
    Batch,
    batches,
    check_classes,
    class_logits,
    is_regression,
    target_values,
)


@dataclass(frozen=True)
class Task:
    """A kind of target."""

    name: str
    losses: Callable[[Tensor, Tensor], Tensor]  # (outputs, targets) -> loss of each sample, (n,)
    sign: int  # 1 if a greater score is better, -1 if a smaller one is

    def groups(self, batch: Batch) -> Tensor:
        """Class and environment of each sample (n, 2); for regression the class is 0."""
        classes = torch.zeros_like(batch.environments)
        if self.name == "classification":
            classes = check_classes(batch.y)
        return torch.stack([classes, batch.environments], dim=1)


def find_task(name: str) -> Task:
    """The task of that name."""
    if is_regression(name):
        return Task(name, _squared_error, -1)
    return Task(name, _cross_entropy, 1)


def _cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of K logits, or of one logit for two classes."""
    logits = class_logits(outputs, y)
    if logits.ndim == 2:
        return functional.cross_entropy(logits, y, reduction="none")
    return functional.binary_cross_entropy_with_logits(logits, y.to(logits), reduction="none")


def _squared_error(outputs: Tensor, y: Tensor) -> Tensor:
    """Squared error, averaged over the targets of a sample."""
    squares = (target_values(outputs, y) - y.to(outputs.dtype)) ** 2
    return squares if squares.ndim == 1 else squares.mean(dim=1)


class Groups(NamedTuple):
    """Groups of a training set: each class in each environment, or each environment."""

    index: Tensor  # (K, E) number of each group, -1 where a class is not in an environment
    count: Tensor  # (G,) samples of each group

    @classmethod
    def of(cls, loader: Iterable[Any], task: Task) -> Groups:
        """Groups counted in one pass over a loader."""
        cpu = torch.device("cpu")
        found = torch.cat([task.groups(batch) for batch in batches(loader, cpu)])
        check_known(found[:, 1], "of the training set")
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
                "the loader returned a group that did not exist when groups were counted: it must "
                "return the same samples in every epoch"
            )
        return members


def check_known(environments: Tensor, where: str) -> None:
    """Raise if the environment of a sample is unknown."""
    unknown = int((environments == UNKNOWN).sum())
    if unknown:
        raise ValueError(
            f"this objective needs the environment of every sample, and {unknown} of "
            f"{len(environments)} {where} are unknown (-1): remove them"
        )
