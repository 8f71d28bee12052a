"""Table formats that need no extra: text, NumPy arrays and archives; and Zarr arrays."""

from __future__ import annotations

# Not pyarrow.csv: text must be readable without the parquet extra, and one reader is enough.
import csv
import sys
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.engine.rows import ArrayRows
from isrlearn.io.errors import TableError, listed, reading, shown

#: Most bytes that an array of labels may take.
_LABEL_BYTES = 1 << 30
_NAMES = "feature_names"


class Source(ABC):
    """An open table; its errors do not name the file, their caller does (`errors.reading`)."""

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


class TextTable(Source):
    """A text table in UTF-8 whose first line names the columns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._rows() as rows:
            self.columns = self.features = tuple(name.strip() for name in next(rows, []))
        if not any(self.columns):
            raise TableError("the first line must name the columns; it is empty")
        check_names(self.columns)
        if len(self.columns) == 1 and any(c in self.columns[0] for c in ";\t,"):
            raise TableError(
                f"the first line holds one name, {shown(self.columns[0])}; columns must be "
                "separated by commas in a .csv file and by tabs in a .tsv file"
            )

    @contextmanager
    def _rows(self) -> Iterator[Iterator[list[str]]]:
        separator = "\t" if self.path.suffix.lower() == ".tsv" else ","
        # utf-8-sig: spreadsheets write a byte order mark before the first name.
        with open(self.path, encoding="utf-8-sig", newline="") as file:
            yield csv.reader(file, delimiter=separator, strict=True)

    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Features as float64, labels as numbers or text."""
        place = {name: i for i, name in enumerate(self.columns)}
        wanted = [place[name] for name in features]
        kept: dict[str, list[str]] = {name: [] for name in labels}
        numbers, n = array("d"), 0
        with self._rows() as rows:
            next(rows)
            for n, row in enumerate(filter(None, rows), 1):
                if len(row) != len(place):
                    raise TableError(f"row {n} has {len(row)} values for {len(place)} columns")
                cells = [row[j] for j in wanted]
                try:
                    numbers.extend([float(cell) for cell in cells])
                    sound = "_" not in "".join(cells)
                except ValueError:
                    sound = False
                if not sound:
                    j = next(j for j in wanted if not _is_float(row[j]))
                    raise TableError(
                        f"column {shown(self.columns[j])} holds {shown(row[j])} in row {n}, not a "
                        "number; choose the feature columns by name, pattern or range"
                    )
                for name, values in kept.items():
                    values.append(row[place[name]].strip())
        X = np.array(numbers).reshape(n, len(wanted))
        return X, {name: parsed_labels(values, name) for name, values in kept.items()}


class ArrayTable(Source):
    """Features in one .npy or .zarr array, opened and not read; columns are f0, f1 and so on."""

    named = False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._array = _open_zarr(path) if path.suffix.lower() == ".zarr" else _mapped(path)
        shape = self._array.shape
        if len(shape) != 2 or 0 in shape:
            raise TableError(f"a table must have 2 dimensions and rows; the shape is {shape}")
        self.columns = self.features = numbered("f", shape[1])
        self.groups = {"X": self.columns}

    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Features as they are on the disk: a memory map, or rows that are converted when read."""
        if labels:
            raise TableError("an array of features cannot hold labels")
        return _chosen(self._array, features, self.columns), {}


class ArchiveTable(Source):
    """Features in a two-dimensional array of a .npz archive, labels in one-dimensional ones.

    Columns of the array named X, or of the only one with two dimensions, are f0, f1, … or what
    an array "feature_names" calls them; those of another array A are A_0, A_1, …
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with np.load(path, allow_pickle=False) as archive:
            check_names(archive.files)
            self._arrays = {name: _member(archive, name) for name in archive.files}
        widths = {name: a.shape[1] for name, a in self._arrays.items() if a.ndim == 2}
        main = "X" if "X" in widths else next(iter(widths)) if len(widths) == 1 else ""
        groups = {
            name: numbered("f" if name == main else f"{name}_", width)
            for name, width in widths.items()
        }
        self.named = main in groups and _NAMES in self._arrays
        if self.named:
            given = tuple(map(str, self._arrays[_NAMES].ravel()))
            check_names(given)
            if len(given) != widths[main]:
                raise TableError(f"{_NAMES!r} holds {len(given)} names of {widths[main]} columns")
            groups[main] = given
        self.groups, self.features = groups, groups.get(main, ())
        vectors = [name for name, values in self._arrays.items() if values.ndim == 1]
        self.columns = tuple(dict.fromkeys(chain(*groups.values(), vectors)))

    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Columns of one of the arrays, and labels."""
        kept = {name: as_labels(self._arrays[name], name) for name in labels}
        if not features:
            return None, kept
        for name, columns in self.groups.items():
            if set(features) <= set(columns):
                return _chosen(self._arrays[name], features, columns), kept
        raise TableError(f"features must be columns of one array: {listed(self.groups)}")


def read_vector(path: Path) -> NDArray:
    """Labels of a one-dimensional .npy array."""
    with reading(path):
        return as_labels(np.array(_mapped(path)), path.name)


def _mapped(path: Path) -> NDArray:
    return _checked(np.lib.format.open_memmap(path, mode="r"))


def _member(archive: Any, name: str) -> NDArray:
    """An array of an archive; one of Python objects, which are pickles, is not read."""
    try:
        return _checked(np.asarray(archive[name]))
    except ValueError as error:
        if "allow_pickle" not in str(error):
            raise
        return np.array([None])


def _checked(array: NDArray) -> NDArray:
    # Without any byte it can claim any number of rows or columns.
    if array.nbytes == 0:
        raise TableError(f"an array of shape {array.shape} and type {array.dtype} is empty")
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
        raise TableError("its chunks are pickles, which could run any code; none was read")
    return array


def _chosen(array: Any, wanted: Sequence[str], columns: Sequence[str]) -> Any:
    """The wanted columns of numbers; the array itself where it needs no conversion."""
    if array.dtype.kind not in "biuf":
        raise TableError(f"features must be numbers; they are of type {array.dtype}")
    every = tuple(wanted) == tuple(columns)
    if every and isinstance(array, np.ndarray) and array.dtype in (np.float32, np.float64):
        return array
    place = {name: i for i, name in enumerate(columns)}
    return ArrayRows(array, None if every else [place[name] for name in wanted])


def numbered(prefix: str, n: int) -> tuple[str, ...]:
    """Names for columns that have none."""
    return tuple(f"{prefix}{i}" for i in range(n))


def check_names(names: Sequence[str]) -> None:
    """Raise unless there are columns, each with its own name."""
    if not names:
        raise TableError("there are no columns")
    name, n = Counter(names).most_common(1)[0]
    if n > 1:
        raise TableError(f"{n} columns are named {shown(name)}")


def as_labels(values: NDArray, name: str) -> NDArray:
    """Labels as booleans, numbers, text, or objects where some are missing."""
    kind = values.dtype.kind
    if values.ndim != 1:
        raise TableError(f"{shown(name)} must have one label per row; its shape is {values.shape}")
    if kind == "O":
        raise TableError(
            f"array {shown(name)} holds Python objects, which are not read because they could run "
            "code; save it as numbers or text, for example .astype(str)"
        )
    if kind not in "biufUSM":
        raise TableError(f"{shown(name)} of type {values.dtype} cannot hold labels")
    if kind == "S":
        return np.char.decode(values, "utf-8")
    if kind == "M":
        days = np.datetime_as_string(values).astype(object)
        days[np.isnat(values)] = None
        return days
    native = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    # NumPy does not check code points, and Python fails on those that do not exist.
    if kind == "U" and np.frombuffer(native, np.uint32).max(initial=0) > sys.maxunicode:
        raise TableError(f"array {shown(name)} holds text that is not Unicode")
    return native


def parsed_labels(texts: Sequence[str], name: str) -> NDArray:
    """Labels read from text: integers or floats where all of them are, else the text itself.

    A text is an integer only if it is written as Python writes it ("7", not "007"), so that no
    two labels become one. An empty text is a missing label.

    Examples
    --------
    >>> def labels(*texts):
    ...     return parsed_labels(texts, "y").tolist()
    >>> labels("1", "2"), labels("01", "2b"), labels("1.5", "", "2"), labels("a", "")
    ([1, 2], ['01', '2b'], [1.5, nan, 2.0], ['a', None])
    """
    known = {text for text in texts if text}
    value: dict[str, Any] = {text: text for text in known}
    if known and all(map(_is_integer, known)):
        value = {text: int(text) for text in known}
    elif known and all(map(_is_float, known)):
        value = {text: float(text) for text in known} | {"": np.nan}
    return label_array([value.get(text) for text in texts], len(texts), name)


def label_array(values: list[Any], n: int, name: str) -> NDArray:
    """The values, of objects if one is None; n rows must not take the room of one long text."""
    if None in values:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array
    longest = max((len(v) for v in values if isinstance(v, str)), default=0)
    if 4 * longest * n > _LABEL_BYTES:
        raise TableError(
            f"column {shown(name)} holds a text of {longest} characters, too long for a label"
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
