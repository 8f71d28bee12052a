"""Moments of a network's features, summed on its device without storing the features."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isrlearn.core.moments import Moments
from isrlearn.torch.batches import UNKNOWN
from isrlearn.torch.evaluate import check_classes, find_task
from isrlearn.torch.features import feature_batches

Cell = tuple[int, int]  # class and environment


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

    They are summed in float64 on the device of the batches.

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
        The same as ``Moments.from_data`` of the extracted features.

    Examples
    --------
    >>> import torch
    >>> from isrlearn.torch import torch_moments
    >>> batch = torch.ones(4, 3), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, -1])
    >>> moments = torch_moments(torch.nn.Sequential(torch.nn.Linear(3, 2)), [batch], "0")
    >>> moments.count.tolist(), moments.total()[0]
    ([[1.0, 1.0], [1.0, 0.0]], 4.0)
    """
    if order not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order!r}")
    regression = find_task(task).name == "regression"
    cells: dict[Cell, tuple[int, Tensor]] = {}  # number of rows and their mean
    scatters: dict[Any, Tensor] = {}  # of each cell, or if pooled of known and of unknown ones
    for features, y, environments in feature_batches(model, loader, layer, device, progress):
        # MPS has no float64.
        place = torch.device("cpu") if features.device.type == "mps" else features.device
        rows = features.to(place, torch.float64)
        if regression:
            rows = torch.cat([rows, _targets(y, rows)], dim=1)
        classes = torch.zeros_like(environments) if regression else check_classes(y)
        codes = torch.stack([classes, environments], dim=1).to(place)
        deviations: dict[Any, list[Tensor]] = {}
        for k, e in torch.unique(codes, dim=0).tolist():
            part = rows[(codes == codes.new_tensor([k, e])).all(dim=1)]
            cells[k, e], added = _merged(cells.get((k, e)), part)
            deviations.setdefault((e != UNKNOWN) if pooled else (k, e), []).append(added)
        for key, parts in deviations.items() if order == 2 else ():
            D = torch.cat(parts)
            scatters.setdefault(key, D.new_zeros(D.shape[1], D.shape[1])).addmm_(D.T, D)
    return _moments(cells, scatters, order, pooled)


def _targets(y: Tensor, rows: Tensor) -> Tensor:
    """Targets of a regression as columns, (n, t)."""
    targets = y.to(rows).reshape(len(rows), -1)
    if not torch.isfinite(targets).all():
        raise ValueError("targets of a batch hold NaN or infinity; leave those samples out")
    return targets


def _merged(old: tuple[int, Tensor] | None, rows: Tensor) -> tuple[tuple[int, Tensor], Tensor]:
    """Count and mean of a cell with more rows, and the deviations they add to its scatter."""
    n, mean = len(rows), rows.mean(dim=0)
    # The second round averages what rounding left of the first, for data far from the origin.
    mean += (rows - mean).mean(dim=0)
    if old is None:
        return (n, mean), rows - mean
    total, step = old[0] + n, mean - old[1]
    # Chan's merge: the step between the means adds to the scatter as one more row does.
    between = step * (old[0] * n / total) ** 0.5
    return (total, old[1] + step * (n / total)), torch.cat([rows - mean, between[None]])


def _moments(
    cells: dict[Cell, tuple[int, Tensor]], scatters: dict[Any, Tensor], order: int, pooled: bool
) -> Moments:
    """The sums as NumPy arrays."""
    classes, environments = (np.unique(codes) for codes in zip(*cells, strict=True))
    shape, d = (len(classes), len(environments)), len(next(iter(cells.values()))[1])
    count, mean = np.zeros(shape), np.zeros((*shape, d))
    scatter = np.zeros((*shape, d, d)) if order == 2 and not pooled else None
    for (k, e), (n, centre) in cells.items():
        at = np.searchsorted(classes, k), np.searchsorted(environments, e)
        count[at], mean[at] = n, centre.cpu()
        if scatter is not None:
            scatter[at] = scatters[k, e].cpu()

    def part(columns: slice, known: bool, names: Any, rest: Moments | None = None) -> Moments:
        inner = None if scatter is None else scatter[:, columns]
        if order == 2 and pooled:
            inner = scatters.get(known, torch.zeros(d, d, dtype=torch.float64)).cpu().numpy()
        return Moments(classes, names, count[:, columns], mean[:, columns], inner, rest)

    # The code of unknown environments is the smallest.
    first = int(environments[0] == UNKNOWN)
    unlabelled = part(slice(0, 1), False, np.array(["unlabelled"])) if first else None
    return part(slice(first, None), True, environments[first:], unlabelled)
