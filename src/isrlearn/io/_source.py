"""What every table format offers: names of columns, features as numbers, labels as they are."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.io.errors import TableError, shown

#: Bytes of float64 in a block of rows that is converted or checked at a time.
BLOCK_BYTES = 8 << 20
#: Most bytes that an array of labels may take.
_LABEL_BYTES = 1 << 30


class Source(ABC):
    """An open table of which only the names of the columns have been read."""

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
        """Raise if two columns have the same name."""
        name, n = Counter(names).most_common(1)[0]
        if n > 1:
            raise TableError(f"{self.path}: {n} columns are named {shown(name)}")


def numbered(prefix: str, n: int) -> tuple[str, ...]:
    """Names for columns that have none."""
    return tuple(f"{prefix}{i}" for i in range(n))


def check_room(shape: Sequence[int], dtype: np.dtype, path: Path) -> None:
    """Raise if an array cannot fit in this machine's memory.

    A system that overcommits memory would otherwise end the process half-way.
    """
    size = math.prod(shape) * dtype.itemsize
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return
    if size > memory:
        raise TableError(
            f"{path}: its features would take {size / 1e9:.3g} GB, and this machine has "
            f"{memory / 1e9:.3g}; choose some of them, or read them with stream=True"
        )


def as_labels(values: NDArray, path: Path, name: str) -> NDArray:
    """Labels as booleans, numbers, text, or objects where some are missing."""
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
    if values.dtype.kind not in "biufUO":
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
    elif known and all(map(is_float, known)):
        value = {text: float(text) for text in known} | {"": np.nan}
    if all(text in value for text in texts):
        return checked_labels([value[text] for text in texts], len(texts), path, name)
    return objects([value.get(text) for text in texts])


def checked_labels(values: list[Any], n: int, path: Path, name: str) -> NDArray:
    """The values as an array, unless one long text would make the labels of n rows as long."""
    longest = max((len(v) for v in values if isinstance(v, str)), default=0)
    if 4 * longest * n > _LABEL_BYTES:
        raise TableError(
            f"{path}: column {shown(name)} holds a text of {longest} characters, too long for a "
            f"label of {n} rows"
        )
    return np.array(values)


def objects(values: list[Any]) -> NDArray:
    """An array of Python objects, one per value."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return len(digits) <= 18 and digits.isascii() and digits.isdigit() and str(int(text)) == text


def is_float(text: str) -> bool:
    """Whether a text is a number; Python would read 1_000 as one, but no table means that."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
