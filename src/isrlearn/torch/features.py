"""Features of a trained network, the inputs of a linear layer; their moments; and its scores."""

import os
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from isrlearn.core.moments import Moments
from isrlearn.datasets import EnvironmentData
from isrlearn.engine import cell_moments
from isrlearn.io.files import atomic_write, check_writable
from isrlearn.metrics import GroupReport, group_report
from isrlearn.torch.batches import (
    check_classes,
    class_logits,
    evaluated,
    is_regression,
    target_values,
)
from isrlearn.torch.layer import captured

#: Rows that are summed at a time. Adding moments costs as much as some hundred rows.
_BLOCK = 8192

Part = tuple[NDArray, NDArray, NDArray]  # features, targets and environments


def extract_features(
    model: nn.Module,
    loader: Iterable[Any],
    layer: str = "fc",
    *,
    out: str | os.PathLike[str] | None = None,
    device: Any = None,
    progress: bool = False,
) -> EnvironmentData:
    """Inputs of a linear layer for every sample of a loader, in the loader's order.

    The model runs in evaluation mode without gradients, batch by batch; afterwards its modules are
    in their former modes. The layer must be called once in a forward pass and get one row per
    sample: in a sequence model, name the layer after the pooling.

    Parameters
    ----------
    model : torch.nn.Module
    loader : iterable
        Yields ``(x, y, environment)``. An `x` that is a tuple is passed to the model by position,
        a mapping by name. Environments are integer codes, -1 where unknown.
    layer : str, default="fc"
        Dotted path of an ``nn.Linear``.
    out : path, optional
        A .npy file to write the features to, batch by batch, if they do not fit in memory. The
        file is complete or does not exist.
    device : torch.device or str, optional
        Device of the batches; default: that of the model.
    progress : bool, default=False
        Draw a progress bar, if on a terminal.

    Returns
    -------
    EnvironmentData
        ``X`` in float32, or in float64 if the network is, and a read-only memory map if it was
        written to a file; ``y`` as the loader gave it; ``environments`` as integer codes, or
        floats with NaN where some are unknown, as the estimators expect.

    Examples
    --------
    >>> import torch
    >>> from isrlearn.torch import extract_features
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    >>> batch = torch.zeros(5, 4), torch.zeros(5, dtype=int), torch.tensor([0, 0, 1, 1, -1])
    >>> features = extract_features(model, [batch, batch], "2")
    >>> features.X.shape, features.environments[:5].tolist()
    ((10, 3), [0.0, 0.0, 1.0, 1.0, nan])
    """
    rows = _feature_batches(model, loader, layer, device, progress)
    if out is None:
        return EnvironmentData(*_joined(rows))
    path = Path(out)
    if path.suffix != ".npy":
        raise ValueError(f"out must name a .npy file; got {os.fspath(out)!r}")
    check_writable(path)
    with atomic_write(path) as file:
        labels = _joined(_written(file, rows))
    return EnvironmentData(np.load(path, mmap_mode="r"), *labels)


def torch_moments(
    model: nn.Module,
    loader: Iterable[Any],
    layer: str = "fc",
    *,
    pooled: bool = False,
    task: str = "classification",
    device: Any = None,
    progress: bool = False,
) -> Moments:
    """Moments of the inputs of a linear layer over a loader, in one pass.

    The features are summed in float64, some thousand rows at a time, and never stored as a whole.

    Parameters
    ----------
    model, loader, layer, device, progress
        See `extract_features`.
    pooled : bool, default=False
        Keep one scatter summed over the cells instead of one per cell.
    task : {"classification", "regression"}, default="classification"
        For regression all samples are in one class, and targets are appended to the features as
        last columns, as `ISRRegressor` expects.

    Returns
    -------
    Moments
        The same as those of the extracted features.

    Examples
    --------
    >>> import torch
    >>> from isrlearn.torch import torch_moments
    >>> batch = torch.ones(4, 3), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, -1])
    >>> moments = torch_moments(torch.nn.Sequential(torch.nn.Linear(3, 2)), [batch], "0")
    >>> moments.count.tolist(), moments.total[0]
    ([[1.0, 1.0], [1.0, 0.0]], 4.0)
    """
    regression = is_regression(task)

    def moments(block: list[Part]) -> Moments:
        X, y, e = _joined(block)
        labels, targets = (None, y) if regression else (check_classes(torch.as_tensor(y)), None)
        return cell_moments(X.astype(float), labels, e, pooled=pooled, targets=targets)

    block: list[Part] = []
    total: Any = 0
    for rows in _feature_batches(model, loader, layer, device, progress):
        block.append(rows)
        if sum(len(y) for _, y, _ in block) >= _BLOCK:
            total, block = total + moments(block), []
    total = total + moments(block) if block else total
    # Where some environments are unknown, the codes of the others are floats.
    return replace(total, environments=total.environments.astype(int))


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
        See `extract_features`. A classifier returns one logit per class, or with two classes the
        logit of class 1 alone.
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
    columns, as_probabilities = [], not regression
    for batch, outputs in evaluated(model, loader, device, shown=progress):
        if regression:
            predicted = target_values(outputs, batch.y).double()
        else:
            logits = class_logits(outputs, batch.y)
            if logits.isnan().any():
                raise ValueError("the model's outputs are NaN; are the inputs and weights finite?")
            as_probabilities &= logits.ndim == 1 and bool(((logits >= 0) & (logits <= 1)).all())
            predicted = (logits > 0).long() if logits.ndim == 1 else logits.argmax(dim=1)
        columns.append((predicted.cpu().numpy(), *batch.arrays()))
    y_pred, y_true, environments = _joined(columns)
    if as_probabilities:
        warnings.warn(
            "all outputs lie between 0 and 1, as probabilities do, but a single output is read as "
            "a logit: class 1 is predicted above 0. Leave out the sigmoid at the end of the model",
            UserWarning,
            stacklevel=2,
        )
    metric = metric or ("rmse" if regression else "accuracy")
    return group_report(y_true, y_pred, environments, metric=metric)


def _feature_batches(
    model: nn.Module, loader: Iterable[Any], layer: str, device: Any, progress: bool
) -> Iterator[Part]:
    """Features, targets and environments of each batch."""
    with captured(model, layer) as inputs:
        for number, (batch, _) in enumerate(evaluated(model, loader, device, shown=progress)):
            features = inputs(len(batch.y))
            bad = int((~torch.isfinite(features)).any(dim=1).sum())
            if bad:
                raise ValueError(
                    f"the inputs of layer {layer!r} are NaN or infinite in {bad} of "
                    f"{len(features)} samples of batch {number} (counted from 0)"
                )
            # NumPy has no bfloat16, and half precision is too little for moments.
            kind = torch.float64 if features.dtype == torch.float64 else torch.float32
            yield features.to("cpu", kind).numpy(), *batch.arrays()


def _joined(parts: Iterable[tuple[NDArray, ...]]) -> list[NDArray]:
    """Each of the arrays in the parts, concatenated."""
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]


def _written(file: BinaryIO, parts: Iterable[Part]) -> Iterator[tuple[NDArray, NDArray]]:
    """Targets and environments of the parts; the features go to a .npy file."""
    n = 0
    for X, y, environments in parts:
        header = {"descr": X.dtype.str, "fortran_order": False}
        if not file.tell():
            np.lib.format.write_array_header_1_0(file, header | {"shape": X.shape})
        file.write(np.ascontiguousarray(X).data)
        n += len(X)
        yield y, environments
    # The number of rows is known now. NumPy pads the header for a first axis of any length.
    file.seek(0)
    np.lib.format.write_array_header_1_0(file, header | {"shape": (n, X.shape[1])})
