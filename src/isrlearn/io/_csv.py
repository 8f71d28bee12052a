"""Tables as text: comma- or tab-separated values with a line of names."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.io._source import BLOCK_BYTES, Source, parsed_labels
from isrlearn.io.errors import TableError, reading, shown

_SEPARATORS = {".csv": ",", ".tsv": "\t"}


class CsvTable(Source):
    """A text table, UTF-8, whose first line names the columns."""

    named = True
    groups: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def __init__(self, path: Path) -> None:
        self.path = path
        self._separator = _SEPARATORS[path.suffix.lower()]
        with reading(path, "text"), self._rows() as rows:
            names = next(rows, [])
        self.columns = tuple(name.strip() for name in names)
        self._check_names()
        self.features = self.columns

    def _check_names(self) -> None:
        if not any(self.columns):
            raise TableError(f"{self.path}: the first line must name the columns; it is empty")
        seen: set[str] = set()
        for name in self.columns:
            if name in seen:
                raise TableError(f"{self.path}: two columns are named {shown(name)}")
            seen.add(name)
        if len(self.columns) == 1 and any(c in self.columns[0] for c in ";\t,"):
            raise TableError(
                f"{self.path}: the first line holds one name, {shown(self.columns[0])}; columns "
                "must be separated by commas in a .csv file and by tabs in a .tsv file"
            )

    @contextmanager
    def _rows(self) -> Iterator[Iterator[list[str]]]:
        # utf-8-sig: spreadsheets write a mark before the first name.
        with open(self.path, encoding="utf-8-sig", newline="") as file:
            yield csv.reader(file, delimiter=self._separator, strict=True)

    def read(
        self, features: Sequence[str], labels: Sequence[str]
    ) -> tuple[NDArray, dict[str, NDArray]]:
        """Features as float64, labels as numbers or text."""
        place = {name: i for i, name in enumerate(self.columns)}
        wanted = [place[name] for name in features]
        kept: dict[str, list[str]] = {name: [] for name in labels}
        blocks: list[NDArray] = []
        size = max(1, BLOCK_BYTES // (8 * max(1, len(self.columns))))
        with reading(self.path, "text"), self._rows() as rows:
            next(rows)
            n = 0
            while lines := list(islice(rows, size)):
                block = [row for row in lines if row]
                self._check_widths(block, n)
                blocks.append(self._numbers(block, wanted, n))
                for name, values in kept.items():
                    values += [row[place[name]].strip() for row in block]
                n += len(block)
        X = np.concatenate(blocks) if blocks else np.empty((0, len(wanted)))
        return X, {name: parsed_labels(values, self.path, name) for name, values in kept.items()}

    def _check_widths(self, block: list[list[str]], before: int) -> None:
        width = len(self.columns)
        for i, row in enumerate(block):
            if len(row) != width:
                raise TableError(
                    f"{self.path}: row {before + i + 1} has {len(row)} values; the first line "
                    f"names {width} columns"
                )

    def _numbers(self, block: list[list[str]], wanted: list[int], before: int) -> NDArray:
        if not wanted:
            return np.empty((len(block), 0))
        pick: Any = itemgetter(*wanted) if len(wanted) > 1 else lambda row: (row[wanted[0]],)
        out = np.empty((len(block), len(wanted)))
        for i, row in enumerate(block):
            cells = pick(row)
            try:
                out[i] = [float(cell) for cell in cells]
                # Python reads 1_000 as a thousand; no table means that.
                if "_" in "".join(cells):
                    raise ValueError
            except ValueError:
                raise self._not_a_number(row, wanted, before + i + 1) from None
        return out

    def _not_a_number(self, row: list[str], wanted: list[int], number: int) -> TableError:
        for i in wanted:
            try:
                float(row[i])
                bad = "_" in row[i]
            except ValueError:
                bad = True
            if bad:
                break
        what = f"holds {shown(row[i])}, not a number" if row[i].strip() else "is empty"
        return TableError(
            f"{self.path}: column {shown(self.columns[i])} {what} in row {number}; choose the "
            "columns that are features by name, pattern or range"
        )
