"""A linear layer of a network, found by name, and what goes into it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn


def linear_layer(model: nn.Module, layer: str) -> nn.Linear:
    """The ``nn.Linear`` at a dotted path."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"model must be a torch.nn.Module; got a {type(model).__name__}")
    if hasattr(model, "_orig_mod"):
        raise ValueError("the model is compiled: pass the one that torch.compile was given")
    modules = dict(model.named_modules(remove_duplicate=False))
    known = [name for name, module in modules.items() if name and isinstance(module, nn.Linear)]
    hint = f"its linear layers are {', '.join(map(repr, known))}" if known else "it has none"
    if layer not in modules:
        raise ValueError(f"the model has no layer {layer!r}; {hint}")
    found = modules[layer]
    if not isinstance(found, nn.Linear):
        raise ValueError(
            f"layer {layer!r} is a {type(found).__name__}, and ISR needs an nn.Linear; {hint}"
        )
    return found


class Captured:
    """Inputs of a layer in the last forward pass."""

    def __init__(self, layer: str) -> None:
        self.layer = layer
        self.inputs: list[Tensor] = []

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Remember the inputs of this call."""
        self.inputs.append(args[0] if args else kwargs["input"])

    def take(self, n: int) -> Tensor:
        """The inputs (n, d) since the last time, if the layer was called once."""
        inputs, self.inputs = self.inputs, []
        if len(inputs) != 1:
            times = "not" if not inputs else f"{len(inputs)} times"
            raise ValueError(
                f"layer {self.layer!r} was {times} called in a forward pass; it must be called "
                "once a sample, for its inputs to be the sample's features"
            )
        features = inputs[0]
        if features.ndim != 2 or len(features) != n:
            raise ValueError(
                f"layer {self.layer!r} gets inputs of shape {tuple(features.shape)} for {n} "
                "samples; it must get one row of features a sample. In a sequence model name the "
                "layer after the pooling, or pool the tokens first."
            )
        return features


@contextmanager
def captured(model: nn.Module, layer: str) -> Iterator[Captured]:
    """What goes into a layer, for as long as the context lasts."""
    inputs = Captured(layer)
    handle = linear_layer(model, layer).register_forward_pre_hook(inputs, with_kwargs=True)
    try:
        yield inputs
    finally:
        handle.remove()
