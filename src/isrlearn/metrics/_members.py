"""Which rows belong to which group: class × environment, or environment for a regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.core.labels import MISSING, encode, is_missing

from ._intervals import Metric, find_metric

# (class, environment), or the environment alone for a regression.
Group = Any


def group_sizes(
    y: ArrayLike, environments: ArrayLike | None, *, metric: str = "accuracy"
) -> dict[Group, int]:
    """Number of rows in every group.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels or targets.
    environments : array-like of shape (n,)
        The environment of each row; None or NaN where it is unknown, which is in no group.
    metric : {"accuracy", "rmse", "r2"}, default="accuracy"
        Groups are class × environment for "accuracy", environments for the other two.

    Returns
    -------
    dict
        From ``(class, environment)``, or from environment for a regression, to a count.

    Examples
    --------
    >>> from isrlearn.metrics import group_sizes
    >>> group_sizes([0, 1, 1, 1], ["sea", "sea", "land", None])
    {(0, 'sea'): 1, (1, 'land'): 1, (1, 'sea'): 1}
    """
    chosen = find_metric(metric)
    target = vector(y, "y", numeric=not chosen.by_class)
    return {group: len(rows) for group, rows in members(target, environments, chosen).items()}


def members(
    y: NDArray, environments: ArrayLike | None, metric: Metric
) -> dict[Group, NDArray[np.intp]]:
    """Positions of each group's rows, groups in sorted order."""
    if environments is None:
        raise ValueError(
            "group scores need environments: pass one label a row, as environments=...; through "
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
    labels = [None]
    cell = codes
    if metric.by_class:
        found, label_codes = encode(y)
        labels = found.tolist()
        cell = np.where(codes == MISSING, MISSING, label_codes * len(names) + codes)
    # One sort instead of one pass over the rows for every group.
    order = np.argsort(cell, kind="stable")
    present, starts = np.unique(cell[order], return_index=True)
    environment = names.tolist()
    groups: dict[Group, NDArray[np.intp]] = {}
    for code, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True):
        if code == MISSING:
            continue
        k, e = divmod(code, len(names))
        groups[(labels[k], environment[e]) if metric.by_class else environment[e]] = rows
    return groups


def targets(y_true: ArrayLike, y_pred: ArrayLike, metric: Metric) -> tuple[NDArray, NDArray]:
    """Targets and predictions as arrays of one length that can be compared."""
    true = vector(y_true, "y_true", numeric=not metric.by_class)
    pred = vector(y_pred, "y_pred", numeric=not metric.by_class)
    if len(true) != len(pred):
        raise ValueError(f"y_true has {len(true)} rows and y_pred has {len(pred)}")
    textual = [array.dtype.kind in "US" for array in (true, pred)]
    numeric = [array.dtype.kind in "biuf" for array in (true, pred)]
    if any(textual) and any(numeric):
        raise ValueError(
            f"y_true holds {true.dtype} and y_pred {pred.dtype}, which can never be equal; "
            "give both the same type of label"
        )
    return true, pred


def vector(values: ArrayLike, name: str, *, numeric: bool) -> NDArray:
    """A one-dimensional array without missing values; floats if `numeric`."""
    array = np.asarray(values)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    if numeric:
        try:
            array = array.astype(float)
        except (TypeError, ValueError):
            raise ValueError(
                f"{name} must hold numbers for a regression metric, got {array.dtype}"
            ) from None
    missing = ~np.isfinite(array) if numeric else is_missing(array)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise ValueError(f"{name} is missing or not finite in row {row}: {array[row]!r}")
    return array


def check_train_groups(train_groups: Mapping[Group, int], evaluated: Mapping[Group, Any]) -> None:
    """Raise unless the training sizes can weigh the evaluated groups."""
    for group, size in train_groups.items():
        if size < 0:
            raise ValueError(f"train_groups must hold counts, got {size} for group {group!r}")
        if size > 0 and group not in evaluated:
            raise ValueError(
                f"training group {group!r} ({size} rows) has no row to score here, so it cannot "
                f"be weighed; the groups here are {list(evaluated)}"
            )
    if not sum(train_groups.values()):
        raise ValueError("train_groups counts no row at all; use group_sizes on the training data")
