"""What differs between classification and regression: loss, prediction, groups, score."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from isrlearn.torch.batches import Batch
from isrlearn.validation import check_choice


@dataclass(frozen=True)
class Task:
    """A kind of target."""

    name: str
    #: (outputs, targets) -> loss of each sample, (n,).
    losses: Callable[[Tensor, Tensor], Tensor]
    #: outputs -> predicted classes or targets.
    predictions: Callable[[Tensor], Tensor]
    #: The score of a group, as `isrlearn.metrics.group_report` calls it.
    metric: str
    #: 1 if a greater score is better, -1 if a smaller one is.
    sign: int

    def groups(self, batch: Batch) -> Tensor:
        """Class and environment of each sample (n, 2); for regression the class is 0."""
        classes = torch.zeros_like(batch.environments)
        if self.name == "classification":
            classes = check_classes(batch.y)
        return torch.stack([classes, batch.environments], dim=1)


def check_classes(y: Tensor) -> Tensor:
    """The classes, if they are integer codes, one a sample."""
    if y.is_floating_point() or y.ndim != 1:
        raise ValueError(
            f"classes must be integer codes, one a sample; got {y.dtype} of shape "
            f"{tuple(y.shape)}. For continuous targets set task='regression'."
        )
    return y


def _cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of K logits, or of one logit for two classes."""
    check_classes(y)
    n_classes = 2 if _single(outputs) else outputs.shape[-1]
    if outputs.ndim > 2 or len(outputs) != len(y):
        raise ValueError(
            f"the model must return one row of logits a sample; got shape {tuple(outputs.shape)} "
            f"for {len(y)} samples"
        )
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < n_classes:
        raise ValueError(
            f"the model tells {n_classes} classes apart, 0 to {n_classes - 1}; the loader gives "
            f"classes from {int(y.min())} to {int(y.max())}"
        )
    if _single(outputs):
        logits = outputs.reshape(-1)
        return functional.binary_cross_entropy_with_logits(
            logits, y.to(logits.dtype), reduction="none"
        )
    return functional.cross_entropy(outputs, y, reduction="none")


def _classes(outputs: Tensor) -> Tensor:
    if _single(outputs):
        return (outputs.reshape(-1) > 0).long()
    return outputs.argmax(dim=1)


def _squared_error(outputs: Tensor, y: Tensor) -> Tensor:
    """Squared error, averaged over the targets of a sample."""
    outputs = _values(outputs)
    if outputs.shape != y.shape:
        raise ValueError(
            f"the model must return one value a target; got shape {tuple(outputs.shape)} for "
            f"targets of shape {tuple(y.shape)}"
        )
    squares = (outputs - y.to(outputs.dtype)) ** 2
    return squares if squares.ndim == 1 else squares.mean(dim=1)


def _values(outputs: Tensor) -> Tensor:
    return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs


def _single(outputs: Tensor) -> bool:
    """Whether there is one output a sample."""
    return outputs.ndim == 1 or outputs.shape[-1] == 1


TASKS = {
    "classification": Task("classification", _cross_entropy, _classes, "accuracy", 1),
    "regression": Task("regression", _squared_error, _values, "rmse", -1),
}


def find_task(name: str) -> Task:
    """The task of that name."""
    check_choice("task", name, tuple(TASKS))
    return TASKS[name]
