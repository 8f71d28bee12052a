"""Tables of text: .csv and .tsv files, also compressed by gzip."""

from __future__ import annotations

# Not pyarrow.csv: text must be readable without the parquet extra, and one reader is enough.
import csv
import gzip
import math
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.estimators.columns import NO_VALUE
from isrlearn.io._formats import (
    INDEX,
    MEGABYTE,
    PREDICTION,
    Content,
    Source,
    check_expansion,
    check_names,
)
from isrlearn.io.errors import PREPARE, TableError, listed, shown
from isrlearn.io.labels import is_float, parsed_labels, unescaped


def open_text(path: Path) -> Source:
    """A text table in UTF-8, possibly compressed, whose first line names the columns."""
    if path.suffix.lower() == ".gz":
        with gzip.open(path) as file:
            n = 0
            while block := file.read(MEGABYTE):
                n += 4 * len(block)  # a digit and its comma become a number of eight bytes
                check_expansion(path, n)
    columns = tuple(name.strip() for name in next(_lines(path)))
    if not any(columns):
        raise TableError("the first line must name the columns; it is empty")
    check_names(columns)
    if len(columns) == 1 and any(c in columns[0] for c in ";\t,"):
        raise TableError(
            f"the first line holds one name, {shown(columns[0])}; columns must be separated by "
            "commas in a .csv file and by tabs in a .tsv file"
        )
    index = tuple(filter(INDEX.fullmatch, columns))
    return Source(path, columns, columns, partial(_read, path, columns), index=index, mixed=True)


def _lines(path: Path) -> Iterator[list[str]]:
    """Cells of the first line, and of every other that is not empty, each as many as the first."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    opened: Any = gzip.open if suffixes[-1] == ".gz" else open
    # utf-8-sig: spreadsheets write a byte order mark before the first name.
    with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
        separator = "\t" if ".tsv" in suffixes[-2:] else ","
        lines = csv.reader(file, delimiter=separator, strict=True)
        first = next(lines, [])
        yield first
        for n, row in enumerate(filter(None, lines), 1):
            if len(row) != len(first):
                raise TableError(f"row {n} has {len(row)} values for {len(first)} columns")
            yield row


class _NotNumbersError(TableError):
    """Columns of features that do not hold numbers."""


def _read(
    path: Path,
    columns: tuple[str, ...],
    features: Sequence[str],
    labels: Sequence[str],
    as_text: Sequence[str] | None = None,
) -> Content:
    """Features as float64, NaN where a value is missing, or text; labels as integers or text."""
    texts = {*(as_text or ())} & {*features}
    numbers = [name for name in features if name not in texts]
    try:
        X, found = _cells(path, columns, numbers, {*labels, *texts})
    except _NotNumbersError:
        bad = _not_numbers(path, columns, numbers, () if as_text is None else NO_VALUE)
        if as_text is None:
            more = f"; so do {listed(list(bad)[1:])}" if len(bad) > 1 else ""
            name, (cell, n) = next(iter(bad.items()))
            raise TableError(
                f"column {shown(name)} holds {shown(cell)} in row {n}, not a number{more}; choose "
                f"other feature columns by name, pattern or range, or prepare them: {PREPARE}"
            ) from None
        texts |= bad.keys()
        numbers = [name for name in numbers if name not in bad]
        X, found = _cells(path, columns, numbers, {*labels, *texts})
    words = {name: np.array(found[name][0], dtype=object)[found[name][1]] for name in texts}
    plain = unescaped if columns[0] == PREDICTION else str
    return (
        X,
        words,
        {name: parsed_labels(map(plain, found[name][0]), found[name][1], name) for name in labels},
    )


def _cells(
    path: Path, columns: Sequence[str], features: Sequence[str], coded: Iterable[str]
) -> tuple[NDArray, dict[str, tuple[list[str], NDArray]]]:
    """Numbers (n, m), and of each other column the different texts and their code in each row."""
    place = {name: i for i, name in enumerate(columns)}
    wanted = [place[name] for name in features]
    texts: dict[str, dict[str, int]] = {name: {} for name in coded}
    codes = {name: array("q") for name in texts}
    numbers, n = array("d"), 0
    for n, row in enumerate(islice(_lines(path), 1, None), 1):  # noqa: B007
        cells = [row[j] for j in wanted]
        try:
            numbers.extend([float(cell) for cell in cells])
            sound = "_" not in "".join(cells)
        except ValueError:
            # The extension failed as a whole: nothing of this row was stored.
            if sound := all(is_float(c) or c.strip() in NO_VALUE for c in cells):
                numbers.extend([float(c) if is_float(c) else math.nan for c in cells])
        if not sound:
            raise _NotNumbersError
        for name, known in texts.items():
            codes[name].append(known.setdefault(row[place[name]], len(known)))
    X = np.asarray(numbers).reshape(n, len(wanted))
    return X, {name: ([*known], np.asarray(codes[name])) for name, known in texts.items()}


def _not_numbers(
    path: Path, columns: Sequence[str], features: Sequence[str], missing: Collection[str] = ()
) -> dict[str, tuple[str, int]]:
    """The first value that is not a number, and its row, of each column that has one."""
    chosen, found = set(features), {}
    left = {j: name for j, name in enumerate(columns) if name in chosen}
    for n, row in enumerate(islice(_lines(path), 1, None), 1):
        for j in [j for j in left if not (is_float(row[j]) or row[j].strip() in missing)]:
            found[left.pop(j)] = row[j], n
    return found
