"""What every format of table offers: names of columns, features as numbers, labels as they are."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.io.errors import TableError, shown

#: Bytes of float64 in a block of rows that is converted or checked at a time.
BLOCK_BYTES = 8 << 20
#: Most that an array of labels may take.
_LABEL_BYTES = 1 << 30


class Source(ABC):
    """An opened table of which only the names have been read."""

    path: Path
    columns: tuple[str, ...]
    #: Columns taken where nobody says which.
    features: tuple[str, ...]
    #: Names that stand for several columns.
    groups: Mapping[str, tuple[str, ...]]
    #: Whether the columns' names are the file's own.
    named: bool

    @abstractmethod
    def read(
        self, features: Sequence[str], labels: Sequence[str]
    ) -> tuple[NDArray, dict[str, NDArray]]:
        """Features (n, d), float32 or float64, and each of the other columns (n,)."""

    def rows(self, features: Sequence[str]) -> Any:
        """Features to be read some rows at a time, where the format can; else all of them."""
        return self.read(features, [])[0]


def check_room(size: int, path: Path) -> None:
    """Raise if an array of so many bytes cannot fit in this machine's memory.

    A system that promises more than it has would otherwise end the process half-way.
    """
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return
    if size > memory:
        raise TableError(
            f"{path}: its features would take {size / 1e9:.3g} GB, and this machine has "
            f"{memory / 1e9:.3g}; choose some of them, or use a .npy array, which is not read whole"
        )


def as_features(array: NDArray, path: Path) -> NDArray:
    """Numbers as float32 or float64: those stay as they are, a memory map stays one."""
    if array.dtype.kind not in "biuf":
        raise TableError(f"{path}: features must be numbers; they are of type {array.dtype}")
    if array.ndim != 2:
        raise TableError(
            f"{path}: features must have 2 dimensions, (rows, columns); these have the shape "
            f"{array.shape}"
        )
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    small = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if small else np.float64)


def as_labels(values: NDArray, path: Path, name: str) -> NDArray:
    """Labels as booleans, numbers, text, or objects where some are missing."""
    if values.ndim != 1:
        raise TableError(
            f"{path}: {shown(name)} must have 1 dimension, a label a row; it has the shape "
            f"{values.shape}"
        )
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8")
    if values.dtype.kind == "M":
        text = np.datetime_as_string(values).astype(object)
        text[np.isnat(values)] = None
        return text
    if values.dtype.kind not in "biufUO":
        raise TableError(f"{path}: {shown(name)} cannot hold labels: it is of type {values.dtype}")
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def parsed_labels(texts: Sequence[str], path: Path, name: str) -> NDArray:
    """Labels read from text: whole numbers or numbers where all are, else the text itself.

    A number is taken for a whole one only if it is written as Python writes it ("7", not
    "007"), so that no two labels become one. An empty text is a missing label.

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
    if all(text in value for text in texts):
        return as_text([value[text] for text in texts], path, name)
    return objects([value.get(text) for text in texts])


def as_text(values: list[Any], path: Path, name: str, n_rows: int | None = None) -> NDArray:
    """An array of the values, unless one long text would make those of all rows as long."""
    n = len(values) if n_rows is None else n_rows
    longest = max((len(v) for v in values if isinstance(v, str)), default=0)
    if 4 * longest * n > _LABEL_BYTES:
        raise TableError(
            f"{path}: column {shown(name)} holds a text of {longest} characters, too long for a "
            f"label of one of {n} rows"
        )
    return np.array(values)


def objects(values: list[Any]) -> NDArray:
    """An array of Python objects, whatever they are."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _is_integer(text: str) -> bool:
    digits = text[1:] if text[0] == "-" else text
    if len(digits) > 18 or not (digits.isascii() and digits.isdigit()):
        return False
    return str(int(text)) == text


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
