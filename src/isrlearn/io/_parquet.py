"""Tables as Parquet files: one column per feature, or columns of lists of one length."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.engine.rows import Rows
from isrlearn.io._formats import (
    INDEX,
    Content,
    Source,
    check_expansion,
    check_names,
    column_owners,
    loaded,
    numbered,
)
from isrlearn.io.errors import PREPARE, TableError, listed, optional, reading, shown
from isrlearn.io.labels import label_array

#: Limit on what a damaged footer can make the parser allocate.
_THRIFT_LIMIT = 1 << 26
_OTHER = "exclude it (--exclude), or choose columns by name, pattern or range (--features)"
#: Numbers in a batch of rows that is decoded at a time.
_BATCH = 1 << 20


def pyarrow() -> Any:
    """The package, with its module for Parquet."""
    optional("pyarrow.parquet", "reading and writing Parquet", "parquet")
    return optional("pyarrow", "reading and writing Parquet", "parquet")


def open_parquet(path: Path) -> Source:
    """A Parquet file; a column "v" of lists of length m gives the columns v_0, …, v_(m-1)."""
    table = _ParquetFile(path)
    columns = tuple(table.owner)
    known = (table.schema.pandas_metadata or {}).get("index_columns", [])
    known = {name for name in known if isinstance(name, str)}
    index = tuple(name for name in columns if name in known or INDEX.fullmatch(name))
    return Source(path, columns, columns, table.read, table.groups, index=index, mixed=True)


class _ParquetFile:
    """Schema of a Parquet file, and conversion of its columns to arrays."""

    def __init__(self, path: Path) -> None:
        self.path, self._types = path, pyarrow().types
        with self.open() as file:
            self.schema, self.n_rows = file.schema_arrow, file.metadata.num_rows
            check_names(self.schema.names)
            if not self.n_rows:
                raise TableError("the table has no rows")
            widths = {field.name: self._width(file, field) for field in self.schema}
        self.groups = {v: numbered(f"{v}_", m) for v, m in widths.items() if m is not None}
        #: The column of the file that each of our columns comes from.
        self.owner = column_owners({v: self.groups.get(v, (v,)) for v in widths})

    def open(self, **options: Any) -> Any:
        """The file for pyarrow, with limits on what it may allocate."""
        limits = ("thrift_string_size_limit", "thrift_container_size_limit")
        return pyarrow().parquet.ParquetFile(
            self.path, **dict.fromkeys(limits, _THRIFT_LIMIT), **options
        )

    def _width(self, file: Any, field: Any) -> int | None:
        """Length of the lists of a column; None if it does not hold lists of numbers."""
        types, kind = self._types, field.type
        lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
        if not lists or not self._is_number(kind.value_type):
            return None
        if types.is_fixed_size_list(kind):
            return int(kind.list_size) or None
        # Most writers do not store the length of lists; all must be as long as the first.
        batch = next(file.iter_batches(batch_size=1, columns=[field.name]))
        return len(batch.column(0)[0].as_py() or []) or None

    def read(
        self, features: Sequence[str], labels: Sequence[str], as_text: Sequence[str] | None = None
    ) -> Content:
        """Features as rows that are decoded when they are used, or as numbers and text; labels."""
        types, kinds = self._types, {n: self.number_type(self.owner[n]) for n in features}
        # Booleans are categories in a table of text; here they are numbers, unless named.
        words = [n for n, kind in kinds.items() if kind is None or types.is_boolean(kind)]
        texts = [n for n in words if as_text is not None and (kinds[n] is None or n in as_text)]
        numbers = [n for n in features if n not in texts]
        coded = [*labels, *texts]
        for name in coded:
            if types.is_nested(kind := self.schema.field(self.owner[name]).type):
                what = f"{kind}, not labels, text or vectors of one length"
                raise TableError(f"column {shown(name)} holds {what}; {_OTHER}")
        check_expansion(self.path, 8 * self.n_rows * len(coded))
        # Repeated values are stored once.
        with self.open(read_dictionary=coded) as file:
            table = file.read(columns=coded, use_threads=False)
        kept = {name: self._labels(table.column(name), name) for name in labels}
        found = {name: self._coded(table.column(name), name) for name in texts}
        cells = {name: np.array(v, dtype=object)[codes] for name, (v, codes) in found.items()}
        X: Any = ParquetRows(self.path, numbers)
        if as_text is not None:
            X = loaded(self.path, X) if numbers else np.empty(X.shape)
        return X, cells, kept

    def number_type(self, column: str) -> Any:
        """Type of the numbers of a column of the file; None if it holds no numbers."""
        types, kind = self._types, self.schema.field(column).type
        kind = kind.value_type if column in self.groups else kind
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return kind if self._is_number(kind) else None

    def _is_number(self, kind: Any) -> bool:
        """Whether values of a type are numbers."""
        types = self._types
        numbers = types.is_floating, types.is_integer, types.is_boolean, types.is_decimal
        return any(check(kind) for check in (*numbers, types.is_duration))

    def dtype(self, columns: Sequence[str]) -> np.dtype:
        """float32 if every column of the file is float32 or float16, else float64."""
        types, kinds = self._types, {column: self.number_type(column) for column in columns}
        if bad := [column for column, kind in kinds.items() if kind is None]:
            kind = self.schema.field(bad[0]).type
            more = f"; so are {listed(bad[1:])}" if len(bad) > 1 else ""
            raise TableError(
                f"column {shown(bad[0])} is of type {kind}, not a number{more}; choose other "
                f"feature columns by name, pattern or range, or prepare them: {PREPARE}"
            )
        narrow = all(types.is_float32(k) or types.is_float16(k) for k in kinds.values())
        return np.dtype(np.float32 if narrow else np.float64)

    def numbers(self, array: Any, column: str, before: int = 0) -> NDArray:
        """Values of some rows of a column (n, m); the first row has the number `before`."""
        types, width = self._types, len(self.groups.get(column, (column,)))
        if column in self.groups:
            lengths = array.value_lengths().fill_null(-1).to_numpy(zero_copy_only=False)
            missing = array.is_null().to_numpy(zero_copy_only=False)
            for row in np.flatnonzero((lengths != width) | missing)[:1].tolist():
                raise TableError(
                    f"the lists of column {shown(column)} must have {width} numbers, as the first "
                    f"one has; row {before + row + 1} has {shown(array[row].as_py())}"
                )
            array = array.flatten()
        if types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if types.is_decimal(array.type) or types.is_boolean(array.type):
            array = array.cast(pyarrow().float64())
        values = array.to_numpy(zero_copy_only=False).reshape(-1, width)
        return values / np.timedelta64(1, "s") if values.dtype.kind == "m" else values

    def _labels(self, column: Any, name: str) -> NDArray:
        """Labels as booleans, numbers or text; None where one is missing."""
        types, kind = self._types, column.type
        kind = kind.value_type if types.is_dictionary(kind) else kind
        if types.is_floating(kind):
            return np.concatenate([self.numbers(chunk, name)[:, 0] for chunk in column.chunks])
        return label_array(*self._coded(column, name), name)

    def _coded(self, column: Any, name: str) -> tuple[list[Any], NDArray]:
        """Integers, booleans or text: codes of the few distinct values; None is the last."""
        pa, types = pyarrow(), self._types
        column = column if types.is_dictionary(column.type) else column.dictionary_encode()
        array = column.unify_dictionaries().combine_chunks()
        found, kind = array.dictionary, array.dictionary.type
        as_is = types.is_integer(kind) or types.is_boolean(kind)
        try:
            values = (found if as_is else found.cast(pa.string())).to_pylist()
        except pa.ArrowInvalid:
            what = f"{kind} that is not text"
            raise TableError(f"column {shown(name)} holds {what}; {_OTHER}") from None
        # Cast first: the codes of some writers are unsigned.
        codes = array.indices.cast(pa.int64()).fill_null(-1).to_numpy()
        return values + ([None] if (codes < 0).any() else []), codes


class ParquetRows(Rows):
    """Rows of a Parquet file, decoded batch by batch; meant to be read from first to last.

    A slice that follows the previous one continues where that ended; any other slice begins at the
    row group that holds its first row.
    """

    def __init__(self, path: Path, features: Sequence[str]) -> None:
        self._table, self.feature_names = _ParquetFile(path), tuple(features)
        owner = self._table.owner
        self._columns = list(dict.fromkeys(owner[name] for name in features))
        found = [name for c in self._columns for name in self._table.groups.get(c, (c,))]
        place = {name: i for i, name in enumerate(found)}
        self._picked = [place[name] for name in features]
        self.dtype = self._table.dtype(self._columns)
        self.shape = self._table.n_rows, len(features)
        self._blocks: Iterator[NDArray] = iter(())
        self._rest: Any = ()
        self._next = -1

    def __reduce__(self) -> Any:
        return ParquetRows, (self._table.path, self.feature_names)  # other processes open the file

    def __getitem__(self, rows: slice | NDArray) -> NDArray:
        if not isinstance(rows, slice):
            return self[:][rows]  # those of a fold, for example
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"rows are read one after the other; got a step of {step}")
        out = np.empty((max(0, stop - start), self.shape[1]), dtype=self.dtype)
        with reading(self._table.path):
            if start != self._next:
                self._blocks, self._rest = self._from(start), ()
            done, self._next = 0, -1  # an error leaves no place to continue from
            while done < len(out):
                block = self._rest if len(self._rest) else next(self._blocks, None)
                if block is None:
                    raise TableError("it holds fewer rows than its metadata states")
                part = out[done : done + len(block)]
                part[:], self._rest = block[: len(part)], block[len(part) :]
                done += len(part)
        self._next = start + done
        if self._next == len(self):
            self._blocks, self._next = iter(()), -1  # closes the file
        return out

    def _from(self, start: int) -> Iterator[NDArray]:
        """Blocks of consecutive rows, from a row on."""
        with self._table.open() as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            group = int(np.searchsorted(np.cumsum(sizes), start, side="right"))
            before = sum(sizes[:group])
            for batch in file.iter_batches(
                max(1024, _BATCH // max(1, self.shape[1])),
                range(group, len(sizes)),
                columns=self._columns,
                use_threads=False,
            ):
                skipped = min(max(0, start - before), len(batch))
                before += skipped
                batch = batch.slice(skipped)
                values = [self._table.numbers(batch.column(c), c, before) for c in self._columns]
                before += len(batch)
                yield np.hstack(values)[:, self._picked].astype(self.dtype, copy=False)
