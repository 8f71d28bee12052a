"""Checks of user input: every mistake gets one clear error."""

import math
import os
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils import Tags, check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_n_features, _check_sample_weight, validate_data

from isrlearn.core.labels import MISSING, Cells, as_array, is_missing, unmasked
from isrlearn.core.methods import Method
from isrlearn.core.moments import Moments
from isrlearn.core.rank import independent_shifts
from isrlearn.engine.rows import Rows, SparseRows

#: Types of features that are taken as they are; others are converted to the first.
FLOATS = [np.float64, np.float32]
_READ: dict[str, Any] = {"dtype": FLOATS, "accept_sparse": "csr"}

Fit = TypeVar("Fit", bound=Callable[..., Any])


class IncompleteDataError(ValueError):
    """Rows that are too few to fit on; more of them may be enough."""


class SparseInput:
    """Tells scikit-learn that an estimator accepts sparse rows."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


def all_or_nothing(method: Fit) -> Fit:
    """A `fit` that leaves the estimator unfitted if it fails; a `partial_fit`, as it was."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            keep = method.__name__ == "partial_fit"
            vars(self).clear()
            vars(self).update({k: v for k, v in before.items() if keep or not k.endswith("_")})
            raise

    return cast("Fit", run)


_LEAST, _LARGEST = sys.float_info.min, sys.float_info.max
_RANK = "'auto', 'permutation' or an int of at least 0"
_COMPONENTS = "'auto', None, an int of at least 1, or a fraction of variance in (0, 1)"
#: Legal values of numeric parameters: kind, lowest, highest, words, and all of them in a phrase.
_NUMBERS: dict[str, tuple[Any, float, float, tuple[object, ...], str]] = {
    "n_spurious": (Integral, 0, np.inf, ("auto", "permutation"), _RANK),
    "n_components": (Real, _LEAST, np.inf, ("auto", None), _COMPONENTS),
    "level": (Real, _LEAST, 1 - 1e-9, (), "a number in (0, 1)"),
    "scale": (Real, 0, 1, (), "a number in [0, 1]"),
    "C": (Real, _LEAST, np.inf, ("auto",), "'auto' or a number greater than 0"),
    "alpha": (Real, 0, _LARGEST, (), "a number of at least 0"),
}
_CHOICES: dict[str, Sequence[object]] = {
    "variant": ("pooled", "paper", "authors"),
    "output": ("same", "invariant"),
    "missing_environments": ("raise", "single"),
}


def check_parameters(estimator: Any, **choices: Sequence[object]) -> None:
    """Raise unless every parameter of an estimator has a legal value; `choices` are its own.

    A `head` may also be a pair or an estimator, and `weights` a dict, where there are classes.
    """
    legal = _CHOICES | choices
    for name, value in estimator.get_params(deep=False).items():
        if name in _NUMBERS:
            kind, low, high, words, meaning = _NUMBERS[name]
            number = isinstance(value, kind) and not isinstance(value, bool | np.bool_)
            # The bounds do not fit in a float32.
            size = value.item() if isinstance(value, np.generic) else value
            # Infinity may be legal; an integer that no float can hold is not.
            number = number and (size <= _LARGEST or size == np.inf)
            word = value is None or isinstance(value, str)
            if not (value in words if word else number and low <= size <= high):
                raise ValueError(f"{name} must be {meaning}; got {value!r}")
            continue
        given = name == "head" and (isinstance(value, tuple) or hasattr(value, "fit"))
        if name == "weights" and isinstance(value, dict) and "class" in legal[name]:
            if not all(isinstance(w, Real) and 0 < float(w) < np.inf for w in value.values()):
                raise ValueError(f"weights of classes must be positive and finite; got {value!r}")
        elif not given:
            more = ", a linear scikit-learn estimator or (coef, intercept)" * (name == "head")
            check_choice(name, value, legal[name], more)


def check_choice(name: str, value: object, choices: Sequence[object], more: str = "") -> None:
    """Raise unless value is one of the choices; the error names what `more` is allowed."""
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        legal = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {legal}{more}; got {value!r}")


def check_between(name: str, value: Any, low: float, high: float) -> None:
    """Raise unless value is a number in [low, high]."""
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if not number or not low <= value <= high:
        bounds = f"in [{low:g}, {high:g}]" if np.isfinite(high) else f"at least {low:g}"
        raise ValueError(f"{name} must be a number {bounds}; got {value!r}")


def check_n_components(value: Any, n_features: int) -> None:
    """Raise unless value is a count up to n_features, or a fraction in (0, 1)."""
    if not (value <= n_features if isinstance(value, Integral) else value < 1):
        raise ValueError(
            f"n_components must be 'auto', None, an int in [1, {n_features}], or a fraction of "
            f"variance in (0, 1); got {value!r}"
        )


def dimension_limit(method: Method, count: NDArray, d: int, variant: str) -> tuple[int, str]:
    """Largest number of spurious dimensions for cells of these counts, and what limits it."""
    classes = None
    if method.one_class and variant != "pooled":
        classes = np.flatnonzero(np.count_nonzero(count, axis=1) > 1)[-1:]
    limit = independent_shifts(count, classes)
    # The authors' unit tests fill up with directions that do not shift.
    filled = variant == "authors" and (method.one_class or not method.uses_classes)
    if method.second_order or d - 1 < limit or filled:
        return d - 1, f"at least one of the {d} dimensions must stay"
    K = 1 if classes is not None else int(np.sum(np.count_nonzero(count, axis=1) > 1))
    where = "" if K == 1 else f" in {K} classes"
    return limit, f"the means of {count.shape[1]} environments{where} span no more"


def check_n_spurious(value: int, bound: int, why: str, n_features: int) -> None:
    """Raise if there are more spurious dimensions than these environments can show."""
    if value > bound:
        message = f"n_spurious={value} is more than the {bound} possible here: {why}"
        # More environments may show more, as long as there are more features.
        raise (IncompleteDataError if value < n_features else ValueError)(message)


def check_rows(
    estimator: Any,
    X: Any,
    y: Any,
    environments: Any,
    sample_weight: Any,
    *,
    target: str | None,
    clusters: Any = None,
    reset: bool = True,
    part: bool = False,
) -> tuple[Any, NDArray | None, Cells, NDArray | None]:
    """X, the target of a regression, the cells of the rows and sample weights, all checked.

    The estimator learns its features. `target` is "classes", "numbers" or None (y is ignored). X
    may be `Rows` that are read block by block: values that are not finite are then found when they
    are read. Sparse rows become `SparseRows`. A `part` of the data may have a single environment,
    or none that is known.
    """
    if any(map(np.ma.isMaskedArray, (X, y, sample_weight))):
        X, y, sample_weight = (unmasked(values) for values in (X, y, sample_weight))
    if target is None:
        X, y = check_features(estimator, X, reset=reset), None
    elif isinstance(X, Rows | str | os.PathLike):
        X, y = check_features(estimator, X, reset=reset), as_array([] if y is None else y)
        if y.shape != (len(X),):
            raise ValueError(f"y has shape {y.shape}, but X has {len(X)} rows")
        if target == "numbers":
            y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
    else:
        numeric = target == "numbers"
        # pandas' NA cannot be compared, and a list of texts may hold NaN.
        labels = as_array(y) if isinstance(y, list | tuple) else y
        if not numeric and str(getattr(labels, "dtype", "")) in ("object", "string", "str"):
            y = np.where(is_missing(labels), np.array(None), labels)
        try:
            X, y = validate_data(estimator, X, y, reset=reset, y_numeric=numeric, **_READ)
        except (TypeError, ValueError) as error:
            raise _of_column(X, error) from None
        X = SparseRows(X) if issparse(X) else X
    e = check_environments(environments, len(X), estimator.missing_environments)
    if clusters is not None:
        clusters = check_environments(clusters, len(X), name="clusters")
    cells = Cells.of(y if target == "classes" else None, e, clusters)
    for name, codes, hint in (
        ("class", cells.k, "; only environments may be unknown: leave these rows out"),
        ("cluster", cells.cluster, ": give a row that belongs to no other a cluster of its own"),
    ):
        missing = np.flatnonzero([] if codes is None else codes == MISSING)
        if len(missing):
            count = f"({len(missing)} in all)"
            raise ValueError(f"the {name} of row {missing[0]} is missing {count}{hint}")
    if target == "classes":
        check_classification_targets(y)
    if not part and environments is not None and len(cells.environments) < 2:
        known = "" if not len(cells.environments) else f", {cells.environments.tolist()[0]!r}"
        raise ValueError(
            f"the rows have {len(cells.environments)} known environment(s){known}; ISR compares "
            "environments and needs at least two"
        )
    if sample_weight is not None:
        sample_weight = check_sample_weight(sample_weight, X)
    return X, y if target == "numbers" else None, cells, sample_weight


def _of_column(X: Any, error: Exception) -> Exception:
    """An error that names the column of a data frame that is not all numbers, or the same error."""
    for name in getattr(X, "columns", ()):
        values = np.asarray(X[name])
        dates = values.dtype.kind in "mM"
        for row, value in enumerate(values.tolist() if values.ndim == 1 else ()):
            try:
                number = not dates and math.isfinite(float(value))
            except (TypeError, ValueError):
                number = False
            if not number:
                what = (str(values[row]) if dates else repr(value))[:60]
                what = "no value" if is_missing(values[row : row + 1])[0] else what
                return ValueError(
                    f"column {name!r} holds {what} in row {row}: "
                    "leave the column out, or let isrlearn.TablePreparer, as first step of a "
                    "Pipeline, encode categories and impute missing numbers"
                )
    return error


def check_features(estimator: Any, X: Any, *, reset: bool = False) -> Any:
    """X as an array or `Rows` of the features that the estimator was fitted on.

    With `reset`, the estimator learns their number and names instead.
    """
    if isinstance(X, str | os.PathLike):
        raise ValueError(
            f"X must be an array or rows, not a path; got {os.fspath(X)!r}. Read the file first: "
            "table = isrlearn.io.read_table(path, label=..., environment=..., stream=True), then "
            "fit(table.X, table.y, environments=table.environments)"
        )
    if not isinstance(X, Rows):
        try:
            X = validate_data(estimator, unmasked(X), reset=reset, **_READ)
        except (TypeError, ValueError) as error:
            raise _of_column(X, error) from None
        return SparseRows(X) if issparse(X) else X
    if not len(X):
        raise ValueError("X has no rows")
    if reset:
        know_features(estimator, X.shape[1], X.feature_names)
        return X
    _check_n_features(estimator, X, reset=False)
    name, known = type(estimator).__name__, getattr(estimator, "feature_names_in_", ())
    for i, (own, wanted) in enumerate(zip(X.feature_names or (), known, strict=False)):
        if own != wanted:
            raise ValueError(
                f"column {i} of X is {own!r}, but {name} was fitted with {wanted!r} there: read "
                "the columns it knows, "
                "isrlearn.io.read_table(path, features=list(estimator.feature_names_in_))"
            )
    return X


def know_features(estimator: Any, n_features: int, names: Sequence[str] | None = None) -> None:
    """Set the number of features of an estimator, and their names where there are any."""
    estimator.n_features_in_ = n_features
    estimator.__dict__.pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def check_environments(
    environments: ArrayLike | None, n: int, missing: str = "raise", *, name: str = "environments"
) -> NDArray:
    """Environment of each row as an array; the same one for all rows where none is required."""
    if environments is None:
        if missing == "single":
            return np.zeros(n, dtype=int)
        raise ValueError(
            "environments are needed: fit(X, y, environments=e), one label per row. Through a "
            "Pipeline or a search, enable metadata routing first "
            "(sklearn.set_config(enable_metadata_routing=True)). To fit with one environment "
            "and remove nothing, set missing_environments='single'."
        )
    array = environments if type(environments) is np.ndarray else as_array(environments)
    array = array[:, 0] if array.shape == (n, 1) else array  # a frame of one column
    if array.shape != (n,):
        raise ValueError(
            f"{name} has shape {array.shape}, but X has {n} rows: give one label per row"
        )
    return array


def check_sample_weight(sample_weight: ArrayLike, X: Any) -> NDArray:
    """Weight of each row as a float, or the same number for all rows."""
    if isinstance(sample_weight, str):
        raise ValueError(f"sample_weight must be numbers, one per row; got {sample_weight!r}")
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("all sample weights are zero")
    return weight


def check_classes(classes: NDArray, count: NDArray) -> None:
    """Raise unless there are two classes or more, each with a positive weight."""
    names = classes.tolist()
    if len(names) < 2:
        raise IncompleteDataError(f"y has only one class, {names[0]!r}; a classifier needs two")
    empty = np.flatnonzero(count == 0)
    if len(empty):
        raise ValueError(f"all rows of class {names[empty[0]]!r} have a sample weight of zero")


def check_cells(moments: Moments, *, second_order: bool = False) -> None:
    """Raise unless at least one class can be compared between two environments."""
    # A population's counts are shares: any positive one will do.
    least = (2 if second_order else 1) if moments.ddof else sys.float_info.min
    enough = moments.count >= least
    if (enough.sum(axis=1) >= 2).any():
        return
    k = int(enough.sum(axis=1).argmax())
    rows = ", ".join(
        f"{n:g} in {e!r}"
        for n, e in zip(moments.count[k], moments.environments[:5].tolist(), strict=False)
    )
    least_rows = "two rows or more in each of" if least > 1 else "rows in"
    # A class that was seen in one environment is still in one after environments were merged.
    several = (moments.count > 0).sum(axis=1) > 2
    merge = least > 1 and (several & (moments.count.sum(axis=1) >= 4)).any()
    raise IncompleteDataError(
        f"no class has {least_rows} two environments, so nothing can be compared: class "
        f"{moments.classes.tolist()[k]!r} has {rows}. Add rows of one class from another "
        f"environment{', or merge environments of few rows' * bool(merge)}."
    )
