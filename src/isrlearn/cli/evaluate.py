"""``isr evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from isrlearn.cli import _options as options
from isrlearn.cli._console import JSON, groups, show, working


@click.command()
@options.MODEL
@options.TABLE
@options.label(required=False)
@options.environment(required=False)
@options.LABELS
@options.features("Columns in the model's order, for a model that knows no names.")
@click.option(
    "--baseline",
    type=options.FILE,
    metavar="TRAIN",
    help="Training table: fit the same head on it with nothing removed, and show both.",
)
@click.option("--metric", type=click.Choice(["accuracy", "rmse", "r2"]))
@JSON
def evaluate(
    model: Path,
    table: Path,
    label: str | None,
    environment: str | None,
    labels: Path | None,
    features: str | None,
    baseline: Path | None,
    metric: str | None,
    as_json: bool,
) -> None:
    """Score a model on every group of a table.

    A group is a class in an environment; of a regression, an environment.

    Example: isr evaluate model.isr test.csv --baseline train.csv
    """
    from isrlearn.cli.workflow import evaluate_table, labelled_table_for
    from isrlearn.io import read_model

    with working(f"Scoring {table}"):
        saved = read_model(model)
        names: dict[str, Any] = {
            "label": label,
            "environment": environment,
            "features": features,
        }
        rows = labelled_table_for(saved, table, labels=labels, **names)
        train = None if baseline is None else labelled_table_for(saved, baseline, **names)
        result = evaluate_table(saved, rows, metric=metric, train=train)
    reports = {"model": result.model}
    if result.baseline is not None:
        reports = {"nothing removed": result.baseline, **reports}
    title = f"{result.model.metric} of each group"
    show(result.to_dict(), groups(title, reports), as_json)
