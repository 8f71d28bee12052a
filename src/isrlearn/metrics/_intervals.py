"""Accuracy, RMSE and R² of one group of samples, each with a confidence interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit


class Score(NamedTuple):
    """A score with its confidence interval."""

    value: float
    low: float
    high: float


class Metric(NamedTuple):
    """How a score is computed, which way is better, and what its groups are."""

    score: Callable[[NDArray, NDArray, float], Score]
    greater_is_better: bool
    by_class: bool  # groups are class × environment, not environment alone


def wilson_interval(successes: int, n: int, *, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval for a proportion.

    Unlike the textbook interval it stays inside [0, 1] and has a width at 0 and at ``n``
    successes, which is where small groups end up.

    Parameters
    ----------
    successes : int
        Between 0 and `n`.
    n : int
        The number of trials, at least 1.
    level : float, default=0.95
        The confidence level, strictly between 0 and 1.

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> from isrlearn.metrics import wilson_interval
    >>> low, high = wilson_interval(9, 10)
    >>> round(low, 4), round(high, 4)
    (0.5958, 0.9821)
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(
            f"a proportion needs n >= 1 and 0 <= successes <= n, got {successes=} and {n=}"
        )
    z = float(ndtri(0.5 + check_level(level) / 2))
    p = successes / n
    shrink = 1 / (1 + z * z / n)
    centre = (p + z * z / (2 * n)) * shrink
    half = z * shrink * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    # At p = 0 and p = 1 an end is exact in theory and off by rounding in floating point.
    low = 0.0 if successes == 0 else float(centre - half)
    high = 1.0 if successes == n else float(centre + half)
    return low, high


def check_level(level: float) -> float:
    """The confidence level, if it is one."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie strictly between 0 and 1, got {level!r}; use 0.95")
    return level


def accuracy(y_true: NDArray, y_pred: NDArray, level: float) -> Score:
    """Share of right predictions, with Wilson's interval."""
    successes, n = int(np.count_nonzero(y_true == y_pred)), len(y_true)
    return Score(successes / n, *wilson_interval(successes, n, level=level))


def rmse(y_true: NDArray, y_pred: NDArray, level: float) -> Score:
    """Root mean squared error, with a delta-method interval on the logarithm."""
    squared = np.square(y_true - y_pred)
    mse = float(squared.mean())
    low, high = _log_interval(mse, squared, level)
    return Score(float(np.sqrt(mse)), float(np.sqrt(low)), float(np.sqrt(high)))


def r2(y_true: NDArray, y_pred: NDArray, level: float) -> Score:
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
    # multiplied by the ratio it can be given to the same interval as the mean square above.
    low, high = _log_interval(unexplained, (squared - unexplained * deviation) / variance, level)
    return Score(1 - unexplained, 1 - high, 1 - low)


def _log_interval(value: float, influence: NDArray, level: float) -> tuple[float, float]:
    """Interval for a positive mean-like `value` from each row's influence on it.

    No distribution of the residuals is assumed, only that n is large enough for the mean of
    squares to be about normal; the logarithm takes out most of its skewness and keeps the
    interval positive, Student's quantile widens it where n is small.
    """
    n = len(influence)
    if n < 2:
        return 0.0, float("inf")
    if value == 0:
        return 0.0, 0.0
    error = float(influence.std(ddof=1)) / (np.sqrt(n) * value)
    factor = float(np.exp(stdtrit(n - 1, 0.5 + level / 2) * error))
    return value / factor, value * factor


METRICS: dict[str, Metric] = {
    "accuracy": Metric(accuracy, greater_is_better=True, by_class=True),
    "rmse": Metric(rmse, greater_is_better=False, by_class=False),
    "r2": Metric(r2, greater_is_better=True, by_class=False),
}


def find_metric(name: str) -> Metric:
    """The metric of that name."""
    if name not in METRICS:
        raise ValueError(f"metric must be one of {', '.join(map(repr, METRICS))}, got {name!r}")
    return METRICS[name]
