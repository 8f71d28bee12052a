"""Distributionally robust optimisation over groups: the worst group decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from isrlearn.paper.training.objectives._objective import Objective, losses_of, means
from isrlearn.torch.batches import Batch
from isrlearn.torch.task import Task
from isrlearn.validation import check_between


@dataclass
class GroupDRO(Objective):
    """The groups' risks, weighted; the weights grow where the risk is high.

    In each step the weight of a group in the batch is multiplied by the exponential of `step`
    times its risk, and the weights are scaled to add up to one (Sagawa et al., 2020).
    """

    step: float = 0.01
    scores: Tensor | None = field(default=None, init=False, repr=False)

    counts_groups: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_between("step", self.step, 0.0, float("inf"))

    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """The weighted risks of the groups in the batch."""
        losses = losses_of(model, batch, task)
        members = self.groups.members(batch, task)
        groups, place, count = torch.unique(members, return_inverse=True, return_counts=True)
        risks = means(losses, place, count)
        if self.scores is None:
            # Logarithms of the weights, in double precision: they only ever grow.
            self.scores = torch.zeros(len(self.groups.count), dtype=torch.float64)
        self.scores[groups.cpu()] += self.step * risks.detach().cpu().double()
        weights = torch.softmax(self.scores, dim=0)[groups.cpu()]
        return (weights.to(risks) * risks).sum()

    def state(self) -> dict[str, Any]:
        """The scores of the groups."""
        return {"scores": self.scores}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.scores = state["scores"]
