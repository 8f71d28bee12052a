"""A trained network with ISR folded into one of its linear layers."""

from __future__ import annotations

import os
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn.utils import parametrize

from isrlearn.estimators import ISRClassifier, ISRRegressor, ISRTransformer
from isrlearn.torch.batches import linear_layer
from isrlearn.torch.evaluate import is_regression
from isrlearn.torch.features import extract_features, torch_moments


def postprocess(
    model: nn.Module,
    loader: Iterable[Any],
    layer: str = "fc",
    *,
    head: Any = "refit",
    task: str = "classification",
    out: str | os.PathLike[str] | None = None,
    device: Any = None,
    progress: bool = False,
    **parameters: Any,
) -> nn.Module:
    """A copy of a network that ignores what shifts between environments in its features.

    The copy has the same modules and the same state dict with other numbers in one layer: it
    loads with the original code, exports, compiles, and costs nothing more to run. The order of
    the logits stays the same: with two logits their difference is the classifier's decision.

    Parameters
    ----------
    model, device, progress
        See `extract_features`. The model is not changed.
    loader : iterable
        Training batches ``(x, y, environment)``, without augmentation; see `extract_features`.
    layer : str, default="fc"
        Dotted path of the last ``nn.Linear``, which needs a bias.
    head : {"refit", "adapt"} or head, default="refit"
        "refit" fits a new head on the remaining features: logistic regression, or for regression
        ridge. "adapt" keeps the layer's own weights and folds the removal into them; an average
        sample keeps its outputs. Anything else is the `head` of the estimator, for example "lda".
        "adapt", "lda" and ridge need only moments: one pass, and no features are stored.
    task : {"classification", "regression"}, default="classification"
    out : path, optional
        A .npy file for the features, if they are stored and do not fit in memory.
    **parameters
        Of `ISRClassifier`, or for regression `ISRRegressor`: method, n_spurious, scale, C, …

    Returns
    -------
    torch.nn.Module

    Examples
    --------
    >>> import torch
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.torch import postprocess
    >>> data = make_gaussian_environments(500, 4, n_invariant=3, n_spurious=2, random_state=0)
    >>> batch = [torch.tensor(a) for a in (data.X, data.y, data.environments)]
    >>> model = torch.nn.Sequential(torch.nn.Linear(5, 2, dtype=torch.float64))
    >>> patched = postprocess(model, [batch], "0", method="mean")
    >>> patched.state_dict().keys() == model.state_dict().keys()
    True
    """
    regression = is_regression(task)
    own = _check_replaceable(model, layer)
    adapt = isinstance(head, str) and head == "adapt"
    estimator: Any = (ISRRegressor if regression else ISRClassifier)()
    if adapt:
        estimator = ISRTransformer("regression" if regression else "mean")
    elif not (isinstance(head, str) and head == "refit"):
        parameters["head"] = head
    estimator.set_params(**parameters)
    reading = {"device": device, "progress": progress}
    if not hasattr(estimator, "fit_moments") or estimator.n_spurious == "permutation":
        data = extract_features(model, loader, layer, out=out, **reading)
        estimator.fit(data.X, data.y, environments=data.environments)
    else:
        pooled = estimator._settings().keep(np.inf, own.in_features) != "cell"
        moments = torch_moments(model, loader, layer, pooled=pooled, task=task, **reading)
        if len(moments.environments) < 2 and estimator.missing_environments != "single":
            raise ValueError(
                f"the samples have {len(moments.environments)} known environment(s); ISR compares "
                "environments and needs at least two"
            )
        # The transformer has no use for the targets, the last columns.
        estimator.fit_moments(moments.columns(own.in_features) if adapt else moments)
    if not adapt:
        return with_head(model, estimator, layer)
    weight, bias = (p.detach().to("cpu", torch.float64).numpy() for p in own.parameters())
    return _patched(model, layer, *estimator.eraser_.fold(weight, bias))


def with_head(model: nn.Module, estimator: Any, layer: str = "fc") -> nn.Module:
    """A copy of a network whose layer is a fitted linear estimator of that layer's inputs.

    For example, fit `ISRClassifierCV` on extracted features and put the best estimator into the
    network.

    Parameters
    ----------
    model : torch.nn.Module
        Not changed.
    estimator : fitted estimator
        With ``coef_`` and ``intercept_``, or a search with ``best_estimator_``. A classifier's
        classes must be the codes 0, 1, …; with two classes the layer may have one output or two.
    layer : str, default="fc"
        Dotted path of an ``nn.Linear`` with a bias.

    Returns
    -------
    torch.nn.Module

    Examples
    --------
    >>> import numpy as np, torch
    >>> from sklearn.linear_model import LogisticRegression
    >>> from isrlearn.torch import with_head
    >>> X = np.array([[-1.0, 0.0], [1.0, 0.0]])
    >>> classifier = LogisticRegression().fit(X, [0, 1])
    >>> patched = with_head(torch.nn.Sequential(torch.nn.Linear(2, 2)), classifier, "0")
    >>> patched(torch.tensor(X, dtype=torch.float32)).argmax(dim=1).tolist()
    [0, 1]
    """
    found = _check_replaceable(model, layer)
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not hasattr(estimator, "coef_"):
        raise ValueError(f"{type(estimator).__name__} has no coef_: fit it, or use a linear one")
    coef = np.atleast_2d(np.asarray(estimator.coef_, dtype=float))
    intercept = np.broadcast_to(np.asarray(estimator.intercept_, dtype=float), len(coef))
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        if not np.array_equal(classes, np.arange(len(classes))):
            raise ValueError(
                f"the classes must be the codes 0 to {len(classes) - 1} of the layer's outputs; "
                f"got {np.asarray(classes).tolist()}"
            )
        if len(coef) == 1 and found.out_features == 2:
            # Two logits whose difference is the decision function.
            coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    if coef.shape != (found.out_features, found.in_features):
        kind = "" if classes is None else f" and predicts {len(classes)} classes"
        raise ValueError(
            f"layer {layer!r} maps {found.in_features} features to {found.out_features} outputs; "
            f"the head takes {coef.shape[1]} features{kind}: it cannot replace the layer"
        )
    return _patched(model, layer, coef, intercept)


def _patched(model: nn.Module, layer: str, weight: NDArray, bias: NDArray) -> nn.Module:
    """A copy of the model with other numbers in a layer."""
    copy = deepcopy(model)
    found = copy.get_submodule(layer)
    with torch.no_grad():
        found.weight.copy_(torch.tensor(weight))
        found.bias.copy_(torch.tensor(bias))
    return copy


def _check_replaceable(model: nn.Module, layer: str) -> nn.Linear:
    """The layer, if its numbers can be replaced without changing anything else."""
    found = linear_layer(model, layer)
    if parametrize.is_parametrized(found) or "weight" not in found._parameters:
        raise ValueError(
            f"the weight of layer {layer!r} is computed from other parameters, for example by a "
            "weight norm: remove the parametrization first"
        )
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
    return found
