"""A table of features, labels and environments, read from a file of any known format."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import encode, is_missing
from isrlearn.engine import row_blocks
from isrlearn.engine.rows import Rows
from isrlearn.io._formats import (
    Source,
    check_expansion,
    check_regular,
    open_archive,
    open_array,
    open_text,
    read_vector,
)
from isrlearn.io._labels import is_float, is_integer, label_array
from isrlearn.io._parquet import open_parquet
from isrlearn.io._suspects import suspects
from isrlearn.io.errors import TableError, listed, reading, shown, suggestion

_FORMATS: dict[str, Callable[[Path], Source]] = {
    ".csv": open_text,
    ".tsv": open_text,
    ".npy": open_array,
    ".npz": open_archive,
    ".parquet": open_parquet,
    ".zarr": open_array,
}
#: Where the labels of an array are looked for by default.
_LABEL_FILES = ("{}.labels.csv", "{}.labels.parquet", "{}.labels.npz", "{}.csv", "labels.csv")
#: More texts than these that are numbers with fractions are not classes.
_MOST_CLASSES = 20
_NUMBERED = re.compile(r"(.*?)([0-9]{1,18})", flags=re.DOTALL)
#: Largest magnitudes whose squares (and, in float64, fourth powers) can still be summed.
_LARGEST = {np.dtype(np.float32): 1e15, np.dtype(np.float64): 1e60}


@dataclass(frozen=True, eq=False)
class Table:
    """Features of samples and, if requested, their labels and environments.

    Parameters
    ----------
    path : Path
        File of the features.
    X : ndarray of shape (n, d) or Rows
        float32 or float64, all finite; a memory map if the file is a .npy array, and
        :class:`isrlearn.engine.Rows` if it is read block by block.
    feature_names : tuple of str
        Names of the columns of X.
    named : bool
        Whether the names come from the file.
    y : ndarray of shape (n,) or None
        Labels, without missing values.
    environments : ndarray of shape (n,) or None
        None or NaN where unknown.
    notes : tuple of str
        What to know about the table: columns that were left out, and features that look like row
        numbers or like a copy of the label.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.io import Table
    >>> len(Table(Path("a.npy"), np.ones((3, 2)), ("f0", "f1"), named=False))
    3
    """

    path: Path
    X: Any  # (n, d)
    feature_names: tuple[str, ...]
    named: bool
    y: NDArray | None = None  # (n,)
    environments: NDArray | None = None  # (n,)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.X)


def read_table(
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    environment: str | None = None,
    features: str | Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str = "classification",
    stream: bool = False,
) -> Table:
    r"""Table of a .csv, .tsv, .parquet, .npz or .npy file, or of a .zarr array.

    Parameters
    ----------
    path : path
        Its suffix gives the format. A .npy array is mapped, not read.
    label, environment : str, optional
        Names of the columns (or of the arrays in a .npz archive) that hold labels and environments,
        or the path of a one-dimensional .npy array.
    features : str or sequence of str, optional
        Feature columns. A string holds names, patterns (``f_*``) and ranges (``f0:f511``),
        separated by commas; a sequence holds plain names. Default: all columns except label,
        environment and the index of a data frame; for an archive, its array X. The columns of an
        array are named f0, f1, …; those of a Parquet column v of lists are named v_0, v_1, …
    labels : path, optional
        Another table with the same number of rows that holds label and environment. Default for
        an array ``name.npy``: ``name.labels.csv`` (or .parquet, .npz), ``name.csv`` or
        ``labels.csv`` in the same folder.
    task : {"classification", "regression", "auto"}, default="classification"
        For a regression, labels in a text file are numbers. Classes (and environments) are integers
        only if all of them are written as Python writes integers, else text: 007 is not 7. "auto"
        takes more than 20 different numbers, some with a fraction, as numbers.
    stream : bool, default=False
        Read features of .npy, .parquet and .zarr block by block, whenever they are needed:
        the estimators accept the table's X like an array. Numbers that are not finite are detected
        when they are read.

    Raises
    ------
    TableError
        If the file does not exist, cannot be read, lacks a column or holds a feature that is not
        a number.

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
    roles = {"label": label, "environment": environment}
    given = [name for name in roles.values() if name]
    inside = [name for name in given if not name.endswith(".npy")]
    holder = source if labels is None else open_table(labels)
    if labels is None and inside and source.path.suffix.lower() in (".npy", ".zarr"):
        holder = _next_to(source.path, inside[0])
    # The small files first, so that their errors are reported at once.
    found = {name: read_vector(Path(name)) for name in given if name not in inside}
    with reading(holder.path):
        for role, name in roles.items():
            _required(holder, [name] if name in inside else [], role)
        if holder is not source:
            found |= holder.read([], inside)[1]
    with reading(source.path):
        chosen = _features(source, features, [*roles.values()] if holder is source else [])
        X, own = source.read(chosen, inside if holder is source else [])
        found |= own
        if isinstance(X, Rows) and not stream:
            check_expansion(source.path, math.prod(X.shape) * X.dtype.itemsize)
            X = X[:]
        for role, name in roles.items():
            _check_labels(X, found.get(str(name)), role)
        if isinstance(X, np.ndarray) and not (stream and isinstance(X, np.memmap)):
            check_numbers(X, chosen)
    y, environments = (found.get(str(name)) for name in (label, environment))
    if y is not None and (task == "regression" or (task == "auto" and looks_continuous(y))):
        y = _target(y, holder.path)
    names, notes = tuple(chosen), []
    if features is None or isinstance(features, str):  # chosen now, not for a model that has them
        left_out = sorted({*source.index} - {*names, label, environment})
        notes = [f"{listed(left_out)} is an index and was left out"] if left_out else []
        notes += [] if stream else suspects(X, names, y, environments)
    return Table(Path(path), X, names, source.named, y, environments, tuple(notes))


def looks_continuous(labels: NDArray) -> bool:
    """Whether labels are numbers with fractions: of more than 20 values, if they are text.

    Examples
    --------
    >>> looks_continuous(np.array([0.5, 1.0])), looks_continuous(np.array(["1.1", "1.10"]))
    (True, False)
    """
    names = encode(labels)[0]
    if names.dtype.kind == "U":
        if len(names) <= _MOST_CLASSES or not all(map(is_float, names.tolist())):
            return False
        names = names.astype(float)
    return names.dtype.kind == "f" and bool((names != np.round(names)).any())


def labels_like(labels: NDArray, others: NDArray) -> NDArray:
    """Labels as text or integers, whichever the same labels of other rows are.

    One table may have the classes 007 and 7, which are text, and the next only 7, an integer.

    Examples
    --------
    >>> labels_like(np.array([7, 8]), np.array(["007", "7"])).tolist()
    ['7', '8']
    """
    (names, codes), known = encode(labels), encode(others)[0]
    found: list[Any] = [*map(str, names.tolist())]
    if names.dtype.kind == known.dtype.kind or not {*found} & {*map(str, known.tolist())}:
        return labels
    if known.dtype.kind == "i" and all(map(is_integer, found)):
        found = [*map(int, found)]
    return label_array([*found, *([None] if (codes < 0).any() else [])], codes, "labels")


def _target(labels: NDArray, path: Path) -> NDArray:
    """Labels as finite numbers."""
    for value in encode(labels)[0].tolist():
        if not is_float(str(value)) or not np.isfinite(float(value)):
            raise TableError(f"{path}: a regression needs numbers as labels; got {shown(value)}")
    return labels if labels.dtype.kind in "biuf" else labels.astype(float)


def open_table(path: str | os.PathLike[str]) -> Source:
    """The table of a file of which only the names of the columns have been read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "a.npy", np.ones((3, 2)))
    ...     open_table(Path(folder) / "a.npy").columns
    ('f0', 'f1')
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in _FORMATS:
        raise TableError(
            f"{path}: a table's name must end in {', '.join(_FORMATS)}; this one ends in "
            f"{shown(path.suffix)}"
        )
    if not path.exists():
        folder = path.parent.iterdir() if path.parent.is_dir() else ()
        others = sorted(p.name for p in folder if p.suffix.lower() in _FORMATS)[:1000]
        hint = suggestion(path.name, others)
        raise TableError(f"{path}: there is no such file{hint if 'did you' in hint else ''}")
    with reading(path):
        if suffix != ".zarr":
            check_regular(path)
            if not path.stat().st_size:
                raise TableError("the file is empty")
        elif not path.is_dir():
            raise TableError("this is not the folder of a Zarr array")
        return _FORMATS[suffix](path)


def label_files(path: str | os.PathLike[str]) -> list[Path]:
    """Files where the labels of an array are looked for; none for a table with columns.

    Examples
    --------
    >>> label_files("a.npy")[0].name, label_files("a.csv")
    ('a.labels.csv', [])
    """
    path, arrays = Path(path), (".npy", ".zarr")
    forms = _LABEL_FILES if path.suffix.lower() in arrays else ()
    return [path.with_name(form.format(path.stem)) for form in forms]


def _next_to(path: Path, name: str) -> Source:
    """The table next to an array that holds its labels."""
    tried = label_files(path)
    for other in tried:
        if other.is_file():
            return open_table(other)
    raise TableError(
        f"{path}: an array has no column {shown(name)}, and none of "
        f"{', '.join(other.name for other in tried)} is next to it; name the file of the labels"
    )


def _features(source: Source, wanted: Any, reserved: Sequence[str | None]) -> list[str]:
    """Names of the feature columns; those reserved are the label and the environment."""
    if wanted is None:
        if not source.features:
            raise TableError(f"choose the array that holds the features: {listed(source.groups)}")
        skipped = {*reserved, *source.index}
        chosen = [name for name in source.features if name not in skipped]
    elif isinstance(wanted, str):
        # A name may contain a comma.
        tokens = [wanted] if wanted in source.columns else map(str.strip, wanted.split(","))
        found = chain(*(_expanded(source, token, reserved) for token in tokens if token))
        chosen = list(dict.fromkeys(found))
    elif reserved and reserved[0] in wanted:
        raise TableError(f"the label {shown(reserved[0])} cannot be a feature")
    else:
        chosen = _required(source, wanted, "feature")
    if not chosen:
        raise TableError(f"no feature column is left; the columns are {listed(source.columns)}")
    return chosen


def _required(source: Source, names: Sequence[str], role: str) -> list[str]:
    """The names, if the table has all of them."""
    there = set(source.columns)
    missing = [name for name in names if name not in there]
    if missing:
        more = f" (and {len(missing) - 1} more of the {len(names)})" if len(missing) > 1 else ""
        hint = suggestion(missing[0], source.columns)
        raise TableError(f"there is no {role} column {shown(missing[0])}{more}{hint}")
    return list(names)


def _expanded(source: Source, token: str, reserved: Sequence[str | None]) -> list[str]:
    """Columns of a name, group, pattern or range; the last three skip reserved columns."""
    columns = source.columns
    if token in reserved:
        raise TableError(f"{shown(token)} is the label or the environment, not a feature")
    if token in source.groups and token not in columns:
        names: Sequence[str] = source.groups[token]
    elif token not in columns and any(c in token for c in "*?["):
        names = [name for name in columns if fnmatchcase(name, token)]
        if not names:
            raise TableError(f"no column matches {shown(token)}; there are {listed(columns)}")
    elif token not in columns and ":" in token:
        names = _range(source, *token.split(":", 1))
    else:
        names = _required(source, [token], "feature")
    skipped = {*reserved, *source.index} - {token}
    return [name for name in names if name not in skipped]


def _range(source: Source, first: str, last: str) -> Sequence[str]:
    """Columns from first to last: by number if only a number differs, else by position."""
    _required(source, [first, last], "feature")
    columns, a, b = source.columns, _NUMBERED.fullmatch(first), _NUMBERED.fullmatch(last)
    names: Sequence[str] = columns[columns.index(first) : columns.index(last) + 1]
    if a and b and a[1] == b[1]:
        # Numbers in the file's own names must not make this loop longer than its columns.
        numbers = range(int(a[2]), min(int(b[2]), int(a[2]) + len(columns)) + 1)
        names = [f"{a[1]}{i:0{len(a[2])}}" for i in numbers]
    if not names:
        raise TableError(f"the range {shown(f'{first}:{last}')} runs backwards")
    return _required(source, names, "feature")


def _check_labels(X: Any, labels: NDArray | None, role: str) -> None:
    """Raise unless there is one value per row; labels may not be missing."""
    if not len(X):
        raise TableError("the table has no rows")
    if labels is None:
        return
    if len(labels) != len(X):
        raise TableError(f"there are {len(X)} rows, but the {role} column has {len(labels)}")
    missing = np.flatnonzero(is_missing(labels))
    if role == "label" and len(missing):
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise TableError(f"the label is missing in row {missing[0] + 1}{more}; drop such rows")


def check_numbers(X: NDArray, names: Sequence[str]) -> None:
    """Raise at the first number that is not finite or too large to be squared."""
    largest = _LARGEST[X.dtype]
    for rows, block in row_blocks(X):
        # NaN fails both comparisons.
        if block.max() <= largest and block.min() >= -largest:
            continue
        row, i = np.argwhere(~(np.abs(block) <= largest))[0]
        value = block[row, i]
        what = "is missing (NaN)" if np.isnan(value) else f"is {value:g}"
        limit = f"; numbers of type {X.dtype} can be used up to {largest:g}"
        raise TableError(
            f"column {shown(names[i])} {what} in row {rows.start + row + 1}"
            f"{limit if np.isfinite(value) else ''}"
        )
