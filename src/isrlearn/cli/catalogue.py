"""The data sets that the library knows by name: listed, written as tables, fetched, drawn."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from isrlearn.cli.page import sample_page
from isrlearn.datasets import (
    EnvironmentData,
    Splits,
    load_digits_on_paper,
    load_law_school,
    make_waterbirds_like,
)
from isrlearn.datasets.files import Resource, content, located
from isrlearn.datasets.law_school import LAW_SCHOOL_FILE
from isrlearn.io.files import atomic_write
from isrlearn.io.write import write_columns
from isrlearn.paper.datasets import (
    LINEAR_UNIT_TESTS,
    load_celeba,
    load_fashion_on_photos,
    load_mc_cmnist,
    load_multinli,
    load_rcfmnist,
    load_waterbirds,
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
)
from isrlearn.paper.datasets.idx import IDX_FILES

LABEL, ENVIRONMENT = "label", "environment"
FORMATS = ("csv", "parquet", "npz", "npy")


@dataclass(frozen=True)
class Dataset:
    """A data set by name: what it is, what its labels are for, how to make it."""

    summary: str
    task: str  # "classification" or "regression"
    make: Callable[..., Splits]
    files: tuple[Resource, ...] = ()  # that it is made of
    folder: bool = False  # whether the user downloads it; `make` then takes the folder

    @property
    def source(self) -> str:
        """Where its samples come from."""
        if self.folder:
            return "a folder you download"
        return "public files" if self.files else "isrlearn"


_REAL = {
    "mc-cmnist": Dataset(
        "Multi-class Coloured MNIST: ten digits in ten colours.",
        "classification",
        load_mc_cmnist,
        IDX_FILES["mnist"],
    ),
    "rcfmnist": Dataset(
        "Rotated Coloured Fashion-MNIST: how far a garment is turned.",
        "regression",
        load_rcfmnist,
        IDX_FILES["fashion-mnist"][:2],
    ),
    "law-school": Dataset(
        "Grades of law students, skewed by gender in training.",
        "regression",
        load_law_school,
        (LAW_SCHOOL_FILE,),
    ),
    "fashion-on-photos": Dataset(
        "Shirts and coats on patches of two photographs.",
        "classification",
        load_fashion_on_photos,
        IDX_FILES["fashion-mnist"],
    ),
    "waterbirds": Dataset(
        "Birds of land and water on backgrounds of both.",
        "classification",
        load_waterbirds,
        folder=True,
    ),
    "celeba": Dataset(
        "Portraits: blond hair, mostly of women.", "classification", load_celeba, folder=True
    ),
    "multinli": Dataset(
        "Pairs of sentences: contradiction, mostly with a negation.",
        "classification",
        load_multinli,
        folder=True,
    ),
}


def _catalogue() -> dict[str, Dataset]:
    entries = {
        "digits-on-paper": Dataset(
            "Handwritten digits, odd or even, on paper of two colours.",
            "classification",
            load_digits_on_paper,
        ),
        "waterbirds-like": Dataset(
            "Features of the sizes and difficulty of Waterbirds'.",
            "classification",
            make_waterbirds_like,
        ),
        "multiclass": Dataset(
            "The unit test with three classes.", "classification", make_multiclass_unit_test
        ),
        "regression": Dataset(
            "The unit test with a target that moves with the environment.",
            "regression",
            make_regression_unit_test,
        ),
    }
    entries |= _REAL
    for name, published in LINEAR_UNIT_TESTS.items():
        task = "regression" if "regression" in name else "classification"
        make = partial(make_linear_unit_test, name)
        entries[name] = Dataset(f"Linear unit test {published}.", task, make)
    return entries


#: Every data set that `write_dataset` knows.
DATASETS: Mapping[str, Dataset] = MappingProxyType(_catalogue())


def write_dataset(
    name: str, folder: str | os.PathLike[str], *, kind: str = "csv", random_state: int = 0
) -> dict[str, Path]:
    """Paths of the training, validation and test tables of a data set, now written.

    Columns are f0, f1, …, label and environment. The format "npy" gives an array and, beside
    it, a text table of labels.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    folder : path
        Made if it is not there.
    kind : {"csv", "parquet", "npz", "npy"}, default="csv"
    random_state : int, default=0

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.io import read_table
    >>> from isrlearn.cli.catalogue import write_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_dataset("digits-on-paper", folder)
    ...     table = read_table(paths["train"], label="label", environment="environment")
    >>> table.X.shape
    (1000, 192)
    """
    if kind not in FORMATS:
        raise ValueError(f"a data set is written as {', '.join(FORMATS)}; got {kind!r}")
    if _named(name).folder:
        raise ValueError(
            f"{name} is a folder of images or tokens, not a table; extract features into a .npz "
            "file first (the guide's page on embeddings tells how)"
        )
    splits = DATASETS[name].make(random_state=random_state)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {part: folder / f"{part}.{kind}" for part in ("train", "validation", "test")}
    for part, path in paths.items():
        _write(getattr(splits, part), path)
    return paths


def fetch_dataset(name: str, *, data_home: str | os.PathLike[str] | None = None) -> dict[str, Path]:
    """Paths of the files of a data set by their names, now downloaded where they were missing.

    Every file is checked, those that were there too. A data set that needs no files has none.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    data_home : path, optional
        Folder of data sets. Default: the one named by ISRLEARN_DATA, then the user's cache.

    Examples
    --------
    >>> from isrlearn.cli.catalogue import fetch_dataset
    >>> fetch_dataset("digits-on-paper")
    {}
    """
    entry = _named(name)
    if entry.folder:
        entry.make(data_home)
    found = {}
    for file in entry.files:
        content(file, data_home)
        path = located(file, data_home)
        if path is not None:
            found[file.path] = path
    return found


def draw_dataset(
    name: str,
    path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    random_state: int = 0,
) -> Path:
    """Path of a picture, now drawn, of samples by class and environment, training beside test.

    Parameters
    ----------
    name : str
        One of `DATASETS`.
    path : path
        Ends in .png or .svg.
    root : path, optional
        The folder of a data set that the user downloads.
    random_state : int, default=0

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.cli.catalogue import draw_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     draw_dataset("digits-on-paper", f"{folder}/page.png").read_bytes()[1:4]
    b'PNG'
    """
    entry, path = _named(name), Path(path)
    kind = path.suffix.lower().removeprefix(".")
    if kind not in ("png", "svg"):
        raise ValueError(f"a page is drawn as .png or .svg; got {str(path)!r}")
    if root is not None and not entry.folder:
        raise ValueError(f"{name} is not read from a folder of your own; leave it out")
    splits = entry.make(root) if entry.folder else entry.make(random_state=random_state)
    if splits.train.X.dtype.kind == "i":
        raise ValueError(f"{name} is made of tokens: there is nothing to draw")
    pages = sample_page(
        splits, entry.summary, regression=entry.task == "regression", random_state=random_state
    )
    with atomic_write(path) as file:
        file.write(pages[kind])
    return path


def _named(name: str) -> Dataset:
    if name not in DATASETS:
        raise ValueError(f"no data set is named {name!r}; there are {', '.join(DATASETS)}")
    return DATASETS[name]


def _write(data: EnvironmentData, path: Path) -> None:
    # A row a sample: images are written pixel by pixel.
    data = replace(data, X=data.X.reshape(len(data.X), -1))
    labels = {LABEL: data.y, ENVIRONMENT: data.environments}
    if path.suffix == ".npz":
        write_columns(path, {"X": data.X, **labels})
    elif path.suffix == ".npy":
        with atomic_write(path) as file:
            np.save(file, data.X)
        write_columns(path.with_suffix(".labels.csv"), labels)
    else:
        features = {f"f{i}": data.X[:, i] for i in range(data.X.shape[1])}
        write_columns(path, {**features, **labels})
