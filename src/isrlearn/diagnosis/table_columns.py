"""The columns of a table: each as features of a model, and as a candidate environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import MISSING, encode
from isrlearn.estimators import TablePreparer
from isrlearn.estimators.columns import LEFT_OUT, NUMBER, column_values

#: Most values of a column that is a category, and share and number of rows of a frequent value.
_MOST_VALUES, _SHARE, _FEWEST = 20, 0.01, 5
#: Rows looked at first.
_FIRST = 100


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
        order = np.lexsort((own, other))
        starts = np.flatnonzero(np.r_[True, np.diff(other[order]) > 0])
        low, high = own[order][starts], own[order][np.r_[starts[1:] - 1, len(own) - 1]]
        if (low == high).all():
            return True
        if self.numbers is None:
            owners = np.unique(np.column_stack([own, other]), axis=0)
            return len(owners) == len(np.unique(own))
        by_low = np.argsort(low)
        return bool((high[by_low][:-1] < low[by_low][1:]).all())


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
        given, numeric = column_values(table[column.name]), column.use == NUMBER
        names, codes = encode(given)
        if numeric and len(names) > _MOST_VALUES:
            names, codes = names[:0], np.full(len(given), MISSING)
        elif numeric and (names == np.rint(names)).all():
            names = names.astype(int)
        numbers, features = given if numeric else None, X[:, origins == column.name]
        if numeric:  # principal components would follow the units
            features[:, 0] = (features[:, 0] - features[:, 0].mean()) / (features[:, 0].std() or 1)
        found.append(TableColumn(column.name, features, numbers, *_frequent(names, codes)))
    return found, {column.name: column.why for column in prepare.columns_ if column.use == LEFT_OUT}


def columns_of(frame: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of the columns of a data frame, a mapping of arrays, or an array."""
    if isinstance(frame, Mapping):
        yield from ((str(name), values) for name, values in frame.items())
    elif hasattr(frame, "columns"):
        yield from ((str(name), frame[name]) for name in frame.columns)
    else:
        array = np.asarray(frame)
        if array.ndim != 2:
            raise ValueError(
                f"frame must be a data frame, a mapping of columns or an array of shape (n, d); "
                f"got {type(frame).__name__}"
            )
        yield from ((f"f{i}", column) for i, column in enumerate(array.T))


def _frequent(names: NDArray, codes: NDArray[np.intp]) -> tuple[NDArray, NDArray[np.intp]]:
    """The frequent values, at most twenty, and the position of each row's value among them."""
    count = np.bincount(codes[codes != MISSING], minlength=len(names))
    enough = np.flatnonzero(count >= max(_FEWEST, _SHARE * count.sum()))
    kept = np.sort(enough[np.argsort(-count[enough], kind="stable")][:_MOST_VALUES])
    place = np.full(len(names) + 1, MISSING)  # the last one is that of a missing value
    place[kept] = np.arange(len(kept))
    return names[kept], place[codes]
