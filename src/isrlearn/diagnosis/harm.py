"""Errors of a model in the values of a column: a test, how far accuracy falls, what is won back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats.contingency import association, crosstab

from isrlearn.core.labels import MISSING, Cells
from isrlearn.metrics import Change

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
    seen = count.sum(axis=-1) > 0
    # Draws from the posterior of each group's four outcomes: small groups are uncertain even if
    # all of their rows agree, which a bootstrap would not show.
    drawn = rng.standard_gamma(count + 0.25, size=(_POSTERIOR_DRAWS, *count.shape))
    change = np.diff(_in_worst_value(drawn, seen))
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(change, [tail, 1 - tail])
    was, now = _in_worst_value(count, seen).tolist()
    return Change(was, now, float(low), float(high))


def _of(rows: NDArray[np.bool_], cells: Cells) -> NDArray[np.intp]:
    """How many of some rows each cell has, (K, V)."""
    return replace(cells, e=np.where(rows, cells.e, MISSING)).count()


def _in_worst_value(outcomes: NDArray, seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Accuracy (..., 2) of both models in their worst value, all classes counting the same."""
    right = outcomes[..., :1] + outcomes[..., 1:3]  # (..., K, V, 2)
    share = right / np.maximum(outcomes.sum(axis=-1, keepdims=True), 1e-300)
    summed = np.where(seen[..., None], share, 0.0).sum(axis=-3)
    return (summed / seen.sum(axis=0)[:, None]).min(axis=-2)


def gap(right: NDArray, cells: Cells) -> dict[str, Any]:
    """How far accuracy falls in the worst value of a column, and the group that shows it best."""
    n, m = cells.count(), _of(right, cells)
    seen, whole = n > 0, m.sum(axis=1) / np.maximum(n.sum(axis=1), 1)
    share = m / np.maximum(n, 1)
    lost = np.where(seen, whole[:, None] - share, 0.0)
    # Clopper and Pearson's upper limits, which hold together: small groups are not named by chance.
    tail = (1 - _CONFIDENCE) / np.count_nonzero(n) / 2
    high = np.where(m < n, 1 - betaincinv(n - m, m + 1, tail), 1.0)
    certain = np.where(seen, whole[:, None] - high, -np.inf)
    k, v = np.argwhere(certain == certain.max())[-1]
    return {
        "gap": float((lost.sum(axis=0) / seen.sum(axis=0)).max()),
        "group": (cells.classes.tolist()[k], cells.environments.tolist()[v]),
        "n_group": int(n[k, v]),
        "group_accuracy": float(share[k, v]),
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
