"""Features of a trained network: the inputs of one of its linear layers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isrlearn.io.files import atomic_write, check_writable
from isrlearn.torch.batches import UNKNOWN, batches, evaluating, model_device, outputs_of
from isrlearn.torch.layer import captured


class Features(NamedTuple):
    """Features of samples with their targets and environments, as NumPy arrays.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Features; a read-only memory map if they went to a file.
    y : ndarray of shape (n,) or (n, t)
        Classes or targets, as the loader gave them.
    environments : ndarray of shape (n,)
        Integer codes; floats with NaN where some are unknown, as the estimators expect.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.torch import Features
    >>> Features(np.zeros((2, 3)), np.array([0, 1]), np.array([0, 0])).X.shape
    (2, 3)
    """

    X: NDArray[Any]  # (n, d)
    y: NDArray[Any]  # (n,)
    environments: NDArray[Any]  # (n,)


def extract_features(
    model: nn.Module,
    loader: Iterable[Any],
    layer: str = "fc",
    *,
    out: str | os.PathLike[str] | None = None,
    device: Any = None,
    progress: bool = False,
) -> Features:
    """Inputs of a linear layer for every sample of a loader, in the loader's order.

    The model runs in evaluation mode without gradients, batch by batch; its modules are left in
    the mode they were in. The layer must be called once in a forward pass and get one row a
    sample: in a sequence model, name the layer after the pooling.

    Parameters
    ----------
    model : torch.nn.Module
    loader : iterable
        Yields ``(x, y, environment)``. An `x` that is a tuple goes to the model by place, a
        mapping by name. Environments are integer codes, -1 where unknown.
    layer : str, default="fc"
        Dotted path of an ``nn.Linear``.
    out : path, optional
        A .npy file to write the features to as they come, so that they need not fit in memory.
        It is complete or not there at all.
    device : torch.device or str, optional
        Where batches go; default: where the model is.
    progress : bool, default=False
        Draw a bar, if on a terminal.

    Returns
    -------
    Features
        Of float32, or float64 where the network is.

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
    labels: list[tuple[NDArray, NDArray]] = []
    parts = _numpy_batches(model, loader, layer, device, progress, labels)
    if out is None:
        X = np.concatenate(list(parts))
    else:
        path = Path(out)
        if path.suffix != ".npy":
            raise ValueError(f"out must name a .npy file; got {os.fspath(out)!r}")
        check_writable(path)
        with atomic_write(path) as file:
            _write_rows(file, parts)
        X = np.load(path, mmap_mode="r")
    y = np.concatenate([part for part, _ in labels])
    return Features(X, y, known_environments(np.concatenate([part for _, part in labels])))


def feature_batches(
    model: nn.Module, loader: Iterable[Any], layer: str, device: Any, progress: bool
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Features, targets and environments of each batch, on the device."""
    with captured(model, layer) as inputs, evaluating(model):
        places = batches(loader, model_device(model, device), shown=progress)
        for number, batch in enumerate(places):
            outputs_of(model, batch.x)
            features = inputs.take(len(batch.environments))
            if not torch.isfinite(features).all():
                bad = int((~torch.isfinite(features)).any(dim=1).sum())
                raise ValueError(
                    f"the inputs of layer {layer!r} are NaN or infinite in {bad} of "
                    f"{len(features)} samples of batch {number} (counted from 0)"
                )
            yield features, batch.y, batch.environments


def known_environments(codes: NDArray) -> NDArray:
    """Codes as the estimators want them: NaN, not -1, where the environment is unknown."""
    unknown = codes == UNKNOWN
    return np.where(unknown, np.nan, codes) if unknown.any() else codes


def _numpy_batches(
    model: nn.Module,
    loader: Iterable[Any],
    layer: str,
    device: Any,
    progress: bool,
    labels: list[tuple[NDArray, NDArray]],
) -> Iterator[NDArray]:
    """Features of each batch; its targets and environments are put into `labels`."""
    for features, y, environments in feature_batches(model, loader, layer, device, progress):
        labels.append((y.cpu().numpy(), environments.cpu().numpy()))
        # NumPy knows no bfloat16, and half precision is too little for moments.
        kind = torch.float64 if features.dtype == torch.float64 else torch.float32
        yield features.to("cpu", kind).numpy()


def _write_rows(file: BinaryIO, parts: Iterator[NDArray]) -> None:
    """A .npy file of all the parts one below the other, whose number is known at the end only."""
    first = next(parts)
    start = _write_header(file, first, 0)
    rows = 0
    for part in _chain(first, parts):
        file.write(np.ascontiguousarray(part).data)
        rows += len(part)
    file.seek(0)
    # NumPy leaves room in the header for a first axis of any length.
    if _write_header(file, first, rows) != start:
        raise RuntimeError("this version of NumPy writes .npy headers that do not grow")


def _write_header(file: BinaryIO, like: NDArray, rows: int) -> int:
    """Write the header of a file of rows like these; return where it ends."""
    shape = (rows, like.shape[1])
    header = {"descr": like.dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.tell()


def _chain(first: NDArray, rest: Iterator[NDArray]) -> Iterator[NDArray]:
    yield first
    yield from rest
