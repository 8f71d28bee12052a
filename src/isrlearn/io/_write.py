"""Columns to a file of any known format."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from isrlearn.io._parquet import pyarrow
from isrlearn.io._source import BLOCK_BYTES
from isrlearn.io.files import atomic_write

Columns = Mapping[str, NDArray]  # of the same length; numbers or text


def write_columns(path: str | os.PathLike[str], columns: Columns) -> None:
    """Write named columns to a .csv, .tsv, .parquet or .npz file, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "t.csv"
    ...     write_columns(path, {"x": np.array([0.5, 1.0]), "y": np.array(["a", "b"])})
    ...     path.read_text().split()
    ['x,y', '0.5,a', '1.0,b']
    """
    check_suffix(path)
    writer = WRITERS[Path(path).suffix.lower()]
    with atomic_write(path) as file:
        writer(file, columns)


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Raise unless the file's name says a format that can be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in WRITERS:
        raise ValueError(
            f"{os.fspath(path)}: a table is written to a file that ends in {', '.join(WRITERS)}; "
            f"this one ends in {suffix!r}"
        )
    if suffix == ".parquet":
        pyarrow()


def _csv(file: BinaryIO, columns: Columns) -> None:
    _text(file, columns, ",")


def _tsv(file: BinaryIO, columns: Columns) -> None:
    _text(file, columns, "\t")


def _text(file: BinaryIO, columns: Columns, separator: str) -> None:
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    rows = csv.writer(text, delimiter=separator, lineterminator="\n")
    rows.writerow(columns)
    n = len(next(iter(columns.values())))
    # In blocks, so that Python's objects for the numbers never are all there at once.
    step = max(1, BLOCK_BYTES // (32 * len(columns)))
    for start in range(0, n, step):
        block = [values[start : start + step].tolist() for values in columns.values()]
        rows.writerows(zip(*block, strict=True))
    text.detach()


def _parquet(file: BinaryIO, columns: Columns) -> None:
    pa = pyarrow()
    pa.parquet.write_table(pa.table({k: pa.array(v) for k, v in columns.items()}), file)


def _npz(file: BinaryIO, columns: Columns) -> None:
    np.savez(file, **{name: _plain(values) for name, values in columns.items()})  # type: ignore[arg-type]


def _plain(values: NDArray) -> NDArray:
    """Values that need no pickle."""
    return values if values.dtype.kind != "O" else np.array(values.tolist())


WRITERS: dict[str, Callable[[BinaryIO, Columns], None]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
    ".npz": _npz,
}
