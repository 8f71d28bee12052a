"""Features of a trained network: the inputs of one of its linear layers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isrlearn.datasets import EnvironmentData
from isrlearn.io.files import atomic_write, check_writable
from isrlearn.torch.batches import (
    UNKNOWN,
    batches,
    captured,
    evaluating,
    model_device,
    outputs_of,
)


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
    targets, environments = [], []

    def rows() -> Iterator[NDArray]:
        for features, y, e in feature_batches(model, loader, layer, device, progress):
            targets.append(y.cpu().numpy())
            environments.append(e.cpu().numpy())
            # NumPy has no bfloat16, and half precision is too little for moments.
            kind = torch.float64 if features.dtype == torch.float64 else torch.float32
            yield features.to("cpu", kind).numpy()

    if out is None:
        X = np.concatenate(list(rows()))
    else:
        path = Path(out)
        if path.suffix != ".npy":
            raise ValueError(f"out must name a .npy file; got {os.fspath(out)!r}")
        check_writable(path)
        with atomic_write(path) as file:
            _write_rows(file, rows())
        X = np.load(path, mmap_mode="r")
    codes = known_environments(np.concatenate(environments))
    return EnvironmentData(X, np.concatenate(targets), codes)


def feature_batches(
    model: nn.Module, loader: Iterable[Any], layer: str, device: Any, progress: bool
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Features, targets and environments of each batch, on the device."""
    with captured(model, layer) as inputs, evaluating(model):
        places = batches(loader, model_device(model, device), shown=progress)
        for number, batch in enumerate(places):
            outputs_of(model, batch.x)
            features = inputs(len(batch.environments))
            if not torch.isfinite(features).all():
                bad = int((~torch.isfinite(features)).any(dim=1).sum())
                raise ValueError(
                    f"the inputs of layer {layer!r} are NaN or infinite in {bad} of "
                    f"{len(features)} samples of batch {number} (counted from 0)"
                )
            yield features, batch.y, batch.environments


def known_environments(codes: NDArray) -> NDArray:
    """The codes as the estimators expect them: NaN, not -1, where the environment is unknown."""
    unknown = codes == UNKNOWN
    return np.where(unknown, np.nan, codes) if unknown.any() else codes


def _write_rows(file: BinaryIO, parts: Iterable[NDArray]) -> None:
    """Write the parts, one below the other, as a .npy file."""
    n = 0
    for part in parts:
        header = {"descr": part.dtype.str, "fortran_order": False}
        if not file.tell():
            np.lib.format.write_array_header_1_0(file, header | {"shape": part.shape})
        file.write(np.ascontiguousarray(part).data)
        n += len(part)
    # The number of rows is known now. NumPy pads the header for a first axis of any length.
    file.seek(0)
    np.lib.format.write_array_header_1_0(file, header | {"shape": (n, part.shape[1])})
