"""Scores of a network in every group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import Tensor, nn

from isrlearn.metrics import GroupReport, group_report
from isrlearn.torch.batches import evaluated
from isrlearn.validation import check_choice


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
    regression = is_regression(task)
    columns = []
    for batch, outputs in evaluated(model, loader, device, shown=progress):
        if regression:
            predicted = target_values(outputs, batch.y).double()
        else:
            logits = class_logits(outputs, batch.y)
            predicted = (logits > 0).long() if logits.ndim == 1 else logits.argmax(dim=1)
        columns.append((predicted.cpu().numpy(), *batch.arrays()))
    y_pred, y_true, environments = map(np.concatenate, zip(*columns, strict=True))
    metric = metric or ("rmse" if regression else "accuracy")
    return group_report(y_true, y_pred, environments, metric=metric)


def is_regression(task: str) -> bool:
    """Whether targets are continuous."""
    check_choice("task", task, ("classification", "regression"))
    return task == "regression"


def check_classes(y: Tensor) -> Tensor:
    """The classes, if they are integer codes, one per sample."""
    if y.is_floating_point() or y.ndim != 1:
        raise ValueError(
            f"classes must be integer codes, one per sample; got {y.dtype} of shape "
            f"{tuple(y.shape)}. For continuous targets set task='regression'."
        )
    return y


def class_logits(outputs: Tensor, y: Tensor) -> Tensor:
    """Logits (n, K) of K classes, or (n,) of two, if the classes y are among them."""
    check_classes(y)
    single = outputs.ndim == 1 or outputs.shape[-1] == 1
    n_classes = 2 if single else outputs.shape[-1]
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
    return outputs.reshape(-1) if single else outputs


def target_values(outputs: Tensor, y: Tensor) -> Tensor:
    """Predicted targets, in the shape of the targets y."""
    values = outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs
    if values.shape != y.shape:
        raise ValueError(
            f"the model must return one value per target; got shape {tuple(values.shape)} for "
            f"targets of shape {tuple(y.shape)}"
        )
    return values
