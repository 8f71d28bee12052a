"""``isr scan``: which column of a table is a shortcut."""

from __future__ import annotations

from pathlib import Path

import click

from isrlearn.cli import tables
from isrlearn.cli.console import Command, Result, working


@click.command(cls=Command)
@tables.TABLE
@click.option("--label", required=True, metavar="COLUMN", help="Column of labels.")
@click.option("--labels", type=tables.FILE, help="Table with further columns of the same rows.")
@click.option(
    "--candidates",
    metavar="COLUMNS",
    help="Columns to examine, separated by commas. [default: those of few values]",
)
@click.option("--level", type=float, default=0.01, help="Chance of finding one where none is.")
@tables.SEED
@click.option("--out", type=tables.Output("report"), help="Also write a page.")
def scan(
    table: Path,
    label: str,
    labels: Path | None,
    candidates: str | None,
    level: float,
    seed: int,
    out: Path | None,
) -> Result:
    """Find the columns of a table that are shortcuts to the label.

    Each column of few values is taken as the environment in turn: do the other columns shift with
    it, does a plain model rely on that, and does it fail where the column says otherwise?

    Example: isr scan train.csv --label y --out scan.html
    """
    import isrlearn
    from isrlearn.io import TableError
    from isrlearn.io.errors import shown, suggestion
    from isrlearn.io.files import atomic_write
    from isrlearn.io.labels import looks_continuous
    from isrlearn.io.tables import read_columns

    with working(f"Reading {table}"):
        columns = read_columns(table, label=label, labels=labels)
    names = None if candidates is None else [name.strip() for name in candidates.split(",")]
    for name in [label, *(names or ())]:
        if name not in columns:
            hint = suggestion(name, list(columns))
            raise TableError(f"{table}: there is no column {shown(name)}{hint}")
    if looks_continuous(columns[label]):
        value = columns[label][0]
        raise TableError(f"{table}: labels such as {value} look continuous, not like classes")
    with working(f"Examining {table}"):
        found = isrlearn.scan(columns, label, candidates=names, level=level, random_state=seed)
    lines = [str(found)]
    if out is not None:
        with atomic_write(out) as file:
            file.write(found.html().encode("utf-8", "replace"))
        lines.append(f"The page is in {out}.")
    return found.to_dict(), lines
