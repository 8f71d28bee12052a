"""Moments of a network's features, summed without storing the features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from isrlearn.core.moments import Moments
from isrlearn.engine import cell_moments
from isrlearn.torch.evaluate import check_classes, is_regression
from isrlearn.torch.features import feature_batches, known_environments

#: Rows that are summed at a time. Adding moments costs as much as some hundred rows.
_BLOCK = 8192


def torch_moments(
    model: nn.Module,
    loader: Iterable[Any],
    layer: str = "fc",
    *,
    order: int = 2,
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
    order : {1, 2}, default=2
        1 keeps means only.
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

    def block_moments(block: list[tuple[NDArray, NDArray, NDArray]]) -> Moments:
        X, y, codes = (np.concatenate(column) for column in zip(*block, strict=True))
        labels, targets = (None, y) if regression else (y, None)
        environments = known_environments(codes)
        return cell_moments(X, labels, environments, order=order, pooled=pooled, targets=targets)

    def parts() -> Iterator[Moments]:
        block = []
        for features, y, codes in feature_batches(model, loader, layer, device, progress):
            y = y if regression else check_classes(y)
            # Converted on the CPU: not every device has float64.
            X = features.cpu().to(torch.float64)
            block.append((X.numpy(), y.cpu().numpy(), codes.cpu().numpy()))
            if sum(len(rows) for rows, _, _ in block) >= _BLOCK:
                yield block_moments(block)
                block = []
        if block:
            yield block_moments(block)

    total: Moments = sum(parts())  # type: ignore[assignment]
    # Where some environments are unknown, the codes of the others are floats.
    return replace(total, environments=total.environments.astype(int))
