"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FILE = click.Path(dir_okay=False, path_type=Path)

TABLE = click.argument("table", type=FILE)
MODEL = click.argument("model", type=FILE)
LABELS = click.option(
    "--labels",
    type=FILE,
    help="Another table, with as many rows, that holds label and environment.",
)


def label(*, required: bool) -> Callable[[Any], Any]:
    """The option that names the column of labels."""
    known = "" if required else " [default: the model's]"
    text = f"Column of labels, or a .npy file of them.{known}"
    return click.option("--label", required=required, metavar="COLUMN", help=text)


def environment(*, required: bool) -> Callable[[Any], Any]:
    """The option that names the column of environments."""
    known = "" if required else " [default: the model's]"
    text = f"Column of environments, or a .npy file of them.{known}"
    return click.option("--environment", required=required, metavar="COLUMN", help=text)


def features(text: str) -> Callable[[Any], Any]:
    """The option that names feature columns; several are joined by commas."""
    return click.option(
        "--features",
        multiple=True,
        metavar="COLUMNS",
        help=text,
        callback=lambda context, parameter, given: ",".join(given) or None,
    )


def out(text: str, *, required: bool = True) -> Callable[[Any], Any]:
    """The option that names a file to write."""
    return click.option("--out", required=required, type=FILE, help=text)
