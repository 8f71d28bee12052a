"""A table of features, labels and environments, read from a file of any known format."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import is_missing
from isrlearn.core.rows import Rows
from isrlearn.io._arrays import NpyTable, NpzTable, read_vector
from isrlearn.io._columns import column, require, select
from isrlearn.io._csv import CsvTable
from isrlearn.io._parquet import ParquetTable
from isrlearn.io._rows import ZarrTable
from isrlearn.io._source import BLOCK_BYTES, Source
from isrlearn.io.errors import TableError, listed, nearest, shown

_FORMATS: dict[str, Callable[[Path], Source]] = {
    ".csv": CsvTable,
    ".tsv": CsvTable,
    ".npy": NpyTable,
    ".npz": NpzTable,
    ".parquet": ParquetTable,
    ".zarr": ZarrTable,
}
#: Where the labels of an array are looked for when nobody says.
_BESIDE = ("{}.labels.csv", "{}.labels.parquet", "{}.labels.npz", "{}.csv", "labels.csv")
#: Largest magnitudes whose squares (and, in float64, fourth powers) can still be summed.
_LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e60}


@dataclass(frozen=True, eq=False)
class Table:
    """Features of samples and, where asked for, their labels and environments.

    Parameters
    ----------
    path : Path
        Where the features are from.
    X : ndarray of shape (n, d)
        float32 or float64, all finite; a memory map if the file is a .npy array, and
        :class:`isrlearn.core.Rows` where it is to be read some rows at a time.
    feature_names : tuple of str
        Names of the columns of X.
    named : bool
        Whether the names are the file's own, not made up.
    n_columns : int
        How many columns the file has for features, taken or not.
    y : ndarray of shape (n,) or None
        Labels, none missing.
    environments : ndarray of shape (n,) or None
        None or NaN where unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.io import Table
    >>> len(Table(Path("a.npy"), np.ones((3, 2)), ("f0", "f1"), named=False, n_columns=2))
    3
    """

    path: Path
    X: NDArray  # (n, d)
    feature_names: tuple[str, ...]
    named: bool
    n_columns: int
    y: NDArray | None = None  # (n,)
    environments: NDArray | None = None  # (n,)

    def __len__(self) -> int:
        return len(self.X)


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    environment: str | None = None,
    features: str | Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    exact: bool = False,
    stream: bool = False,
) -> Table:
    r"""Table of a .csv, .tsv, .parquet, .npz or .npy file, or of a .zarr array.

    Parameters
    ----------
    path : path
        Its suffix tells the format. A .npy array is mapped, not read.
    label, environment : str, optional
        Names of the columns of labels and environments (of arrays, in a .npz archive), or the
        path of a one-dimensional .npy array.
    features : str or sequence of str, optional
        Names, patterns (``f_*``) and ranges (``f0:f511``) of the feature columns. Default: all
        columns but label and environment; the array X of an archive. Columns of arrays are
        named f0, f1, …; those of a Parquet column v of lists v_0, v_1, …
    labels : path, optional
        Another table, with as many rows, that holds label and environment. Default for a .npy
        array ``name.npy``: ``name.labels.csv`` (or .parquet, .npz), ``name.csv`` or
        ``labels.csv`` in the same folder.
    exact : bool, default=False
        Take features as plain names, all of which must be there.
    stream : bool, default=False
        Read features of .npy, .parquet and .zarr some rows at a time, whenever they are needed:
        the estimators take such a table's X as they take an array. Numbers that are not finite
        are found when they are read.

    Returns
    -------
    Table

    Raises
    ------
    TableError
        If the file is not there, cannot be read, lacks a column or holds what is no number.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "patients.csv"
    ...     _ = path.write_text("age,dose,ill,hospital\n70,0.5,yes,A\n40,1.5,no,\n")
    ...     table = read_table(path, label="ill", environment="hospital")
    >>> table.X.tolist(), table.y.tolist(), table.environments.tolist()
    ([[70.0, 0.5], [40.0, 1.5]], ['yes', 'no'], ['A', None])
    """
    source = open_table(path)
    wanted = {"label": label, "environment": environment}
    inside = [name for name in wanted.values() if name and not is_vector(name)]
    beside = _beside(source, labels, inside)
    for role, name in wanted.items():
        if name in inside:
            _named(source if beside is None else beside, name, role)
    chosen = _features(source, features, [] if beside else inside, exact)
    # The small files first: what is wrong with them is known at once.
    kept = {name: read_vector(Path(name)) for name in wanted.values() if name and is_vector(name)}
    if beside is not None:
        kept |= beside.read([], inside)[1]
    here = inside if beside is None else []
    if stream:
        X, own = source.rows(chosen), source.read([], here)[1] if here else {}
    else:
        X, own = source.read(chosen, here)
    kept |= own
    found = {role: kept[name] for role, name in wanted.items() if name is not None}
    _check_lengths(X, found, source)
    if not isinstance(X, Rows) and not (stream and isinstance(X, np.memmap)):
        check_numbers(X, chosen, source.path)
    _check_labels(found.get("label"), source, label)
    return Table(
        Path(path),
        X,
        tuple(chosen),
        source.named,
        len(source.features),
        found.get("label"),
        found.get("environment"),
    )


def open_table(path: str | os.PathLike[str]) -> Source:
    """The table of a file, of which only the names of columns have been read."""
    path = Path(path)
    if path.suffix.lower() not in _FORMATS:
        raise TableError(
            f"{path}: a table's name must end in {', '.join(_FORMATS)}; this one ends in "
            f"{shown(path.suffix)}"
        )
    if not path.exists():
        siblings = []
        if path.parent.is_dir():
            siblings = [p.name for p in path.parent.iterdir() if p.suffix.lower() in _FORMATS]
        hint = nearest(path.name, sorted(siblings)[:1000])
        raise TableError(f"{path}: there is no such file{hint if 'did you' in hint else ''}")
    if path.suffix.lower() == ".zarr":  # a folder
        return ZarrTable(path)
    if not path.is_file():
        raise TableError(f"{path}: this is not a file")
    if not path.stat().st_size:
        raise TableError(f"{path}: the file is empty")
    return _FORMATS[path.suffix.lower()](path)


def is_vector(name: str) -> bool:
    """Whether a column's name is that of a file with an array of labels."""
    return name.endswith(".npy")


def _beside(
    source: Source, labels: str | os.PathLike[str] | None, inside: list[str]
) -> Source | None:
    """The other table that holds label and environment, if there is one."""
    if labels is not None:
        return open_table(labels)
    if not inside or not isinstance(source, NpyTable | ZarrTable):
        return None
    tried = [source.path.with_name(form.format(source.path.stem)) for form in _BESIDE]
    for path in tried:
        if path.is_file():
            return open_table(path)
    raise TableError(
        f"{source.path}: an array has no column {shown(inside[0])}, and none of "
        f"{', '.join(p.name for p in tried)} is beside it; name the file that holds the labels"
    )


def _named(source: Source, name: str, role: str) -> None:
    try:
        column(source.columns, name, role)
    except TableError as error:
        raise TableError(f"{source.path}: {error}") from None


def _features(
    source: Source, wanted: str | Sequence[str] | None, reserved: list[str], exact: bool
) -> list[str]:
    try:
        if wanted is None:
            if not source.features:
                raise TableError(f"say which array holds the features: {listed(source.groups)}")
            return select(source.features, "*", reserved=reserved)
        if exact:
            return require(source.columns, [wanted] if isinstance(wanted, str) else wanted)
        return select(source.columns, wanted, groups=source.groups, reserved=reserved)
    except TableError as error:
        raise TableError(f"{source.path}: {error}") from None


def _check_lengths(X: NDArray, found: dict[str, NDArray], source: Source) -> None:
    if not len(X):
        raise TableError(f"{source.path}: the table has no rows")
    for role, values in found.items():
        if len(values) != len(X):
            raise TableError(
                f"there are {role}s of {len(values)} rows, but {source.path} has {len(X)}"
            )


def check_numbers(X: NDArray, names: Sequence[str], path: Path) -> None:
    """Raise at the first number that is not finite, or too large to be squared."""
    largest = _LARGEST[X.dtype]
    step = max(1, BLOCK_BYTES // (8 * X.shape[1]))
    for start in range(0, len(X), step):
        block = np.asarray(X[start : start + step])
        # Not a number is neither: both comparisons fail.
        if block.max() <= largest and block.min() >= -largest:
            continue
        row, i = np.argwhere(~(np.abs(block) <= largest))[0]
        value = block[row, i]
        what = "is missing (NaN)" if np.isnan(value) else f"is {value:g}"
        limit = f"; numbers of type {X.dtype} can be used up to {largest:g}"
        raise TableError(
            f"{path}: column {shown(names[i])} {what} in row {start + row + 1}"
            f"{limit if np.isfinite(value) else ''}"
        )


def _check_labels(y: NDArray | None, source: Source, label: str | None) -> None:
    if y is None:
        return
    missing = np.flatnonzero(is_missing(y))
    if len(missing):
        raise TableError(
            f"{source.path}: label {shown(label)} is missing in row {missing[0] + 1}"
            f"{f' and {len(missing) - 1} more' if len(missing) > 1 else ''}; leave such rows out"
        )
