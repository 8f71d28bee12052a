"""``isr report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isrlearn.cli import _options as options
from isrlearn.cli._console import JSON, command_line, show, working

if TYPE_CHECKING:
    from isrlearn.report import Report


@click.command()
@options.MODEL
@options.TABLE
@click.option(
    "--train",
    type=options.FILE,
    help="Table that the model was fitted on: shows what the removal changed.",
)
@options.label(required=False)
@options.environment(required=False)
@options.LABELS
@options.features("Columns in the model's order, for a model that knows no names.")
@options.out("Page to write, report.html for example.")
@JSON
def report(
    model: Path,
    table: Path,
    train: Path | None,
    label: str | None,
    environment: str | None,
    labels: Path | None,
    features: str | None,
    out: Path,
    as_json: bool,
) -> None:
    """Show on one page what a model gained, and why.

    The model is scored on the table: by cross-validation if that is the one it was fitted on,
    else as it is, beside the same head with nothing removed if --train is given. The page is one
    file that needs no network.

    Example: isr report model.isr test.csv --train train.csv --out report.html
    """
    from isrlearn.cli.workflow import labelled_table_for, report_table
    from isrlearn.io import read_model
    from isrlearn.io.files import check_writable
    from isrlearn.report._page import check_jinja

    check_writable(out)
    check_jinja()
    with working(f"Examining {table}"):
        saved = read_model(model)
        names: dict[str, Any] = {
            "label": label,
            "environment": environment,
            "features": features,
        }
        rows = labelled_table_for(saved, table, labels=labels, **names)
        fitted = None if train is None else labelled_table_for(saved, train, **names)
        given = {name: value for name, value in names.items() if value}
        sources = {"command": command_line(), **given}
        found = report_table(saved, rows, train=fitted, sources=sources)
        found.save(out)
    show({**found.to_dict(), "out": str(out)}, paragraphs(found, out), as_json)


def paragraphs(report: Report, out: Path) -> list[Any]:
    """What a report says, in a line or two, and where it is."""
    lines = [report.headline]
    if report.evidence.kind == "table":
        lines.append("Name the training table with --train to see what the removal changed.")
    return [*lines, f"The report is in {out}."]
