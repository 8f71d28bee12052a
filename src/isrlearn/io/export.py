"""A fitted model as one affine map for other programs: ONNX, torch, NumPy."""

import json
import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import DTypeLike, NDArray
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from isrlearn import __version__
from isrlearn.estimators import TablePreparer
from isrlearn.estimators.linear import check_precision
from isrlearn.io._state import ESTIMATORS
from isrlearn.io.errors import listed, optional
from isrlearn.io.files import atomic_write
from isrlearn.io.model import ModelFile, checked_names, steps_of
from isrlearn.markup import as_json

#: Types of labels in ONNX other than integers, and how its library expects them.
_ONNX_LABELS: dict[str, tuple[str, Any]] = {"f": ("double", float), "U": ("string", object)}

Head = tuple[NDArray[np.float64], NDArray[np.float64]]  # coefficients (m, d), intercepts (m,)


def export_model(
    model: Any,
    kind: str,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    dtype: DTypeLike | None = None,
) -> None:
    """Write a fitted estimator as "onnx", "torch" or "numpy", atomically.

    - "onnx": a graph of one subtraction, one Gemm and a softmax. The input ``X`` is (rows,
      features). A classifier has the outputs ``label``, ``logits`` (one column per class; with two
      classes, zero and the decision function) and, if its head has probabilities,
      ``probabilities``; a regressor has ``prediction``, in double precision, a transformer
      ``features``. Needs the extra ``onnx``.
    - "torch": weight and bias of a ``torch.nn.Linear``, in a .safetensors file or, for
      ``torch.load(path, weights_only=True)``, a .pt or .pth file. Two classes have one output, the
      logit of the second.
    - "numpy": an .npz archive with ``coef`` and ``intercept``, for ``X @ coef.T + intercept``; the
      eraser ``spurious_basis``, ``dual``, ``center`` and ``scale``; ``classes``, ``environments``.

    Classes and feature names are stored too, as JSON in the metadata of the first two kinds.

    Of a Pipeline, a StandardScaler is folded into the map, and a TablePreparer that only selects
    columns of numbers into the order of the features. Categories and missing values cannot be
    represented by an affine map, and are refused.

    Parameters
    ----------
    model : ModelFile, or fitted ISRClassifier, ISRRegressor or ISRTransformer
        Of a search, the best estimator. Or a Pipeline that ends in one of them.
    kind : {"onnx", "torch", "numpy"}
    path : path
    feature_names : sequence of str, optional
        Default: those of the file, or those the estimator was fitted with.
    dtype : float32 or float64, optional
        Precision. Default: float64 for "numpy", else float32.

    Examples
    --------
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.io import export_model
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> export_model(reg, "numpy", "head.npz")
    >>> np.load("head.npz")["coef"].shape
    (1, 2)
    """
    names = feature_names
    if isinstance(model, ModelFile):
        names = model.feature_names if names is None else names
        model = model.model
    *steps, estimator = steps_of(model)
    if kind not in _CONTENT:
        raise ValueError(f"kind must be one of {', '.join(_CONTENT)}; got {kind!r}")
    if type(estimator).__name__ not in ESTIMATORS:
        raise ValueError(
            f"one of {', '.join(ESTIMATORS)} can be exported; got {type(estimator).__name__}"
        )
    check_is_fitted(estimator, "eraser_")
    for step in reversed(steps):
        if isinstance(step, TablePreparer):
            own: Any = _selected(step)
        else:
            estimator, own = _unscaled(estimator, step), getattr(step, "feature_names_in_", None)
        names = own if names is None else names
    precision = np.dtype(dtype or (np.float64 if kind == "numpy" else np.float32))
    if precision not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype!r}")
    if hasattr(estimator, "coef_"):
        head: Head = np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_)
        if kind != "onnx":  # an ONNX graph centres its rows
            check_precision(estimator, *head, precision)
    else:
        head = estimator.affine_map()
    content = _CONTENT[kind](estimator, head, precision, _notes(estimator, names), Path(path))
    with atomic_write(path) as file:
        file.write(content)


def _selected(preparer: TablePreparer) -> list[str]:
    """Columns that a preparation only selects; anything else cannot be exported."""
    if preparer.plain_:
        return preparer.get_feature_names_out().tolist()
    encoded = [c.name for c in preparer.columns_ if c.categories]
    imputed = [c.name for c in preparer.columns_ if c.missing and not c.categories]
    what = [f"encodes the categories of {listed(encoded)}"] if encoded else []
    what += [f"imputes missing values of {listed(imputed)}"] if imputed else []
    raise ValueError(
        f"the model {' and '.join(what)}, which is not an affine map: predict with isr predict or "
        "isrlearn.load, or fit on a table that is prepared already"
    )


def _unscaled(estimator: Any, scaler: Any) -> Any:
    """The estimator for features as they were before a StandardScaler."""
    if not isinstance(scaler, StandardScaler) or not hasattr(estimator, "coef_"):
        kinds = type(scaler).__name__, type(estimator).__name__
        raise ValueError(f"a {kinds[0]} before an {kinds[1]} cannot be folded into an affine map")
    d = estimator.n_features_in_
    scale = np.ones(d) if scaler.scale_ is None else scaler.scale_
    mean = scaler.mean_ if scaler.with_mean else np.zeros(d)
    found, eraser = copy(estimator), estimator.eraser_
    found.coef_ = estimator.coef_ / scale
    found.intercept_ = estimator.intercept_ - found.coef_ @ mean
    found.eraser_ = replace(
        eraser,
        basis=eraser.basis * scale[:, None],
        dual=eraser.dual / scale[:, None],
        center=eraser.center * scale + mean,
    )
    return found


def _notes(estimator: Any, names: Sequence[str] | None) -> dict[str, str]:
    """Metadata of the exported map, as JSON texts."""
    notes = {"estimator": type(estimator).__name__, "isrlearn": __version__}
    if hasattr(estimator, "classes_"):
        notes["classes"] = json.dumps(as_json(estimator.classes_))
    names = getattr(estimator, "feature_names_in_", None) if names is None else names
    if names is not None:
        notes["feature_names"] = json.dumps(checked_names(list(names), estimator))
    return notes


def _numpy(estimator: Any, head: Head, dtype: np.dtype, notes: dict[str, str], path: Path) -> bytes:
    eraser = estimator.eraser_
    arrays = {"coef": head[0], "intercept": head[1], "center": eraser.center}
    arrays |= {"spurious_basis": eraser.basis, "dual": eraser.dual, "scale": eraser.scale}
    arrays = {name: np.asarray(array, dtype) for name, array in arrays.items()}
    arrays["environments"] = _plain(estimator.environments_)
    if hasattr(estimator, "classes_"):
        arrays["classes"] = _plain(estimator.classes_)
    if "feature_names" in notes:
        arrays["feature_names"] = np.array(json.loads(notes["feature_names"]), dtype=str)
    file = BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def _plain(labels: NDArray) -> NDArray:
    """Labels in an array that is stored without pickling."""
    values = labels.tolist()
    return np.array(values) if len(set(map(type, values))) == 1 else labels.astype(str)


def _torch(estimator: Any, head: Head, dtype: np.dtype, notes: dict[str, str], path: Path) -> bytes:
    state = {"weight": np.ascontiguousarray(head[0], dtype), "bias": head[1].astype(dtype)}
    suffix = path.suffix.lower()
    if suffix == ".safetensors":
        return safetensors.numpy.save(state, {"format": "pt", **notes})
    if suffix not in (".pt", ".pth"):
        raise ValueError(f"a torch state must end in .safetensors, .pt or .pth; got {str(path)!r}")
    torch = optional("torch", "a .pt file", "torch")
    file = BytesIO()
    torch.save({name: torch.from_numpy(array) for name, array in state.items()}, file)
    return file.getvalue()


def _onnx(estimator: Any, head: Head, dtype: np.dtype, notes: dict[str, str], path: Path) -> bytes:
    parser, onnx = optional("onnx.parser", "ONNX", "onnx"), optional("onnx", "ONNX", "onnx")
    coef, intercept = head
    # Rows are centred before the product: far from the origin large terms would cancel in float32.
    center = estimator.eraser_.center.astype(dtype).astype(float)
    constants: dict[str, NDArray] = {"center": center.astype(dtype)}
    if not hasattr(estimator, "coef_"):
        product, outputs, nodes = "features", f"R[rows, {len(coef)}] features", ""
    elif not hasattr(estimator, "classes_"):
        # In double: the target may be larger than float32 can hold.
        product, outputs = "part", "double[rows] prediction"
        constants |= {"axis": np.array([1]), "level": intercept + coef @ center}
        intercept = -coef @ center
        nodes = """column = Squeeze (part, axis)
                   wide = Cast <to = 11> (column)
                   prediction = Add (wide, level)"""
    else:
        product, K = "logits", len(estimator.classes_)
        if K == 2:
            # The softmax of logits 0 and s gives the probabilities; a tie goes to the first class.
            coef = np.concatenate([np.zeros_like(coef), coef])
            intercept = np.concatenate([np.zeros_like(intercept), intercept])
        classes = _plain(estimator.classes_)
        kind, stored = _ONNX_LABELS.get(classes.dtype.kind, ("int64", np.int64))
        constants["classes"] = classes.astype(stored)
        outputs = f"{kind}[rows] label, R[rows, {K}] logits"
        nodes = """code = ArgMax <axis = 1, keepdims = 0> (logits)
                   label = Gather <axis = 0> (classes, code)"""
        if hasattr(estimator, "predict_proba"):
            outputs += f", R[rows, {K}] probabilities"
            nodes += "probabilities = Softmax <axis = 1> (logits)"
    text = f"""
        <ir_version: 8, opset_import: ["": 17], producer_name: "isrlearn">
        isrlearn (R[rows, {estimator.n_features_in_}] X) => ({outputs}) {{
            centred = Sub (X, center)
            {product} = Gemm <transB = 1> (centred, weight, bias)
            {nodes}
        }}"""
    real = "float" if dtype == np.float32 else "double"
    model = parser.parse_model(text.replace("R[", f"{real}["))
    bias = intercept + coef @ center
    constants |= {"weight": coef.astype(dtype), "bias": bias.astype(dtype)}
    for name, array in constants.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.helper.set_model_props(model, notes)
    onnx.checker.check_model(model)
    return model.SerializeToString()


_CONTENT: dict[str, Callable[..., bytes]] = {"onnx": _onnx, "torch": _torch, "numpy": _numpy}
