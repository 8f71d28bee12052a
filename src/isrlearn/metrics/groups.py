"""Which rows belong to which group: class × environment, or environment for a regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.core.labels import MISSING, encode, is_missing

from .intervals import METRICS

Group = Any  # (class, environment), or the environment alone for a regression


def group_sizes(
    y: ArrayLike, environments: ArrayLike | None, *, metric: str = "accuracy"
) -> dict[Group, int]:
    """Number of rows in every group.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels or targets.
    environments : array-like of shape (n,)
        The environment of each row; rows with None or NaN belong to no group.
    metric : {"accuracy", "rmse", "r2"}, default="accuracy"
        Groups are class × environment for "accuracy", environments for the other two.

    Returns
    -------
    dict
        From ``(class, environment)``, or from the environment for a regression, to a count.

    Examples
    --------
    >>> from isrlearn.metrics import group_sizes
    >>> group_sizes([0, 1, 1, 1], ["sea", "sea", "land", None])
    {(0, 'sea'): 1, (1, 'land'): 1, (1, 'sea'): 1}
    """
    check_metric(metric)
    rows_of = members(vector(y, "y", metric), environments, metric)
    return {group: len(rows) for group, rows in rows_of.items()}


def check_metric(metric: str) -> None:
    """Raise unless `metric` is the name of a metric."""
    if metric not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(map(repr, METRICS))}, got {metric!r}")


def members(
    y: NDArray, environments: ArrayLike | None, metric: str
) -> dict[Group, NDArray[np.intp]]:
    """Positions of each group's rows, groups in sorted order."""
    if environments is None:
        raise ValueError(
            "group scores need environments: pass one label per row, as environments=...; through "
            "scikit-learn's searches it must be routed (set_config(enable_metadata_routing=True) "
            "and params={'environments': ...})"
        )
    names, codes = encode(environments)
    if codes.shape != y.shape:
        raise ValueError(
            f"environments must have one label for each of the {len(y)} rows, got an array of "
            f"shape {codes.shape}"
        )
    if not len(names):
        raise ValueError("no row has a known environment, so there is no group to score")
    E = len(names)
    places, classes = names.tolist(), []
    if metric == "accuracy":
        labels, label_codes = encode(y)
        classes = labels.tolist()
        codes = np.where(codes == MISSING, MISSING, label_codes * E + codes)
    # One sort instead of one pass over the rows for every group.
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    return {
        (classes[code // E], places[code % E]) if classes else places[code]: rows
        for code, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True)
        if code != MISSING
    }


def check_comparable(true: NDArray, pred: NDArray) -> None:
    """Raise unless targets and predictions have one length and can be equal."""
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} rows and y_pred has {len(pred)}")
    kinds = {true.dtype.kind, pred.dtype.kind}
    if kinds & set("US") and kinds & set("biuf"):
        raise ValueError(
            f"y_true holds {true.dtype} and y_pred {pred.dtype}, which can never be equal; "
            "give both the same type of label"
        )


def vector(values: ArrayLike, name: str, metric: str) -> NDArray:
    """A one-dimensional array without missing values; floats for a regression."""
    array = np.asarray(values)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    if metric == "accuracy":
        missing = is_missing(array)
    else:
        try:
            array = array.astype(float)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} must hold numbers for a regression metric, got {array.dtype}"
            ) from None
        missing = ~np.isfinite(array)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise ValueError(f"{name} is missing or not finite in row {row}: {array[row]!r}")
    return array


def check_train_groups(train_groups: Mapping[Group, int], evaluated: Mapping[Group, Any]) -> None:
    """Raise unless the training sizes are weights for the evaluated groups."""
    for group, size in train_groups.items():
        if size < 0:
            raise ValueError(f"train_groups must hold counts, got {size} for group {group!r}")
        if size > 0 and group not in evaluated:
            raise ValueError(
                f"training group {group!r} ({size} rows) has no row to score here, so it cannot "
                f"be weighted; the groups here are {list(evaluated)}"
            )
    if not sum(train_groups.values()):
        raise ValueError("train_groups counts no row at all; use group_sizes on the training data")
