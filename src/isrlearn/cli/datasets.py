"""``isr datasets``."""

from __future__ import annotations

from pathlib import Path

import click

from isrlearn.cli._console import JSON, plain, show, table, working


@click.group()
def datasets() -> None:
    """List the data sets, fetch or draw one, or write one to files."""


@datasets.command("list")
@JSON
def list_datasets(as_json: bool) -> None:
    """List the data sets.

    Example: isr datasets list
    """
    from isrlearn.cli.catalogue import DATASETS

    record = [
        {"name": name, "task": data.task, "summary": data.summary, "source": data.source}
        for name, data in DATASETS.items()
    ]
    listing = table("Data sets", ["name", "task", "what it is", "comes from"])
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
    from isrlearn.cli.catalogue import write_dataset

    with working(f"Writing {name}"):
        paths = write_dataset(name, out, kind=kind, random_state=seed)
    show(
        {part: str(path) for part, path in paths.items()},
        [f"{name} is in {', '.join(str(path) for path in paths.values())}."],
        as_json,
    )


@datasets.command()
@click.argument("name")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder of data sets. [default: $ISRLEARN_DATA, then the cache]",
)
@JSON
def fetch(name: str, data: Path | None, as_json: bool) -> None:
    """Download what a data set is made of and check it.

    Of Waterbirds, CelebA and MultiNLI, whose terms ask you to download them yourself, the folder
    is checked, or the message says what to download and where to put it.

    Example: isr datasets fetch mc-cmnist
    """
    from isrlearn.cli.catalogue import fetch_dataset

    with working(f"Fetching {name}"):
        paths = fetch_dataset(name, data_home=data)
    where = ", ".join(sorted({str(path.parent) for path in paths.values()}))
    show(
        {file: str(path) for file, path in paths.items()},
        [f"{name} is whole{f', in {where}' if where else ''}."],
        as_json,
    )


@datasets.command("show")
@click.argument("name")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="The picture, .png or .svg. [default: NAME.png]",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Folder of a data set that you downloaded.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@JSON
def show_samples(name: str, out: Path | None, data: Path | None, seed: int, as_json: bool) -> None:
    """Draw samples by class and environment, training beside test.

    Example: isr datasets show mc-cmnist --out mc-cmnist.png
    """
    from isrlearn.cli.catalogue import draw_dataset

    with working(f"Drawing {name}"):
        path = draw_dataset(name, out or f"{name}.png", root=data, random_state=seed)
    show({"picture": str(path)}, [f"{name} is drawn in {path}."], as_json)
