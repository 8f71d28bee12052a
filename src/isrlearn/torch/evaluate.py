"""Scores of a network in every group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch import nn

from isrlearn.metrics import GroupReport, group_report
from isrlearn.torch.batches import batches, evaluating, model_device, outputs_of
from isrlearn.torch.features import known_environments
from isrlearn.torch.task import find_task


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
    model : torch.nn.Module
    loader : iterable
        Yields ``(x, y, environment)``; see `extract_features`.
    task : {"classification", "regression"}, default="classification"
    metric : {"accuracy", "rmse", "r2"}, optional
        See `isrlearn.metrics.group_report`. Default: accuracy, or for regression RMSE.
    device : torch.device or str, optional
        Where batches go; default: where the model is.
    progress : bool, default=False
        Draw a bar, if on a terminal.

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
    y_true, y_pred, environments = [], [], []
    with evaluating(model):
        for batch in batches(loader, model_device(model, device), shown=progress):
            outputs = outputs_of(model, batch.x)
            kind.losses(outputs, batch.y)  # says what does not fit together
            y_true.append(batch.y.cpu().numpy())
            guess = kind.predictions(outputs)
            y_pred.append((guess.double() if guess.is_floating_point() else guess).cpu().numpy())
            environments.append(batch.environments.cpu().numpy())
    return group_report(
        np.concatenate(y_true),
        np.concatenate(y_pred),
        environments=known_environments(np.concatenate(environments)),
        metric=metric or kind.metric,
    )
