"""The data sets that come with the library, as files to try the commands on."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from isrlearn.datasets import (
    LINEAR_UNIT_TESTS,
    EnvironmentData,
    Splits,
    load_digits_on_paper,
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
    make_waterbirds_like,
)
from isrlearn.io._files import written
from isrlearn.io._write import write_columns

LABEL, ENVIRONMENT = "label", "environment"
FORMATS = ("csv", "parquet", "npz", "npy")


@dataclass(frozen=True)
class Dataset:
    """A data set by name: what it is, what its labels are for, how to make it."""

    summary: str
    task: str  # "classification" or "regression"
    make: Callable[..., Splits]


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
    >>> from isrlearn.io import read_table, write_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = write_dataset("digits-on-paper", folder)
    ...     table = read_table(paths["train"], label="label", environment="environment")
    >>> table.X.shape
    (1000, 192)
    """
    if name not in DATASETS:
        raise ValueError(f"no data set is named {name!r}; there are {', '.join(DATASETS)}")
    if kind not in FORMATS:
        raise ValueError(f"a data set is written as {', '.join(FORMATS)}; got {kind!r}")
    splits = DATASETS[name].make(random_state=random_state)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {part: folder / f"{part}.{kind}" for part in ("train", "validation", "test")}
    for part, path in paths.items():
        _write(getattr(splits, part), path)
    return paths


def _write(data: EnvironmentData, path: Path) -> None:
    labels = {LABEL: data.y, ENVIRONMENT: data.environments}
    if path.suffix == ".npz":
        write_columns(path, {"X": data.X, **labels})
    elif path.suffix == ".npy":
        with written(path) as file:
            np.save(file, data.X)
        write_columns(path.with_suffix(".labels.csv"), labels)
    else:
        features = {f"f{i}": data.X[:, i] for i in range(data.X.shape[1])}
        write_columns(path, {**features, **labels})
