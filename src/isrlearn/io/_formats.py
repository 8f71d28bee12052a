"""Table formats that need no extra: text, NumPy arrays and archives; and Zarr arrays."""

from __future__ import annotations

# Not pyarrow.csv: text must be readable without the parquet extra, and one reader is enough.
import csv
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.engine.rows import ArrayRows
from isrlearn.io.errors import TableError, listed, optional, reading, shown

#: Most bytes that an array of labels may take.
_LABEL_BYTES = 1 << 30
_NAMES = "feature_names"
#: Features (n, d) and each label column (n,). Features are a float32 or float64 array, a memory
#: map, or Rows where the format can be read block by block.
Content = tuple[Any, dict[str, NDArray]]


@dataclass(frozen=True, eq=False)
class Source:
    """An open table of which only the names of the columns have been read.

    ``read(features, labels)`` returns the `Content` of these columns. Its errors do not name the
    file; the caller adds the name (`errors.reading`).
    """

    path: Path
    columns: tuple[str, ...]
    features: tuple[str, ...]  # columns that are features by default
    read: Callable[[Sequence[str], Sequence[str]], Content]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names of several columns
    named: bool = True  # whether the names of the columns come from the file


def open_text(path: Path) -> Source:
    """A text table in UTF-8 whose first line names the columns."""
    with _lines(path) as lines:
        columns = tuple(name.strip() for name in next(lines, []))
    if not any(columns):
        raise TableError("the first line must name the columns; it is empty")
    check_names(columns)
    if len(columns) == 1 and any(c in columns[0] for c in ";\t,"):
        raise TableError(
            f"the first line holds one name, {shown(columns[0])}; columns must be separated by "
            "commas in a .csv file and by tabs in a .tsv file"
        )
    return Source(path, columns, columns, partial(_read_text, path, columns))


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[list[str]]]:
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    # utf-8-sig: spreadsheets write a byte order mark before the first name.
    with open(path, encoding="utf-8-sig", newline="") as file:
        yield csv.reader(file, delimiter=separator, strict=True)


def _read_text(
    path: Path, columns: tuple[str, ...], features: Sequence[str], labels: Sequence[str]
) -> Content:
    """Features as float64, labels as numbers or text."""
    place = {name: i for i, name in enumerate(columns)}
    wanted = [place[name] for name in features]
    kept: dict[str, list[str]] = {name: [] for name in labels}
    numbers, n = array("d"), 0
    with _lines(path) as lines:
        next(lines)
        for n, row in enumerate(filter(None, lines), 1):
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
                    f"column {shown(columns[j])} holds {shown(row[j])} in row {n}, not a number; "
                    "choose the feature columns by name, pattern or range"
                )
            for name, values in kept.items():
                values.append(row[place[name]].strip())
    X = np.array(numbers).reshape(n, len(wanted))
    return X, {name: parsed_labels(values, name) for name, values in kept.items()}


def open_array(path: Path) -> Source:
    """Features in one .npy or .zarr array, which is not read yet; columns are f0, f1 and so on."""
    features = _open_zarr(path) if path.suffix.lower() == ".zarr" else _mapped(path)
    shape = features.shape
    if len(shape) != 2 or 0 in shape:
        raise TableError(f"a table must have 2 dimensions and rows; the shape is {shape}")
    columns = numbered("f", shape[1])

    def read(wanted: Sequence[str], labels: Sequence[str]) -> Content:
        if labels:
            raise TableError("an array of features cannot hold labels")
        return _chosen(features, wanted, columns), {}

    return Source(path, columns, columns, read, {"X": columns}, named=False)


def open_archive(path: Path) -> Source:
    """Features in a two-dimensional array of a .npz archive, labels in one-dimensional ones.

    The columns of the array named X, or of the only two-dimensional one, are f0, f1, … or the names
    in an array "feature_names"; those of another array A are A_0, A_1, …
    """
    with np.load(path, allow_pickle=False) as archive:
        check_names(archive.files)
        arrays = {name: _member(archive, name) for name in archive.files}
    widths = {name: a.shape[1] for name, a in arrays.items() if a.ndim == 2}
    main = "X" if "X" in widths else next(iter(widths)) if len(widths) == 1 else ""
    groups = {
        name: numbered("f" if name == main else f"{name}_", width) for name, width in widths.items()
    }
    named = main in groups and _NAMES in arrays
    if named:
        groups[main] = tuple(map(str, arrays[_NAMES].ravel()))
        check_names(groups[main])
        if len(groups[main]) != widths[main]:
            n = len(groups[main])
            raise TableError(f"{_NAMES!r} holds {n} names for {widths[main]} columns")
    vectors = [name for name, values in arrays.items() if values.ndim == 1]
    columns = tuple(dict.fromkeys(chain(*groups.values(), vectors)))

    def read(wanted: Sequence[str], labels: Sequence[str]) -> Content:
        kept = {name: as_labels(arrays[name], name) for name in labels}
        if not wanted:
            return None, kept
        for name, own in groups.items():
            if set(wanted) <= set(own):
                return _chosen(arrays[name], wanted, own), kept
        raise TableError(f"features must be columns of one array: {listed(groups)}")

    return Source(path, columns, groups.get(main, ()), read, groups, named)


def read_vector(path: Path) -> NDArray:
    """Labels of a one-dimensional .npy array."""
    with reading(path):
        return as_labels(np.array(_mapped(path)), path.name)


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
    if array.dtype.kind == "U":
        # Python cannot handle text with other code points than those of Unicode.
        native = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
        if native.view(np.uint32).max() > sys.maxunicode:
            raise TableError("an array holds text that is not Unicode")
    return array


def _open_zarr(path: Path) -> Any:
    array = optional("zarr", "reading Zarr arrays", "zarr").open_array(str(path), mode="r")
    about = array.metadata
    codecs = [*(getattr(about, "filters", None) or ()), getattr(about, "compressor", None)]
    # Version 2 of the format allows chunks that are pickles.
    if any(getattr(codec, "codec_id", None) == "pickle" for codec in codecs):
        raise TableError("its chunks are pickles, which could run any code; nothing was read")
    return array


def _chosen(array: Any, wanted: Sequence[str], columns: Sequence[str]) -> Any:
    """The wanted columns of numbers; the array itself if it needs no conversion."""
    if array.dtype.kind not in "biuf":
        raise TableError(f"features must be numbers; they are of type {array.dtype}")
    every = tuple(wanted) == tuple(columns)
    if every and isinstance(array, np.ndarray) and array.dtype in (np.float32, np.float64):
        return array
    place = {name: i for i, name in enumerate(columns)}
    return ArrayRows(array, None if every else [place[name] for name in wanted])


def numbered(prefix: str, n: int) -> tuple[str, ...]:
    """Names for columns without names."""
    return tuple(f"{prefix}{i}" for i in range(n))


def check_names(names: Sequence[str]) -> None:
    """Raise unless there are columns and their names are distinct."""
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
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def parsed_labels(texts: Sequence[str], name: str) -> NDArray:
    """Labels from text: integers or floats if all of them are, else the text itself.

    A text is an integer only if it is written as Python writes it ("7", not "007"), so that
    different labels stay different. An empty text is a missing label.

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
    """The values as an array, of objects if one is None; n long texts may not exceed the limit."""
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
    return "_" not in text  # Python would read 1_000 as a thousand
