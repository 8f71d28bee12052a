"""Columns of a table: their frequent values, and the errors of a model in each of these."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv
from scipy.stats.contingency import association, crosstab

from isrlearn.core.labels import MISSING, Cells, encode
from isrlearn.estimators import TablePreparer
from isrlearn.estimators.columns import LEFT_OUT, NUMBER, column_values
from isrlearn.metrics import Change

#: Most values of a column that is a category, and share and number of rows of a frequent value.
_MOST_VALUES, _SHARE, _FEWEST = 20, 0.01, 5
#: Rows looked at first.
_FIRST = 100
#: Confidence of intervals, and draws they are made from.
_CONFIDENCE, _POSTERIOR_DRAWS = 0.95, 1_000


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column of a table that is of use."""

    name: str
    features: NDArray[np.float64]  # (n, m): what a model sees of it
    numbers: NDArray[np.float64] | None  # (n,), NaN where missing; None for a category
    values: NDArray  # frequent values; none of a column of many numbers
    codes: NDArray[np.intp]  # (n,): position in `values`; -1 where rare or missing

    def same_as(self, codes: NDArray[np.intp]) -> bool:
        """Whether the column and one of these codes say the same, one of them more finely.

        Either the column is constant among the rows of each code, or the values of different codes
        do not overlap, as those of an age and of an age group.
        """
        own = self.codes if self.numbers is None else self.numbers
        known = np.flatnonzero((codes != MISSING) & (own == own))
        # What fails on some rows fails on all: most columns are ruled out by a few.
        return len(known) > 0 and all(
            self._agrees(own[rows], codes[rows]) for rows in (known[:_FIRST], known)
        )

    def _agrees(self, own: NDArray, other: NDArray) -> bool:
        seen = crosstab(own, other).count > 0  # (values in their order, codes)
        if (seen.sum(axis=0) == 1).all():
            return True
        changes = np.count_nonzero(np.diff(seen.argmax(axis=1)))
        apart = self.numbers is None or changes == seen.shape[1] - 1
        return apart and bool((seen.sum(axis=1) == 1).all())


def table_columns(table: Mapping[str, Any]) -> tuple[list[TableColumn], dict[str, str]]:
    """Columns that `TablePreparer` finds to be of use, and those left out with the reason.

    Examples
    --------
    >>> found, left_out = table_columns({"ward": ["A", "B", None] * 10, "day": ["2020-01-01"] * 30})
    >>> found[0].values.tolist(), left_out
    (['A', 'B'], {'day': 'one value'})
    """
    prepare = TablePreparer().fit(table)
    X, origins = prepare.transform(table), np.array(prepare.origins_)
    found = []
    for column in prepare.columns_:
        if column.use == LEFT_OUT:
            continue
        given, features = column_values(table[column.name]), X[:, origins == column.name]
        names, codes = encode(given)
        numbers = given if column.use == NUMBER else None
        if numbers is not None:
            # Principal components would follow the units.
            features[:, 0] = (features[:, 0] - features[:, 0].mean()) / (features[:, 0].std() or 1)
            if len(names) > _MOST_VALUES:
                names, codes = names[:0], np.full_like(codes, MISSING)
            elif (names == np.rint(names)).all():
                names = names.astype(int)
        found.append(TableColumn(column.name, features, numbers, *_frequent(names, codes)))
    return found, {column.name: column.why for column in prepare.columns_ if column.use == LEFT_OUT}


def _frequent(names: NDArray, codes: NDArray[np.intp]) -> tuple[NDArray, NDArray[np.intp]]:
    """The frequent values, at most twenty, and the position of each row's value among them."""
    count = np.bincount(codes[codes != MISSING], minlength=len(names))
    first = np.argsort(-count, kind="stable")[:_MOST_VALUES]
    kept = np.sort(first[count[first] >= max(_FEWEST, _SHARE * count.sum())])
    place = np.full(len(names) + 1, MISSING)  # the last one is that of a missing value
    place[kept] = np.arange(len(kept))
    return names[kept], place[codes]


def error_p_value(wrong: NDArray, cells: Cells, n_draws: int, rng: np.random.Generator) -> float:
    """p-value of "inside each class, errors are as frequent in every value", by permutation.

    Permuting the errors of a class over its rows draws the errors of its cells from a multivariate
    hypergeometric distribution; the statistic is the sum of Pearson's over the classes.
    """
    statistic = np.zeros(n_draws + 1)  # the observed one first
    for count, errors in zip(cells.count(), _of(wrong, cells), strict=True):
        n, m = count[count > 0], errors[count > 0]
        rate = m.sum() / max(n.sum(), 1)
        if 0 < rate < 1 and len(n) > 1:
            draws = rng.multivariate_hypergeometric(n, m.sum(), size=n_draws)
            excess = np.vstack([m, draws]) - rate * n
            statistic += np.sum(excess**2 / (n * rate * (1 - rate)), axis=1)
    return float(np.mean(statistic >= statistic[0] * (1 - 1e-9)))


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
