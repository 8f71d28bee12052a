"""``isr datasets``: the data sets known by name, listed, downloaded, plotted or exported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import isrlearn
from isrlearn.cli.console import Group, Result, table, working
from isrlearn.cli.tables import FOLDER, SEED, Output, forced

if TYPE_CHECKING:
    from isrlearn.datasets import Splits

FORMATS = click.Choice(["csv", "parquet", "npz", "npy"])


@dataclass(frozen=True)
class Dataset:
    """What a data set is and how to make it."""

    make: Callable[..., Splits]
    task: str = "classification"
    files: tuple[Any, ...] = ()  # public files that it is made of
    folder: bool = False  # whether the user downloads it; `make` then takes the folder
    title: str = ""


@cache
def catalogue() -> dict[str, Dataset]:
    """Every data set by name."""
    own, paper = isrlearn.datasets, isrlearn.paper.datasets
    images, grades = paper.files.IDX_FILES, paper.law_school.LAW_SCHOOL_FILE
    fashion = images["fashion-mnist"]
    known = {
        "digits-on-paper": Dataset(own.load_digits_on_paper),
        "waterbirds-like": Dataset(own.make_waterbirds_like),
        "multiclass": Dataset(paper.make_multiclass_unit_test),
        "regression": Dataset(paper.make_regression_unit_test, "regression"),
        "mc-cmnist": Dataset(paper.load_mc_cmnist, files=images["mnist"]),
        "rcfmnist": Dataset(paper.load_rcfmnist, "regression", fashion[:2]),
        "law-school": Dataset(paper.load_law_school, "regression", (grades,)),
        "fashion-on-photos": Dataset(paper.load_fashion_on_photos, files=fashion),
        "waterbirds": Dataset(paper.load_waterbirds, folder=True),
        "celeba": Dataset(paper.load_celeba, folder=True),
        "multinli": Dataset(paper.load_multinli, folder=True),
    }
    for name, published in paper.LINEAR_UNIT_TESTS.items():
        task = "regression" if "regression" in name else "classification"
        make = partial(paper.make_linear_unit_test, name)
        known[name] = Dataset(make, task, title=f"Linear unit test {published}.")
    return known


def dataset(name: str) -> Dataset:
    """The data set of that name."""
    if name not in catalogue():
        raise ValueError(f"there is no data set {name!r}; choose one of {', '.join(catalogue())}")
    return catalogue()[name]


@click.group(cls=Group)
def datasets() -> None:
    """List, download, plot or export data sets."""


@datasets.command("list")
def list_datasets() -> Result:
    """List the data sets.

    Example: isr datasets list
    """
    record = []
    for name, entry in catalogue().items():
        source = "public files" if entry.files else "isrlearn"
        source = "a folder you download" if entry.folder else source
        summary = entry.title or str(entry.make.__doc__).partition("\n")[0]
        record.append({"name": name, "task": entry.task, "summary": summary, "source": source})
    rows = [list(entry.values()) for entry in record]
    return record, [table("Data sets", list(record[0]), rows, n_left=4)]


@datasets.command()
@click.argument("name")
@click.option("--out", required=True, type=Output(folder=True), help="Folder to write to.")
@click.option("--format", "kind", type=FORMATS, default="csv")
@SEED
def write(name: str, out: Path, kind: str, seed: int) -> Result:
    """Write a data set as tables train, validation and test.

    Feature columns are f0, f1 and so on; the others are label and environment.

    Example: isr datasets write digits-on-paper --out digits --format csv
    """
    import numpy as np

    entry, files = dataset(name), isrlearn.io.files
    if entry.folder:
        raise click.UsageError(
            f"{name} is a folder of images or tokens, not a table; extract features into a .npz "
            "file first (see the guide's page on embeddings)"
        )
    out.mkdir(parents=True, exist_ok=True)
    paths = {part: out / f"{part}.{kind}" for part in ("train", "validation", "test")}
    for path in paths.values():
        files.check_output(path, force=forced())
        files.check_output(path.with_suffix(".labels.csv"), force=forced() or kind != "npy")
    with working(f"Writing {name}"):
        splits = entry.make(random_state=seed)
        for part, path in paths.items():
            data = getattr(splits, part)
            X = data.X.reshape(len(data.X), -1)  # images become one column per pixel
            labels = {"label": data.y, "environment": data.environments}
            if kind == "npy":
                with files.atomic_write(path) as file:
                    np.save(file, X)
                files.write_columns(path.with_suffix(".labels.csv"), labels)
            else:
                named = {f"f{i}": column for i, column in enumerate(X.T)}
                files.write_columns(path, ({"X": X} if kind == "npz" else named) | labels)
    record = {part: str(path) for part, path in paths.items()}
    return record, [f"{name} is in {', '.join(record.values())}."]


@datasets.command()
@click.argument("name")
@click.option("--data", type=FOLDER, help="Folder of data sets. [default: $ISRLEARN_DATA, cache]")
def fetch(name: str, data: Path | None) -> Result:
    """Download the files of a data set and check them.

    By their terms, you must download Waterbirds, CelebA and MultiNLI yourself: their folder is
    checked, or the message says what to download and where to put it.

    Example: isr datasets fetch mc-cmnist
    """
    entry, files, found = dataset(name), isrlearn.paper.datasets.files, {}
    with working(f"Fetching {name}"):
        if entry.folder:
            entry.make(data)
        for file in entry.files:
            files.content(file, data)
            found[file.path] = str(files.located(file, data))
    folders = sorted({str(Path(path).parent) for path in found.values()})
    where = f", in {', '.join(folders)}" if folders else ""
    return found, [f"{name} is complete{where}."]


@datasets.command("show")
@click.argument("name")
@click.option("--out", type=Output(), help="Picture to write, .png or .svg. [default: NAME.png]")
@click.option("--data", type=FOLDER, help="Folder of a data set that you downloaded.")
@SEED
def show_samples(name: str, out: Path | None, data: Path | None, seed: int) -> Result:
    """Plot training and test samples by class and environment.

    Example: isr datasets show mc-cmnist --out mc-cmnist.png
    """
    from isrlearn.paper.figures import sample_page

    entry, path = dataset(name), out or Path(f"{name}.png")
    isrlearn.io.files.check_output(path, force=forced())
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise click.UsageError(f"samples are plotted as .png or .svg; got {str(path)!r}")
    if data is not None and not entry.folder:
        raise click.UsageError(f"{name} is not read from a folder of your own; leave --data out")
    with working(f"Plotting {name}"):
        splits = entry.make(data) if entry.folder else entry.make(random_state=seed)
        if splits.train.X.dtype.kind == "i":
            raise click.UsageError(f"{name} is made of tokens: there is nothing to plot")
        regression = entry.task == "regression"
        page = sample_page(splits, name, kind, regression=regression, random_state=seed)
        with isrlearn.io.files.atomic_write(path) as file:
            file.write(page)
    return {"picture": str(path)}, [f"The samples are in {path}."]
