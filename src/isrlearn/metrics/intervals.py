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


def accuracy(y_true: NDArray, y_pred: NDArray, level: float) -> Score:
    """Share of correct predictions, with Wilson's interval.

    Unlike the textbook interval it stays inside [0, 1] and has a positive width where all or no
    predictions are correct, which is common in small groups.
    """
    # The formula of scipy.stats.binomtest(...).proportion_ci, which computes a p-value first and
    # so takes a hundred times longer: a search scores every group of every candidate and fold.
    n = len(y_true)
    p = int(np.count_nonzero(y_true == y_pred)) / n
    z = float(ndtri(0.5 + level / 2))
    centre = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * float(np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))) / (1 + z * z / n)
    # At p = 0 and p = 1 one end is exact in theory and off by rounding in floating point.
    return Score(p, 0.0 if p == 0 else centre - half, 1.0 if p == 1 else centre + half)


def rmse(y_true: NDArray, y_pred: NDArray, level: float) -> Score:
    """Root mean squared error, with a delta-method interval on the logarithm."""
    squared = np.square(y_true - y_pred)
    mse = float(squared.mean())
    return Score(*np.sqrt([mse, *_log_interval(mse, squared, level)]).tolist())


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
    # multiplied by the ratio it fits the same interval as the mean square above.
    low, high = _log_interval(unexplained, (squared - unexplained * deviation) / variance, level)
    return Score(1 - unexplained, 1 - high, 1 - low)


def _log_interval(value: float, influence: NDArray, level: float) -> tuple[float, float]:
    """Interval for a positive mean-like `value` from the influence of each row on it.

    The residuals may have any distribution; n must be large enough for the mean of their squares
    to be about normal. The logarithm removes most of its skewness and keeps the interval
    positive; Student's quantile widens the interval where n is small.
    """
    n = len(influence)
    if n < 2:
        return 0.0, float("inf")
    if value == 0:
        return 0.0, 0.0
    error = float(influence.std(ddof=1)) / (np.sqrt(n) * value)
    factor = float(np.exp(stdtrit(n - 1, 0.5 + level / 2) * error))
    return value / factor, value * factor


METRICS: dict[str, Callable[[NDArray, NDArray, float], Score]] = {
    "accuracy": accuracy,
    "rmse": rmse,
    "r2": r2,
}
