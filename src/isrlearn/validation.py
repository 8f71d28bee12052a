"""User input to arrays and cells. Every mistake a user can make is named here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.core.labels import encode, is_missing
from isrlearn.core.moments import Moments
from isrlearn.core.rows import Rows


def check_choice(name: str, value: object, choices: Sequence[object]) -> None:
    """Raise unless value is one of the choices."""
    if not any(value is c or (isinstance(value, str) and value == c) for c in choices):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}")


def check_between(name: str, value: Any, low: float, high: float) -> None:
    """Raise unless value is a number in [low, high]."""
    if not _is_number(value) or not low <= value <= high:
        bounds = f"in [{low:g}, {high:g}]" if np.isfinite(high) else f"at least {low:g}"
        raise ValueError(f"{name} must be a number {bounds}; got {value!r}")


def check_n_components(value: Any, n_features: int) -> None:
    """Raise unless value is None, "auto", a count up to n_features, or a fraction in (0, 1)."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return
    if _is_number(value, Integral) and 1 <= value <= n_features:
        return
    if _is_number(value) and not _is_number(value, Integral) and 0.0 < value < 1.0:
        return
    raise ValueError(
        f"n_components must be 'auto', None, an int in [1, {n_features}], or a fraction of "
        f"variance in (0, 1); got {value!r}"
    )


def check_n_spurious(value: Any, bound: float = np.inf, why: str = "") -> None:
    """Raise unless value is "auto" or a count that the environments can show."""
    if isinstance(value, str) and value == "auto":
        return
    if not _is_number(value, Integral) or value < 0:
        raise ValueError(f"n_spurious must be 'auto' or an int of at least 0; got {value!r}")
    if value > bound:
        raise ValueError(f"n_spurious={value} is more than the {bound} possible here: {why}")


def refuse_path(X: Any) -> None:
    """Raise if X is the path of a file, and say how to read it."""
    if isinstance(X, str | os.PathLike):
        raise ValueError(
            f"X must be an array or rows, not a path; got {os.fspath(X)!r}. Read the file first: "
            "table = isrlearn.io.read_table(path, label=..., environment=..., stream=True), then "
            "fit(table.X, table.y, environments=table.environments)"
        )


def check_source(estimator: Any, X: Rows, y: Any, *, reset: bool) -> NDArray | None:
    """Labels (n,) of rows that are read some at a time, if any; the estimator knows its features.

    What is not finite is found when the rows are read.
    """
    if reset:
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        if X.feature_names is not None:
            estimator.feature_names_in_ = np.array(X.feature_names, dtype=object)
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    else:
        _check_names(estimator, X)
    if not len(X):
        raise ValueError("X has no rows")
    labels = None if y is None else np.asarray(y)
    if labels is not None and labels.shape != (len(X),):
        raise ValueError(f"y has shape {labels.shape}, but X has {len(X)} rows")
    return labels


def _check_names(estimator: Any, X: Rows) -> None:
    """Raise unless columns that have names have those the estimator knows, in its order."""
    known = getattr(estimator, "feature_names_in_", None)
    if known is None or X.feature_names is None:
        return
    for i, (own, name) in enumerate(zip(X.feature_names, known, strict=True)):
        if own != name:
            raise ValueError(
                f"column {i} of X is {own!r}, but {type(estimator).__name__} was fitted with "
                f"{name!r} there: read the columns it knows, "
                "isrlearn.io.read_table(path, features=list(estimator.feature_names_in_))"
            )


def check_environments(
    environments: ArrayLike | None, n: int, missing: str, *, part: bool = False
) -> NDArray:
    """Environment of each row as an array, with one made-up name where none may be given.

    A part of the data may hold a single environment, or none that is known.
    """
    check_choice("missing_environments", missing, ("raise", "single"))
    if environments is None:
        if missing == "single":
            return np.zeros(n, dtype=int)
        raise ValueError(
            "environments are needed: fit(X, y, environments=e), one label a row. Through a "
            "Pipeline or a search, enable metadata routing first "
            "(sklearn.set_config(enable_metadata_routing=True)). To fit with one environment "
            "and remove nothing, set missing_environments='single'."
        )
    array = np.asarray(environments)
    if array.shape != (n,):
        raise ValueError(
            f"environments has shape {array.shape}, but X has {n} rows: give one label a row"
        )
    if part:
        return array
    if is_missing(array).all():
        raise ValueError(f"none of the {n} rows has a known environment; ISR needs two or more")
    names = encode(array)[0]
    if len(names) == 1:
        raise ValueError(
            f"all rows with a known environment are in {_show(names[0])}; ISR compares "
            "environments and needs at least two"
        )
    return array


def check_sample_weight(sample_weight: ArrayLike | None, n: int) -> NDArray | None:
    """Sample weights as floats, or None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, str):
        raise ValueError(f"sample_weight must be numbers, one per row; got {sample_weight!r}")
    weight = np.asarray(sample_weight, dtype=float)
    weight = np.full(n, float(weight)) if weight.ndim == 0 else weight
    if weight.shape != (n,):
        raise ValueError(
            f"sample_weight.shape == {weight.shape}, expected {(n,)}: give one weight a row"
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        row = int(np.flatnonzero(~(weight >= 0) | ~np.isfinite(weight))[0])
        raise ValueError(f"sample_weight must be finite and not negative; row {row}: {weight[row]}")
    if not weight.any():
        raise ValueError("all sample weights are zero")
    return weight


def check_labels(y: NDArray) -> None:
    """Raise unless every row has a class, and classes can be sorted."""
    if y.dtype.kind != "O":
        return
    missing = np.flatnonzero(is_missing(y))
    if len(missing):
        raise ValueError(
            f"the class of row {missing[0]} is missing ({len(missing)} in all); only environments "
            "may be unknown: leave these rows out"
        )
    encode(y)


def check_classes(moments: Moments) -> None:
    """Raise unless there are two classes or more, each with rows that weigh something."""
    names = moments.classes.tolist()
    if len(names) < 2:
        raise ValueError(f"y has only one class, {names[0]!r}; a classifier needs two")
    empty = np.flatnonzero(moments.by_class()[0] == 0)
    if len(empty):
        raise ValueError(f"all rows of class {names[empty[0]]!r} have a sample weight of zero")


def check_cells(moments: Moments, classes: NDArray, least: int) -> None:
    """Raise unless every used class has rows enough in every environment."""
    if len(moments.environments) < 2:
        return
    # A population's counts are shares of it: any will do.
    few = np.argwhere(moments.count[classes] < (least if moments.ddof else np.finfo(float).tiny))
    if len(few):
        k, e = int(classes[few[0][0]]), int(few[0][1])
        n = moments.count[k, e]
        more = f" (and {len(few) - 1} more such cells)" if len(few) > 1 else ""
        raise ValueError(
            f"class {_show(moments.classes[k])} has {'no' if n == 0 else f'{n:g}'} rows in "
            f"environment {_show(moments.environments[e])}{more}; at least {least} needed to "
            "compare environments. Merge environments, or set the environment of these rows "
            "to None: they then count for the head only."
        )


def check_head(head: object, n_classes: int | None, n_features: int) -> tuple[NDArray, NDArray]:
    """Coefficients and intercepts given by the user, in scikit-learn's shapes.

    Classification wants (1, d) for two classes (two rows, as of a network with two logits, are
    turned into their difference) and (K, d) beyond; regression, ``n_classes=None``, wants (d,).
    """
    if not isinstance(head, tuple) or len(head) != 2:
        raise ValueError(f"head must be a pair (coef, intercept); got {head!r}")
    coef = np.atleast_2d(np.asarray(head[0], dtype=float))
    intercept = np.atleast_1d(np.asarray(head[1], dtype=float))
    allowed = {1} if n_classes is None else {1, 2} if n_classes == 2 else {n_classes}
    if coef.ndim != 2 or coef.shape[1] != n_features or coef.shape[0] not in allowed:
        rows = " or ".join(str(r) for r in sorted(allowed))
        raise ValueError(
            f"head's coef has shape {np.shape(head[0])}; expected {rows} row(s) of "
            f"{n_features} features"
        )
    if intercept.shape != (coef.shape[0],):
        raise ValueError(
            f"head's intercept has shape {np.shape(head[1])}; expected ({coef.shape[0]},)"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("head's coef and intercept must be finite")
    if n_classes == 2 and coef.shape[0] == 2:
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return (coef[0], intercept) if n_classes is None else (coef, intercept)


def _is_number(value: object, kind: type = Real) -> bool:
    """Whether value is a number of a kind; True and False are not."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def _show(name: object) -> str:
    """A label as the user wrote it, without NumPy's type around it."""
    return repr(name.item() if isinstance(name, np.generic) else name)
