"""A fitted model as one affine map for other programs: ONNX, torch, NumPy."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils.validation import check_is_fitted

from isrlearn import __version__
from isrlearn.io._encoding import as_json
from isrlearn.io._onnx import onnx_model
from isrlearn.io._safetensors import write_arrays
from isrlearn.io._state import ESTIMATORS
from isrlearn.io.files import atomic_write
from isrlearn.io.model import ModelFile


def export_onnx(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    dtype: DTypeLike = np.float32,
) -> None:
    """Write a fitted estimator as an ONNX graph: one Gemm and a softmax.

    The input ``X`` is (rows, features). A classifier puts out ``label``, ``logits`` (a column a
    class; of two classes the first is zero and the second the decision function) and, where its
    head has probabilities, ``probabilities``; a regressor ``prediction``, a transformer
    ``features``. Classes and feature names are in the metadata as JSON.

    Parameters
    ----------
    estimator : ISRClassifier, ISRRegressor or ISRTransformer
        Fitted.
    path : path
    feature_names : sequence of str, optional
        Default: those the estimator was fitted with.
    dtype : float32 or float64, default=float32
        Precision of the graph.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.io import export_onnx
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(reg, os.path.join(folder, "model.onnx"))
    ...     os.listdir(folder)
    ['model.onnx']
    """
    kind = _precision(estimator, dtype)
    notes = _notes(estimator, feature_names)
    content = onnx_model(estimator, kind, notes).SerializeToString()
    with atomic_write(path) as file:
        file.write(content)


def export_torch(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    dtype: DTypeLike = np.float32,
) -> None:
    """Write a fitted estimator as the state of a ``torch.nn.Linear``: weight and bias.

    A classifier of two classes has one output, the logit of the second; one of K classes has K,
    a regressor one, a transformer as many as the features it returns.

    Parameters
    ----------
    estimator : ISRClassifier, ISRRegressor or ISRTransformer
        Fitted.
    path : path
        Ending in .safetensors (torch is not needed to write it; the metadata has classes and
        feature names) or in .pt or .pth (for ``torch.load(path, weights_only=True)``).
    feature_names : sequence of str, optional
        Default: those the estimator was fitted with.
    dtype : float32 or float64, default=float32

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.io import export_torch
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_torch(reg, os.path.join(folder, "head.safetensors"))
    ...     os.listdir(folder)
    ['head.safetensors']
    """
    kind = _precision(estimator, dtype)
    coef, intercept = affine_map(estimator)
    state = {"weight": coef.astype(kind), "bias": intercept.astype(kind)}
    suffix = Path(path).suffix.lower()
    if suffix == ".safetensors":
        notes = {"format": "pt", **_notes(estimator, feature_names)}
        with atomic_write(path) as file:
            write_arrays(file, state, notes)
    elif suffix in (".pt", ".pth"):
        torch = _torch()
        with atomic_write(path) as file:
            torch.save({name: torch.from_numpy(array) for name, array in state.items()}, file)
    else:
        raise ValueError(
            f"a torch state must end in .safetensors, .pt or .pth; got {os.fspath(path)!r}"
        )


def export_numpy(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    dtype: DTypeLike = np.float64,
) -> None:
    """Write a fitted estimator as an .npz archive: ``X @ coef.T + intercept`` is all it does.

    Beside coef and intercept the archive has classes and feature names where there are any,
    environments, and the eraser: spurious_basis, dual, center, scale.

    Parameters
    ----------
    estimator : ISRClassifier, ISRRegressor or ISRTransformer
        Fitted.
    path : path
    feature_names : sequence of str, optional
        Default: those the estimator was fitted with.
    dtype : float32 or float64, default=float64

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.io import export_numpy
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_numpy(reg, os.path.join(folder, "head.npz"))
    ...     with np.load(os.path.join(folder, "head.npz")) as head:
    ...         head["coef"].shape
    (1, 2)
    """
    kind = _precision(estimator, dtype)
    coef, intercept = affine_map(estimator)
    eraser = estimator.eraser_
    arrays = {"coef": coef, "intercept": intercept, "center": eraser.center}
    arrays |= {"spurious_basis": eraser.basis, "dual": eraser.dual}
    arrays["scale"] = np.asarray(eraser.scale)
    arrays = {name: array.astype(kind) for name, array in arrays.items()}
    arrays["environments"] = plain_labels(estimator.environments_)
    if hasattr(estimator, "classes_"):
        arrays["classes"] = plain_labels(estimator.classes_)
    names = _names(estimator, feature_names)
    if names is not None:
        arrays["feature_names"] = np.array(names, dtype=str)
    with atomic_write(path) as file:
        np.savez(file, **arrays)


EXPORTS: dict[str, Callable[..., None]] = {
    "onnx": export_onnx,
    "torch": export_torch,
    "numpy": export_numpy,
}


def export_model(
    model: ModelFile,
    kind: str,
    path: str | os.PathLike[str],
    *,
    dtype: DTypeLike | None = None,
) -> None:
    """Write the model of a file as "onnx", "torch" or "numpy".

    Parameters
    ----------
    model : ModelFile
    kind : {"onnx", "torch", "numpy"}
    path : path
    dtype : float32 or float64, optional
        Default: that of the kind.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.io import ModelFile, export_model
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_model(ModelFile(reg), "numpy", os.path.join(folder, "head.npz"))
    ...     os.listdir(folder)
    ['head.npz']
    """
    if kind not in EXPORTS:
        raise ValueError(f"a model is exported to {', '.join(EXPORTS)}; got {kind!r}")
    options: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
    EXPORTS[kind](model.estimator, path, feature_names=model.feature_names, **options)


def affine_map(estimator: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coefficients (m, d) and intercepts (m,) of everything the estimator does to a row."""
    if hasattr(estimator, "coef_"):
        return np.atleast_2d(estimator.coef_), np.atleast_1d(estimator.intercept_)
    if estimator._invariant is not None:
        coef = estimator._invariant.T
        return np.ascontiguousarray(coef), np.zeros(len(coef))
    # Erased unit vectors are the rows of the map's linear part.
    return estimator.eraser_.fold(np.eye(estimator.n_features_in_), 0.0)


def plain_labels(labels: NDArray) -> NDArray:
    """Labels in an array that needs no pickle."""
    plain = np.array(labels.tolist())
    return plain if len(set(map(type, labels.tolist()))) == 1 else labels.astype(str)


def _precision(estimator: Any, dtype: DTypeLike) -> np.dtype:
    """The type of numbers to write, once the estimator is known to be one of ours, fitted."""
    if type(estimator).__name__ not in ESTIMATORS:
        raise ValueError(
            f"one of {', '.join(ESTIMATORS)} can be exported; got {type(estimator).__name__}"
        )
    check_is_fitted(estimator, "eraser_")
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64; got {dtype!r}")
    return kind


def _names(estimator: Any, names: Sequence[str] | None) -> list[str] | None:
    """Names of the features, those given before those the estimator knows."""
    known = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return None if known is None else known.tolist()
    if len(names) != estimator.n_features_in_:
        raise ValueError(
            f"there must be {estimator.n_features_in_} feature_names; got {len(names)}"
        )
    return list(names)


def _notes(estimator: Any, feature_names: Sequence[str] | None) -> dict[str, str]:
    """What goes with the map, as JSON texts."""
    notes = {"estimator": type(estimator).__name__, "isrlearn": __version__}
    if hasattr(estimator, "classes_"):
        notes["classes"] = json.dumps(as_json(estimator.classes_))
    names = _names(estimator, feature_names)
    if names is not None:
        notes["feature_names"] = json.dumps(names)
    return notes


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(
            'a .pt file needs torch: pip install "isrlearn[torch]", or write .safetensors'
        ) from None
    return torch
