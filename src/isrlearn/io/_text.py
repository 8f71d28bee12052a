"""Tables of text: .csv and .tsv files, also compressed by gzip."""

# Not pyarrow.csv: text must be readable without the parquet extra, and one reader is enough.
import csv
import gzip
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.estimators.columns import NO_VALUE, counted
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

#: The first cell of a column that is not a number, and its row; by name and whether it is missing.
Odd = dict[tuple[str, bool], tuple[str, int]]


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
        n = 0
        try:
            for n, row in enumerate(filter(None, lines), 1):
                if len(row) != len(first):
                    cells, columns = counted(len(row), "value"), counted(len(first), "column")
                    raise TableError(f"row {n} has {cells} for {columns}")
                yield row
        except csv.Error as error:
            raise TableError(f"row {n + 1} cannot be read: {error}") from None


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
    n, values, found, odd = _cells(path, columns, numbers, {*labels, *texts})
    bad = [name for name, missing in odd if not missing]
    if bad and as_text is not None:
        return _read(path, columns, features, labels, [*as_text, *bad])
    if bad:
        others = list(dict.fromkeys(name for name, _ in odd))[1:]
        more = f"; look also at {listed(others)}" if others else ""
        (name, _), (cell, row) = next(iter(odd.items()))
        raise TableError(
            f"column {shown(name)} holds {shown(cell)} in row {row}, not a number{more}; choose "
            f"other feature columns by name, pattern or range, or prepare them: {PREPARE}"
        )
    words = {name: np.array(found[name][0], dtype=object)[found[name][1]] for name in texts}
    plain = unescaped if columns[0] == PREDICTION else str
    return (
        np.asarray(values).reshape(n, len(numbers)),
        words,
        {name: parsed_labels(map(plain, found[name][0]), found[name][1], name) for name in labels},
    )


def _cells(
    path: Path, columns: Sequence[str], features: Sequence[str], coded: Iterable[str]
) -> tuple[int, array, dict[str, tuple[list[str], NDArray]], Odd]:
    """Rows, numbers, of each other column the different texts and their codes, and odd cells."""
    place = {name: i for i, name in enumerate(columns)}
    left = [place[name] for name in features]
    texts: dict[str, dict[str, int]] = {name: {} for name in coded}
    codes = {name: array("q") for name in texts}
    numbers, n = array("d"), 0
    odd: Odd = {}
    for n, row in enumerate(islice(_lines(path), 1, None), 1):
        cells = [row[j] for j in left]
        try:
            values = [float(cell) for cell in cells]
            sound = "_" not in "".join(cells)
        except ValueError:
            sound = False
        if not sound:
            values = [float(cell) if is_float(cell) else math.nan for cell in cells]
            for j, cell in zip(left, cells, strict=True):
                if not is_float(cell):
                    odd.setdefault((columns[j], cell.strip() in NO_VALUE), (cell, n))
            # Once a column does not hold numbers, those of the others are not used either.
            left = [j for j in left if (columns[j], False) not in odd]
        numbers.extend(values)
        for name, known in texts.items():
            codes[name].append(known.setdefault(row[place[name]], len(known)))
    return n, numbers, {k: ([*known], np.asarray(codes[k])) for k, known in texts.items()}, odd
