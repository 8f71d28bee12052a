"""A fitted estimator as arrays and a JSON record, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.erase import Eraser
from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest
from isrlearn.core.subspace import Subspace
from isrlearn.estimators import ISRClassifier, ISRRegressor, ISRTransformer
from isrlearn.estimators.search import ISRClassifierCV, ISRRegressorCV
from isrlearn.io._encoding import built, decoded_labels, encoded, encoded_labels, entries
from isrlearn.io.errors import ModelFileError, shown

Arrays = dict[str, NDArray[np.float64]]
ESTIMATORS = {kind.__name__: kind for kind in (ISRClassifier, ISRRegressor, ISRTransformer)}

#: Types that ``skops.io.load(path, trusted=TRUSTED_TYPES)`` needs for our estimators.
TRUSTED_TYPES = [
    f"{kind.__module__}.{kind.__qualname__}"
    for kind in (*ESTIMATORS.values(), ISRClassifierCV, ISRRegressorCV, Eraser, Moments, RankTest)
]

_RECORD = ("estimator", "parameters", "classes", "environments", "scale", "ddof", "rank_test", "F")
_RANK_TEST = ("rank", "p_values", "level", "noise", "limit")


def state_of(estimator: Any) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and record of a fitted estimator. Scatters, large and not needed, are left out."""
    kind = type(estimator).__name__
    if ESTIMATORS.get(kind) is not type(estimator):
        raise ModelFileError(
            f"a model file holds one of {', '.join(ESTIMATORS)}; got {kind}. Save a pipeline's "
            "step, or the whole of it with skops"
        )
    if not hasattr(estimator, "coef_" if kind != "ISRTransformer" else "eraser_"):
        raise ModelFileError(f"this {kind} is not fitted yet: call fit before saving it")
    given = _arrays(estimator)
    arrays = {name: np.asarray(array, dtype=np.float64) for name, array in given.items()}
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ModelFileError(f"the model's {name} is not finite, it cannot be used")
    parameters = estimator.get_params(deep=False)
    if "head_coef" in arrays:
        parameters["head"] = None
    moments, test = estimator.moments_, estimator.rank_test_
    record = {
        "estimator": kind,
        "parameters": {name: encoded(value, name) for name, value in parameters.items()},
        "classes": encoded_labels(moments.classes, "classes"),
        "environments": encoded_labels(moments.environments, "environments"),
        "scale": float(estimator.eraser_.scale),
        "ddof": int(moments.ddof),
        "rank_test": None if test is None else _test_record(test),
        # Products with a transposed array can differ in the last bit.
        "F": [name for name, array in arrays.items() if _is_transposed(array)],
    }
    return arrays, record


def _arrays(estimator: Any) -> dict[str, Any]:
    moments, eraser = estimator.moments_, estimator.eraser_
    arrays = {
        "spurious_basis": eraser.basis,
        "dual": eraser.dual,
        "center": eraser.center,
        "spectrum": estimator.spectrum_,
        "count": moments.count,
        "mean": moments.mean,
    }
    if hasattr(estimator, "coef_"):
        arrays |= {"coef": estimator.coef_, "intercept": np.atleast_1d(estimator.intercept_)}
    if getattr(estimator, "_invariant", None) is not None:
        arrays["invariant"] = estimator._invariant
    if moments.unlabelled is not None:
        arrays["unlabelled_count"] = moments.unlabelled.count
        arrays["unlabelled_mean"] = moments.unlabelled.mean
    if estimator.rank_test_ is not None:
        arrays["rank_spectrum"] = estimator.rank_test_.spectrum
    head = getattr(estimator, "head", None)
    if isinstance(head, tuple):
        arrays |= {"head_coef": head[0], "head_intercept": head[1]}
    return arrays


def _test_record(test: RankTest) -> dict[str, Any]:
    return {name: encoded(getattr(test, name), f"rank_test_.{name}") for name in _RANK_TEST}


def _is_transposed(array: NDArray) -> bool:
    return array.ndim == 2 and min(array.shape) > 1 and array.strides[0] < array.strides[1]


def restored(arrays: Arrays, record: Any) -> Any:
    """The fitted estimator whose arrays and record these are."""
    name, parameters, classes, environments, scale, ddof, test, transposed = entries(
        record, "the model", *_RECORD
    )
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise ModelFileError(f"a model of type {shown(name)} is not loaded")
    if type(scale) is not float or not 0 <= scale <= 1 or ddof not in (0, 1):
        raise ModelFileError(f"scale {shown(scale)} or ddof {shown(ddof)} is out of range")
    if not isinstance(parameters, dict) or not isinstance(transposed, list):
        raise ModelFileError("the model's parameters are not a JSON object")
    estimator = built(ESTIMATORS[name], parameters, name)
    labels = decoded_labels(classes, "classes"), decoded_labels(environments, "environments")
    _check_shapes(arrays, name, *map(len, labels))
    for key, array in arrays.items():
        arrays[key] = np.asfortranarray(array) if key in transposed else array
    basis, dual = arrays["spurious_basis"], arrays["dual"]
    moments = _moments(arrays, *labels, int(ddof))
    subspace = Subspace(basis, dual, arrays["spectrum"], _rank_test(test, arrays))
    estimator._store(moments, subspace, Eraser(basis, dual, scale, arrays["center"]))
    estimator.n_features_in_ = len(basis)
    if "head_coef" in arrays:
        estimator.head = arrays["head_coef"], arrays["head_intercept"]
    if name == "ISRTransformer":
        estimator._invariant = arrays.get("invariant")
        return estimator
    estimator.coef_, estimator.intercept_ = arrays["coef"], arrays["intercept"]
    if name == "ISRClassifier":
        estimator.classes_ = moments.classes
    else:
        estimator.intercept_ = float(arrays["intercept"][0])
    return estimator


def _check_shapes(arrays: Arrays, name: str, K: int, E: int) -> None:
    """Raise unless the arrays are those of such a model, of shapes that fit, and finite."""
    d, r = arrays["spurious_basis"].shape if _is_matrix(arrays, "spurious_basis") else (0, 0)
    m = d + 1 if name == "ISRRegressor" else d
    rows = 1 if K == 2 else K
    expected: dict[str, tuple[int | None, ...]] = {
        "spurious_basis": (d, r),
        "dual": (d, r),
        "center": (d,),
        "spectrum": (None,),
        "count": (K, E),
        "mean": (K, E, m),
    }
    if name == "ISRClassifier":
        expected |= {"coef": (rows, d), "intercept": (rows,)}
    if name == "ISRRegressor":
        expected |= {"coef": (d,), "intercept": (1,)}
    optional: dict[str, tuple[int | None, ...]] = {
        "unlabelled_count": (K, 1),
        "unlabelled_mean": (K, 1, m),
        "rank_spectrum": (None,),
    }
    if name == "ISRTransformer":
        optional["invariant"] = (d, None)
    elif "head_coef" in arrays and "head_intercept" in arrays:
        expected |= {key: arrays[key].shape for key in ("head_coef", "head_intercept")}
    _check_names(arrays, set(expected), set(optional))
    for key, array in arrays.items():
        shape = (expected | optional)[key]
        fits = len(shape) == array.ndim and all(
            want in (None, size) for want, size in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype != np.float64:
            raise ModelFileError(f"array {shown(key)} has the shape {array.shape}, not {shape}")
        if not np.isfinite(array).all():
            raise ModelFileError(f"array {shown(key)} is not finite")
    least = 2 if name == "ISRClassifier" else 1
    if d < 1 or least > K or E < 1 or (arrays["count"] < 0).any():
        raise ModelFileError(f"a model of {d} features, {K} classes and {E} environments is none")


def _check_names(arrays: Arrays, expected: set[str], optional: set[str]) -> None:
    missing, unknown = expected - set(arrays), set(arrays) - expected - optional
    if missing or unknown:
        raise ModelFileError(
            f"array {shown(min(missing or unknown))} is {'missing' if missing else 'not known'}"
        )
    if ("unlabelled_count" in arrays) != ("unlabelled_mean" in arrays):
        raise ModelFileError("the moments of rows without an environment are not complete")


def _is_matrix(arrays: Arrays, name: str) -> bool:
    return name in arrays and arrays[name].ndim == 2


def _moments(arrays: Arrays, classes: NDArray, environments: NDArray, ddof: int) -> Moments:
    unlabelled = None
    if "unlabelled_count" in arrays:
        unlabelled = Moments(
            classes,
            np.array(["unlabelled"]),
            arrays["unlabelled_count"],
            arrays["unlabelled_mean"],
        )
    return Moments(classes, environments, arrays["count"], arrays["mean"], None, unlabelled, ddof)


def _rank_test(record: Any, arrays: Arrays) -> RankTest | None:
    if record is None or "rank_spectrum" not in arrays:
        if (record is None) != ("rank_spectrum" not in arrays):
            raise ModelFileError("the rank test is not complete")
        return None
    rank, p_values, level, noise, limit = entries(record, "the rank test", *_RANK_TEST)
    whole = all(type(n) is int and n >= 0 for n in (rank, limit))
    if not whole or not all(type(v) in (int, float) for v in [level, noise, *p_values]):
        raise ModelFileError("the rank test holds what is no number")
    return RankTest(rank, tuple(map(float, p_values)), level, arrays["rank_spectrum"], noise, limit)
