"""What loaders yield, checked and brought to the model's device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from isrlearn._progress import progress

#: The code of an environment that is not known.
UNKNOWN = -1


class Batch(NamedTuple):
    """Inputs, targets and environments of the same samples, on one device."""

    x: Any  # a tensor, or a tuple or mapping of tensors
    y: Tensor  # (n,) int64 classes or float targets, or (n, t) targets
    environments: Tensor  # (n,) int64, -1 where unknown


def model_device(model: nn.Module, device: Any = None) -> torch.device:
    """The device given, or that of the model's first parameter."""
    if device is not None:
        return torch.device(device)
    parameter = next(model.parameters(), None)
    return torch.device("cpu") if parameter is None else parameter.device


def batches(
    loader: Iterable[Any], device: torch.device, *, shown: bool = False, what: str = "batches"
) -> Iterator[Batch]:
    """Checked batches of a loader, with a progress bar if `shown`."""
    try:
        total = len(loader)  # type: ignore[arg-type]
    except TypeError:
        total = None
    number = -1
    with progress(total, what, shown=shown) as advance:
        for number, item in enumerate(loader):
            yield checked(item, number, device)
            advance(1)
    if number < 0:
        raise ValueError(
            "the loader yields no batches; it must give at least one, and start anew whenever it "
            "is iterated (a generator does not)"
        )


def checked(item: Any, number: int, device: torch.device) -> Batch:
    """One thing a loader yielded as a batch on a device."""
    if not isinstance(item, tuple | list) or len(item) != 3:
        length = f" of {len(item)}" if isinstance(item, tuple | list) else ""
        raise ValueError(
            f"the loader must yield (x, y, environment); batch {number} is a "
            f"{type(item).__name__}{length}"
        )
    x, y, environments = item
    y, environments = _column(y, "y", number), _column(environments, "environment", number)
    if environments.ndim != 1 or environments.is_floating_point() or environments.is_complex():
        raise ValueError(
            f"environment must be one integer code a sample, -1 where unknown; batch {number} has "
            f"{environments.dtype} of shape {tuple(environments.shape)}"
        )
    if len(environments) and int(environments.min()) < UNKNOWN:
        raise ValueError(
            f"environment codes must be 0, 1, … or -1 for unknown; batch {number} has "
            f"{int(environments.min())}"
        )
    sizes = {"x": _rows(x), "y": len(y), "environment": len(environments)}
    if len(set(sizes.values()) - {None}) != 1:
        raise ValueError(f"batch {number} has different numbers of samples: {sizes}")
    y = y if y.is_floating_point() else y.long()
    return Batch(_to(x, device), _to(y, device), _to(environments.long(), device))


def _column(values: Any, name: str, number: int) -> Tensor:
    """A tensor with one row a sample; (n, 1) is (n,)."""
    try:
        column = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"{name} must be a tensor of numbers, one a sample; batch {number} has a "
            f"{type(values).__name__}. Turn names into integer codes first."
        ) from None
    if not column.ndim:
        raise ValueError(f"{name} must have one number a sample; batch {number} has one in all")
    return column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column


def _rows(x: Any) -> int | None:
    """Number of samples of inputs; None where it cannot be told."""
    if isinstance(x, Mapping):
        x = tuple(x.values())
    if isinstance(x, tuple | list):
        return _rows(x[0]) if x else None
    return len(x) if isinstance(x, Tensor) and x.ndim else None


def _to(x: Any, device: torch.device) -> Any:
    """Tensors, and tuples and mappings of them, on a device."""
    if isinstance(x, Mapping):
        return {name: _to(value, device) for name, value in x.items()}
    if isinstance(x, tuple | list):
        return tuple(_to(value, device) for value in x)
    return x.to(device, non_blocking=True) if hasattr(x, "to") else x


def outputs_of(model: nn.Module, x: Any) -> Tensor:
    """What the model says of inputs: a mapping goes in by name, a tuple by place."""
    if isinstance(x, Mapping):
        outputs = model(**x)
    else:
        outputs = model(*x) if isinstance(x, tuple) else model(x)
    # The model classes of the transformers library return their logits under this name.
    outputs = getattr(outputs, "logits", outputs)
    if not isinstance(outputs, Tensor):
        raise ValueError(
            f"the model returns a {type(outputs).__name__}; it must return a tensor of outputs, "
            "or an object with .logits: wrap it in a module that does"
        )
    return outputs


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """No gradients, evaluation mode; afterwards every module is in the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
