"""Dask collections and files as parts: what one task reads, rows and their labels together."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import dask
import numpy as np
from numpy.typing import NDArray

from isrlearn.dask._run import computed
from isrlearn.engine.rows import Rows

#: Bytes of features, as float64, that a task takes before its sums are handed on: at least, so that
#: tasks are worth their scheduling, and at most, whatever its sums take.
LEAST_BYTES = 128 << 20
MOST_BYTES = 1 << 30
#: Rows of a file that a task reads at least. They lie nowhere yet, and need not fit in memory.
FILE_ROWS = 1 << 17


class Part(NamedTuple):
    """Rows in memory: features, labels, environments and, unless all are one, weights."""

    X: Any  # (b, d), or Rows
    y: NDArray  # (b,)
    environments: NDArray | None  # (b,)
    weight: NDArray[np.float64] | None  # (b,)


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows of a collection in parts, in their order.

    Parameters
    ----------
    parts : list
        What `read` turns into a sample: chunks that Dask will have made, or places in files.
    lengths : sequence of int
        How many rows each has.
    read : callable
        Runs inside a task.
    n_features : int
    dtype : dtype
        Of the features: float32 only if all of them are.
    feature_names : tuple of str or None
    weighted : bool
        Whether rows have sample weights.
    """

    parts: list[Any] = field(repr=False)
    lengths: Sequence[int] = field(repr=False)
    read: Callable[[Any], Part] = field(repr=False)
    n_features: int
    dtype: np.dtype
    feature_names: tuple[str, ...] | None = None
    weighted: bool = False

    @property
    def n_rows(self) -> int:
        """How many rows there are in all."""
        return sum(self.lengths)

    def groups(self, *, moments: bool) -> list[list[Any]]:
        """Parts that follow each other, so many a task that their sums are worth handing on.

        No more than that: parts of one group that lie on two workers have to be moved. By size
        alone, so that sums are the same whatever the cluster.
        """
        most = task_bytes(self.n_features) if moments else LEAST_BYTES
        groups: list[list[Any]] = [[]]
        size = 0
        for part, n in zip(self.parts, self.lengths, strict=True):
            more = 8 * n * self.n_features
            if groups[-1] and size + more > most:
                groups.append([])
                size = 0
            groups[-1].append(part)
            size += more
        return groups


def task_bytes(d: int) -> int:
    """Bytes of features that a task takes for moments: four times what those of 8 cells take."""
    return max(LEAST_BYTES, min(MOST_BYTES, 4 * 8 * 8 * d * d))


def joined(samples: list[Part]) -> list[Part]:
    """The samples as one; as they are, where labels of two of them are of different kinds."""
    kinds = {(s.y.dtype.kind, s.environments is None or s.environments.dtype.kind) for s in samples}
    if len(samples) < 2 or len(kinds) > 1:
        return samples
    X, *labels = zip(*samples, strict=True)
    whole: list[Any] = [None if one[0] is None else np.concatenate(one) for one in labels]
    return [Part(_Joined(X), *whole)]


def parts_of(X: Any, y: Any, environments: Any, sample_weight: Any, features: Any) -> Parts:
    """Parts of a Dask array, a Dask frame or files."""
    if isinstance(X, str | os.PathLike):
        X = [X]
    if isinstance(X, list | tuple):
        return _of_files([Path(path) for path in X], y, environments, sample_weight, features)
    if hasattr(X, "map_partitions") and hasattr(X, "columns"):
        return _of_frame(X, y, environments, sample_weight, features)
    if hasattr(X, "map_blocks") and hasattr(X, "chunks"):
        return _of_array(X, y, environments, sample_weight)
    raise TypeError(
        f"X must be a Dask array, a Dask frame or a list of files; got {type(X).__name__}. What "
        "is in memory needs no Dask: call the estimator's own fit"
    )


def _of_array(X: Any, y: Any, environments: Any, sample_weight: Any) -> Parts:
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, (rows, features); it has {X.ndim}")
    if np.isnan(X.shape[0]):
        raise ValueError(
            "X's chunks have unknown lengths, so labels cannot be matched with its rows: pass the "
            "frame it came from with the names of its columns, or call X.compute_chunk_sizes()"
        )
    n, d = X.shape
    given = {"y": y, "environments": environments, "sample_weight": sample_weight}
    kept = {name: _labels(values, name, n) for name, values in given.items()}
    rows = X.rechunk({1: -1}).to_delayed().ravel()
    ends = np.cumsum(X.chunks[0])
    parts = [
        (chunk, *(None if v is None else v[end - size : end] for v in kept.values()))
        for chunk, size, end in zip(rows, X.chunks[0], ends, strict=True)
    ]
    weighted = sample_weight is not None
    return Parts(parts, X.chunks[0], _read_chunk, d, _float(X.dtype), weighted=weighted)


def _labels(values: Any, name: str, n: int) -> NDArray | None:
    """Labels of the rows, in memory: they are small beside the features."""
    if values is None:
        return None
    array = np.asarray(values.compute() if hasattr(values, "compute") else values)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}, but X has {n} rows")
    return array


def _read_chunk(part: Any) -> Part:
    X, y, environments, weight = part
    labels = np.zeros(len(X)) if y is None else y
    weight = None if weight is None else weight.astype(float)
    # What came over a wire begins anywhere: rows are gathered many times slower from there.
    return Part(np.require(X, requirements="A"), labels, environments, weight)


def _of_frame(frame: Any, y: Any, environments: Any, sample_weight: Any, features: Any) -> Parts:
    named = {"y": y, "environments": environments, "sample_weight": sample_weight}
    columns = list(frame.columns)
    for role, name in named.items():
        if name is not None and (not isinstance(name, str) or name not in columns):
            raise ValueError(
                f"{role}={name!r} must be the name of a column of the frame: columns taken apart "
                f"can be misaligned. It has {columns[:8]}"
            )
    roles = [name for name in named.values() if name is not None]
    wanted = [c for c in columns if c not in roles] if features is None else list(features)
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise ValueError(f"the frame has no column {missing[0]!r}; it has {columns[:8]}")
    # Of one frame: rows and labels cannot come apart.
    chunks = frame[[*wanted, *roles]].to_delayed()
    lengths = computed([dask.delayed(len)(chunk) for chunk in chunks])
    parts = [(chunk, wanted, *named.values()) for chunk in chunks]
    kinds = {_float(frame[name].dtype) for name in wanted}
    dtype = kinds.pop() if len(kinds) == 1 else np.dtype(np.float64)
    names = tuple(map(str, wanted))
    weighted = sample_weight is not None
    return Parts(parts, lengths, _read_frame, len(wanted), dtype, names, weighted)


def _read_frame(part: Any) -> Part:
    frame, wanted, y, environments, weight = part
    return Part(
        frame[wanted].to_numpy(),
        np.zeros(len(frame)) if y is None else frame[y].to_numpy(),
        None if environments is None else frame[environments].to_numpy(),
        None if weight is None else frame[weight].to_numpy().astype(float),
    )


def _of_files(
    paths: list[Path], y: Any, environments: Any, sample_weight: Any, features: Any
) -> Parts:
    if not paths:
        raise ValueError("there are no files to read")
    if sample_weight is not None:
        raise ValueError("files hold no sample_weight that is read; use a Dask frame")
    spec = (y, environments, None if features is None else tuple(features))
    # A name of its own for each fit: what a worker keeps of the files is of this one.
    name = uuid4().hex
    shapes = computed([dask.delayed(_shape)(path, spec, name) for path in paths])
    names = {shape[2] for shape in shapes}
    if len(names) != 1:
        raise ValueError(f"{paths[0]} and other files have different features")
    d = shapes[0][1]
    step = max(FILE_ROWS, LEAST_BYTES // (8 * d))
    parts, lengths = [], []
    for path, (n, *_) in zip(paths, shapes, strict=True):
        for start in range(0, n, step):
            stop = min(start + step, n)
            # Only where to read goes into the graph; the task opens the file by itself.
            parts.append((path, spec, name, start, stop))
            lengths.append(stop - start)
    kinds = {shape[3] for shape in shapes}
    dtype = kinds.pop() if len(kinds) == 1 else np.dtype(np.float64)
    return Parts(parts, lengths, _read_file, d, dtype, shapes[0][2])


def _shape(path: Path, spec: Any, name: str) -> tuple[int, int, tuple[str, ...] | None, np.dtype]:
    table = _kept_table(path, spec, name)
    return (*table.X.shape, table.feature_names if table.named else None, np.dtype(table.X.dtype))


def _float(dtype: Any) -> np.dtype:
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _read_file(part: Any) -> Part:
    path, spec, name, start, stop = part
    table = _kept_table(path, spec, name)
    rows = slice(start, stop)
    y = np.zeros(stop - start) if table.y is None else table.y[rows]
    environments = None if table.environments is None else table.environments[rows]
    if not isinstance(table.X, Rows):
        return Part(np.asarray(table.X[rows]), y, environments, None)
    # Rows of Parquet remember where they are: no two tasks may share them.
    return Part(_Window(copy(table.X), start, stop), y, environments, None)


@lru_cache(maxsize=2)
def _kept_table(path: Path, spec: Any, name: str) -> Any:
    """The table of a file, whose labels are not read anew for every part and every pass."""
    from isrlearn.io import read_table

    label, environment, features = spec
    return read_table(path, label=label, environment=environment, features=features, stream=True)


class _Joined(Rows):
    """Rows of several sources, one after the other."""

    def __init__(self, sources: Sequence[Any]) -> None:
        ends = np.cumsum([len(source) for source in sources]).tolist()
        self._sources = list(zip(sources, [0, *ends], ends, strict=False))
        self.shape = ends[-1], sources[0].shape[1]
        self.dtype = _float(np.result_type(*(source.dtype for source in sources)))

    def __getitem__(self, rows: slice) -> NDArray:
        start, stop, _ = rows.indices(len(self))
        found = [
            np.asarray(source[max(0, start - begin) : stop - begin])
            for source, begin, end in self._sources
            if begin < stop and start < end
        ]
        block = found[0] if len(found) == 1 else np.concatenate(found)
        return block.astype(self.dtype, copy=False)


class _Window(Rows):
    """Some rows of a source that follow each other."""

    def __init__(self, rows: Any, start: int, stop: int) -> None:
        self._rows, self._start = rows, start
        self.shape, self.dtype = (stop - start, rows.shape[1]), rows.dtype

    def __getitem__(self, rows: slice) -> NDArray:
        start, stop, _ = rows.indices(len(self))
        return np.asarray(self._rows[self._start + start : self._start + max(start, stop)])
