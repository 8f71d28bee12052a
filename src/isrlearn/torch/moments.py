"""Moments of a network's features, summed on its device without storing a feature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isrlearn.core._checks import check_reading
from isrlearn.core.moments import Moments
from isrlearn.torch.batches import UNKNOWN
from isrlearn.torch.features import feature_batches
from isrlearn.torch.task import check_classes, find_task

_BOTH = "features and targets must come with one row a sample"


class TorchMoments:
    """Running moments of every (class, environment) cell, in float64, where the batches are.

    Parameters
    ----------
    order : {1, 2}, default=2
        1 keeps means only.
    pooled : bool, default=False
        Keep one scatter summed over the cells instead of one a cell.
    task : {"classification", "regression"}, default="classification"
        For regression all samples are in one class, and targets are appended to the features as
        last columns, as `ISRRegressor` expects.

    Examples
    --------
    >>> import torch
    >>> from isrlearn.torch import TorchMoments
    >>> sums = TorchMoments()
    >>> for value in (1.0, 3.0):
    ...     sums.update(torch.full((2, 1), value), torch.zeros(2).long(), torch.tensor([0, 1]))
    >>> sums.moments().mean[0].tolist(), sums.moments().scatter[0, :, 0, 0].tolist()
    ([[2.0], [2.0]], [2.0, 2.0])
    """

    def __init__(
        self, *, order: int = 2, pooled: bool = False, task: str = "classification"
    ) -> None:
        check_reading(order, None)
        self.order, self.pooled, self.task = order, pooled, find_task(task).name
        self._slots: dict[tuple[int, int], int] = {}  # (class, environment) -> slot
        self._count = torch.zeros(0)  # (slots,)
        self._mean = torch.zeros(0, 0)  # (slots, d)
        self._scatter = torch.zeros(0, 0, 0)  # (slots, d, d), or (2, d, d): known, unknown

    def update(self, features: Tensor, y: Tensor, environments: Tensor) -> None:
        """Add a batch.

        Parameters
        ----------
        features : Tensor of shape (n, d)
        y : Tensor of shape (n,) or, for regression, (n,) or (n, t)
            Integer classes, or targets.
        environments : Tensor of shape (n,)
            Integer codes, -1 where unknown.
        """
        if features.ndim != 2 or not len(features) == len(y) == len(environments):
            shapes = [tuple(t.shape) for t in (features, y, environments)]
            raise ValueError(f"{_BOTH}; got shapes {shapes[0]}, {shapes[1]} and {shapes[2]}")
        if not len(features):
            return
        rows, classes = self._rows(features.detach(), y.detach())
        cells, place, count = torch.unique(
            torch.stack([classes, environments.to(classes)], dim=1),
            dim=0,
            return_inverse=True,
            return_counts=True,
        )
        names = [(int(k), int(e)) for k, e in cells.tolist()]
        slots = self._slots_of(names, rows)
        n = count.to(rows)
        mean = _centre(rows, place, n)
        if not torch.isfinite(mean).all():
            raise ValueError("features or targets of a batch hold NaN or infinity")
        if self.order == 2:
            self._add_scatter(rows, place, slots, names)
        self._merge(slots, names, n, mean)

    def moments(self) -> Moments:
        """The moments so far, as NumPy arrays."""
        if not self._slots:
            raise ValueError("no batch has been added yet")
        classes = np.array(sorted({k for k, _ in self._slots}))
        known = np.array(sorted({e for _, e in self._slots if e != UNKNOWN}), dtype=int)
        inner = self._part(classes, known)
        if not any(e == UNKNOWN for _, e in self._slots):
            return Moments(classes, known, *inner)
        outer = self._part(classes, np.array([UNKNOWN]))
        rest = Moments(classes, np.array(["unlabelled"]), *outer)
        return Moments(classes, known, *inner, unlabelled=rest)

    def _rows(self, features: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Rows to sum, in a float64 copy, and the class of each."""
        device = features.device
        if device.type == "mps":  # knows no float64
            device = torch.device("cpu")
        rows = features.to(device, torch.float64, copy=True)
        if self.task == "classification":
            return rows, check_classes(y).to(device, torch.long)
        targets = y.to(rows).reshape(len(rows), -1)
        one_class = torch.zeros(len(rows), dtype=torch.long, device=device)
        return torch.cat([rows, targets], dim=1), one_class

    def _slots_of(self, names: list[tuple[int, int]], rows: Tensor) -> Tensor:
        """Slot of each cell; new cells get new ones."""
        d = rows.shape[1]
        if self._slots and self._mean.shape[1] != d:
            raise ValueError(f"features had {self._mean.shape[1]} columns before and have {d} now")
        for name in names:
            self._slots.setdefault(name, len(self._slots))
        if len(self._slots) > len(self._mean):
            self._grow(len(self._slots) - len(self._mean), d, rows)
        return torch.tensor([self._slots[name] for name in names], device=rows.device)

    def _grow(self, more: int, d: int, like: Tensor) -> None:
        """Make room for more slots."""
        first = not len(self._mean)
        self._count = _longer(self._count, like.new_zeros(more))
        self._mean = _longer(self._mean, like.new_zeros(more, d))
        if self.order == 2 and not self.pooled:
            self._scatter = _longer(self._scatter, like.new_zeros(more, d, d))
        elif self.order == 2 and first:
            self._scatter = like.new_zeros(2, d, d)

    def _targets(self, slots: Tensor, names: list[tuple[int, int]]) -> Tensor:
        """Where each cell's scatter goes: its own, or one for known and one for unknown."""
        if not self.pooled:
            return slots
        return torch.tensor([int(e == UNKNOWN) for _, e in names], device=slots.device)

    def _add_scatter(
        self, rows: Tensor, place: Tensor, slots: Tensor, names: list[tuple[int, int]]
    ) -> None:
        """Add the scatter of rows about their own cell's mean in the batch."""
        goal = self._targets(slots, names)[place]
        for target in torch.unique(goal).tolist():
            part = rows[goal == target]
            self._scatter[target] += part.T @ part

    def _merge(self, slots: Tensor, names: list[tuple[int, int]], n: Tensor, mean: Tensor) -> None:
        """Merge counts and means, and add the scatter between old and new means (Chan)."""
        before = self._count[slots]
        total = before + n
        step = mean - self._mean[slots]
        if self.order == 2:
            weighted = step * (before * n / total)[:, None]
            for i, target in enumerate(self._targets(slots, names).tolist()):
                if before[i] > 0:
                    self._scatter[target] += torch.outer(weighted[i], step[i])
        self._count[slots] = total
        self._mean[slots] += step * (n / total)[:, None]

    def _part(
        self, classes: NDArray, environments: NDArray
    ) -> tuple[NDArray, NDArray, NDArray | None]:
        """Count, mean and scatter of the cells of these environments."""
        shape, d = (len(classes), len(environments)), self._mean.shape[1]
        count, mean = np.zeros(shape), np.zeros((*shape, d))
        scatter = None
        if self.order == 2 and self.pooled:
            unknown = int(environments.tolist() == [UNKNOWN])
            scatter = self._scatter[unknown].cpu().numpy().copy()
        elif self.order == 2:
            scatter = np.zeros((*shape, d, d))
        for i, k in enumerate(classes.tolist()):
            for j, e in enumerate(environments.tolist()):
                slot = self._slots.get((k, e))
                if slot is not None:
                    count[i, j] = self._count[slot].item()
                    mean[i, j] = self._mean[slot].cpu().numpy()
                    if scatter is not None and not self.pooled:
                        scatter[i, j] = self._scatter[slot].cpu().numpy()
        return count, mean, scatter


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

    Parameters
    ----------
    model, loader, layer, device, progress
        See `extract_features`.
    order, pooled, task
        See `TorchMoments`.

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
    sums = TorchMoments(order=order, pooled=pooled, task=task)
    for features, y, environments in feature_batches(model, loader, layer, device, progress):
        sums.update(features, y, environments)
    return sums.moments()


def _centre(rows: Tensor, place: Tensor, n: Tensor) -> Tensor:
    """Subtract each place's mean from its rows, in place; return the means."""
    mean = rows.new_zeros(len(n), rows.shape[1])
    # The second round averages what rounding left of the first, for data far from the origin.
    for _ in range(2):
        step = torch.zeros_like(mean).index_add_(0, place, rows) / n[:, None]
        mean += step
        rows -= step[place]
    return mean


def _longer(old: Tensor, more: Tensor) -> Tensor:
    """Rows added to a tensor; an empty one knows neither width nor device."""
    return torch.cat([old, more]) if len(old) else more
