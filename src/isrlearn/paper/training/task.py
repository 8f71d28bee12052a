"""What training needs to know about the kind of target: losses, groups, the better score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from isrlearn.torch.batches import Batch
from isrlearn.torch.evaluate import check_classes, class_logits, is_regression, target_values


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
