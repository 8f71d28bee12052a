"""Empirical risk minimisation."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from isrlearn.paper.training.objectives._objective import Objective, losses_of
from isrlearn.torch.batches import Batch
from isrlearn.torch.task import Task


@dataclass
class ERM(Objective):
    """The mean loss."""

    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """The mean loss of the batch."""
        return losses_of(model, batch, task).mean()
