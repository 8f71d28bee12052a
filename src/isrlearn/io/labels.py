"""Labels and environments of a table: what is read is what is written back."""

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import encode
from isrlearn.io.errors import TableError, shown

#: Most bytes of the names of classes, and of one label per row, if all were as long as the longest:
#: arrays of text, such as predictions, are stored like that.
_NAMES_BYTES, _ROWS_BYTES = 16 << 20, 1 << 30
#: More texts than these that are numbers with fractions are not classes.
_MOST_CLASSES = 20
#: Characters that begin a formula in a spreadsheet; an apostrophe before one makes it text.
_FORMULA = tuple("=+-@\t\r")
_INTEGER = re.compile("-?[1-9][0-9]{0,18}|0")
#: A whole number as pandas writes it where the column has gaps.
_WHOLE = re.compile(r"\A(-?[0-9]+)\.0+\Z")


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
        values = np.char.decode(values, "utf-8")
    if kind == "M":
        days, codes = np.unique(values, return_inverse=True)
        _check_texts(len(days), len(days), 28, name)
        texts = [None if day == "NaT" else day for day in np.datetime_as_string(days).tolist()]
        return label_array(texts, codes, name)
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if kind in "US":
        characters = np.ascontiguousarray(values).view(np.uint32).reshape(len(values), -1)
        # Python cannot handle text with other code points than those of Unicode.
        if characters.max() > sys.maxunicode:
            raise TableError(f"{shown(name)} holds text that is not Unicode")
        if ((characters[:, :-1] == 0) & (characters[:, 1:] != 0)).any():
            raise TableError(f"{shown(name)} holds text with a NUL character")
    return values


def parsed_labels(texts: Iterable[str], codes: NDArray, name: str) -> NDArray:
    """Labels from their different texts: integers if all of them are, else the text itself.

    A text is an integer only if it is written as Python writes it ("7", not "007"), so that
    different labels stay different. A blank text is a missing label.
    """
    known = [text if text.strip() else None for text in texts]
    integers = all(text is None or is_integer(text) for text in known)
    return label_array([int(t) if t and integers else t for t in known], codes, name)


def label_array(values: list[Any], codes: NDArray, name: str) -> NDArray:
    """Labels by their different values; as objects if one is None, or long texts repeat often."""
    texts = [value for value in values if isinstance(value, str)]
    longest = max(map(len, texts), default=0)
    _check_texts(len(texts), len(codes), longest, name)
    for text in texts:
        if "\0" in text:
            raise TableError(f"column {shown(name)} holds a NUL character in {shown(text)}")
    small = 4 * longest * len(codes) <= max(_NAMES_BYTES, 64 * len(codes))
    return np.array(values, dtype=None if small and None not in values else object)[codes]


def _check_texts(n_texts: int, n_rows: int, longest: int, name: str) -> None:
    if 4 * longest * n_texts > _NAMES_BYTES or 4 * longest * n_rows > _ROWS_BYTES:
        raise TableError(
            f"column {shown(name)} holds {n_texts} different texts in {n_rows} rows, the longest "
            f"of {longest} characters: too many or too long for labels"
        )


def joined_labels(columns: Sequence[Any], paths: Sequence[Path]) -> Any:
    """One column of labels from several files."""
    if columns[0] is None:
        return None
    if len({encode(column)[0].dtype.kind == "U" for column in columns}) > 1:
        if any(path.suffix.lower() not in (".csv", ".tsv", ".gz") for path in paths):
            # NumPy would turn numbers into text to join the two.
            return np.concatenate([column.astype(object) for column in columns])
        # Integers in one text file are text if labels in another are, such as 7 and 007.
        values = [str(v) if type(v) is int else v for column in columns for v in column.tolist()]
        return np.array(values, dtype=object)
    return np.concatenate(columns)


def escaped(text: str) -> str:
    """A text for a cell of a spreadsheet, which would evaluate it if it looked like a formula."""
    formula = text.lstrip("'").startswith(_FORMULA) and not is_float(text)
    return f"'{text}" if formula else text


def unescaped(text: str) -> str:
    """The text that `escaped` turned into this one."""
    formula = text.lstrip("'").startswith(_FORMULA)
    return text.removeprefix("'") if formula else text


def is_integer(text: str) -> bool:
    """Whether a text is an integer as Python writes it, and fits in 64 bits."""
    return bool(_INTEGER.fullmatch(text)) and -(2**63) <= int(text) < 2**63


def is_float(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # Python would read 1_000 as a thousand


def looks_continuous(labels: NDArray) -> bool:
    """Whether labels are numbers with fractions: of more than 20 values, if they are text."""
    names = encode(labels)[0]
    if names.dtype.kind == "U":
        if len(names) <= _MOST_CLASSES or not all(map(is_float, names.tolist())):
            return False
        names = names.astype(float)
    return names.dtype.kind == "f" and bool((names != np.round(names)).any())


def labels_like(labels: NDArray, others: NDArray) -> NDArray:
    """Labels as the same labels of other rows are: text, integers, booleans or other numbers.

    One table may have the classes 007 and 7, which are text, and the next only 7, an integer; or
    the environments 1.0 and 2.0, because one is missing, and the next 1 and 2.
    """
    (names, codes), known = encode(labels), encode(others)[0]
    if (names.dtype.kind == "U") == (known.dtype.kind == "U"):
        return labels  # numbers are compared as numbers
    texts = [[*map(str, each.tolist())] for each in (names, known)]
    plain = [[_WHOLE.sub(r"\1", text) for text in each] for each in texts]
    if all(len({*each}) == len(each) for each in plain):  # different labels stay different
        texts = plain
    found: list[Any] = texts[0]
    same = dict(zip(texts[1], known.tolist(), strict=True))
    if not {*found} & {*same}:
        return labels
    if all(type(name) is int for name in same.values()) and all(map(is_integer, found)):
        found = [*map(int, found)]
    elif known.dtype.kind == "U" or {*found} <= {*same}:
        found = [same.get(text, text) for text in found]
    return label_array([*found, *([None] if (codes < 0).any() else [])], codes, "labels")


def as_numbers(labels: NDArray, path: Path) -> NDArray:
    """Labels as finite numbers."""
    for value in encode(labels)[0].tolist():
        if not is_float(str(value)) or not np.isfinite(float(value)):
            raise TableError(f"{path}: a regression needs numbers as labels; got {shown(value)}")
    return labels if labels.dtype.kind in "biuf" else labels.astype(float)
