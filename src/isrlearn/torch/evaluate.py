"""Classification and regression: losses, predictions, and scores of a network in every group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from isrlearn.metrics import GroupReport, group_report
from isrlearn.torch.batches import Batch, batches, evaluating, model_device, outputs_of
from isrlearn.torch.features import known_environments
from isrlearn.validation import check_choice


@dataclass(frozen=True)
class Task:
    """What depends on the kind of target."""

    name: str
    losses: Callable[[Tensor, Tensor], Tensor]  # (outputs, targets) -> loss of each sample, (n,)
    predictions: Callable[[Tensor], Tensor]  # outputs -> predicted classes or targets
    metric: str  # the score of a group, as named by `isrlearn.metrics.group_report`
    sign: int  # 1 if a greater score is better, -1 if a smaller one is

    def groups(self, batch: Batch) -> Tensor:
        """Class and environment of each sample (n, 2); for regression the class is 0."""
        classes = torch.zeros_like(batch.environments)
        if self.name == "classification":
            classes = check_classes(batch.y)
        return torch.stack([classes, batch.environments], dim=1)


def evaluate(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    task: str = "classification",
    metric: str | None = None,
    device: Any = None,
    progress: bool = False,
) -> GroupReport:
    """Scores of a model in every group of a loader's samples.

    Parameters
    ----------
    model, loader, device, progress
        See `extract_features`.
    task : {"classification", "regression"}, default="classification"
    metric : {"accuracy", "rmse", "r2"}, optional
        See `isrlearn.metrics.group_report`. Default: accuracy, or for regression RMSE.

    Returns
    -------
    GroupReport
        ``report.worst`` is the score of the worst group, ``report.average`` that of all samples.

    Examples
    --------
    >>> import torch
    >>> from isrlearn.torch import evaluate
    >>> model = torch.nn.Linear(1, 2)
    >>> with torch.no_grad():
    ...     _ = model.weight.copy_(torch.tensor([[-1.0], [1.0]])), model.bias.zero_()
    >>> x, y = torch.tensor([[-1.0], [1.0], [2.0]]), torch.tensor([0, 1, 0])
    >>> evaluate(model, [(x, y, torch.tensor([0, 0, 1]))]).worst_group
    (0, 1)
    """
    kind = find_task(task)
    columns = []
    with evaluating(model):
        for batch in batches(loader, model_device(model, device), shown=progress):
            outputs = outputs_of(model, batch.x)
            kind.losses(outputs, batch.y)  # raises if outputs and targets do not match
            predicted = kind.predictions(outputs)
            predicted = predicted.double() if predicted.is_floating_point() else predicted
            parts = batch.y, predicted, batch.environments
            columns.append([part.cpu().numpy() for part in parts])
    y_true, y_pred, environments = map(np.concatenate, zip(*columns, strict=True))
    environments = known_environments(environments)
    return group_report(y_true, y_pred, environments=environments, metric=metric or kind.metric)


def check_classes(y: Tensor) -> Tensor:
    """The classes, if they are integer codes, one per sample."""
    if y.is_floating_point() or y.ndim != 1:
        raise ValueError(
            f"classes must be integer codes, one per sample; got {y.dtype} of shape "
            f"{tuple(y.shape)}. For continuous targets set task='regression'."
        )
    return y


def find_task(name: str) -> Task:
    """The task of that name."""
    check_choice("task", name, tuple(TASKS))
    return TASKS[name]


def _cross_entropy(outputs: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy of K logits, or of one logit for two classes."""
    check_classes(y)
    n_classes = 2 if _single(outputs) else outputs.shape[-1]
    if outputs.ndim > 2 or len(outputs) != len(y):
        raise ValueError(
            f"the model must return one row of logits per sample; got shape {tuple(outputs.shape)} "
            f"for {len(y)} samples"
        )
    if len(y) and not 0 <= int(y.min()) <= int(y.max()) < n_classes:
        raise ValueError(
            f"the model has outputs for {n_classes} classes, 0 to {n_classes - 1}; the loader "
            f"yields classes from {int(y.min())} to {int(y.max())}"
        )
    if not _single(outputs):
        return functional.cross_entropy(outputs, y, reduction="none")
    logits = outputs.reshape(-1)
    return functional.binary_cross_entropy_with_logits(logits, y.to(logits), reduction="none")


def _classes(outputs: Tensor) -> Tensor:
    """Predicted classes."""
    return (outputs.reshape(-1) > 0).long() if _single(outputs) else outputs.argmax(dim=1)


def _squared_error(outputs: Tensor, y: Tensor) -> Tensor:
    """Squared error, averaged over the targets of a sample."""
    outputs = _values(outputs)
    if outputs.shape != y.shape:
        raise ValueError(
            f"the model must return one value per target; got shape {tuple(outputs.shape)} for "
            f"targets of shape {tuple(y.shape)}"
        )
    squares = (outputs - y.to(outputs.dtype)) ** 2
    return squares if squares.ndim == 1 else squares.mean(dim=1)


def _values(outputs: Tensor) -> Tensor:
    """Predicted targets."""
    return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs


def _single(outputs: Tensor) -> bool:
    """Whether there is one output per sample."""
    return outputs.ndim == 1 or outputs.shape[-1] == 1


TASKS = {
    "classification": Task("classification", _cross_entropy, _classes, "accuracy", 1),
    "regression": Task("regression", _squared_error, _values, "rmse", -1),
}
