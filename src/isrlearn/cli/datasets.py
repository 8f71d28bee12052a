"""``isr datasets``."""

from __future__ import annotations

from pathlib import Path

import click

from isrlearn.cli._console import JSON, plain, show, table, working


@click.group()
def datasets() -> None:
    """List the data sets that come with isrlearn, or write one to files."""


@datasets.command("list")
@JSON
def list_datasets(as_json: bool) -> None:
    """List the data sets.

    Example: isr datasets list
    """
    from isrlearn.io.datasets import DATASETS

    record = [{"name": n, "task": d.task, "summary": d.summary} for n, d in DATASETS.items()]
    listing = table("Data sets", ["name", "task", "what it is"])
    for entry in record:
        listing.add_row(*plain(list(entry.values())))
    show(record, [listing], as_json)


@datasets.command()
@click.argument("name")
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--format",
    "kind",
    type=click.Choice(["csv", "parquet", "npz", "npy"]),
    default="csv",
    show_default=True,
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@JSON
def write(name: str, out: Path, kind: str, seed: int, as_json: bool) -> None:
    """Write a data set as tables train, validation and test.

    Feature columns are f0, f1 and so on; the others are label and environment.

    Example: isr datasets write digits-on-paper --out digits --format csv
    """
    from isrlearn.io import write_dataset

    with working(f"Writing {name}"):
        paths = write_dataset(name, out, kind=kind, random_state=seed)
    show(
        {part: str(path) for part, path in paths.items()},
        [f"{name} is in {', '.join(str(path) for path in paths.values())}."],
        as_json,
    )
