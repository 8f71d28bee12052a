"""Tables as Parquet files: a column a feature, or columns of lists of one length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.io._source import BLOCK_BYTES, Source, as_text, check_room, objects
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

    named = True

    def __init__(self, path: Path) -> None:
        pa = pyarrow()
        self.path, self._types = path, pa.types
        with reading(path, "Parquet"), self._opened() as file:
            schema = file.schema_arrow
            self._n = file.metadata.num_rows
            self._check_names(schema.names)
            self._place: dict[str, tuple[str, int | None]] = {}
            groups: dict[str, tuple[str, ...]] = {}
            for field in schema:
                width = self._width(file, field)
                if width is None:
                    self._place[field.name] = (field.name, None)
                    continue
                names = tuple(f"{field.name}_{i}" for i in range(width))
                groups[field.name] = names
                self._place |= {name: (field.name, i) for i, name in enumerate(names)}
            self._schema, self.groups = schema, groups
        self.columns = self.features = tuple(self._place)

    def _opened(self, **options: Any) -> Any:
        return pyarrow().parquet.ParquetFile(
            self.path,
            **options,
            thrift_string_size_limit=_THRIFT_LIMIT,
            thrift_container_size_limit=_THRIFT_LIMIT,
        )

    def _check_names(self, names: list[str]) -> None:
        if not names or not self._n:
            raise TableError(f"{self.path}: there are {len(names)} columns and {self._n} rows")
        seen: set[str] = set()
        for name in names:
            if name in seen:
                raise TableError(f"{self.path}: two columns are named {shown(name)}")
            seen.add(name)

    def _width(self, file: Any, field: Any) -> int | None:
        """Length of the lists of a column; None if it holds no lists."""
        kind = field.type
        if self._types.is_fixed_size_list(kind):
            return self._checked_width(field.name, int(kind.list_size))
        if not (self._types.is_list(kind) or self._types.is_large_list(kind)):
            return None
        # Most writers know lists of any length only; the first one says how long all must be.
        batch = next(file.iter_batches(batch_size=1, columns=[field.name]))
        first = batch.column(0)[0].as_py()
        return self._checked_width(field.name, len(first or []))

    def _checked_width(self, column: str, width: int) -> int:
        if not 1 <= width <= _WIDEST:
            raise TableError(
                f"{self.path}: the lists of column {shown(column)} must have from 1 to {_WIDEST} "
                f"numbers; the first has {width}"
            )
        return width

    def read(
        self, features: Sequence[str], labels: Sequence[str]
    ) -> tuple[NDArray, dict[str, NDArray]]:
        """Features in one array, filled block by block; labels as they are."""
        with reading(self.path, "Parquet"):
            dtype = self._dtype(features)
            check_room(self._n * len(features) * np.dtype(dtype).itemsize, self.path)
            X = np.empty((self._n, len(features)), dtype=dtype)
            kept: dict[str, list[Any]] = {name: [] for name in labels}
            n = 0
            for batch in self._batches(features, labels):
                rows = slice(n, n + len(batch))
                if rows.stop > self._n:
                    break
                self._fill(X[rows], batch, features, n)
                for name, parts in kept.items():
                    parts.append(batch.column(name))
                n += len(batch)
            if n != self._n:
                raise TableError(f"{self.path}: it says {self._n} rows and holds {n}")
            return X, {name: self._labels(parts, name) for name, parts in kept.items()}

    @property
    def n_rows(self) -> int:
        """How many rows the file says it has."""
        return self._n

    def dtype_of(self, features: Sequence[str]) -> type[np.floating]:
        """float32 where every column is that or half of it, else float64."""
        return self._dtype(features)

    def rows(self, features: Sequence[str]) -> Any:
        """The features, decoded some rows at a time."""
        from isrlearn.io._rows import ParquetRows

        return ParquetRows(self, features)

    def batches_from(self, start: int, features: Sequence[str]) -> tuple[int, Iterator[NDArray]]:
        """Rows from the row group that holds a row on, and the number of the first of them."""
        with self._opened() as file:
            sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        ends = np.cumsum(sizes)
        group = int(np.searchsorted(ends, start, side="right"))
        before = int(ends[group - 1]) if group else 0
        return before, self._filled(features, list(range(group, len(sizes))), before)

    def _filled(self, features: Sequence[str], groups: list[int], n: int) -> Iterator[NDArray]:
        dtype = self._dtype(features)
        for batch in self._batches(features, [], row_groups=groups):
            out = np.empty((len(batch), len(features)), dtype=dtype)
            self._fill(out, batch, features, n)
            n += len(batch)
            yield out

    def _batches(
        self, features: Sequence[str], labels: Sequence[str], **options: Any
    ) -> Iterator[Any]:
        needed = list(dict.fromkeys(self._place[name][0] for name in [*features, *labels]))
        size = max(1024, BLOCK_BYTES // (8 * max(1, len(features))))
        # Labels repeat: each is kept once, however long it is.
        with self._opened(read_dictionary=list(labels)) as file:
            yield from file.iter_batches(
                batch_size=size, columns=needed, use_threads=False, **options
            )

    def _dtype(self, features: Sequence[str]) -> type[np.floating]:
        """float32 where every column is that or half of it, else float64."""
        found: type[np.floating] = np.float32
        for column in dict.fromkeys(self._place[name][0] for name in features):
            kind = self._schema.field(column).type
            kind = kind.value_type if column in self.groups else kind
            kind = kind.value_type if self._types.is_dictionary(kind) else kind
            if not self._is_number(kind):
                raise self._not_a_number(column)
            if not (self._types.is_float32(kind) or self._types.is_float16(kind)):
                found = np.float64
        return found

    def _is_number(self, kind: Any) -> bool:
        checks = (
            self._types.is_floating,
            self._types.is_integer,
            self._types.is_boolean,
            self._types.is_decimal,
        )
        return any(check(kind) for check in checks)

    def _not_a_number(self, column: str) -> TableError:
        with self._opened() as file:
            first = next(file.iter_batches(batch_size=64, columns=[column])).column(column)
        i, value = next(((i, v.as_py()) for i, v in enumerate(first) if v.is_valid), (0, None))
        return TableError(
            f"{self.path}: column {shown(column)} holds {shown(value)}, not a number, in row "
            f"{i + 1}; choose the columns that are features by name, pattern or range"
        )

    def _fill(self, out: NDArray, batch: Any, features: Sequence[str], before: int) -> None:
        if len(self.groups) == 1 and tuple(features) in self.groups.values():
            # All of one column's lists, in order: nothing has to be picked.
            (column,) = self.groups
            out[:] = self._unfolded(batch.column(column), column, before)
            return
        lists: dict[str, NDArray] = {}
        for j, name in enumerate(features):
            column, i = self._place[name]
            if i is None:
                out[:, j] = self._numbers(batch.column(column))
                continue
            if column not in lists:
                lists[column] = self._unfolded(batch.column(column), column, before)
            out[:, j] = lists[column][:, i]

    def _unfolded(self, array: Any, column: str, before: int) -> NDArray:
        """Lists of one length as rows (n, m)."""
        width = len(self.groups[column])
        lengths = array.value_lengths().to_numpy(zero_copy_only=False)
        wrong = np.flatnonzero((lengths != width) | array.is_null().to_numpy(zero_copy_only=False))
        if len(wrong):
            row = int(wrong[0])
            raise TableError(
                f"{self.path}: the lists of column {shown(column)} must have {width} numbers, as "
                f"the first one has; row {before + row + 1} has {shown(array[row].as_py())}"
            )
        return self._numbers(array.flatten()).reshape(len(array), width)

    def _numbers(self, array: Any) -> NDArray:
        if self._types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if self._types.is_decimal(array.type) or self._types.is_boolean(array.type):
            array = array.cast(pyarrow().float64())
        return array.to_numpy(zero_copy_only=False)

    def _labels(self, parts: list[Any], name: str) -> NDArray:
        """Labels as booleans, numbers or text; None where one is missing."""
        kind = parts[0].type
        kind = kind.value_type if self._types.is_dictionary(kind) else kind
        if self._types.is_nested(kind):
            raise TableError(f"{self.path}: column {shown(name)} holds {kind}, not labels")
        if self._types.is_floating(kind):
            return np.concatenate([self._numbers(part) for part in parts])
        text = not (self._types.is_integer(kind) or self._types.is_boolean(kind))
        # Codes of the few different values, not a Python object for every row.
        place: dict[Any, int] = {}
        codes = np.concatenate([self._codes(part, text, place) for part in parts])
        values = list(place)
        if None not in place and codes.min(initial=0) >= 0:
            return as_text(values, self.path, name, len(codes))[codes]
        return objects([*values, None])[codes]  # -1 is the last

    def _codes(self, part: Any, text: bool, place: dict[Any, int]) -> NDArray:
        """Place of each label among those seen so far, -1 where it is missing."""
        if not self._types.is_dictionary(part.type):
            part = part.dictionary_encode()
        names = part.dictionary
        names = (names.cast(pyarrow().string()) if text else names).to_pylist()
        own = np.array([place.setdefault(name, len(place)) for name in names] + [-1])
        # Cast first: codes of some writers have no sign.
        return own[part.indices.cast(pyarrow().int64()).fill_null(-1).to_numpy()]
