"""Whether the target of a regression itself moves between environments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats


@dataclass(frozen=True)
class TargetShift:
    """How the mean of the target differs between environments.

    ISR for regression compares means with no class to condition on: it assumes that the target,
    and with it the invariant features, have the same distribution everywhere.

    Parameters
    ----------
    moved : bool
        Whether it does, by an analysis of variance at the level of the diagnosis.
    p_value : float
    effect : float
        Largest difference of two means, in standard deviations inside environments.

    Examples
    --------
    >>> TargetShift(moved=True, p_value=1e-5, effect=0.7).moved
    True
    """

    moved: bool
    p_value: float
    effect: float


def target_shift(target: NDArray, environments: NDArray, level: float) -> TargetShift:
    """Target shift of a sample.

    Parameters
    ----------
    target : ndarray of shape (n,)
    environments : ndarray of int of shape (n,)
    level : float

    Examples
    --------
    >>> target_shift(np.array([0.0, 1.0, 5.0, 6.0]), np.array([0, 0, 1, 1]), 0.05).moved
    True
    """
    parts = [target[environments == e] for e in np.unique(environments)]
    means = np.array([part.mean() for part in parts])
    inside = np.concatenate([part - part.mean() for part in parts])
    deviation = np.sqrt(np.sum(inside**2) / max(len(target) - len(parts), 1))
    if deviation == 0:
        moved = bool(np.ptp(means) > 0)
        return TargetShift(moved, 0.0 if moved else 1.0, np.inf if moved else 0.0)
    p_value = float(stats.f_oneway(*parts).pvalue)
    return TargetShift(p_value <= level, p_value, float(np.ptp(means) / deviation))
