"""``isr report``: a page that shows what a model gained, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isrlearn.cli import tables
from isrlearn.cli.console import command_line, show, working

if TYPE_CHECKING:
    from isrlearn.io import ModelFile, Table
    from isrlearn.report import Report

#: Relative difference of means that rounding may cause.
_ROUNDING = 1e-5


@click.command()
@tables.MODEL
@tables.TABLE
@click.option("--train", type=tables.FILE, help="Training table: compare with no removal.")
@tables.columns(required=False)
@click.option("--out", required=True, type=tables.FILE, help="Page to write, such as report.html.")
@tables.JSON
def report(
    model: Path, table: Path, train: Path | None, out: Path, as_json: bool, **columns: Any
) -> None:
    """Write a page that shows what a model gained, and why.

    The model is scored on the table: by cross-validation if it was fitted on that table,
    otherwise directly, beside the same head with nothing removed if --train is given. The page is
    one file that needs no network.

    Example: isr report model.isr test.csv --train train.csv --out report.html
    """
    tables.check_outputs()
    check_report()
    with working(f"Examining {table}"):
        saved = tables.read_predictor(model)
        rows, fitted = tables.labelled_table_for(saved, table, **columns), None
        columns["labels"] = None  # they belong to that one table
        if train is not None:
            fitted = tables.labelled_table_for(saved, train, **columns)
        found = report_on_file(saved, rows, fitted, columns)
        found.save(out)
    lines = [found.headline, f"The report is in {out}."]
    if found.evidence.kind == "table":
        lines.insert(1, "Give the training table with --train to see what the removal changed.")
    show({**found.to_dict(), "out": str(out)}, lines, as_json)


def check_report() -> None:
    """Raise now if a page could not be written later, after the work is done."""
    if find_spec("jinja2") is None:
        raise ImportError('a report needs jinja2: pip install "isrlearn[report]"', name="jinja2")


def report_on(
    model: ModelFile,
    train: Table | None,
    held_out: Table | None,
    *,
    chosen: bool,
    columns: Mapping[str, Any],
) -> Report:
    """Report on a model, scored on held-out rows if there are any, else by cross-validation."""
    from isrlearn.report import make_report

    task = "classification" if hasattr(model.estimator, "classes_") else "regression"
    tables.check_tables(task, train, held_out)
    sources = {
        "command": command_line(),
        "train": None if train is None else str(train.path),
        "scored": None if held_out is None else str(held_out.path),
        "sha256": model.sha256,
        **tables.stored(model, "columns"),
        **{role: name for role, name in columns.items() if name},
    }
    return make_report(model.estimator, train, held_out, chosen=chosen, sources=sources)


def report_on_file(
    model: ModelFile, table: Table, train: Table | None, columns: Mapping[str, Any]
) -> Report:
    """Report on a stored model, which recognises the rows it was fitted and chosen on."""
    from isrlearn.io import TableError

    if train is not None and not _fitted_on(model.estimator, train):
        raise TableError(
            f"{train.path}: the model was not fitted on these rows (their counts or means "
            "differ); give its training table, or leave --train out"
        )
    held_out: Table | None = table
    if _fitted_on(model.estimator, table):
        train, held_out = table, None
    by = tables.stored(model, "search").get("by")
    chosen = by not in (None, "validation table") and held_out is None
    found = report_on(model, train, held_out, chosen=chosen, columns=columns)
    scores, after = tables.stored(model, "metrics").get("validation"), found.evidence.after
    # The scores stored for the table that chose the settings tell whether this is that table.
    known = isinstance(scores, dict) and (scores.get("n"), scores.get("worst"))
    if by == "validation table" and known == (after.n, after.worst):
        found = replace(found, evidence=replace(found.evidence, kind="validation"))
    return found


def _fitted_on(estimator: Any, table: Table) -> bool:
    """Whether a table has the moments of the rows that an estimator was fitted on."""
    import numpy as np

    from isrlearn.core.moments import Moments

    X, y, environments = tables.data_of(table)
    labels = y if hasattr(estimator, "classes_") else None
    found = Moments.from_data(X, labels, environments, order=1)
    mine = estimator.moments_
    if not np.array_equal(found.count, mine.count):
        return False
    mean = mine.mean[..., : estimator.n_features_in_]
    return bool(np.allclose(found.mean, mean, rtol=0, atol=_ROUNDING * np.abs(mean).max()))
