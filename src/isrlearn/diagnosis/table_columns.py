"""The columns of a table: each as features of a model, and as a candidate environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import MISSING, encode, is_missing

#: Most values of a column that is a category, and share and number of rows of a frequent value.
_MOST_VALUES, _SHARE, _FEWEST = 20, 0.01, 5
#: Rows from which a column of distinct whole numbers looks like identifiers; rows looked at first.
_ENOUGH, _FIRST = 20, 100


@dataclass(frozen=True, eq=False)
class TableColumn:
    """One column of a table.

    Examples
    --------
    >>> TableColumn.of("hospital", np.array(["A", "B", None] * 10)).values.tolist()
    ['A', 'B']
    """

    name: str
    numbers: NDArray[np.float64] | None  # (n,), NaN where missing; None for a category
    values: NDArray  # names of frequent values, or of all of a few numbers
    codes: NDArray[np.intp]  # (n,): position in `values`; -1 where rare or missing
    reason: str = ""  #: Why the column is of no use.

    @classmethod
    def of(cls, name: str, given: Any) -> TableColumn:
        """A column from the values of its rows."""
        array = np.asarray(given)
        known, n = ~is_missing(array), len(array)
        numeric = array.dtype.kind in "iuf" or (
            array.dtype.kind == "O" and all(_is_number(v) for v in array[known])
        )
        nothing = np.empty(0, dtype=str), np.full(n, MISSING)
        if array.dtype.kind in "mM":
            return cls(name, None, *nothing, "holds dates or times")
        values = array.astype(np.float64) if numeric else array
        if numeric:
            known &= np.isfinite(values)
            values = np.where(known, values, np.nan)
        elif array.dtype.kind not in "biuf":
            texts = array[known].astype(str)
            values = np.full(n, None)
            values[known] = texts
        names, codes = encode(values)
        names = names.astype(int) if numeric and (names == np.rint(names)).all() else names
        reason = _reason(names, int(known.sum()), numeric)
        if reason:
            return cls(name, None, *nothing, reason)
        numbers = values if numeric else None
        if numeric and len(names) > _MOST_VALUES:
            return cls(name, numbers, *nothing)
        return cls(name, numbers, *_frequent(names, codes))

    @cached_property
    def features(self) -> NDArray[np.float64]:
        """Standardised numbers with an indicator of missing ones, or an indicator per value."""
        if self.numbers is None:
            return (self.codes[:, None] == np.arange(len(self.values))).astype(float)
        missing = np.isnan(self.numbers)
        middle = np.median(self.numbers[~missing])
        filled = np.where(missing, middle, self.numbers) - middle
        columns = [filled / (filled.std() or 1.0), *[missing.astype(float)] * bool(missing.any())]
        return np.column_stack(columns)

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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool | np.bool_)


def _reason(names: NDArray, n: int, numeric: bool) -> str:
    """Why a column with these values in n rows is of no use; empty if it is."""
    if len(names) < 2:
        return "is constant" if len(names) else "has no values"
    if numeric and n >= _ENOUGH and len(names) == n and (names == np.rint(names)).all():
        return "holds a different whole number in every row, as identifiers do"
    if not numeric and len(names) > n / 2:
        return "holds text that hardly repeats"
    return ""


def _frequent(names: NDArray, codes: NDArray[np.intp]) -> tuple[NDArray, NDArray[np.intp]]:
    """The frequent values, at most twenty, and the position of each row's value among them."""
    count = np.bincount(codes[codes != MISSING], minlength=len(names))
    enough = np.flatnonzero(count >= max(_FEWEST, _SHARE * count.sum()))
    kept = np.sort(enough[np.argsort(-count[enough], kind="stable")][:_MOST_VALUES])
    place = np.full(len(names) + 1, MISSING)  # the last one is that of a missing value
    place[kept] = np.arange(len(kept))
    return names[kept], place[codes]
