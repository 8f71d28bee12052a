"""A trained network with ISR folded into one of its linear layers."""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import nn

from isrlearn.estimators import ISRClassifier, ISRRegressor, ISRTransformer
from isrlearn.estimators.linear import check_precision
from isrlearn.torch.batches import is_regression
from isrlearn.torch.features import extract_features, torch_moments
from isrlearn.torch.layer import deciding, weights_of, with_weights


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
    own = weights_of(model, layer)
    d = own[0].shape[1]
    adapt = isinstance(head, str) and head == "adapt"
    estimator: Any = (ISRRegressor if regression else ISRClassifier)()
    if adapt:
        estimator = ISRTransformer("regression" if regression else "mean")
    elif not (isinstance(head, str) and head == "refit"):
        parameters["head"] = head
    estimator.set_params(**parameters)
    reading = {"device": device, "progress": progress}
    if not hasattr(estimator, "fit_moments") or estimator.n_spurious == "permutation":
        with deciding(model, layer, exact=regression and not adapt):
            data = extract_features(model, loader, layer, out=out, **reading)
        estimator.fit(data.X, data.y, environments=data.environments)
    else:
        pooled = estimator._settings().keep(np.inf, d, 1) != "cell"
        with deciding(model, layer, exact=regression and not adapt):
            moments = torch_moments(model, loader, layer, pooled=pooled, task=task, **reading)
        if len(moments.environments) < 2 and estimator.missing_environments != "single":
            raise ValueError(
                f"the samples have {len(moments.environments)} known environment(s); ISR compares "
                "environments and needs at least two"
            )
        # The transformer has no use for the targets, the last columns.
        estimator.fit_moments(moments.columns(d) if adapt else moments)
    if adapt:
        return with_weights(model, layer, *estimator.eraser_.fold(*own))
    return with_head(model, estimator, layer)


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
    n_outputs, n_features = weights_of(model, layer)[0].shape
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
        if len(coef) == 1 and n_outputs == 2:
            # Two logits whose difference is the decision function.
            coef, intercept = np.vstack([-coef, coef]) / 2, np.append(-intercept, intercept) / 2
    if coef.shape != (n_outputs, n_features):
        kind = "" if classes is None else f" and predicts {len(classes)} classes"
        raise ValueError(
            f"layer {layer!r} maps {n_features} features to {n_outputs} outputs; "
            f"the head takes {coef.shape[1]} features{kind}: it cannot replace the layer"
        )
    precision = next(model.get_submodule(layer).parameters()).dtype
    if hasattr(estimator, "eraser_") and precision != torch.float64:
        check_precision(estimator, coef, intercept, np.float32)
    return with_weights(model, layer, coef, intercept)
