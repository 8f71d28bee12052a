"""Group reweighting: every group counts alike, however few its samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from isrlearn.paper.training.objectives._objective import Objective, losses_of
from isrlearn.torch.batches import Batch
from isrlearn.torch.task import Task


@dataclass
class Reweighting(Objective):
    """The mean loss with a weight of ``n / (n_groups * n_group)`` for each sample."""

    counts_groups: ClassVar[bool] = True

    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """The weighted mean loss of the batch."""
        losses = losses_of(model, batch, task)
        count = self.groups.count.to(losses)
        weight = count.sum() / (len(count) * count)
        return (weight[self.groups.members(batch, task)] * losses).mean()
