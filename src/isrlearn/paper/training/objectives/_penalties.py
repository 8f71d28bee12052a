"""Penalties that objectives share; on a linear model those of `isrlearn.paper.baselines`."""

from __future__ import annotations

from contextlib import nullcontext
from typing import NamedTuple

import torch
from torch import Tensor, nn

from isrlearn.paper.training.objectives._objective import means
from isrlearn.torch.batches import Batch, outputs_of
from isrlearn.torch.layer import captured
from isrlearn.torch.task import Task


class Forward(NamedTuple):
    """Outputs of a model, and the representation whose variance is penalised."""

    outputs: Tensor  # (n,) or (n, C)
    code: Tensor  # (n, p)


def forward(model: nn.Module, batch: Batch, layer: str | None) -> Forward:
    """Outputs, and as code the inputs of a layer, or the outputs themselves without one."""
    with nullcontext() if layer is None else captured(model, layer) as inputs:
        outputs = outputs_of(model, batch.x)
        code = outputs if inputs is None else inputs.take(len(batch.environments))
    return Forward(outputs, code.reshape(len(code), -1))


def dummy_gradient(outputs: Tensor, y: Tensor, place: Tensor, count: Tensor, task: Task) -> Tensor:
    """Squared gradient of each environment's risk of ``a z + b`` in (a, b), at (1, 0), (E,)."""
    ones = outputs.new_ones(len(count))
    a, b = ones.requires_grad_(), torch.zeros_like(ones).requires_grad_()
    shape = (-1, *[1] * (outputs.ndim - 1))
    rescaled = outputs * a[place].reshape(shape) + b[place].reshape(shape)
    risks = means(task.losses(rescaled, y), place, count)
    # The risk of an environment depends on its own a and b alone: one gradient gives all.
    slopes = torch.autograd.grad(risks.sum(), (a, b), create_graph=True)
    return slopes[0] ** 2 + slopes[1] ** 2


def spread(code: Tensor, place: Tensor, count: Tensor) -> Tensor:
    """Variance of the code in each environment, averaged over its columns, (E,)."""
    away = code - means(code, place, count)[place]
    return means((away**2).mean(dim=1), place, count)
