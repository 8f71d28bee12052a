"""Invariant risk minimisation with an information bottleneck: IB-IRM."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from isrlearn.paper.training.objectives._objective import means, present
from isrlearn.paper.training.objectives._penalties import dummy_gradient, forward, spread
from isrlearn.paper.training.objectives.irm import Annealed
from isrlearn.torch.batches import Batch
from isrlearn.torch.task import Task
from isrlearn.validation import check_between


@dataclass
class IBIRM(Annealed):
    """The objective of `IRM`, and the variance in each environment as in `IBERM`."""

    bottleneck: float = 0.1
    layer: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("bottleneck", self.bottleneck, 0.0, float("inf"))

    def __call__(self, model: nn.Module, batch: Batch, task: Task) -> Tensor:
        """Mean risk, penalty and variance over the environments in the batch."""
        place, count = present(batch.environments)
        outputs, code = forward(model, batch, self.layer)
        risk = means(task.losses(outputs, batch.y), place, count).mean()
        risk = risk + self.bottleneck * spread(code, place, count).mean()
        return self.weigh(risk, dummy_gradient(outputs, batch.y, place, count, task).mean())
