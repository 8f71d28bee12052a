"""Batches of a loader, the network that they pass through, and its outputs, all checked."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import length_hint
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isrlearn.progress import progress
from isrlearn.validation import check_choice

#: The code of an unknown environment.
UNKNOWN = -1


class Batch(NamedTuple):
    """Inputs, targets and environments of the same samples, on one device."""

    x: Any  # a tensor, or a tuple or mapping of tensors
    y: Tensor  # (n,) int64 classes or float targets, or (n, t) targets
    environments: Tensor  # (n,) int64, -1 where unknown

    def arrays(self) -> tuple[NDArray, NDArray]:
        """Targets and environments as the estimators expect them: NaN, not -1, where unknown."""
        codes = self.environments.cpu().numpy()
        unknown = codes == UNKNOWN
        return self.y.cpu().numpy(), np.where(unknown, np.nan, codes) if unknown.any() else codes


def batches(loader: Iterable[Any], device: torch.device, *, shown: bool = False) -> Iterator[Batch]:
    """Checked batches of a loader on a device, with a progress bar if `shown`."""
    number = -1
    with progress(length_hint(loader) or None, "batches", shown=shown) as advance:
        for number, item in enumerate(loader):
            yield _checked(item, number, device)
            advance(1)
    if number < 0:
        raise ValueError(
            "the loader yields no batches; it must yield at least one, and start again whenever it "
            "is iterated over (a generator does not)"
        )


def _checked(item: Any, number: int, device: torch.device) -> Batch:
    """One item of a loader as a batch on a device."""
    if not isinstance(item, tuple | list) or len(item) != 3:
        length = f" of {len(item)}" if isinstance(item, tuple | list) else ""
        raise ValueError(
            f"the loader must yield (x, y, environment); batch {number} is a "
            f"{type(item).__name__}{length}"
        )
    x, y, environments = item
    y, environments = _column(y, "y", number), _column(environments, "environment", number)
    integers = not environments.is_floating_point() and not environments.is_complex()
    # As int64: -1 would wrap around in a comparison with unsigned codes.
    if environments.ndim != 1 or not integers or (environments.long() < UNKNOWN).any():
        raise ValueError(
            "environment must be one integer code per sample, 0, 1, … or -1 where unknown; batch "
            f"{number} has {environments.flatten()[:5].tolist()}… of type {environments.dtype} and "
            f"shape {tuple(environments.shape)}"
        )
    sizes = {"x": _n_samples(x), "y": len(y), "environment": len(environments)}
    if len(set(sizes.values()) - {None}) != 1:
        raise ValueError(f"batch {number} has different numbers of samples: {sizes}")
    if not y.is_floating_point():
        y = y.long()
    elif y.dtype == torch.bfloat16:  # unknown to NumPy
        y = y.float()
    return Batch(*(_to(part, device) for part in (x, y, environments.long())))


def _column(values: Any, name: str, number: int) -> Tensor:
    """A tensor with one row per sample; (n, 1) becomes (n,)."""
    try:
        column = torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"{name} must be a tensor of numbers, one per sample; batch {number} has a "
            f"{type(values).__name__}. Turn names into integer codes first."
        ) from None
    if not column.ndim:
        raise ValueError(f"{name} must have one number per sample; batch {number} has a scalar")
    return column[:, 0] if column.ndim == 2 and column.shape[1] == 1 else column


def _n_samples(x: Any) -> int | None:
    """Number of samples in inputs; None if it is not known."""
    while isinstance(x, Mapping | tuple | list):
        x = next(iter(x.values() if isinstance(x, Mapping) else x), None)
    return len(x) if isinstance(x, Tensor) and x.ndim else None


def _to(x: Any, device: torch.device) -> Any:
    """Tensors, and tuples and mappings of tensors, on a device."""
    if isinstance(x, Mapping):
        return {name: _to(value, device) for name, value in x.items()}
    if isinstance(x, tuple | list):
        return tuple(_to(value, device) for value in x)
    return x.to(device, non_blocking=True) if hasattr(x, "to") else x


def model_device(model: nn.Module, device: Any = None) -> torch.device:
    """The device given, or that of the model's first parameter."""
    own = (parameter.device for parameter in model.parameters())
    return torch.device(next(own, "cpu") if device is None else device)


def outputs_of(model: nn.Module, x: Any) -> Tensor:
    """Outputs of the model: a mapping is passed by name, a tuple by position."""
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
    # Models that squeeze their outputs return a scalar for a batch of one sample.
    return torch.atleast_1d(outputs)


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards every module is in its former mode."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        # By the method, parents first: some layers merge or split their weights in it.
        for part, mode in modes:
            part.train(mode)


def evaluated(
    model: nn.Module, loader: Iterable[Any], device: Any, *, shown: bool
) -> Iterator[tuple[Batch, Tensor]]:
    """Batches and the model's outputs, in evaluation mode without gradients."""
    with evaluating(model):
        for batch in batches(loader, model_device(model, device), shown=shown):
            yield batch, outputs_of(model, batch.x)


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
