"""Labels and parameters as JSON, and back: an allowed list of types, nothing that runs."""

from __future__ import annotations

import inspect
import math
import re
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.io.errors import ModelFileError, shown

_KINDS = re.compile(r"object|str|bool|u?int(8|16|32|64)|float(16|32|64)")
# What JSON must hold for each of them; True is no whole number here.
_PYTHON: dict[str, tuple[type, ...]] = {
    "object": (bool, int, float, str),
    "str": (str,),
    "bool": (bool,),
    "int": (int,),
    "uint": (int,),
    "float": (float, int),
}

#: Linear estimators of scikit-learn that may be the head of a saved model, and where they live.
HEADS = {
    "LinearDiscriminantAnalysis": "sklearn.discriminant_analysis",
    "LinearSVC": "sklearn.svm",
    "LinearSVR": "sklearn.svm",
} | dict.fromkeys(
    (
        "ARDRegression",
        "BayesianRidge",
        "ElasticNet",
        "HuberRegressor",
        "Lasso",
        "LinearRegression",
        "LogisticRegression",
        "LogisticRegressionCV",
        "QuantileRegressor",
        "Ridge",
        "RidgeCV",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
        "SGDRegressor",
        "TheilSenRegressor",
    ),
    "sklearn.linear_model",
)


def encoded_labels(labels: NDArray, what: str) -> dict[str, Any]:
    """Names of classes or environments and their type."""
    kind = "str" if labels.dtype.kind == "U" else labels.dtype.name
    values = labels.tolist()
    plain = all(type(v) in _PYTHON["object"] for v in values)
    if not _KINDS.fullmatch(kind) or not plain:
        raise ModelFileError(
            f"{what} of type {labels.dtype} cannot be stored; fit with numbers or text, for "
            "example .astype(str)"
        )
    return {"type": kind, "values": values}


def decoded_labels(record: Any, what: str) -> NDArray:
    """The array whose record this is: distinct labels of one of the known types."""
    kind, values = entries(record, what, "type", "values")
    if not isinstance(kind, str) or not _KINDS.fullmatch(kind) or not isinstance(values, list):
        raise ModelFileError(f"the {what} are of a type that cannot be loaded: {shown(kind)}")
    allowed = _PYTHON[kind.rstrip("0123456789")]
    if not all(type(value) in allowed for value in values):
        raise ModelFileError(f"the {what} are not all of type {kind}")
    if len(set(values)) != len(values):
        raise ModelFileError(f"two of the {what} are the same")
    if kind == "str":
        return np.array(values, dtype=str)
    array = np.empty(len(values), dtype=kind)
    try:
        array[:] = values
    except OverflowError:
        raise ModelFileError(f"the {what} do not fit in type {kind}") from None
    return array


def encoded(value: Any, what: str) -> Any:
    """A parameter or a piece of metadata as JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, dict):
        return {"pairs": [[encoded(k, what), encoded(v, what)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return [encoded(v, what) for v in value]
    if HEADS.get(type(value).__name__) and hasattr(value, "get_params"):
        default = type(value)().get_params()
        given = {
            name: encoded(v, f"{what}'s {name}")
            for name, v in value.get_params().items()
            if not _same(v, default[name])
        }
        return {"estimator": type(value).__name__, "parameters": given}
    raise ModelFileError(
        f"{what}={shown(value)} cannot be stored in a model file: numbers, text and scikit-learn's "
        "linear estimators can; skops can store the whole estimator"
    )


def decoded(value: Any, what: str) -> Any:
    """The value that was encoded."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list):
        return [decoded(v, what) for v in value]
    if "float" in value:
        (text,) = entries(value, what, "float")
        if text not in ("inf", "-inf", "nan"):
            raise ModelFileError(f"{what} is no number: {shown(text)}")
        return float(text)
    if "pairs" in value:
        (pairs,) = entries(value, what, "pairs")
        return {decoded(k, what): decoded(v, what) for k, v in pairs}
    name, parameters = entries(value, what, "estimator", "parameters")
    if not isinstance(name, str) or name not in HEADS:
        raise ModelFileError(f"{what} is of type {shown(name)}, which is not loaded")
    return built(getattr(import_module(HEADS[name]), name), parameters, what)


def built(kind: Any, parameters: Any, what: str) -> Any:
    """An unfitted estimator of a known class with these encoded parameters."""
    known = inspect.signature(kind).parameters
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise ModelFileError(
            f"{what} has a parameter {shown(unknown[0])} that {kind.__name__} does not have in "
            "the installed version"
        )
    return kind(**{name: decoded(v, name) for name, v in parameters.items()})


def entries(record: Any, what: str, *names: str) -> list[Any]:
    """Values of a JSON object that has exactly these names."""
    if not isinstance(record, dict) or set(record) != set(names):
        raise ModelFileError(f"the record of {what} must have the entries {', '.join(names)}")
    return [record[name] for name in names]


def as_json(value: Any) -> Any:
    """A value that JSON can hold: NumPy's as Python's, what is not finite as None, else text.

    Examples
    --------
    >>> as_json({"a": np.float64(1.5), "b": (1, float("inf"))})
    {'a': 1.5, 'b': [1, None]}
    """
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)
