"""How settings are chosen: on validation samples in which every group counts the same."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import encode
from isrlearn.datasets import EnvironmentData

__all__ = ["balanced", "comparable"]

#: Ranges of the target that stand for the classes of a regression.
_RANGES = 5


def balanced(data: EnvironmentData, regression: bool) -> EnvironmentData:
    """The samples, some of them repeated so that every group there is has as many rows.

    A group is a class in an environment; of a regression, a fifth of the target's range of ranks
    in an environment. The average score on such samples is the mean of the groups' scores: one
    that does not reward a shortcut, taken from data that has it.

    Examples
    --------
    >>> y, e = np.array([0, 0, 0, 1]), np.array(["a", "a", "a", "b"])
    >>> balanced(EnvironmentData(np.arange(4.0)[:, None], y, e), False).y.tolist()
    [0, 0, 0, 1, 1, 1]
    """
    y = _ranges(data.y) if regression else data.y
    groups = encode(y)[1] * (encode(data.environments)[1].max() + 1) + encode(data.environments)[1]
    _, group, size = np.unique(groups, return_inverse=True, return_counts=True)
    rows = np.concatenate(
        [np.resize(np.flatnonzero(group == g), size.max()) for g in range(len(size))]
    )
    return EnvironmentData(data.X[rows], data.y[rows], data.environments[rows])


def comparable(data: EnvironmentData, least: int) -> NDArray:
    """Environments, None in those where a class has fewer rows than `least`.

    Such an environment says nothing of that class, and an ISR estimator that compares all classes
    refuses it; its rows still count for the head.

    Examples
    --------
    >>> y, e = np.array([0, 1, 0, 1, 0]), np.array(["a", "a", "b", "b", "c"])
    >>> comparable(EnvironmentData(np.zeros((5, 1)), y, e), 1).tolist()
    ['a', 'a', 'b', 'b', None]
    """
    (classes, k), (names, e) = encode(data.y), encode(data.environments)
    count = np.zeros((len(classes), len(names)))
    np.add.at(count, (k, e), 1)
    environments = data.environments.astype(object)
    environments[count.min(axis=0)[e] < least] = None
    return environments


def _ranges(y: NDArray) -> NDArray[np.intp]:
    edges = np.quantile(y, np.arange(1, _RANGES) / _RANGES)
    return np.searchsorted(edges, y)
