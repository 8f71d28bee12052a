"""Invariant risk minimisation, IRMv1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from isrlearn.paper.training.objectives._objective import Objective, means, present
from isrlearn.paper.training.objectives._penalties import dummy_gradient
from isrlearn.torch.batches import Batch, outputs_of
from isrlearn.torch.task import Task
from isrlearn.validation import check_between


@dataclass
class Annealed(Objective):
    """A penalty that has its full weight only after some steps, and a weight of 1 until then.

    The loss is divided by a weight above 1, so that the learning rate keeps its meaning.
    """

    penalty: float = 1.0
    anneal_steps: int = 0
    steps: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        check_between("penalty", self.penalty, 0.0, float("inf"))
        check_between("anneal_steps", self.anneal_steps, 0, float("inf"))

    def weigh(self, risk: Tensor, penalty: Tensor) -> Tensor:
        """Risk and weighted penalty together, for this step."""
        weight = self.penalty if self.steps >= self.anneal_steps else min(1.0, self.penalty)
        self.steps += 1
        return (risk + weight * penalty) / max(1.0, weight)

    def state(self) -> dict[str, Any]:
        """The number of steps done."""
        return {"steps": self.steps}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.steps = state["steps"]


@dataclass
class IRM(Annealed):
    """The mean risk of the environments, and a penalty where rescaling outputs would help one.

    The penalty is the mean over environments of the squared gradient of the risk of ``a z + b``
    in (a, b) at (1, 0). A common shift b of two or more logits changes nothing: there this is
    the form of Arjovsky et al. (2019); with one output it is that of the linear unit tests.
    """

    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """Mean risk and penalty over the environments in the batch."""
        place, count = present(batch.environments)
        outputs = outputs_of(model, batch.x)
        risk = means(task.losses(outputs, batch.y), place, count).mean()
        return self.weigh(risk, dummy_gradient(outputs, batch.y, place, count, task).mean())
