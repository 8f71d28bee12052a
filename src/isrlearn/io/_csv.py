"""Tables as text: comma- or tab-separated values with a line of names."""

from __future__ import annotations

# Not pyarrow.csv: text must be readable without the parquet extra, and one reader is enough.
import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isrlearn.io._source import BLOCK_BYTES, Source, is_float, parsed_labels
from isrlearn.io.errors import TableError, reading, shown

SEPARATORS = {".csv": ",", ".tsv": "\t"}


class CsvTable(Source):
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
        with (
            reading(self.path, "text"),
            open(self.path, encoding="utf-8-sig", newline="") as file,
        ):
            yield csv.reader(file, delimiter=separator, strict=True)

    def read(
        self, features: Sequence[str], labels: Sequence[str]
    ) -> tuple[NDArray, dict[str, NDArray]]:
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
        """Features of some rows, of which all are checked for their length."""
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
                j = next(j for j in wanted if not is_float(row[j]))
                what = f"holds {shown(row[j])}, not a number" if row[j].strip() else "is empty"
                raise TableError(
                    f"{self.path}: column {shown(self.columns[j])} {what} in row {before + i + 1}; "
                    "choose the feature columns by name, pattern or range"
                )
        return out
