"""C-MixUp: mixtures of samples with similar targets."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from isrlearn.paper.training.objectives.mixup import MixUp
from isrlearn.torch.batches import Batch
from isrlearn.torch.task import Task
from isrlearn.validation import check_between


@dataclass
class CMixUp(MixUp):
    r"""MixUp whose partners have similar targets (Yao et al., 2022).

    Sample j of the batch is drawn for sample i with a probability in proportion to
    :math:`\exp(-(y_i - y_j)^2 / 2 h^2)`, h the `bandwidth`; classes have distance 0 or 1.
    """

    bandwidth: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("bandwidth", self.bandwidth, 1e-6, float("inf"))

    def partners(self, batch: Batch, task: Task) -> Tensor:
        """Place in the batch of the sample that each one is mixed with, (n,)."""
        y = batch.y.detach().cpu()
        if len(y) == 1:
            return torch.zeros_like(batch.environments)
        if task.name == "regression":
            y = y.double().reshape(len(y), -1)
            distance = torch.cdist(y, y, compute_mode="donot_use_mm_for_euclid_dist")
        else:
            distance = (y[:, None] != y).double()
        logits = -((distance / self.bandwidth) ** 2) / 2
        logits.fill_diagonal_(-torch.inf)  # with itself there is nothing to mix
        # A softmax: far from all others, the nearest of them is drawn.
        probability = torch.softmax(logits, dim=1)
        return torch.multinomial(probability, 1)[:, 0].to(batch.y.device)
