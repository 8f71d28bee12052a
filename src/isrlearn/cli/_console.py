"""What the commands share on the way out: JSON, tables, progress, warnings."""

from __future__ import annotations

import json
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from isrlearn.metrics import GroupReport, GroupScore

# Where there is no terminal nothing needs to be broken to fit it.
_WIDTH = 200
_SUMMARIES = {
    "worst": "worst group",
    "average": "average of all rows",
    "balanced_average": "average of groups",
    "weighted_average": "average of groups, weighted as in training",
}

JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def show(record: Any, paragraphs: Iterable[RenderableType], as_json: bool) -> None:
    """Print a result: as JSON for programs, else as tables and sentences."""
    if as_json:
        from isrlearn.io._encoding import as_json as plain_json

        click.echo(json.dumps(plain_json(record), indent=2, allow_nan=False))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console = Console(highlight=False, markup=False, width=_WIDTH)
    for paragraph in paragraphs:
        if isinstance(paragraph, str):
            console.print(printable(paragraph), soft_wrap=True)
        else:
            console.print(paragraph)


@contextmanager
def working(what: str, *, quietly: bool = False) -> Iterator[None]:
    """Show what is going on, on a terminal, and warnings as lines of their own.

    Work that draws a bar of its own is done `quietly`.
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
    text = " ".join(str(message).split())
    click.echo(f"isr: warning: {text}", err=True)


def command_line() -> str:
    """The command that runs, as it was typed but for its quotes."""
    settings = click.get_current_context().obj
    return shlex.join(["isr", *getattr(settings, "arguments", ())])


def table(title: str, columns: Sequence[str], numbers: Sequence[str] = ()) -> Table:
    """An empty table; the columns in `numbers` follow the others, to the right."""
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
    for name in columns:
        made.add_column(Text(name), overflow="fold")
    for name in numbers:
        made.add_column(Text(name), justify="right", no_wrap=True)
    return made


def groups(title: str, reports: dict[str, GroupReport]) -> list[RenderableType]:
    """Scores of the same groups in one or more reports, side by side, and their summaries."""
    first = next(iter(reports.values()))
    by_class = first.groups[0].label is not None
    trained = first.groups[0].n_train is not None
    each = table(
        f"{title} [{100 * first.level:g}% interval]",
        ["class", "environment"] if by_class else ["environment"],
        [*["n train"] * trained, "n", *reports],
    )
    for i, group in enumerate(first.groups):
        names = [str(group.label)] * by_class + [str(group.environment)]
        sizes = [str(group.n_train)] * trained + [str(group.n)]
        each.add_row(*plain([*names, *sizes, *(_score(r.groups[i]) for r in reports.values())]))
    whole = table("Together", [first.metric], list(reports))
    records = [report.to_dict() for report in reports.values()]
    for key, name in _SUMMARIES.items():
        if records[0][key] is not None:
            whole.add_row(*plain([name, *(f"{record[key]:.3f}" for record in records)]))
    return [each, whole]


def plain(cells: Sequence[str]) -> list[Any]:
    """Cells that mean what they say: names from a file are no markup and move no cursor."""
    from rich.text import Text

    return [Text(printable(cell).replace("\n", "?")) for cell in cells]


def printable(text: str) -> str:
    """Text in which no name from a file can move the cursor."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)


def _score(score: GroupScore) -> str:
    return f"{score.value:.3f} [{score.low:.2f}, {score.high:.2f}]"
