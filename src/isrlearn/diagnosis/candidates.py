"""The columns of a table as candidates for a shortcut, and what a scan found about them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats.contingency import crosstab

from isrlearn import markup
from isrlearn.core.labels import MISSING, encode
from isrlearn.estimators import TablePreparer
from isrlearn.estimators.columns import LEFT_OUT, NUMBER, column_values
from isrlearn.metrics import Change

#: Most values of a column that is a category, and share and number of rows of a frequent value.
_MOST_VALUES, _SHARE, _FEWEST = 20, 0.01, 5
#: Rows looked at first.
_FIRST = 100

_SIDES = "<<>>>>>>>"
_NOTES = (
    "shift: largest distance between the class means of the features, in standard deviations; "
    "reliance: the same of the model's score. gap: points by which accuracy falls in the worst "
    "value of the column, classes counting the same; own gap: that of a model which has the column "
    "itself among its features; gain: points won back by removing what shifts, with a 95 % "
    "interval. p: largest of three p-values, corrected for the number of columns."
)


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


def _frequent(names: NDArray, codes: NDArray[np.intp]) -> tuple[NDArray, NDArray[np.intp]]:
    """The frequent values, at most twenty, and the position of each row's value among them."""
    count = np.bincount(codes[codes != MISSING], minlength=len(names))
    enough = np.flatnonzero(count >= max(_FEWEST, _SHARE * count.sum()))
    kept = np.sort(enough[np.argsort(-count[enough], kind="stable")][:_MOST_VALUES])
    place = np.full(len(names) + 1, MISSING)  # the last one is that of a missing value
    place[kept] = np.arange(len(kept))
    return names[kept], place[codes]


@dataclass(frozen=True)
class Candidate:
    """A column as the environment of a shortcut.

    Examples
    --------
    >>> Candidate("hospital", 2, 900, p_values=(1e-9, 1e-7, 1e-4), p_value=3e-4, found=True).found
    True
    """

    name: str  #: The column.
    n_values: int  #: Values that are frequent enough to be compared.
    n: int  #: Rows with one of these values.
    #: Of "no shift of the features", "none of the model's scores" and "errors as frequent
    #: everywhere"; empty if nothing could be tested.
    p_values: tuple[float, ...] = ()
    p_value: float = 1.0  #: The largest of them, corrected for the number of candidates.
    found: bool = False  #: Whether the column is a shortcut at the level of the scan.
    shift: float = 0.0  #: Largest shift of a class between values, in standard deviations.
    reliance: float = 0.0  #: The same of the score of a plain model.
    own_gap: float = 0.0  #: The gap of a model that has the column itself among its features.
    gap: float = 0.0  #: How far accuracy falls in the worst value, classes counting the same.
    group: tuple[Any, Any] | None = None  #: Class and value of the group that shows it best.
    n_group: int = 0  #: Its rows.
    group_accuracy: float = 0.0  #: Its accuracy.
    class_accuracy: float = 0.0  #: The accuracy of its class.
    gain: Change | None = None  #: Accuracy in the worst value before and after removal, if tried.
    left_out: tuple[str, ...] = ()  #: Columns that say the same and were left out with this one.
    note: str = ""  #: Why the column was not tested, and what else there is to know.


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """What `isrlearn.scan` found; ``print(scan)`` shows it in words."""

    table: tuple[Candidate, ...]  #: From the first to the last; shortcuts come first.
    errors: Candidate | None  #: The errors of a strongly penalised model, which are not tested.
    label: str  #: Name of the label.
    n_samples: int  #: Number of rows.
    n_examined: int  #: Rows of the sample that was examined.
    n_columns: int  #: Columns used as features.
    level: float  #: Of the tests, corrected for the number of columns.
    left_out: dict[str, str]  #: Columns and classes that were left out, each with the reason.
    accuracy: float  #: Accuracy of a plain model with all columns, on rows it was not fitted on.

    @property
    def shortcuts(self) -> tuple[Candidate, ...]:
        """The columns that were found to be shortcuts, the largest gain first."""
        return tuple(each for each in self.table if each.found)

    @property
    def headline(self) -> str:
        """The answer in a sentence."""
        if not self.shortcuts:
            return f"No shortcut was found among {len(self.table)} columns."
        first, *others = self.shortcuts
        label, value = first.group or ("", "")
        more = f" Also: {', '.join(each.name for each in others)}." if others else ""
        return (
            f"{first.name} is a shortcut: where it is {value}, {first.group_accuracy:.1%} of the "
            f"{first.n_group:,} rows of class {label} are classified correctly, in the whole class "
            f"{first.class_accuracy:.1%}.{more}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What else a reader should know, in sentences."""
        lines = [f"{name} was left out: {reason}." for name, reason in self.left_out.items()]
        for each in self.table:
            if each.note:
                lines.append(f"{each.name} was not tested: {each.note}.")
            if each.found and each.left_out:
                names = ", ".join(each.left_out)
                lines.append(f"While {each.name} is examined, {names} is left out as well.")
        if self.errors is not None:
            lines.append(
                f"Errors of a strongly penalised model with all columns: {self.errors.note}."
            )
        if self.shortcuts:
            name = self.shortcuts[0].name
            lines.append(f"Whether ISR or balanced weights help: diagnose with environment {name}.")
        if self.n_examined < self.n_samples:
            lines.append(f"{self.n_examined:,} of the {self.n_samples:,} rows were examined.")
        return tuple(lines)

    def rows(self) -> list[list[str]]:
        """The table as text, its head first."""
        rows = [["column", "", "values", "shift", "reliance", "own gap", "gap", "p", "gain"]]
        for each in self.table:
            numbers, gain = ["-"] * 5, ""
            if each.p_values:
                sizes = (each.shift, each.reliance)
                numbers = [f"{v:.1f} sd" if v < 100 else "> 99 sd" for v in sizes]
                numbers += [f"{100 * v:.1f}" for v in (each.own_gap, each.gap)]
                numbers.append(f"{each.p_value:.2g}")
            if each.gain is not None:
                change, low, high = (100 * v for v in (each.gain.difference, *each.gain[2:]))
                gain = f"{change:+.1f} [{low:+.0f}, {high:+.0f}]"
            found = "shortcut" if each.found else ""
            rows.append([each.name, found, str(each.n_values), *numbers, gain])
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        record = asdict(self) | {"headline": self.headline, "notes": self.notes}
        for entry, each in zip(record["table"], self.table, strict=True):
            entry["gain"] = None if each.gain is None else each.gain._asdict()
        return json.loads(json.dumps(record, default=str))

    def __str__(self) -> str:
        """The answer, the table and the notes."""
        said = (line for note in (*self.notes, _NOTES) for line in wrap(note, 96))
        table = markup.aligned(self.rows(), _SIDES) if self.table else []
        return "\n".join([self._title, "", *wrap(self.headline, 96), "", *table, "", *said])

    def __repr__(self) -> str:
        return f"<Scan of {self.n_samples:,} rows: {self.headline}>"

    def _repr_html_(self) -> str:
        return markup.block(*self._parts())

    @property
    def _title(self) -> str:
        return (
            f"Scan of {self.n_samples:,} rows for shortcuts to {self.label} (level {self.level:g}; "
            f"accuracy of a plain model {self.accuracy:.3f})"
        )

    def _parts(self) -> list[str]:
        notes = [markup.paragraph(note) for note in (*self.notes, _NOTES)]
        table = markup.table(self.rows(), _SIDES) if self.table else ""
        headline = markup.paragraph(self.headline, strong=True)
        return [markup.paragraph(self._title), headline, table, *notes]

    def html(self) -> str:
        """The scan as a page of its own, without scripts."""
        return markup.page(f"Shortcuts to {self.label}", *self._parts())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write that page to a file."""
        Path(path).write_text(self.html(), encoding="utf-8", errors="replace")
