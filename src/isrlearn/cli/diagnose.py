"""``isr diagnose``: whether ISR can help with a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from isrlearn.cli import tables
from isrlearn.cli.console import show, working


@click.command()
@tables.TABLE
@tables.columns(required=True)
@click.option("--task", type=click.Choice(["auto", "classification", "regression"]), default="auto")
@click.option("--level", type=float, default=0.01, help="Level of every test.")
@tables.SEED
@tables.JSON
def diagnose(
    table: Path, task: str, level: float, seed: int, as_json: bool, **columns: Any
) -> None:
    """Check whether ISR can help with a table, and what to do.

    Example: isr diagnose train.csv --label y --environment hospital
    """
    import isrlearn
    from isrlearn.io import read_table

    with working(f"Examining {table}"):
        rows = read_table(table, **columns)
        data = tables.data_of(rows)
        found = isrlearn.diagnose(*data, task=task, level=level, random_state=seed)
    show(found.to_dict(), [str(found)], as_json)
