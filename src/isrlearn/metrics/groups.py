"""Groups of rows, and the score of one group with its confidence interval."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, stdtrit

from isrlearn.core.labels import MISSING, Cells, as_array, encode, is_missing

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


def members(y: NDArray, environments: ArrayLike | None, metric: str) -> dict[Group, NDArray]:
    """Positions of each group's rows, groups in sorted order."""
    if environments is None:
        raise ValueError(
            "group scores need environments: pass one label per row, as environments=...; through "
            "scikit-learn's searches it must be routed (set_config(enable_metadata_routing=True) "
            "and params={'environments': ...})"
        )
    cells = Cells.of(y if metric == "accuracy" else None, as_array(environments))
    if cells.e.shape != y.shape:
        raise ValueError(
            f"environments must have one label for each of the {len(y)} rows, got an array of "
            f"shape {cells.e.shape}"
        )
    classes, places = cells.classes.tolist(), cells.environments.tolist()
    if not places:
        raise ValueError("no row has a known environment, so there is no group to score")
    # One sort instead of one pass over the rows for every group.
    E, codes = len(places), np.where(cells.e == MISSING, MISSING, cells.k * len(places) + cells.e)
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    return {
        (classes[code // E], places[code % E]) if metric == "accuracy" else places[code]: rows
        for code, rows in zip(present.tolist(), np.split(order, starts[1:]), strict=True)
        if code != MISSING
    }


def vector(values: ArrayLike, name: str, metric: str) -> NDArray:
    """A one-dimensional array without missing values; floats for a regression."""
    array = np.asarray(values)
    if array.ndim != 1 or not len(array):
        raise ValueError(f"{name} must be one-dimensional and not empty, got shape {array.shape}")
    try:
        array = array if metric == "accuracy" else array.astype(float)
    except (TypeError, ValueError):
        what = f"{name} must hold numbers for a regression metric, got {array.dtype}"
        raise ValueError(what) from None
    missing = is_missing(array) if metric == "accuracy" else ~np.isfinite(array)
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(f"{name} is missing or not finite in row {row}: {array[row]!r}")
    fractions = array[array % 1 != 0] if metric == "accuracy" and array.dtype.kind == "f" else []
    if len(fractions):
        raise ValueError(
            f"labels such as {fractions[0]:g} in {name} look continuous, not like classes; for a "
            "regression give metric='rmse' or 'r2'"
        )
    return array


def checked(
    y_true: ArrayLike,
    predictions: Mapping[str, ArrayLike],
    environments: ArrayLike | None,
    clusters: ArrayLike | None,
    metric: str,
    level: float,
) -> tuple[NDArray, list[NDArray], dict[Group, NDArray[np.intp]], NDArray[np.intp] | None]:
    """Labels, the predictions of models, the rows of each group, and the cluster of each row."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}; use 0.95")
    true, predicted = vector(y_true, "y_true", metric), []
    for name, values in predictions.items():
        predicted.append(vector(values, name, metric))
        n, types = len(predicted[-1]), [encode(v)[0].dtype for v in (true, predicted[-1])]
        if len(true) != n:
            raise ValueError(f"y_true has {len(true)} rows and {name} has {n}")
        kinds = {kind.kind for kind in types}
        if kinds & set("US") and kinds & set("biuf"):
            raise ValueError(
                f"y_true holds {types[0]} and {name} {types[1]}, which can never "
                "be equal; give both the same type of label"
            )
    codes = None if clusters is None else encode(clusters)[1]
    if codes is not None and (codes.shape != true.shape or codes.min() < 0):
        raise ValueError(f"clusters must have a name for each of the {len(true)} rows")
    return true, predicted, members(true, environments, metric), codes


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


@dataclass(frozen=True)
class InGroup:
    """What is known about the rows of one group."""

    label: Any  #: The class; None for a regression.
    environment: Any  #: The environment.
    n: int  #: Number of rows.

    @property
    def group(self) -> Group:
        """``(class, environment)``, or the environment alone for a regression."""
        return self.environment if self.label is None else (self.label, self.environment)

    @property
    def name(self) -> str:
        """The group as text."""
        return str(self.environment) if self.label is None else f"{self.label}, {self.environment}"


def table(sides: str, head: list[str], rows: list[list[Any]]) -> tuple[list[list[Any]], str]:
    """A table with its head, and the sides of its columns, without the columns that hold None."""
    kept = [value is not None for value in rows[0]]
    return [list(compress(row, kept)) for row in (head, *rows)], "".join(compress(sides, kept))


class Score(NamedTuple):
    """A score with its confidence interval."""

    value: float
    low: float
    high: float


def accuracy(y_true: NDArray, y_pred: NDArray, level: float, cluster: NDArray | None) -> Score:
    """Share of correct predictions, with Clopper and Pearson's exact interval."""
    # Wilson's interval is shorter but fails in the tails, which many groups at once reach. The
    # formula of scipy.stats.binomtest(...).proportion_ci, which computes a p-value first and so
    # takes a hundred times longer.
    right, tail = y_true == y_pred, (1 - level) / 2
    share, n = int(np.count_nonzero(right)) / len(right), float(len(right))
    if cluster is not None:
        # Korn and Graubard: the number of independent rows that would be as informative.
        error, m = _standard_error(right.astype(float), cluster)
        few = share * (1 - share) / error**2 if error > 0 else m
        n = min(n, few * (stdtrit(n - 1, tail) / stdtrit(m - 1, tail)) ** 2 if m > 1 else 1.0)
    low = float(betaincinv(share * n, n - share * n + 1, tail)) if share > 0 else 0.0
    high = 1 - float(betaincinv(n - share * n, share * n + 1, tail)) if share < 1 else 1.0
    return Score(share, low, high)


def rmse(y_true: NDArray, y_pred: NDArray, level: float, cluster: NDArray | None) -> Score:
    """Root mean squared error, with a delta-method interval on the logarithm."""
    squared = np.square(y_true - y_pred)
    mse = float(squared.mean())
    return Score(*np.sqrt([mse, *_log_interval(mse, squared, level, cluster)]).tolist())


def r2(y_true: NDArray, y_pred: NDArray, level: float, cluster: NDArray | None) -> Score:
    """Coefficient of determination, with a delta-method interval on log(1 − R²)."""
    squared = np.square(y_true - y_pred)
    deviation = np.square(y_true - y_true.mean())
    mse, variance = float(squared.mean()), float(deviation.mean())
    # Targets that are equal on paper can differ by rounding after a change of units.
    if variance <= (8 * np.finfo(float).eps * float(np.abs(y_true).max())) ** 2:
        raise ValueError(
            f"R² is undefined where the target does not vary ({len(y_true)} row(s), all of "
            f"value {y_true[0]:g}); use metric='rmse' or merge small environments"
        )
    unexplained = mse / variance
    # The influence of a row on log(mse / variance) is squared/mse − deviation/variance;
    # multiplied by the ratio it fits the same interval as the mean square above.
    influence = (squared - unexplained * deviation) / variance
    low, high = _log_interval(unexplained, influence, level, cluster)
    return Score(1 - unexplained, 1 - high, 1 - low)


def _log_interval(
    value: float, influence: NDArray, level: float, cluster: NDArray | None
) -> tuple[float, float]:
    """Interval for a positive mean-like `value` from the influence of each row on it."""
    # The residuals may have any distribution; n must be large enough for the mean of their squares
    # to be about normal. The logarithm removes most of its skewness and keeps the interval
    # positive; Student's quantile widens the interval where n is small.
    error, n = _standard_error(influence, cluster)
    if n < 2:
        return 0.0, float("inf")
    if value == 0:
        return 0.0, 0.0
    factor = float(np.exp(stdtrit(n - 1, 0.5 + level / 2) * error / value))
    return value / factor, value * factor


def _standard_error(values: NDArray, cluster: NDArray | None) -> tuple[float, int]:
    """Standard error of a mean of clusters of rows, and the number of clusters."""
    rest = values - values.mean()
    if cluster is not None:
        rest = np.bincount(np.unique(cluster, return_inverse=True)[1], rest)
    n = len(rest)
    return float(np.sqrt(np.sum(rest**2) * n / max(n - 1, 1)) / len(values)), n


METRICS = {"accuracy": accuracy, "rmse": rmse, "r2": r2}
