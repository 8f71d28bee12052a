"""Table formats that need no extra: text, NumPy arrays and archives; and Zarr arrays."""

from __future__ import annotations

# Not pyarrow.csv: text must be readable without the parquet extra, and one reader is enough.
import csv
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.rows import ArraySource
from isrlearn.io.errors import TableError, listed, reading, shown

#: Bytes of float64 in a block of rows that is converted or checked at a time.
BLOCK_BYTES = 8 << 20
SEPARATORS = {".csv": ",", ".tsv": "\t"}
#: Most bytes that an array of labels may take.
_LABEL_BYTES = 1 << 30
_NAMES = "feature_names"


class Source(ABC):
    """An open table, of which at least the names of the columns have been read."""

    path: Path
    columns: tuple[str, ...]
    #: Columns that are features by default.
    features: tuple[str, ...]
    #: Names that stand for several columns.
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    #: Whether the names of the columns come from the file.
    named: bool = True

    @abstractmethod
    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Features (n, d) and each label column (n,).

        Features are a float32 or float64 array, a memory map, or Rows where the format can be
        read some rows at a time.
        """

    def check_names(self, names: Sequence[str]) -> None:
        """Raise unless there are columns, each with its own name."""
        if not names:
            raise TableError(f"{self.path}: there are no columns")
        name, n = Counter(names).most_common(1)[0]
        if n > 1:
            raise TableError(f"{self.path}: {n} columns are named {shown(name)}")


class TextTable(Source):
    """A text table in UTF-8 whose first line names the columns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._rows() as rows:
            self.columns = self.features = tuple(name.strip() for name in next(rows, []))
        if not any(self.columns):
            raise TableError(f"{path}: the first line must name the columns; it is empty")
        self.check_names(self.columns)
        if len(self.columns) == 1 and any(c in self.columns[0] for c in ";\t,"):
            raise TableError(
                f"{path}: the first line holds one name, {shown(self.columns[0])}; columns must "
                "be separated by commas in a .csv file and by tabs in a .tsv file"
            )

    @contextmanager
    def _rows(self) -> Iterator[Iterator[list[str]]]:
        separator = SEPARATORS[self.path.suffix.lower()]
        # utf-8-sig: spreadsheets write a byte order mark before the first name.
        with reading(self.path, "text"), open(self.path, encoding="utf-8-sig", newline="") as file:
            yield csv.reader(file, delimiter=separator, strict=True)

    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Features as float64, labels as numbers or text."""
        place = {name: i for i, name in enumerate(self.columns)}
        wanted = [place[name] for name in features]
        kept: dict[str, list[str]] = {name: [] for name in labels}
        blocks = [np.empty((0, len(wanted)))]
        size = max(1, BLOCK_BYTES // (8 * len(self.columns)))
        with self._rows() as rows:
            next(rows)
            n = 0
            while lines := list(islice(rows, size)):
                block = [row for row in lines if row]
                blocks.append(self._numbers(block, wanted, n))
                for name, values in kept.items():
                    values += [row[place[name]].strip() for row in block]
                n += len(block)
        found = {name: parsed_labels(values, self.path, name) for name, values in kept.items()}
        return np.concatenate(blocks), found

    def _numbers(self, block: list[list[str]], wanted: list[int], before: int) -> NDArray:
        """Features of some rows, each of which must have all its columns."""
        out = np.empty((len(block), len(wanted)))
        for i, row in enumerate(block):
            if len(row) != len(self.columns):
                raise TableError(
                    f"{self.path}: row {before + i + 1} has {len(row)} values; the first line "
                    f"names {len(self.columns)} columns"
                )
            cells = [row[j] for j in wanted]
            try:
                out[i] = [float(cell) for cell in cells]
                sound = "_" not in "".join(cells)
            except ValueError:
                sound = False
            if not sound:
                j = next(j for j in wanted if not _is_float(row[j]))
                what = f"holds {shown(row[j])}, not a number" if row[j].strip() else "is empty"
                raise TableError(
                    f"{self.path}: column {shown(self.columns[j])} {what} in row {before + i + 1}; "
                    "choose the feature columns by name, pattern or range"
                )
        return out


class ArrayTable(Source):
    """Features in one .npy or .zarr array, opened and not read; columns are f0, f1 and so on."""

    named = False

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "an array"):
            self._array = _open_zarr(path) if path.suffix.lower() == ".zarr" else mapped(path)
        if len(self._array.shape) != 2 or 0 in self._array.shape:
            raise TableError(
                f"{path}: a table must have 2 dimensions, (rows, columns); this array has the "
                f"shape {self._array.shape}"
            )
        self.columns = self.features = numbered("f", self._array.shape[1])
        self.groups = {"X": self.columns}

    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Features as they are on the disk: a memory map, or rows that are converted when read."""
        if labels:
            raise TableError(f"{self.path}: an array of features cannot hold labels")
        return _chosen(self._array, features, self.columns, self.path), {}


class ArchiveTable(Source):
    """Features in a two-dimensional array of a .npz archive, labels in one-dimensional ones.

    Columns of the array named X, or of the only one with two dimensions, are f0, f1, … or what
    an array "feature_names" calls them; those of another array A are A_0, A_1, …
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "a NumPy archive"), np.load(path, allow_pickle=False) as archive:
            check_room(sum(info.file_size for info in archive.zip.infolist()), path)
            self.check_names(archive.files)
            self._arrays = {name: _member(archive, name, path) for name in archive.files}
        tables = [name for name, array in self._arrays.items() if array.ndim == 2]
        main = "X" if "X" in tables else tables[0] if len(tables) == 1 else None
        groups = {
            name: numbered("f" if name == main else f"{name}_", self._arrays[name].shape[1])
            for name in tables
        }
        self.named = main is not None and _NAMES in self._arrays
        if main and self.named:
            given = tuple(str(name) for name in self._arrays[_NAMES].ravel())
            if not len(given) == len(set(given)) == len(groups[main]):
                raise TableError(
                    f"{path}: {_NAMES!r} must hold {len(groups[main])} distinct names, one per "
                    f"column of {main!r}; it holds {listed(given, 4)}"
                )
            groups[main] = given
        self.groups, self.features = groups, groups[main] if main else ()
        vectors = [name for name, array in self._arrays.items() if array.ndim == 1]
        self.columns = tuple(dict.fromkeys(chain(*groups.values(), vectors)))

    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Columns of one of the arrays, and labels."""
        kept = {name: as_labels(self._arrays[name], self.path, name) for name in labels}
        for name, columns in self.groups.items():
            if set(features) <= set(columns):
                return _chosen(self._arrays[name], features, columns, self.path), kept
        if features:
            raise TableError(
                f"{self.path}: features must be columns of one of {listed(self.groups)}"
            )
        return None, kept


def mapped(path: Path) -> NDArray:
    """A .npy array as a memory map; an error if it has no bytes and any number of rows."""
    array = np.lib.format.open_memmap(path, mode="r")
    if array.nbytes == 0:
        raise TableError(f"{path}: an array of shape {array.shape} and type {array.dtype} is empty")
    return array


def _member(archive: Any, name: str, path: Path) -> NDArray:
    """An array of an archive; one of Python objects is not read."""
    try:
        array = np.asarray(archive[name])
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        return np.array([None])
    if array.nbytes == 0:
        raise TableError(f"{path}: array {shown(name)} of shape {array.shape} is empty")
    return array


def _open_zarr(path: Path) -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError('reading Zarr arrays needs zarr: pip install "isrlearn[zarr]"') from None
    array = zarr.open_array(str(path), mode="r")
    about = array.metadata
    codecs = [*(getattr(about, "filters", None) or ()), getattr(about, "compressor", None)]
    # The older of the two formats of Zarr lets chunks be pickles.
    if any(getattr(codec, "codec_id", None) == "pickle" for codec in codecs):
        raise TableError(f"{path}: its chunks are pickles, which could run any code; none was read")
    return array


def _chosen(array: Any, wanted: Sequence[str], columns: Sequence[str], path: Path) -> Any:
    """The wanted columns of numbers; the array itself where it needs no conversion."""
    if array.dtype.kind not in "biuf":
        raise TableError(f"{path}: features must be numbers; they are of type {array.dtype}")
    every = tuple(wanted) == tuple(columns)
    if every and isinstance(array, np.ndarray) and array.dtype in (np.float32, np.float64):
        return array
    place = {name: i for i, name in enumerate(columns)}
    return ArraySource(array, None if every else [place[name] for name in wanted])


def numbered(prefix: str, n: int) -> tuple[str, ...]:
    """Names for columns that have none."""
    return tuple(f"{prefix}{i}" for i in range(n))


def check_room(size: int, path: Path) -> None:
    """Raise if so many bytes cannot fit in this machine's memory.

    A system that overcommits memory would otherwise end the process half-way.
    """
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return
    if size > memory:
        raise TableError(
            f"{path}: it would take {size / 1e9:.3g} GB, and this machine has {memory / 1e9:.3g}; "
            "choose fewer features, or read .npy, .parquet or .zarr with stream=True"
        )


def as_labels(values: NDArray, path: Path, name: str) -> NDArray:
    """Labels as booleans, numbers, text, or objects where some are missing."""
    if values.dtype.kind == "O":
        raise TableError(
            f"{path}: array {shown(name)} holds Python objects, which are not read because they "
            "could run code; save it as numbers or text, for example .astype(str)"
        )
    if values.ndim != 1:
        raise TableError(
            f"{path}: {shown(name)} must have 1 dimension, one label per row; it has the shape "
            f"{values.shape}"
        )
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8")
    if values.dtype.kind == "M":
        days = np.datetime_as_string(values).astype(object)
        days[np.isnat(values)] = None
        return days
    if values.dtype.kind not in "biufU":
        raise TableError(f"{path}: {shown(name)} cannot hold labels: it is of type {values.dtype}")
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def parsed_labels(texts: Sequence[str], path: Path, name: str) -> NDArray:
    """Labels read from text: integers or floats where all of them are, else the text itself.

    A text is an integer only if it is written as Python writes it ("7", not "007"), so that no
    two labels become one. An empty text is a missing label.

    Examples
    --------
    >>> def labels(*texts):
    ...     return parsed_labels(texts, Path("table.csv"), "y").tolist()
    >>> labels("1", "2"), labels("01", "2b"), labels("1.5", "", "2"), labels("a", "")
    ([1, 2], ['01', '2b'], [1.5, nan, 2.0], ['a', None])
    """
    known = {text for text in texts if text}
    value: dict[str, Any] = {text: text for text in known}
    if known and all(map(_is_integer, known)):
        value = {text: int(text) for text in known}
    elif known and all(map(_is_float, known)):
        value = {text: float(text) for text in known} | {"": np.nan}
    return label_array([value.get(text) for text in texts], len(texts), path, name)


def label_array(values: list[Any], n: int, path: Path, name: str) -> NDArray:
    """The values, of objects if one is None; n rows must not take the room of one long text."""
    longest = max((len(v) for v in values if isinstance(v, str)), default=0)
    if None in values:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    if 4 * longest * n > _LABEL_BYTES:
        raise TableError(
            f"{path}: column {shown(name)} holds a text of {longest} characters, too long for a "
            f"label of {n} rows"
        )
    return np.array(values)


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return len(digits) <= 18 and digits.isascii() and digits.isdigit() and str(int(text)) == text


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python reads 1_000 as a thousand; no table means that
