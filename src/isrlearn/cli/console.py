"""Text out: the result of a command as JSON or as tables; progress and warnings on stderr."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from isrlearn.cli.tables import FORCE, Output, check_outputs
from isrlearn.markup import as_json, line
from isrlearn.progress import on_terminal

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from isrlearn.io import Table as DataTable

#: Columns of the output where it is not a terminal: wide enough to break no line of a table.
_WIDTH = 200
Result = tuple[Any, Iterable["RenderableType"]]  #: a record for programs, and text for people


class Command(click.Command):
    """A command that returns a record and paragraphs, and possibly an exit code.

    Its outputs are checked before it runs. With ``--json`` the record is printed, otherwise the
    paragraphs: tables and sentences.
    """

    def __init__(self, name: str | None, *, params: list[click.Parameter], **more: Any) -> None:
        as_json = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")
        text = "Replace existing outputs of any kind."
        force = click.Option(["--force"], is_flag=True, help=text)
        writes = any(isinstance(each.type, Output) for each in params)
        super().__init__(name, params=[*params, *[force] * writes, as_json], **more)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; one that is abbreviated is an error that names it in full."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            known = [name for each in self.get_params(ctx) for name in each.opts]
            full = [name for name in known if name.startswith(error.option_name)]
            if not full:
                raise
            # click would suggest only names that are as long.
            hint = f"No such option {error.option_name!r}. Did you mean {' or '.join(full)}?"
            raise click.NoSuchOption(error.option_name, hint, ctx=ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, print what it returns, and return its exit code."""
        to_json, ctx.meta[FORCE] = ctx.params.pop("as_json"), ctx.params.pop("force", None)
        if ctx.meta[FORCE] is not None:
            check_outputs(ctx)
        record, paragraphs, *code = super().invoke(ctx)
        if to_json:
            click.echo(json.dumps(as_json(record), indent=2))
        else:
            click.echo(rendered(paragraphs), nl=False)
        return code[0] if code else 0


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


def rendered(paragraphs: Iterable[RenderableType]) -> str:
    """Tables and sentences as text, as wide as the terminal."""
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        console.width = _WIDTH
    # Captured, because rich would end the program where its output cannot be written.
    with console.capture() as captured:
        for paragraph in paragraphs:
            if isinstance(paragraph, str):
                console.print("\n".join(map(line, paragraph.split("\n"))), soft_wrap=True)
            else:
                console.print(paragraph)
    return captured.get()


@contextmanager
def working(what: str, *, quietly: bool = False) -> Iterator[None]:
    """Show a status line on a terminal, and each warning once, as one line.

    Work that draws a progress bar of its own runs `quietly`.
    """
    shown = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in shown:  # each fold of a search may give the same one
            shown.add(text)
            say(f"isr: warning: {text}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        if quietly or not on_terminal():
            yield
            return
        from rich.console import Console

        with Console(stderr=True).status(what):
            yield


def show_notes(table: DataTable) -> None:
    """Print the notes on a table, and what was done with columns that are not used as they are."""
    rows = [] if table.preparation is None else table.preparation.describe()
    if len(rows) > 1 or any(row[1:] != ("number", "") for row in rows):
        title = line(f"Columns of {table.path}")
        click.echo(rendered([column_table(title, rows)]), err=True, nl=False)
    for note in table.notes:
        say(f"Note: {table.path}: {note}.")


def column_table(title: str, rows: Iterable[Sequence[str]]) -> Table:
    """What was done with each column of a table, and why."""
    return table(title, ["columns", "use", "why"], rows, n_left=3)


def share_table(shares: Any) -> list[RenderableType]:
    """Columns that carry what is removed and that the head uses; none unless all is sound."""
    kinds = {"removed": "removed directions", "before": "predictions before", "after": "after"}
    rows = []
    for share in shares if isinstance(shares, list) else []:
        values = [share.get(kind) for kind in kinds] if isinstance(share, dict) else [""]
        if not all(value is None or isinstance(value, int | float) for value in values):
            return []
        rows.append([share.get("name"), *("" if v is None else f"{v:.1%}" for v in values)])
    title = "Share of each column in the removed directions, and alone in the predictions"
    if rows and not any(share.get("removed") for share in shares):
        kinds, title = {"after": "predictions"}, "Share of each column alone in the predictions"
        rows = [[row[0], row[-1]] for row in rows]
    return [table(title, ["column", *kinds.values()], rows)] if rows else []


def fate(scale: float) -> str:
    """What a scale does to the directions found."""
    if scale in (0, 1):
        return "left unchanged" if scale else "removed"
    return f"scaled to {100 * scale:g}%"


def say(text: str) -> None:
    """Write a line to standard error, unless it is closed."""
    with suppress(OSError):
        click.echo(line(text), err=True)


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
    for name in columns[:n_left]:
        made.add_column(Text(name), overflow="fold")
    for name in columns[n_left:]:
        made.add_column(Text(name), justify="right", no_wrap=True)
    for row in rows:
        # Text, because a name from a file may look like markup.
        made.add_row(*(Text(line(cell)) for cell in row))
    return made
