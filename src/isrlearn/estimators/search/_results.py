"""Tables of what every setting reached."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isrlearn.estimators.search._scores import Score


def results_of(
    points: Sequence[dict], scores: Sequence[Sequence[Score]], selection: str
) -> dict[str, Any]:
    """A table as scikit-learn's searches have it, with both scores of every setting.

    `mean_test_score` is what the selection rule compares. `mean_worst_group` and `mean_average`
    are there whatever the rule, averaged over splits.
    """
    worst = np.array([[s.worst_group for s in row] for row in scores])  # (points, splits)
    average = np.array([[s.average for s in row] for row in scores])
    chosen = np.array([[s.by(selection) for s in row] for row in scores])
    results: dict[str, Any] = {"params": list(points)}
    for name in dict.fromkeys(name for point in points for name in point):
        results[f"param_{name}"] = _column(points, name)
    for j in range(chosen.shape[1]):
        results[f"split{j}_test_score"] = chosen[:, j]
    mean = chosen.mean(axis=1)
    results["mean_test_score"] = mean
    results["std_test_score"] = chosen.std(axis=1)
    results["rank_test_score"] = stats.rankdata(-mean, method="min").astype(np.int32)
    for name, values in (("worst_group", worst), ("average", average)):
        for j in range(values.shape[1]):
            results[f"split{j}_{name}"] = values[:, j]
        results[f"mean_{name}"] = values.mean(axis=1)
    return results


def _column(points: Sequence[dict], name: str) -> np.ma.MaskedArray:
    """Values of a parameter, masked where a setting does not have it."""
    column = np.ma.masked_all(len(points), dtype=object)
    for i, point in enumerate(points):
        if name in point:
            # A head may be a pair of arrays, which must stay one entry.
            column.data[i] = point[name]
            column.mask[i] = False
    return column


def best_of(results: dict[str, Any], efforts: Sequence[tuple]) -> int:
    """Position of the best setting; of equals, the one with the least effort."""
    tied = np.flatnonzero(results["rank_test_score"] == 1).tolist()
    return min(tied, key=lambda i: (*efforts[i], i))


def on_front(average: NDArray, worst: NDArray) -> NDArray[np.bool_]:
    """Which settings no other one beats in one score without losing in the other."""
    order = np.lexsort((-worst, -average))
    front = np.zeros(len(order), dtype=bool)
    best, level = -np.inf, np.nan
    for i in order:
        # Equal in both scores to one on the front: neither beats the other.
        if worst[i] > best or (worst[i] == best and average[i] == level):
            front[i] = True
            best, level = worst[i], average[i]
    return front
