"""MixUp: lines between samples instead of samples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from isrlearn.paper.training.objectives._objective import Objective
from isrlearn.torch.batches import Batch, outputs_of
from isrlearn.torch.task import Task
from isrlearn.validation import check_between


@dataclass
class MixUp(Objective):
    """The mean loss of mixtures of each sample with another one of the batch.

    The share of a sample is drawn from Beta(alpha, alpha), once a batch (Zhang et al., 2018).
    Continuous targets are mixed; so is the loss of the two classes.
    """

    alpha: float = 2.0

    def __post_init__(self) -> None:
        check_between("alpha", self.alpha, 1e-6, float("inf"))

    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """The mean loss of the mixtures."""
        if not isinstance(batch.x, Tensor) or not batch.x.is_floating_point():
            raise ValueError(
                "inputs can be mixed only if they are one tensor of floats; got "
                f"{getattr(batch.x, 'dtype', type(batch.x).__name__)}"
            )
        share = float(torch.distributions.Beta(self.alpha, self.alpha).sample())
        partner = self.partners(batch, task)
        outputs = outputs_of(model, share * batch.x + (1 - share) * batch.x[partner])
        y, other = batch.y, batch.y[partner]
        if task.name == "regression":
            return task.losses(outputs, share * y + (1 - share) * other).mean()
        losses = share * task.losses(outputs, y) + (1 - share) * task.losses(outputs, other)
        return losses.mean()

    def partners(self, batch: Batch, task: Task) -> Tensor:
        """Place in the batch of the sample that each one is mixed with, (n,)."""
        return torch.randperm(len(batch.y)).to(batch.y.device)
