"""The linear layer of a network: where it is, what goes into it, what it computes, and its copy."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isrlearn.torch.batches import evaluating

#: Sizes of the random rows on which a layer is compared with its weights, and the error, relative
#: to the largest term, that counts as rounding (more for half precision).
_SIZES, _ROUNDING = 8 * (0.1, 1.0, 10.0), 2e-3
#: Rows that are passed through a layer, or compared with each other, at a time.
_BLOCK = 512


def linear_layer(model: nn.Module, layer: str) -> Any:
    """The layer at a dotted path: an ``nn.Linear``, or a layer that wraps or extends one."""
    if not isinstance(model, nn.Module):
        raise ValueError(f"model must be a torch.nn.Module; got a {type(model).__name__}")
    modules = dict(model.named_modules(remove_duplicate=False))
    found = modules.get(layer)
    scripted = any(isinstance(module, torch.jit.ScriptModule) for module in (model, found))
    if scripted or hasattr(model, "_orig_mod"):
        raise ValueError("the model is compiled: pass the one given to torch.compile or torch.jit")
    outer = str(layer).rpartition(".")[0]
    if outer and _is_linear(modules.get(outer)):
        raise ValueError(f"layer {layer!r} is a part of the linear layer {outer!r}: name that one")
    if not _is_linear(found):
        known = [name for name, module in modules.items() if name and _is_linear(module)]
        hint = f"its linear layers are {', '.join(map(repr, known))}" if known else "it has none"
        wrong = "not in the model" if found is None else f"a {type(found).__name__}"
        raise ValueError(f"layer {layer!r} is {wrong}; {hint}")
    return found


def _is_linear(module: Any) -> bool:
    """Whether a module has the interface of ``nn.Linear``, as adapters around one have."""
    return hasattr(module, "in_features") and hasattr(module, "out_features")


@contextmanager
def captured(model: nn.Module, layer: str) -> Iterator[Callable[[int], Tensor]]:
    """A function that returns the inputs (n, d) of a layer for the n samples just passed."""
    inputs: list[Tensor] = []

    def remember(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # A copy: the network may overwrite the tensor after the layer has read it.
        inputs.append((args[0] if args else kwargs["input"]).clone())

    def features(n: int) -> Tensor:
        if len(inputs) != 1:
            raise ValueError(
                f"layer {layer!r} was called {len(inputs)} times in a forward pass; it must be "
                "called once, so that its inputs are the features of the samples"
            )
        found = inputs.pop()
        if found.layout != torch.strided:
            raise ValueError(
                f"layer {layer!r} gets sparse inputs ({found.layout}): make them dense before it"
            )
        if found.ndim != 2 or len(found) != n:
            raise ValueError(
                f"layer {layer!r} gets inputs of shape {tuple(found.shape)} for {n} samples; it "
                "must get one row of features per sample. In a sequence model name the layer after "
                "the pooling, or pool the tokens first."
            )
        return found

    with linear_layer(model, layer).register_forward_pre_hook(remember, with_kwargs=True):
        yield features


@contextmanager
def deciding(model: nn.Module, layer: str, *, exact: bool = False) -> Iterator[None]:
    """A context that checks that a layer's outputs determine the model's, or are equal to them."""
    logits = torch.empty(0)

    def remember(module: nn.Module, args: Any, outputs: Tensor) -> None:
        nonlocal logits
        logits = outputs.double()

    def compare(module: nn.Module, args: Any, outputs: Any) -> None:
        values = getattr(outputs, "logits", outputs)
        if not isinstance(values, Tensor) or values.numel() != logits.numel() or not len(logits):
            return  # other layers follow
        values, best = values.double().reshape(logits.shape), logits.argmax(dim=1, keepdim=True)
        if exact:
            a, b = (values - logits).abs(), torch.tensor(-1)
        elif logits.shape[1] == 1:
            # Samples must have the same order; some of them, because their pairs are many.
            a, b = (v[:_BLOCK] - v[:_BLOCK].T for v in (logits, values))
        else:
            a, b = (v.gather(1, best) - v for v in (logits, values))
        wrong = int(((a > 0.01 * logits.abs().max()) & (b < 0)).any(dim=1).sum())
        if wrong:
            raise ValueError(
                f"the outputs of layer {layer!r} do not determine the prediction of {wrong} of "
                f"{len(logits)} samples: an adapter adds to them, or a regression scales them, for "
                "example. Merge that, or name the layer that computes the network's outputs"
            )

    found = linear_layer(model, layer)
    with found.register_forward_hook(remember), model.register_forward_hook(compare):
        yield


def weights_of(model: nn.Module, layer: str) -> tuple[NDArray, NDArray]:
    """Weight (m, d) and bias (m,) of what a layer computes, if it can be replaced.

    A layer whose weight is computed from other parameters (LoRA, a weight norm) will be merged
    into an ``nn.Linear``; any other keeps its class, so that its state dict keeps its meaning.
    """
    found = linear_layer(model, layer)
    kind = f"layer {layer!r}, a {type(found).__name__},"
    if _in_place(found):
        _check_own(model, layer, found)
    elif set(found.state_dict()) <= {"weight", "bias"}:
        raise ValueError(
            f"{kind} has a forward of its own, so that new weights would mean something else in "
            "it: replace it by an nn.Linear first"
        )
    try:
        bias = _outputs(found, np.zeros((1, found.in_features)))[0]
        if type(found).forward is nn.Linear.forward:
            with evaluating(found):  # a spectral norm in training mode changes whenever it is read
                weight = _array(found.weight)
        else:
            d = found.in_features
            rows = (np.eye(min(_BLOCK, d - i), d, k=i) for i in range(0, d, _BLOCK))
            weight = np.concatenate([_outputs(found, block) - bias for block in rows]).T
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        raise ValueError(f"{kind} cannot be applied to rows of features: {error}") from error
    if not _computes(found, weight, bias):
        raise ValueError(
            f"{kind} does not compute x @ weight.T + bias: it normalises its inputs, for example, "
            "or a hook changes its outputs. Only an affine layer can be patched"
        )
    return weight, bias


def with_weights(model: nn.Module, layer: str, weight: NDArray, bias: NDArray) -> nn.Module:
    """A copy of the model whose layer computes ``x @ weight.T + bias``."""
    try:
        copy = deepcopy(model)
    except RuntimeError as error:
        raise ValueError(f"the model cannot be copied: {error}") from error
    old = found = copy.get_submodule(layer)
    if not _in_place(old):
        found = nn.Linear(*weight.shape[::-1]).to(_place(old)).train(old.training)
        for name, module in list(copy.named_modules(remove_duplicate=False)):
            if module is old:
                copy.set_submodule(name, found)
    with torch.no_grad():
        for parameter, values in zip((found.weight, found.bias), (weight, bias), strict=True):
            parameter.copy_(torch.tensor(values))
    if not _computes(found, weight, bias):
        raise ValueError(
            f"{found.weight.dtype} cannot hold the new weights of layer {layer!r}: they are as "
            f"large as {max(np.abs(weight).max(), np.abs(bias).max()):.3g}, or too small. Convert "
            "the model to float32 first, by model.float()"
        )
    return copy


def _in_place(found: Any) -> bool:
    """Whether new numbers in the parameters of a layer are all that it takes to replace it."""
    own = type(found).forward is nn.Linear.forward
    return own and {"weight", "bias"} <= found._parameters.keys()


def _check_own(model: nn.Module, layer: str, found: nn.Linear) -> None:
    """Raise unless a layer has a bias, and no other module has its parameters."""
    if found.bias is None:
        raise ValueError(
            f"layer {layer!r} has no bias, and without one the removal would shift every output: "
            "replace it by an nn.Linear with the same weight and a bias of zero first"
        )
    # Parameters of modules that were tied, or are views of the same memory, share a storage.
    stores = {p.untyped_storage().data_ptr() for p in (found.weight, found.bias)} - {0}
    for name, module in model.named_modules():
        for key, parameter in module.named_parameters(recurse=False):
            if module is not found and parameter.untyped_storage().data_ptr() in stores:
                raise ValueError(
                    f"layer {layer!r} shares parameters with {f'{name}.{key}'!r}: a change to one "
                    "would change both. Give the layer parameters of its own first."
                )


def _computes(found: nn.Module, weight: NDArray, bias: NDArray) -> bool:
    """Whether a layer computes ``x @ weight.T + bias``, up to what rounding explains."""
    rows = np.random.default_rng(0).standard_normal((len(_SIZES), weight.shape[1]))
    place = _place(found)
    # Rows that the layer's precision holds exactly.
    rows = _array(torch.tensor(rows * np.reshape(_SIZES, (-1, 1))).to(place))
    outputs, expected = _outputs(found, rows), rows @ weight.T + bias
    size = (np.abs(rows) @ np.abs(weight).T + np.abs(bias)).max(axis=1, keepdims=True)
    allowed = max(_ROUNDING, 8 * torch.finfo(place.dtype).eps) * np.where(size > 0, size, 1.0)
    return outputs.shape == expected.shape and bool((abs(outputs - expected) <= allowed).all())


def _outputs(found: nn.Module, rows: NDArray) -> NDArray:
    """Outputs of a layer in evaluation mode, in float64."""
    with evaluating(found):
        return _array(found(torch.tensor(rows).to(_place(found))))


def _place(found: nn.Module) -> Tensor:
    """A tensor of the type, and on the device, that a layer works with."""
    return next((p for p in found.parameters() if p.is_floating_point()), torch.empty(0)).detach()


def _array(values: Tensor) -> NDArray:
    return values.detach().to("cpu", torch.float64).numpy()
