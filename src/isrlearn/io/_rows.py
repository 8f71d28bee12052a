"""Rows of a Parquet file or a Zarr array, read some at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.rows import ArraySource, Rows
from isrlearn.io._parquet import ParquetTable
from isrlearn.io._source import Source, as_features
from isrlearn.io.errors import TableError, reading, refuse_labels


class ParquetRows(Rows):
    """Rows of a Parquet file, decoded batch by batch; meant to be read from first to last.

    A slice that follows the one before goes on where that ended; any other begins at the row
    group that holds it.
    """

    def __init__(self, table: ParquetTable, features: Sequence[str]) -> None:
        self._table, self._features = table, list(features)
        with reading(table.path, "Parquet"):
            self.dtype = np.dtype(table.dtype_of(self._features))
        self.shape = table.n_rows, len(self._features)
        self.feature_names = tuple(self._features)
        self._forget()

    def _forget(self) -> None:
        self._batches: Iterator[NDArray] = iter(())
        self._left = np.empty((0, self.shape[1]), dtype=self.dtype)
        self._next = -1

    def __getstate__(self) -> dict[str, Any]:
        # Another process opens the file for itself.
        return {"path": self._table.path, "features": self._features}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(ParquetTable(state["path"]), state["features"])  # type: ignore[misc]

    def __getitem__(self, rows: slice) -> NDArray:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"rows are read one after the other; got a step of {step}")
        with reading(self._table.path, "Parquet"):
            if start != self._next:
                self._seek(start)
            block = self._take(max(0, stop - start))
        if stop == len(self):
            self._forget()
        return block

    def _seek(self, start: int) -> None:
        """Go to a row: to its row group, and past the rows before it."""
        before, self._batches = self._table.batches_from(start, self._features)
        self._left, self._next = self._left[:0], start
        self._take(start - before)
        self._next = start

    def _take(self, n: int) -> NDArray:
        parts, missing = [], n
        while missing > 0:
            if not len(self._left):
                batch = next(self._batches, None)
                if batch is None:
                    raise TableError(f"{self._table.path}: it holds fewer rows than it says")
                self._left = batch
            parts.append(self._left[:missing])
            self._left = self._left[missing:]
            missing -= len(parts[-1])
        self._next += n
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else self._left[:0].copy()


class ZarrTable(Source):
    """Features in one Zarr array, opened and not read; columns are f0, f1 and so on."""

    named = False

    def __init__(self, path: Path) -> None:
        try:
            import zarr
        except ImportError:
            raise ImportError(
                'reading Zarr arrays needs zarr: pip install "isrlearn[zarr]"'
            ) from None
        self.path = path
        with reading(path, "a Zarr array"):
            self._array = zarr.open_array(str(path), mode="r")
        _refuse_pickles(self._array.metadata, path)
        if len(self._array.shape) != 2 or 0 in self._array.shape:
            raise TableError(
                f"{path}: a table must have 2 dimensions, (rows, columns); this array has the "
                f"shape {self._array.shape}"
            )
        if self._array.dtype.kind not in "biuf":
            raise TableError(
                f"{path}: features must be numbers; they are of type {self._array.dtype}"
            )
        self.columns = self.features = tuple(f"f{i}" for i in range(self._array.shape[1]))
        self.groups = {"X": self.columns}

    def rows(self, features: Sequence[str]) -> ArraySource:
        """The features, read some rows at a time."""
        if tuple(features) == self.columns:
            return ArraySource(self._array)
        place = {name: i for i, name in enumerate(self.columns)}
        return ArraySource(self._array, [place[name] for name in features])

    def read(
        self, features: Sequence[str], labels: Sequence[str]
    ) -> tuple[NDArray, dict[str, NDArray]]:
        """Features, all of them at once."""
        refuse_labels(labels, self.path)
        return as_features(self.rows(features)[0 : self._array.shape[0]], self.path), {}


def _refuse_pickles(metadata: Any, path: Path) -> None:
    """An error if chunks are unpickled, as the older of the two formats of Zarr allows."""
    codecs = [*(getattr(metadata, "filters", None) or ()), getattr(metadata, "compressor", None)]
    if any(getattr(codec, "codec_id", None) == "pickle" for codec in codecs):
        raise TableError(f"{path}: its chunks are pickles, which could run any code; none was read")
