"""Risk extrapolation by the variance of the risks: V-REx."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from isrlearn.paper.training.objectives._objective import losses_of, means, present
from isrlearn.paper.training.objectives.irm import Annealed
from isrlearn.torch.batches import Batch
from isrlearn.torch.task import Task


@dataclass
class VREx(Annealed):
    """The mean risk of the environments, and the variance of the risks (Krueger et al., 2021)."""

    penalty: float = 10.0

    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """Mean and variance of the risks over the environments in the batch."""
        place, count = present(batch.environments)
        risks = means(losses_of(model, batch, task), place, count)
        return self.weigh(risks.mean(), risks.var(correction=0))
