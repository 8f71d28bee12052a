"""Tables as Parquet files: one column per feature, or columns of lists of one length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.engine.rows import Rows
from isrlearn.io._formats import BLOCK_BYTES, Source, check_names, label_array, numbered
from isrlearn.io.errors import TableError, reading, shown

#: Limits on what a damaged footer can make the parser allocate.
_THRIFT_LIMIT = 1 << 26
_WIDEST = 1_000_000


def pyarrow() -> Any:
    """The package, or an error that says how to get it."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise ImportError(
            'reading and writing Parquet needs pyarrow: pip install "isrlearn[parquet]"'
        ) from None
    return pa


class ParquetTable(Source):
    """A Parquet file; a column "v" of lists of length m gives the columns v_0, …, v_(m-1)."""

    def __init__(self, path: Path) -> None:
        self.path, self._types = path, pyarrow().types
        with self.open() as file:
            self.schema, self.n_rows = file.schema_arrow, file.metadata.num_rows
            check_names(self.schema.names)
            if not self.n_rows:
                raise TableError("the table has no rows")
            widths = {field.name: self._width(file, field) for field in self.schema}
        self.groups = {v: numbered(f"{v}_", m) for v, m in widths.items() if m is not None}
        #: Column of the file, and place in its lists, of each of our columns.
        self.place: dict[str, tuple[str, int | None]] = {}
        for column in widths:
            if column in self.groups:
                self.place |= {name: (column, i) for i, name in enumerate(self.groups[column])}
            else:
                self.place[column] = (column, None)
        self.columns = self.features = tuple(self.place)

    def open(self, **options: Any) -> Any:
        """The file for pyarrow, with limits on what it may allocate."""
        limits = {"thrift_string_size_limit": _THRIFT_LIMIT}
        limits["thrift_container_size_limit"] = _THRIFT_LIMIT
        return pyarrow().parquet.ParquetFile(self.path, **options, **limits)

    def _width(self, file: Any, field: Any) -> int | None:
        """Length of the lists of a column; None if it does not hold lists."""
        kind = field.type
        if self._types.is_fixed_size_list(kind):
            width = int(kind.list_size)
        elif self._types.is_list(kind) or self._types.is_large_list(kind):
            # Most writers store lists of any length; the first one says how long all must be.
            batch = next(file.iter_batches(batch_size=1, columns=[field.name]))
            width = len(batch.column(0)[0].as_py() or [])
        else:
            return None
        if not 1 <= width <= _WIDEST:
            raise TableError(
                f"the lists of column {shown(field.name)} must have from 1 to {_WIDEST} numbers; "
                f"the first has {width}"
            )
        return width

    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Features as rows to be decoded when they are used; labels as they are."""
        kept: dict[str, NDArray] = {}
        if labels:
            # A long label that repeats is kept once.
            with self.open(read_dictionary=list(labels)) as file:
                table = file.read(columns=list(labels), use_threads=False)
            kept = {name: self._labels(table.column(name), name) for name in labels}
        return ParquetRows(self, features), kept

    def dtype(self, features: Sequence[str]) -> np.dtype:
        """float32 where every column is that or half of it, else float64."""
        types, narrow = self._types, True
        for column in dict.fromkeys(self.place[name][0] for name in features):
            kind = self.schema.field(column).type
            kind = kind.value_type if column in self.groups else kind
            kind = kind.value_type if types.is_dictionary(kind) else kind
            narrow &= types.is_float32(kind) or types.is_float16(kind)
            number = types.is_floating(kind) or types.is_integer(kind)
            if not (number or types.is_boolean(kind) or types.is_decimal(kind)):
                raise TableError(
                    f"column {shown(column)} is of type {kind}, not a number; choose the feature "
                    "columns by name, pattern or range"
                )
        return np.dtype(np.float32 if narrow else np.float64)

    def fill(self, out: NDArray, batch: Any, features: Sequence[str], before: int) -> None:
        """Write the features of a batch, whose first row has the number `before`, to an array."""
        lists = {
            column: self._unfolded(batch.column(column), column, before)
            for column in batch.schema.names
            if column in self.groups
        }
        for column, rows in lists.items():
            if tuple(features) == self.groups[column]:
                out[:] = rows
                return
        for j, name in enumerate(features):
            column, i = self.place[name]
            out[:, j] = self._numbers(batch.column(column)) if i is None else lists[column][:, i]

    def _unfolded(self, array: Any, column: str, before: int) -> NDArray:
        """Lists of one length as rows (n, m)."""
        width = len(self.groups[column])
        lengths = array.value_lengths().to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero((lengths != width) | array.is_null().to_numpy(zero_copy_only=False))
        if len(wrong):
            row = int(wrong[0])
            raise TableError(
                f"the lists of column {shown(column)} must have {width} numbers, as the first one "
                f"has; row {before + row + 1} has {shown(array[row].as_py())}"
            )
        return self._numbers(array.flatten()).reshape(len(array), width)

    def _numbers(self, array: Any) -> NDArray:
        if self._types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if self._types.is_decimal(array.type) or self._types.is_boolean(array.type):
            array = array.cast(pyarrow().float64())
        return array.to_numpy(zero_copy_only=False)

    def _labels(self, column: Any, name: str) -> NDArray:
        """Labels as booleans, numbers or text; None where one is missing."""
        pa, types = pyarrow(), self._types
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        if types.is_nested(kind):
            raise TableError(f"column {shown(name)} holds {kind}, not labels")
        if types.is_floating(kind):
            return np.concatenate([self._numbers(chunk) for chunk in column.chunks])
        # Codes of the few distinct values, not one Python object per row.
        column = column if types.is_dictionary(column.type) else column.dictionary_encode()
        array = column.unify_dictionaries().combine_chunks()
        text = not (types.is_integer(kind) or types.is_boolean(kind))
        values = array.dictionary.cast(pa.string()) if text else array.dictionary
        values = values.to_pylist()
        # Cast first: the codes of some writers are unsigned.
        codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy()
        values += [None] if (codes < 0).any() else []  # -1 is the last
        return label_array(values, len(codes), name)[codes]


class ParquetRows(Rows):
    """Rows of a Parquet file, decoded batch by batch; meant to be read from first to last.

    A slice that follows the one before continues where that ended; any other one begins at the
    row group that holds its first row.
    """

    def __init__(self, table: ParquetTable, features: Sequence[str]) -> None:
        self._table, self._features = table, tuple(features)
        self.feature_names = self._features
        self.dtype, self.shape = table.dtype(features), (table.n_rows, len(features))
        self._batches: Iterator[Any] = iter(())
        self._batch: Any = None  # what is left of the one last decoded
        self._next = -1

    def __getstate__(self) -> dict[str, Any]:
        # Another process opens the file itself.
        return {"path": self._table.path, "features": self._features}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(ParquetTable(state["path"]), state["features"])  # type: ignore[misc]

    def __getitem__(self, rows: slice) -> NDArray:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"rows are read one after the other; got a step of {step}")
        out = np.empty((max(0, stop - start), self.shape[1]), dtype=self.dtype)
        with reading(self._table.path):
            if start != self._next:
                self._seek(start)
            done, self._next = 0, -1  # an error leaves no place to continue from
            while done < len(out):
                batch = self._take(len(out) - done)
                part = out[done : done + len(batch)]
                self._table.fill(part, batch, self._features, start + done)
                done += len(batch)
        self._next = start + done
        if self._next == len(self):
            self._batches, self._batch, self._next = iter(()), None, -1  # close the file
        return out

    def _seek(self, start: int) -> None:
        """Go to a row: to its row group, and past the rows before it."""
        needed = list(dict.fromkeys(self._table.place[name][0] for name in self._features))
        size = max(1024, BLOCK_BYTES // (8 * max(1, self.shape[1])))
        file = self._table.open()
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        group = int(np.searchsorted(np.cumsum(sizes), start, side="right"))
        self._batches = file.iter_batches(
            size, list(range(group, len(sizes))), columns=needed, use_threads=False
        )
        self._batch, before = None, sum(sizes[:group])
        while before < start:
            before += len(self._take(start - before))

    def _take(self, n: int) -> Any:
        """The next rows, at least one and at most n, as a record batch."""
        while not self._batch:  # an empty batch is false
            self._batch = next(self._batches, None)
            if self._batch is None:
                raise TableError("it holds fewer rows than it says")
        n = min(n, len(self._batch))
        taken, self._batch = self._batch.slice(0, n), self._batch.slice(n)
        return taken
