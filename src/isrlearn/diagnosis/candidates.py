"""What a scan found: the columns as candidates for a shortcut, and the answer in words."""

import os
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

from isrlearn import markup
from isrlearn.estimators.columns import counted
from isrlearn.metrics import Change

_NOTES = (
    "shift: largest distance between the class means of the features, in standard deviations; "
    "reliance: the same of the model's score. gap: points by which accuracy falls in the worst "
    "value of the column, classes counting the same; own gap: that of a model which has the column "
    "itself among its features; gain: points won back by removing what shifts, with a 95 % "
    "interval. p: largest of three p-values, corrected for the number of columns."
)


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
            return f"No shortcut was found among {counted(len(self.table), 'column')}."
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
        lines = [f"Left out: {name} ({reason})." for name, reason in self.left_out.items()]
        for each in self.table:
            if each.note:
                lines.append(f"{each.name} was not tested: {each.note}.")
            if each.found and each.left_out:
                lines.append(f"Left out together with {each.name}: {', '.join(each.left_out)}.")
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

    def _table(self) -> tuple[list[list[str]], str]:
        """Rows of the table, its head first, and the sides of its columns."""
        rows = [["column", "", "values", "shift", "reliance", "own gap", "gap", "p", "gain"]]
        for each in self.table:
            numbers, gain = ["-"] * 5, ""
            if each.p_values:
                sizes = (each.shift, each.reliance)
                numbers = [f"{v:.1f} sd" if v < 100 else "> 99 sd" for v in sizes]
                numbers += [f"{100 * v:.1f}" for v in (each.own_gap, each.gap)]
                numbers.append(f"{each.p_value:.2g}")
            if each.gain is not None:
                low, high = 100 * each.gain.low, 100 * each.gain.high
                gain = f"{100 * each.gain.difference:+.1f} [{low:+.0f}, {high:+.0f}]"
            found = "shortcut" if each.found else ""
            rows.append([each.name, found, str(each.n_values), *numbers, gain])
        return rows, "<<>>>>>>>"

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        found = {"headline": self.headline, "notes": self.notes}
        return markup.as_json(vars(self) | found)

    def __str__(self) -> str:
        """The answer, the table and the notes."""
        said = (line for note in (*self.notes, _NOTES) for line in wrap(note, 96))
        table = markup.aligned(*self._table()) if self.table else []
        return "\n".join([self._title, "", *wrap(self.headline, 96), "", *table, "", *said])

    def __repr__(self) -> str:
        return f"<Scan of {self.n_samples:,} rows: {self.headline}>"

    def _repr_html_(self) -> str:
        headline = markup.paragraph(self.headline, strong=True)
        table = markup.table(*self._table()) if self.table else ""
        notes = map(markup.paragraph, (*self.notes, _NOTES))
        return markup.block(markup.paragraph(self._title), headline, table, *notes)

    @property
    def _title(self) -> str:
        return (
            f"Scan of {self.n_samples:,} rows for shortcuts to {self.label} (level {self.level:g}; "
            f"accuracy of a plain model {self.accuracy:.3f})"
        )

    def html(self) -> str:
        """The scan as a page of its own, without scripts."""
        return markup.page(f"Shortcuts to {self.label}", self._repr_html_())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write that page to a file."""
        Path(path).write_text(self.html(), encoding="utf-8", errors="replace")
