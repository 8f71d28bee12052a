"""Errors of a model in the values of a column: a test, how far accuracy falls, what is won back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats.contingency import association, crosstab

from isrlearn.core.labels import MISSING, Cells
from isrlearn.metrics import Change
from isrlearn.metrics.groups import accuracy

#: Confidence of intervals, and draws they are made from.
_CONFIDENCE, _POSTERIOR_DRAWS = 0.95, 1_000


def error_p_value(wrong: NDArray, cells: Cells, n_draws: int, rng: np.random.Generator) -> float:
    """p-value of "inside each class, errors are as frequent in every value", by permutation.

    Permuting the errors of a class over its rows draws the errors of its cells from a multivariate
    hypergeometric distribution; the statistic is the sum of Pearson's over the classes.
    """
    count, errors = cells.count(), _of(wrong, cells)
    observed, drawn = 0.0, np.zeros(n_draws)
    for n, m in zip(count, errors, strict=True):
        rate = m.sum() / max(n.sum(), 1)
        seen = n > 0
        if not 0 < rate < 1 or seen.sum() < 2:
            continue
        variance = n[seen] * rate * (1 - rate)
        observed += np.sum((m[seen] - rate * n[seen]) ** 2 / variance)
        draws = rng.multivariate_hypergeometric(n[seen], m.sum(), size=n_draws)
        drawn += np.sum((draws - rate * n[seen]) ** 2 / variance, axis=1)
    if observed == 0:
        return 1.0
    return float((1 + np.count_nonzero(drawn >= observed * (1 - 1e-9))) / (n_draws + 1))


def change_in_worst_value(
    before: NDArray[np.bool_], after: NDArray[np.bool_], cells: Cells, rng: np.random.Generator
) -> Change:
    """Accuracy in the worst value of a column with two models, given which rows they get right."""
    outcomes = [before & after, before & ~after, ~before & after, ~(before | after)]
    count = np.stack([_of(rows, cells) for rows in outcomes], axis=-1)  # (K, V, 4)
    # Draws from the posterior of each group's four outcomes: small groups are uncertain even if
    # all of their rows agree, which a bootstrap would not show.
    drawn = rng.standard_gamma(count + 0.25, size=(_POSTERIOR_DRAWS, *count.shape))
    seen = count.sum(axis=-1) > 0
    was, now = (_in_worst_value(_shares(count, i), seen) for i in (1, 2))
    change = _in_worst_value(_shares(drawn, 2), seen) - _in_worst_value(_shares(drawn, 1), seen)
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(change, [tail, 1 - tail])
    return Change(float(was), float(now), float(low), float(high))


def _of(rows: NDArray[np.bool_], cells: Cells) -> NDArray[np.intp]:
    """How many of some rows each cell has, (K, V)."""
    return replace(cells, e=np.where(rows, cells.e, MISSING)).count()


def _shares(outcomes: NDArray, model: int) -> NDArray[np.float64]:
    """Accuracy (..., K, V) of the first or second model, from counts of the four outcomes."""
    right = outcomes[..., 0] + outcomes[..., model]
    return right / np.maximum(outcomes.sum(axis=-1), 1e-300)


def _in_worst_value(accuracy: NDArray, seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Lowest accuracy of any value of a column, all its classes counting the same."""
    return (np.where(seen, accuracy, 0.0).sum(axis=-2) / seen.sum(axis=0)).min(axis=-1)


def gap(right: NDArray, cells: Cells) -> dict[str, Any]:
    """How far accuracy falls in the worst value of a column, and the group that shows it best."""
    count, correct = cells.count(), _of(right, cells)
    whole = correct.sum(axis=1) / np.maximum(count.sum(axis=1), 1)
    seen = count > 0
    lost = np.where(seen, whole[:, None] - correct / np.maximum(count, 1), 0.0)
    level, found = 1 - (1 - _CONFIDENCE) / np.count_nonzero(count), []
    for k, v in np.argwhere(seen):
        n, m = count[k, v], correct[k, v]
        high = accuracy(np.ones(n), np.arange(n) < m, level, None).high
        found.append((whole[k] - high, int(k), int(v)))
    _, k, v = max(found)
    return {
        "gap": float((lost.sum(axis=0) / seen.sum(axis=0)).max()),
        "group": (cells.classes.tolist()[k], cells.environments.tolist()[v]),
        "n_group": int(count[k, v]),
        "group_accuracy": float(correct[k, v] / count[k, v]),
        "class_accuracy": float(whole[k]),
    }


def agreement(cells: Cells, codes: NDArray[np.intp]) -> float:
    """Cramér's V of the environments and a column inside the classes, averaged over rows."""
    total, weight = 0.0, 0
    for k in range(len(cells.classes)):
        rows = (cells.k == k) & (codes != MISSING)
        table = crosstab(cells.e[rows], codes[rows]).count
        if min(table.shape) > 1:
            total += association(table, method="cramer") * rows.sum()
            weight += int(rows.sum())
    return float(total / weight) if weight else 0.0
