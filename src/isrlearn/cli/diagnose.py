"""``isr diagnose``."""

from __future__ import annotations

from pathlib import Path

import click

from isrlearn.cli import _options as options
from isrlearn.cli._console import JSON, show, working


@click.command()
@options.TABLE
@options.label(required=True)
@options.environment(required=True)
@options.features("Feature columns: names, patterns f_*, ranges f0:f511. [default: all the others]")
@options.LABELS
@click.option(
    "--task",
    type=click.Choice(["auto", "classification", "regression"]),
    default="auto",
    show_default=True,
)
@click.option("--level", type=float, default=0.01, show_default=True, help="Level of every test.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@JSON
def diagnose(
    table: Path,
    label: str,
    environment: str,
    features: str | None,
    labels: Path | None,
    task: str,
    level: float,
    seed: int,
    as_json: bool,
) -> None:
    """Say whether ISR can help with a table, and what to do.

    Example: isr diagnose train.csv --label y --environment hospital
    """
    from isrlearn.cli.workflow import diagnose_table, training_tables

    with working(f"Examining {table}"):
        rows, _ = training_tables(
            table,
            label=label,
            environment=environment,
            features=features,
            labels=labels,
        )
        found = diagnose_table(rows, task=task, level=level, random_state=seed)
    show(found.to_dict(), [str(found)], as_json)
