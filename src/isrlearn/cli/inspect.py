"""``isr inspect``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isrlearn.cli import _options as options
from isrlearn.cli._console import JSON, plain, show, table

if TYPE_CHECKING:
    from rich.console import RenderableType


@click.command()
@options.MODEL
@JSON
def inspect(model: Path, as_json: bool) -> None:
    """Show what is in a model file.

    Example: isr inspect model.isr
    """
    from isrlearn.io import read_model

    record = read_model(model).to_dict()
    show(record, _paragraphs(record), as_json)


def _paragraphs(record: dict[str, Any]) -> list[RenderableType]:
    facts = table(record["estimator"], ["", ""])
    removed = f"{record['n_spurious']} of {record['n_features']}"
    test = record["rank_test"]
    if test is not None:
        p_values = ", ".join(f"{p:.2g}" for p in test["p_values"][-4:])
        removed += f" (tested at level {test['level']:g}; last p-values {p_values})"
    for name, value in {
        "directions removed": removed,
        "features": _few(record["feature_names"] or ["without names"]),
        "settings": ", ".join(f"{k}={v!r}" for k, v in record["parameters"].items()),
        "columns": ", ".join(f"{k}: {v}" for k, v in _columns(record).items()) or "not stored",
        "written by": ", ".join(f"{k} {v}" for k, v in record["versions"].items()),
        "SHA-256": record["sha256"],
    }.items():
        facts.add_row(*plain([name, str(value)]))
    counts = table("Training rows", ["class", "environment"], ["n"])
    for label, row in zip(record["classes"] or [""], record["count"], strict=True):
        for environment, n in zip(record["environments"], row, strict=True):
            counts.add_row(*plain([str(label), str(environment), f"{n:g}"]))
    return [facts, counts]


def _columns(record: dict[str, Any]) -> dict[str, Any]:
    columns = record["metadata"].get("columns")
    return columns if isinstance(columns, dict) else {}


def _few(names: list[str]) -> str:
    shown = ", ".join(names[:6])
    return shown if len(names) <= 6 else f"{shown} and {len(names) - 6} more"
