"""Empirical risk minimisation with an information bottleneck: IB-ERM."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from isrlearn.paper.training.objectives._objective import Objective
from isrlearn.paper.training.objectives._penalties import forward, spread
from isrlearn.torch.batches import Batch
from isrlearn.torch.task import Task
from isrlearn.validation import check_between


@dataclass
class IBERM(Objective):
    """The mean loss, and the variance of the outputs or of a layer's inputs (Ahuja et al., 2021).

    The published networks penalise the inputs of the last layer: name it as `layer`. Without one
    the outputs are penalised, as in the linear form.
    """

    bottleneck: float = 0.1
    layer: str | None = None

    def __post_init__(self) -> None:
        check_between("bottleneck", self.bottleneck, 0.0, float("inf"))

    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """Mean loss and variance over the batch, whatever the environments."""
        outputs, code = forward(model, batch, self.layer)
        risk = task.losses(outputs, batch.y).mean()
        everyone = torch.zeros_like(batch.environments)
        count = everyone.new_full((1,), len(everyone))
        return risk + self.bottleneck * spread(code, everyone, count).mean()
