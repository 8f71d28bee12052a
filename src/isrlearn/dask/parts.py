"""Dask collections and files as parts: what one task reads, rows and their labels together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import dask
import numpy as np
from numpy.typing import NDArray

from isrlearn.dask.cluster import computed
from isrlearn.engine.rows import Rows

#: Fewest and most bytes of features, as float64, that are worth a task of their own.
LEAST_BYTES, MOST_BYTES = 128 << 20, 1 << 30
#: Fewest rows of a file per part. They are read block by block and may exceed the memory.
_FILE_ROWS = 1 << 17


class Part(NamedTuple):
    """Rows of one part, as a task sees them."""

    X: Any  # (b, d), or Rows
    y: NDArray  # (b,)
    environments: NDArray  # (b,)
    weight: NDArray[np.float64] | None  # (b,)


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows of a collection in parts, in their order.

    Inside a task, `read` turns an element of `parts` into a `Part`.
    """

    parts: list[Any]  # chunks that Dask computes, or positions in files
    lengths: Sequence[int]  # number of rows of each part
    read: Callable[[Any], Part]
    n_features: int
    dtype: np.dtype  # of the features: float32 only if all of them are
    feature_names: tuple[str, ...] | None = None
    weighted: bool = False  # whether rows have sample weights

    @property
    def n_rows(self) -> int:
        """Total number of rows."""
        return sum(self.lengths)

    def groups(self, *, moments: bool) -> list[list[Any]]:
        """Consecutive parts, grouped into tasks that are worth scheduling.

        A task that returns moments should read four times the bytes of the moments of eight cells.
        The groups depend on sizes only, so that sums are the same on every cluster.
        """
        most, size = LEAST_BYTES, 0
        if moments:
            most = max(LEAST_BYTES, min(MOST_BYTES, 4 * 8 * 8 * self.n_features**2))
        groups: list[list[Any]] = [[]]
        for part, n in zip(self.parts, self.lengths, strict=True):
            size += 8 * n * self.n_features
            if groups[-1] and size > most:
                groups.append([])
                size = 8 * n * self.n_features
            groups[-1] += [part] if n else []
        return groups


def parts_of(X: Any, y: Any, environments: Any, sample_weight: Any, features: Any) -> Parts:
    """Parts of a Dask array, a Dask frame or files."""
    roles = {"y": y, "environments": environments, "sample_weight": sample_weight}
    if isinstance(X, str | os.PathLike):
        X = [X]
    if isinstance(X, list | tuple):
        return _of_files([Path(path) for path in X], roles, features)
    if is_frame(X):
        return _of_frame(X, roles, features)
    if hasattr(X, "map_blocks") and hasattr(X, "chunks"):
        return _of_array(X, roles)
    raise TypeError(
        f"X must be a Dask array, a Dask frame or a list of files; got {type(X).__name__}. Data in "
        "memory do not need Dask: call the estimator's own fit"
    )


def is_frame(X: Any) -> bool:
    """Whether X is a Dask frame."""
    return hasattr(X, "map_partitions") and hasattr(X, "columns")


def _of_array(X: Any, roles: dict[str, Any]) -> Parts:
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, (rows, features); it has {X.ndim}")
    if np.isnan(X.shape[0]):
        raise ValueError(
            "X's chunks have unknown lengths, so labels cannot be matched with its rows: pass the "
            "frame it came from with the names of its columns, or call X.compute_chunk_sizes()"
        )
    # Labels are small compared to the features, so they are kept in memory.
    labels = {
        role: np.asarray(values.compute() if hasattr(values, "compute") else values)
        for role, values in roles.items()
        if values is not None
    }
    for role, values in labels.items():
        if values.shape != X.shape[:1]:
            raise ValueError(f"{role} has shape {values.shape}, but X has {X.shape[0]} rows")
    lengths, ends = X.chunks[0], np.cumsum(X.chunks[0])
    parts = [
        (chunk, {role: values[end - n : end] for role, values in labels.items()})
        for chunk, n, end in zip(
            X.rechunk({1: -1}).to_delayed().ravel(), lengths, ends, strict=True
        )
    ]
    dtype, weighted = _float([X.dtype]), "sample_weight" in labels
    return Parts(parts, lengths, _read_chunk, X.shape[1], dtype, weighted=weighted)


def _read_chunk(part: Any) -> Part:
    # Chunks received over the network may be unaligned, which makes reading them much slower.
    return _part(np.require(part[0], requirements="A"), **part[1])


def _part(X: Any, y: Any = None, environments: Any = None, sample_weight: Any = None) -> Part:
    """Rows with zeros for labels and environments that were not given."""
    zeros = np.zeros(len(X), dtype=int)
    y, environments = (zeros if a is None else a for a in (y, environments))
    return Part(X, y, environments, None if sample_weight is None else sample_weight.astype(float))


def _float(dtypes: Sequence[Any]) -> np.dtype:
    """float32 if all the types are, else float64."""
    return np.dtype(np.float32 if all(t == np.float32 for t in dtypes) else np.float64)


def _of_frame(frame: Any, roles: dict[str, Any], features: Any) -> Parts:
    columns = list(frame.columns)
    roles = {role: name for role, name in roles.items() if name is not None}
    for role, name in roles.items():
        if not isinstance(name, str) or name not in columns:
            raise ValueError(
                f"{role}={name!r} must be the name of a column of the frame: separate columns "
                f"could be misaligned. The frame has {columns[:8]}"
            )
    named = list(roles.values())
    wanted = [c for c in columns if c not in named] if features is None else list(features)
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise ValueError(f"the frame has no column {missing[0]!r}; it has {columns[:8]}")
    chunks = frame[[*wanted, *named]].to_delayed()
    lengths = computed([dask.delayed(len)(chunk) for chunk in chunks])
    parts = [(chunk, wanted, roles) for chunk in chunks]
    dtype, names = _float([frame[name].dtype for name in wanted]), tuple(map(str, wanted))
    return Parts(parts, lengths, _read_frame, len(wanted), dtype, names, "sample_weight" in roles)


def _read_frame(part: Any) -> Part:
    frame, wanted, roles = part
    labels = {role: frame[name].to_numpy() for role, name in roles.items()}
    return _part(frame[wanted].to_numpy(), **labels)


def _of_files(paths: list[Path], roles: dict[str, Any], features: Any) -> Parts:
    if not paths:
        raise ValueError("there are no files to read; give at least one path")
    if roles["sample_weight"] is not None:
        raise ValueError("sample_weight cannot be read from files; use a Dask frame")
    # A new name for every fit: workers must not reuse tables that an earlier fit has cached.
    features = None if features is None else tuple(features)
    spec = (roles["y"], roles["environments"], features, uuid4().hex)
    shapes = computed([dask.delayed(_shape)(path, spec) for path in paths])
    n_rows, names, dtypes, widths = zip(*shapes, strict=True)
    if len(set(zip(names, widths, strict=True))) != 1:
        raise ValueError(f"{paths[0]} and other files have different features")
    step = max(_FILE_ROWS, LEAST_BYTES // (8 * widths[0]))
    # Only positions go into the graph; each task opens its file itself.
    parts = [
        (path, spec, start, min(start + step, n))
        for path, n in zip(paths, n_rows, strict=True)
        for start in range(0, n, step)
    ]
    lengths = [stop - start for _, _, start, stop in parts]
    return Parts(parts, lengths, _read_file, widths[0], _float(dtypes), names[0])


def _shape(path: Path, spec: Any) -> tuple[int, tuple[str, ...] | None, np.dtype, int]:
    """Number of rows of a file, names and type of its features, and their number."""
    table = _table(path, spec)
    names = table.feature_names if table.named else None
    return len(table), names, np.dtype(table.X.dtype), table.X.shape[1]


def _read_file(part: Any) -> Part:
    path, spec, start, stop = part
    table, rows = _table(path, spec), slice(start, stop)
    # Rows of Parquet remember their position, so tasks cannot share them.
    X = _Window(copy(table.X), start, stop) if isinstance(table.X, Rows) else table.X[rows]
    y, environments = (None if a is None else a[rows] for a in (table.y, table.environments))
    return _part(X, y, environments)


@lru_cache(maxsize=2)
def _table(path: Path, spec: Any) -> Any:
    """The table of a file, cached so that its labels are not read again in every pass."""
    from isrlearn.io import read_table

    label, environment, features, _ = spec
    return read_table(path, label=label, environment=environment, features=features, stream=True)


class _Window(Rows):
    """Consecutive rows of a source."""

    def __init__(self, rows: Any, start: int, stop: int) -> None:
        self._rows, self._start = rows, start
        self.shape, self.dtype = (stop - start, rows.shape[1]), rows.dtype

    def __getitem__(self, rows: slice) -> NDArray:
        start, stop, _ = rows.indices(len(self))
        return np.asarray(self._rows[self._start + start : self._start + max(start, stop)])
