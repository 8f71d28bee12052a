"""Text out: results as JSON or as tables, progress and warnings on standard error."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from isrlearn.metrics import GroupReport

#: Columns of the output where it is not a terminal: wide enough to break no line of a table.
_WIDTH = 200
_SUMMARIES = {
    "worst": "worst group",
    "average": "average over rows",
    "balanced_average": "average over groups",
    "weighted_average": "average over groups, weighted as in training",
}


def show(record: Any, paragraphs: Iterable[RenderableType], as_json: bool) -> None:
    """Print a result: as JSON for programs, otherwise as tables and sentences."""
    if as_json:
        # Twice, because JSON has no NaN: it is read back as null.
        text = json.dumps(record, default=lambda value: getattr(value, "tolist", value.__str__)())
        click.echo(json.dumps(json.loads(text, parse_constant=lambda _: None), indent=2))
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH
    console = Console(highlight=False, markup=False, width=width)
    for paragraph in paragraphs:
        is_text = isinstance(paragraph, str)
        console.print(printable(str(paragraph)) if is_text else paragraph, soft_wrap=is_text)


@contextmanager
def working(what: str, *, quietly: bool = False) -> Iterator[None]:
    """Show a status line on a terminal, and each warning as one line.

    Work that draws a progress bar of its own runs `quietly`.
    """
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        if quietly or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(what):
            yield


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"isr: warning: {' '.join(str(message).split())}", err=True)


def command_line() -> str:
    """The running command as it was typed, apart from its quotes."""
    return shlex.join(["isr", *click.get_current_context().obj["arguments"]])


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, n_left: int = 1
) -> Table:
    """A table whose first `n_left` columns are text and whose others are numbers."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    made = Table(
        title=Text(title),
        title_justify="left",
        title_style="bold",
        box=SIMPLE,
        # Narrow enough for a terminal of 80 columns.
        collapse_padding=True,
        pad_edge=False,
    )
    for i, name in enumerate(columns):
        if i < n_left:
            made.add_column(Text(name), overflow="fold")
        else:
            made.add_column(Text(name), justify="right", no_wrap=True)
    for row in rows:
        # Text, because a name from a file may look like markup.
        made.add_row(*(Text(printable(str(cell)).replace("\n", "?")) for cell in row))
    return made


def groups(title: str, reports: Mapping[str, GroupReport]) -> list[RenderableType]:
    """Scores of the same groups in one or more reports, side by side, and their summaries."""
    first = next(iter(reports.values()))
    by_class = first.groups[0].label is not None
    trained = first.groups[0].n_train is not None
    names = ["class", "environment"][not by_class :]
    rows = []
    for i, group in enumerate(first.groups):
        cells = [group.label, group.environment][not by_class :]
        cells += [group.n_train] * trained + [group.n]
        scores = [report.groups[i] for report in reports.values()]
        rows.append([*cells, *(f"{s.value:.3f} [{s.low:.2f}, {s.high:.2f}]" for s in scores)])
    records = [report.to_dict() for report in reports.values()]
    summaries = [
        [name, *(f"{record[key]:.3f}" for record in records)]
        for key, name in _SUMMARIES.items()
        if records[0][key] is not None
    ]
    title = f"{title} [{100 * first.level:g}% interval]"
    columns = [*names, *["n train"] * trained, "n", *reports]
    return [
        table(title, columns, rows, n_left=len(names)),
        table("Summary", [first.metric, *reports], summaries),
    ]


def printable(text: str) -> str:
    """Text in which no name from a file can move the cursor."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
