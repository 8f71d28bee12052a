"""An open table, and the formats that hold arrays: .npy, .npz and Zarr."""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import numpy as np
from numpy.typing import NDArray

from isrlearn.engine.rows import ArrayRows
from isrlearn.io.errors import TableError, listed, optional, reading, shown
from isrlearn.io.labels import as_labels

MEGABYTE = 1 << 20
#: Names that data frames give to the columns of their index, which are not features.
INDEX = re.compile(r"(Unnamed: \d+)?|__index_level_\d+__")
_WIDEST = 500_000
#: Chunks per file up to which those of a Zarr array that are not stored are read as zeros.
_MISSING_CHUNKS = 100
_NAMES = "feature_names"
#: First column of the files of predictions that we write.
PREDICTION = "prediction"
#: Features (n, d), of those that are text each column, and each label column (n,). Features are a
#: float32 or float64 array, a memory map, or Rows where the format can be read block by block.
Content = tuple[Any, dict[str, NDArray], dict[str, NDArray]]


@dataclass(frozen=True, eq=False)
class Source:
    """An open table of which only the names of the columns have been read.

    ``read(features, labels, as_text)`` returns the `Content` of these columns. Features must be
    numbers if `as_text` is None; otherwise it names some that are read as text, as are all that do
    not hold numbers. Errors do not name the file; the caller adds its name (`errors.reading`).
    """

    path: Path
    columns: tuple[str, ...]
    features: tuple[str, ...]  # columns that are features by default
    read: Callable[..., Content]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names of several columns
    named: bool = True  # whether the names of the columns come from the file
    index: tuple[str, ...] = ()  # columns that are the index of a data frame
    mixed: bool = False  # whether features may be text


def open_array(path: Path) -> Source:
    """Features in one .npy or .zarr array, which is not read yet; columns are f0, f1 and so on."""
    features = _open_zarr(path) if path.suffix.lower() == ".zarr" else _mapped(path)
    shape = features.shape
    if len(shape) != 2 or 0 in shape:
        raise TableError(f"a table must have 2 dimensions and rows; the shape is {shape}")
    columns = numbered("f", shape[1])

    def read(wanted: Sequence[str], labels: Sequence[str], as_text: Any = None) -> Content:
        if labels:
            raise TableError("an array of features cannot hold labels")
        return _chosen(path, features, wanted, columns), {}, {}

    return Source(path, columns, columns, read, {"X": columns}, named=False)


def open_archive(path: Path) -> Source:
    """Features in a two-dimensional array of a .npz archive, labels in one-dimensional ones.

    The columns of the array named X, or of the only two-dimensional one, are f0, f1, … or the names
    in an array "feature_names"; those of another array A are A_0, A_1, …, a single one is A.
    """
    if not is_zipfile(path):
        raise TableError("this is not a .npz archive: save named arrays with numpy.savez")
    with np.load(path, allow_pickle=False) as archive:
        check_names(archive.files)
        size = sum(member.file_size for member in archive.zip.infolist())
        check_expansion(path, size, times=4, spare=100)
        arrays = {name: _member(archive, name) for name in archive.files}
    widths = {name: a.shape[1] for name, a in arrays.items() if a.ndim == 2}
    main = "X" if "X" in widths else next(iter(widths)) if len(widths) == 1 else ""
    groups = {v: numbered("f" if v == main else f"{v}_", m) for v, m in widths.items()}
    groups |= {v: (v,) for v, m in widths.items() if m == 1 and v != main}
    named = main in groups and _NAMES in arrays
    if named:
        names = tuple(map(str, as_labels(arrays[_NAMES].ravel(), _NAMES)))
        if len(names) != widths[main]:
            raise TableError(f"{_NAMES!r} holds {len(names)} names for {widths[main]} columns")
        groups[main] = names
    vectors = [name for name, values in arrays.items() if values.ndim == 1]
    owners = column_owners(groups | {name: (name,) for name in vectors})
    columns = tuple(owners)

    def values_of(name: str) -> NDArray:
        own = arrays[owners[name]]
        return own if own.ndim == 1 else own[:, groups[owners[name]].index(name)]

    def read(wanted: Sequence[str], labels: Sequence[str], as_text: Any = None) -> Content:
        kept = {name: as_labels(values_of(name), name) for name in labels}
        if not wanted:
            return None, {}, kept
        for name, own in groups.items():
            if set(wanted) <= set(own):
                return _chosen(path, arrays[name], wanted, own), {}, kept
        raise TableError(f"features must be columns of one array: {listed(groups)}")

    return Source(path, columns, groups.get(main, ()), read, groups, named)


def read_vector(path: Path) -> NDArray:
    """Labels of a one-dimensional .npy array."""
    with reading(path):
        check_regular(path)
        return as_labels(np.array(_mapped(path)), path.name)


def check_regular(path: Path) -> None:
    """Raise for devices and pipes, which could block for ever, and for folders."""
    if path.exists() and not path.is_file():
        raise TableError("this is not a regular file")


def check_expansion(path: Path, n_bytes: float, times: int = 100, spare: int = 16) -> int:
    """Number of files; raises if they claim to hold far more than their size and some megabytes."""
    files = [p for p in path.rglob("*") if not p.is_dir()] if path.is_dir() else [path]
    for file in files:
        check_regular(file)
    size = sum(file.stat().st_size for file in files)
    if n_bytes > times * size + spare * MEGABYTE:
        raise TableError(
            f"its content would take {n_bytes / MEGABYTE:.0f} MB, but it has only {size} bytes; if "
            "that is correct, save it without compression, for example as .npy"
        )
    return len(files)


def loaded(path: Path, rows: Any) -> NDArray:
    """Rows as an array in memory, if the file can hold that many."""
    check_expansion(path, math.prod(rows.shape) * rows.dtype.itemsize)
    return np.asarray(rows[:])


def _mapped(path: Path) -> NDArray:
    return _checked(np.lib.format.open_memmap(path, mode="r"))


def _member(archive: Any, name: str) -> NDArray:
    """An array of an archive; arrays of Python objects, which are pickled, are not read."""
    try:
        return _checked(np.asarray(archive[name]))
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        return np.array([None])


def _checked(array: NDArray) -> NDArray:
    # An array without any bytes can claim any number of rows or columns.
    if array.nbytes == 0:
        raise TableError(f"an array of shape {array.shape} and type {array.dtype} is empty")
    return array


def _open_zarr(path: Path) -> Any:
    check_expansion(path, 0)  # before it is opened: a pipe in the folder would block
    array = optional("zarr", "reading Zarr arrays", "zarr").open_array(str(path), mode="r")
    about = array.metadata
    codecs = [*(getattr(about, "filters", None) or ()), getattr(about, "compressor", None)]
    # Version 2 of the format allows chunks that are pickles.
    if any(getattr(codec, "codec_id", None) == "pickle" for codec in codecs):
        raise TableError("its chunks are pickles, which could run any code; nothing was read")
    if 0 in array.chunks:
        raise TableError(f"its chunks have the shape {array.chunks}, which holds no numbers")
    # Chunks that are not there are zeros, so that a few bytes can claim any size.
    claimed = max(math.prod(array.shape), math.prod(array.chunks)) * array.dtype.itemsize
    n_files = check_expansion(path, claimed)
    # Each of them is looked for, and that takes time.
    stored = getattr(array, "shards", None) or array.chunks
    n_chunks = math.prod(-(-n // size) for n, size in zip(array.shape, stored, strict=True))
    if n_chunks > _MISSING_CHUNKS * (n_files + 10):
        raise TableError(f"it consists of {n_chunks} chunks, but has only {n_files} files")
    return array


class FileRows(ArrayRows):
    """Rows of an array in a file; what is wrong with them is a `TableError` that names it."""

    def __init__(self, path: Path, array: Any, columns: Any = None) -> None:
        super().__init__(array, columns)
        self.path = path

    def __getitem__(self, rows: slice) -> NDArray:
        with reading(self.path):
            return super().__getitem__(rows)


def _chosen(path: Path, array: Any, wanted: Sequence[str], columns: Sequence[str]) -> Any:
    """The wanted columns of numbers; the array itself if it needs no conversion."""
    if array.dtype.kind not in "biuf":
        raise TableError(f"features must be numbers; they are of type {array.dtype}")
    every = tuple(wanted) == tuple(columns)
    if every and isinstance(array, np.ndarray) and array.dtype in (np.float32, np.float64):
        return array
    place = {name: i for i, name in enumerate(columns)}
    return FileRows(path, array, None if every else [place[name] for name in wanted])


def numbered(prefix: str, n: int) -> tuple[str, ...]:
    """Names for columns without names."""
    if n > _WIDEST:
        raise TableError(f"there are {n} columns; a table can have at most {_WIDEST}")
    return tuple(f"{prefix}{i}" for i in range(n))


def check_names(names: Sequence[str]) -> None:
    """Raise unless there are columns and their names are distinct."""
    if not names:
        raise TableError("there are no columns")
    if len(names) > _WIDEST:
        raise TableError(f"there are {len(names)} columns; a table can have at most {_WIDEST}")
    if len(set(names)) < len(names):
        name, n = Counter(names).most_common(1)[0]
        raise TableError(f"{n} columns are named {shown(name)}; give each a name of its own")


def column_owners(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The column of a file that each of our columns comes from, if their names are distinct."""
    owner: dict[str, str] = {}
    for column, name in ((column, name) for column, names in columns.items() for name in names):
        if name in owner:
            both = f"{shown(owner[name])} and {shown(column)} both give"
            raise TableError(f"{both} a column {shown(name)}; rename one of them")
        owner[name] = column
    return owner
