"""A fitted estimator as JSON and arrays, and back: allow-listed types, nothing executable."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import discriminant_analysis, linear_model, svm
from sklearn.preprocessing import StandardScaler

from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest
from isrlearn.core.subspace import Eraser
from isrlearn.estimators import (
    DFRClassifier,
    ISRClassifier,
    ISRClassifierCV,
    ISRRegressor,
    ISRRegressorCV,
    ISRTransformer,
    TablePreparer,
)
from isrlearn.estimators.columns import CATEGORIES, LEFT_OUT, NUMBER, Column
from isrlearn.estimators.preparation import is_fitted
from isrlearn.io.errors import ModelFileError, TableError, listed, shown
from isrlearn.io.labels import label_array

Arrays = dict[str, NDArray]
ESTIMATORS = {kind.__name__: kind for kind in (ISRClassifier, ISRRegressor, ISRTransformer)}
#: Steps that may come before the estimator in a pipeline.
STEPS = {kind.__name__: kind for kind in (TablePreparer, StandardScaler)}
#: Frozen values that a fitted estimator may hold.
_VALUES = {kind.__name__: kind for kind in (Column, Eraser, Moments, RankTest)}

_OTHERS = (ISRClassifierCV, ISRRegressorCV, DFRClassifier, TablePreparer)
_OURS = (*ESTIMATORS.values(), *_OTHERS, *_VALUES.values())
#: Types that ``skops.io.load(path, trusted=TRUSTED_TYPES)`` needs for our estimators.
TRUSTED_TYPES = [f"{kind.__module__}.{kind.__qualname__}" for kind in _OURS]

#: Linear estimators of scikit-learn that may be the head of a saved model.
_HEADS = {
    name: getattr(module, name)
    for module, names in {
        discriminant_analysis: "LinearDiscriminantAnalysis",
        svm: "LinearSVC LinearSVR",
        linear_model: (
            "ARDRegression BayesianRidge ElasticNet HuberRegressor Lasso LinearRegression "
            "LogisticRegression LogisticRegressionCV QuantileRegressor Ridge RidgeCV "
            "RidgeClassifier RidgeClassifierCV SGDClassifier SGDRegressor TheilSenRegressor"
        ),
    }.items()
    for name in names.split()
}
#: Longest that the names of all features of a preparation may be together.
_MOST_CHARACTERS = 1 << 22
_LABELS = re.compile(r"object|str|bool|u?int(8|16|32|64)|float16")
_PLAIN = (bool, int, float, str)
#: Attributes that are stored elsewhere, or that only a fit needs.
_OMITTED = {"feature_names_in_", "_metadata_request"}


def state_of(steps: Sequence[Any]) -> tuple[Arrays, list[dict[str, Any]]]:
    """Arrays and JSON records of the steps before a fitted estimator, and of the estimator."""
    arrays: Arrays = {}
    *before, last = range(len(steps))
    records = [_record(steps[i], STEPS, f"step{i}.", arrays) for i in before]
    return arrays, [*records, _record(steps[last], ESTIMATORS, "", arrays)]


def _record(step: Any, allowed: Mapping[str, Any], prefix: str, arrays: Arrays) -> dict[str, Any]:
    kind = type(step).__name__
    if allowed.get(kind) is not type(step):
        raise ModelFileError(
            f"a model file holds one of {', '.join(ESTIMATORS)} and, before it in a pipeline, "
            f"steps of {', '.join(STEPS)}; got {kind}. skops can store any pipeline"
        )
    if not is_fitted(step) or hasattr(step, "_missing_"):  # partial_fit may need more rows
        raise ModelFileError(f"this {kind} is not fitted yet: call fit before saving it")
    kept = {k: v for k, v in vars(step).items() if k not in _OMITTED}
    fitted = {k: _encoded(v, prefix + k, arrays) for k, v in kept.items()}
    parameters = {k: fitted.pop(k) for k in step.get_params(deep=False)}
    return {"estimator": kind, "parameters": parameters, "fitted": fitted}


def _encoded(value: Any, name: str, arrays: Arrays) -> Any:
    """A value as JSON; types unknown to JSON become an object {tag: content}."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, list):
        return [_encoded(v, f"{name}.{i}", arrays) for i, v in enumerate(value)]
    if isinstance(value, tuple):
        return {"tuple": _encoded(list(value), name, arrays)}
    if isinstance(value, dict):
        pairs = [(f"{name}.{i}", pair) for i, pair in enumerate(value.items())]
        return {"pairs": [[_encoded(x, own, arrays) for x in pair] for own, pair in pairs]}
    if isinstance(value, np.ndarray):
        return _encoded_array(value, name, arrays)
    kind = type(value).__name__
    if _VALUES.get(kind) is type(value):
        # Scatters grow with the square of the features, and predictions do not need them.
        tag, names = "value", [field.name for field in fields(value) if field.name != "scatter"]
        kept = {k: getattr(value, k) for k in names}
    elif _HEADS.get(kind) is type(value):
        given, default = value.get_params(), type(value)().get_params()
        kept = {k: v for k, v in given.items() if (type(v), v) != (type(default[k]), default[k])}
        tag = "estimator"
    else:
        raise ModelFileError(
            f"{name}={shown(value)} cannot be stored in a model file: numbers, text and "
            "scikit-learn's linear estimators can; skops can store the whole estimator"
        )
    return {tag: [kind, {k: _encoded(v, f"{name}.{k}", arrays) for k, v in kept.items()}]}


def _encoded_array(array: NDArray, name: str, arrays: Arrays) -> dict[str, Any]:
    """Floats go to the arrays of the file, each array once; labels become JSON."""
    if array.dtype in (np.float32, np.float64):
        if not np.isfinite(array).all():
            raise ModelFileError(f"the model's {name} is not finite; fit it again before saving")
        name = next((known for known, other in arrays.items() if other is array), name)
        arrays[name] = array
        # Products with a transposed array can differ in the last bit.
        transposed = array.ndim == 2 and array.strides[0] < array.strides[1]
        return {"array": [name, "F" if transposed else "C"]}
    kind, values = "str" if array.dtype.kind == "U" else array.dtype.name, array.tolist()
    _labels(kind, values, name)  # what cannot be loaded is not saved
    return {"labels": [kind, values]}


def restored(arrays: Arrays, records: list[dict[str, Any]]) -> list[Any]:
    """The fitted steps of arrays and records; any exception means that they are invalid."""
    for name, array in arrays.items():
        if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
            raise ModelFileError(f"array {shown(name)} is not of finite float32 or float64 numbers")
    used: Arrays = {}
    decoded = partial(_decoded, arrays=arrays, used=used)
    *before, last = records
    steps = [_built(record, STEPS, decoded) for record in before]
    estimator = _built(last, ESTIMATORS, decoded)
    if len(used) != len(arrays):
        raise ModelFileError(f"array {shown(min(set(arrays) - set(used)))} is not known")
    _check(estimator)
    _check_steps(steps, estimator.n_features_in_)
    return [*steps, estimator]


def _built(record: dict[str, Any], allowed: Mapping[str, Any], decoded: Callable) -> Any:
    """The object of a record."""
    kind = allowed.get(record["estimator"])
    if kind is None or set(record) != {"estimator", "parameters", "fitted"}:
        raise ModelFileError(f"a model of type {shown(record['estimator'])} is not loaded")
    step = kind(**{name: decoded(value) for name, value in record["parameters"].items()})
    for name, value in record["fitted"].items():
        # Only data may be set: a name of the class would replace a method.
        if not re.fullmatch("_?[a-z][a-z_]*", name) or hasattr(kind, name):
            raise ModelFileError(f"a fitted model has no attribute {shown(name)}")
        setattr(step, name, decoded(value))
    names = [column.name for column in getattr(step, "columns_", ())]
    if names != [f"x{i}" for i in range(len(names))]:  # those of an array
        step.feature_names_in_ = np.array(names, dtype=object)
    return step


def _decoded(value: Any, arrays: Arrays, used: Arrays) -> Any:
    """The value that `_encoded` turned into JSON; `used` collects the arrays."""
    decoded = partial(_decoded, arrays=arrays, used=used)
    if value is None or isinstance(value, _PLAIN):
        return value
    if isinstance(value, list):
        return [decoded(v) for v in value]
    ((tag, content),) = value.items()
    if tag == "tuple":
        return tuple(decoded(content))
    if tag == "pairs":
        return {decoded(k): decoded(v) for k, v in content}
    name, content = content
    if tag == "array":
        return used.setdefault(name, np.asarray(arrays[name], order=content))
    if tag == "labels":
        return _labels(name, content)
    kinds = {"value": _VALUES, "estimator": _HEADS}.get(tag, {})
    if name not in kinds:
        raise ModelFileError(f"an object of type {shown(name)} is not loaded")
    return kinds[name](**{k: decoded(v) for k, v in content.items()})


def _labels(kind: str, values: list[Any], name: str = "labels") -> NDArray:
    """Labels of a known type."""
    if not _LABELS.fullmatch(kind) or not all(type(v) in _PLAIN for v in values):
        raise ModelFileError(
            f"{name} of type {shown(kind)} cannot be stored; fit with numbers or text, for "
            "example .astype(str)"
        )
    if kind != "str":
        return np.array([*values], dtype=kind)
    if len(set(values)) < len(values):
        raise ModelFileError(
            f"{name} holds the same text twice, {listed(values)}: NumPy drops NUL characters at "
            "the end of a text; rename the labels that had them"
        )
    try:
        return label_array(values, np.arange(len(values)), name)
    except TableError as error:
        raise ModelFileError(str(error)) from None


def _check(estimator: Any) -> None:
    """Raise unless all values have the types and shapes that predictions and inspection need."""
    moments, eraser, test = estimator.moments_, estimator.eraser_, estimator.rank_test_
    d, r = estimator.n_features_in_, estimator.n_spurious_
    K, E = moments.count.shape
    classifier = isinstance(estimator, ISRClassifier)
    regressor = isinstance(estimator, ISRRegressor)
    m, rows = d + regressor, 1 if K == 2 else K
    shapes: dict[str, tuple[int, ...]] = {
        "eraser_.basis": (d, r),
        "eraser_.dual": (d, r),
        "eraser_.center": (d,),
        "spurious_basis_": (d, r),
        "spectrum_": (np.size(estimator.spectrum_),),
        "environments_": (E,),
        "moments_.environments": (E,),
        "moments_.classes": (K,),
        "moments_.mean": (K, E, m),
    }
    if moments.unlabelled is not None:
        shapes |= {"moments_.unlabelled.count": (K, 1), "moments_.unlabelled.mean": (K, 1, m)}
    if classifier:
        shapes |= {"coef_": (rows, d), "intercept_": (rows,), "classes_": (K,)}
    elif regressor:
        shapes["coef_"] = (d,)
    for name, shape in shapes.items():
        array = attrgetter(name)(estimator)
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise ModelFileError(f"{name} has the shape {np.shape(array)}, not {shape}")
    numbers = [eraser.scale, moments.ddof, *([estimator.intercept_] if regressor else [])]
    if test is not None:
        numbers += [test.rank, test.limit, test.level, test.noise, *test.p_values]
    sound = (
        d > 0 and E > 0 and classifier < K,
        all(type(number) in (int, float) for number in numbers),
        0 <= eraser.scale <= 1 and moments.ddof in (0, 1) and (moments.count >= 0).all(),
        len(set(moments.classes.tolist())) == K and len(set(moments.environments.tolist())) == E,
        np.array_equal(estimator.environments_, moments.environments),
        not classifier or np.array_equal(estimator.classes_, moments.classes),
    )
    if not all(sound):
        raise ModelFileError("the values in the model contradict each other")
    apply = estimator.transform if hasattr(estimator, "transform") else estimator.predict
    apply(np.zeros((1, d)))


def _check_steps(steps: Sequence[Any], n_features: int) -> None:
    """Raise unless the steps before an estimator are sound and give it its features."""
    for i, step in enumerate(steps):
        if isinstance(step, TablePreparer) and i == 0:
            _check_preparer(step)
            rows: Any = {column.name: np.array([None]) for column in step.columns_}
            width = len(step.get_feature_names_out())
        else:
            width, rows = step.n_features_in_, np.zeros((1, n_features))
            numbers = [a for a in (step.mean_, step.scale_, step.var_) if a is not None]
            if any(a.shape != (n_features,) for a in numbers) or np.any(step.scale_ == 0):
                raise ModelFileError("the arrays of a StandardScaler are not sound")
        if width != n_features or not np.isfinite(step.transform(rows)).all():
            raise ModelFileError(f"a step before the model gives {width} features for {n_features}")


def _check_preparer(preparer: TablePreparer) -> None:
    """Raise unless all values of a preparation have the types that it needs."""
    columns, uses = preparer.columns_, (NUMBER, CATEGORIES, LEFT_OUT)
    names = [preparer.include, preparer.exclude, preparer.categorical]
    sound = (
        isinstance(columns, tuple) and all(isinstance(column, Column) for column in columns),
        preparer.n_features_in_ == len(columns) == len({column.name for column in columns}),
        all(map(_are_texts, names)),
        preparer.impute in ("median", "mean", None) and isinstance(preparer.strict, bool),
        all(_are_texts([c.name, c.why]) and c.use in uses for c in columns),
        all(isinstance(c.categories, tuple) and _are_texts(c.categories) for c in columns),
        all(isinstance(c.missing, bool) and isinstance(c.zero, str | None) for c in columns),
        all(type(c.fill) is (float if c.use == NUMBER else type(None)) for c in columns),
    )
    # The names of what columns become: a long name with many categories could fill the memory.
    n_characters = sum(len(c.name) * (len(c.categories) + 2) for c in columns) if all(sound) else 0
    if not all(sound) or n_characters > _MOST_CHARACTERS:
        raise ModelFileError("the values in the preparation contradict each other")
    outputs = preparer.get_feature_names_out()
    if len(outputs) > len(set(outputs)):
        raise ModelFileError("two features of the preparation have the same name")


def _are_texts(values: object) -> bool:
    return isinstance(values, tuple | list) and all(isinstance(value, str) for value in values)
