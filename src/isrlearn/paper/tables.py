"""Tables as text: for the console, in Markdown, in CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from isrlearn.paper.records import Record
from isrlearn.paper.summary import Summary, excess_errors

__all__ = ["Table", "csv_of_records", "csv_of_summaries", "error_tables", "markdown", "number"]

_RECORD_COLUMNS = (
    *("dataset", "method", "n_environments", "seed", "optimizer", "parameters"),
    *("error", "excess", "validation", "seconds", "warned"),
)


@dataclass(frozen=True)
class Table:
    """Rows of text under a title.

    Parameters
    ----------
    title : str
        What the table shows.
    columns : sequence of str
        Heads of the columns; the first is for the rows' names.
    rows : sequence of sequence of str
        The rows.

    Examples
    --------
    >>> print(Table("Errors", ["method", "2"], [["erm", "0.5"]]).markdown())
    ### Errors
    <BLANKLINE>
    | method | 2 |
    | :-- | --: |
    | erm | 0.5 |
    <BLANKLINE>
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """The table in Markdown, numbers to the right."""
        lines = [
            f"### {self.title}",
            "",
            _markdown_row(self.columns),
            _markdown_row([":--", *["--:"] * (len(self.columns) - 1)]),
            *(_markdown_row(row) for row in self.rows),
            "",
        ]
        return "\n".join(lines)

    def rich(self) -> Any:
        """The table as a renderable of rich."""
        from rich.table import Table as RichTable

        table = RichTable(title=self.title, title_justify="left")
        for i, column in enumerate(self.columns):
            table.add_column(column, justify="right" if i else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        return table


def error_tables(
    found: Iterable[Summary],
    titles: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    value: str = "mean",
    spread: str | None = "half_width",
    exponent: bool = False,
) -> list[Table]:
    """One table a data set: methods down, numbers of environments across.

    Parameters
    ----------
    found : iterable of Summary
        What to show.
    titles : mapping of str to str
        Title of each data set; its order is the order of the tables.
    labels : mapping of str to str
        Label of each method; its order is the order of the rows.
    value : str, default="mean"
        The field of the summaries to show.
    spread : str or None, default="half_width"
        The field shown after a ± sign.
    exponent : bool, default=False
        Show small numbers with an exponent instead of as zero.

    Examples
    --------
    >>> from isrlearn.paper.records import CellKey, Record
    >>> from isrlearn.paper.summary import summaries
    >>> keys = [CellKey("3s", "erm", 2, seed, "converged") for seed in (0, 1)]
    >>> found = summaries([Record(key, 0.25, 0.0, [0.25, 0.25], 0.1) for key in keys])
    >>> error_tables(found, {"3s": "Example-3s"}, {"erm": "ERM"})[0].rows
    [['ERM', '0.2500 ± 0.0000']]
    """
    at = {(s.dataset, s.method, s.n_environments): s for s in found}
    tables = []
    for dataset, title in titles.items():
        counts = sorted({E for name, _, E in at if name == dataset})
        rows = []
        for method, label in labels.items():
            cells = [at.get((dataset, method, E)) for E in counts]
            if any(cells):
                rows.append([label, *(_shown(cell, value, spread, exponent) for cell in cells)])
        if rows:
            tables.append(Table(title, ["method", *(f"E = {E}" for E in counts)], rows))
    return tables


def number(value: float, exponent: bool = False) -> str:
    """A number in four decimals, or with an exponent where that would hide it.

    Examples
    --------
    >>> number(0.25), number(1.234e-7), number(1.234e-7, exponent=True), number(float("nan"))
    ('0.2500', '0.0000', '1.23e-07', '–')
    """
    if math.isnan(value):
        return "–"
    if exponent and value != 0 and not 5e-4 <= abs(value) < 1000:
        return f"{value:.2e}"
    return f"{value:.4f}"


def markdown(heading: str, notes: Sequence[str], tables: Iterable[Table]) -> str:
    """A Markdown page: heading, notes a paragraph each, tables.

    Examples
    --------
    >>> print(markdown("Run", ["By `isr bench`."], []))
    # Run
    <BLANKLINE>
    By `isr bench`.
    <BLANKLINE>
    """
    parts = [f"# {heading}", "", *(line for note in notes for line in (note, ""))]
    return "\n".join([*parts, *(table.markdown() for table in tables)])


def csv_of_summaries(found: Iterable[Summary]) -> str:
    """CSV with one line a summary.

    Examples
    --------
    >>> csv_of_summaries([]).startswith("dataset,method,n_environments,n_seeds,mean")
    True
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, [f.name for f in fields(Summary)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: _digits(value) for name, value in asdict(summary).items()} for summary in found
    )
    return out.getvalue()


def csv_of_records(records: Iterable[Record]) -> str:
    """CSV with one line a cell: its key, error, excess over the oracle and time.

    Examples
    --------
    >>> csv_of_records([]).splitlines()[0]
    'dataset,method,n_environments,seed,optimizer,parameters,error,excess,validation,seconds,warned'
    """
    records = list(records)
    excess = excess_errors(records)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_RECORD_COLUMNS)
    for record in records:
        key = record.key
        parameters = " ".join(f"{name}={value:.6g}" for name, value in key.parameters.items())
        values = (record.value, excess.get(key.id, math.nan), record.validation, record.seconds)
        writer.writerow(
            [key.dataset, key.method, key.n_environments, key.seed, key.optimizer, parameters]
            + [_digits(value) for value in values]
            + [int(bool(record.warnings))]
        )
    return out.getvalue()


def _digits(value: Any) -> Any:
    """Six significant digits of a float: more than seeds tell, and files stay small."""
    if not isinstance(value, float):
        return value
    return "" if math.isnan(value) else f"{value:.6g}"


def _shown(summary: Summary | None, value: str, spread: str | None, exponent: bool) -> str:
    """A cell of an error table."""
    if summary is None:
        return ""
    text = number(getattr(summary, value), exponent)
    return text if spread is None else f"{text} ± {number(getattr(summary, spread), exponent)}"


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
