"""Rows in parts, from Dask collections and files, and their sums by tasks where the rows are."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from isrlearn.core.labels import as_array, unmasked
from isrlearn.core.moments import Moments
from isrlearn.dask.cluster import client_in_use, computed
from isrlearn.engine import LogisticFit, LogisticLoss, Rows, fit_intercept, minimise
from isrlearn.estimators.heads import Problem, Sample, Weights, Within

#: Fewest and most bytes of features, as float64, that are worth a task of their own.
LEAST_BYTES, MOST_BYTES = 128 << 20, 1 << 30
#: Fewest rows of a file per part. They are read block by block and may exceed the memory.
_FILE_ROWS = 1 << 17

Labels = dict[str, NDArray]  # y, environments and sample_weight, as far as they were given


@dataclass(frozen=True, eq=False)
class DaskRows(Rows):
    """Rows in parts, in their order: chunks that Dask computes, or positions in files."""

    parts: list[Any]
    lengths: Sequence[int]  # number of rows of each part
    shape: tuple[int, int]
    dtype: np.dtype
    feature_names: tuple[str, ...] | None = None

    def __getitem__(self, rows: slice) -> NDArray:
        """Raise: only tasks read these rows."""
        raise ValueError("weights='subsample' needs rows in memory; use weights='group'")

    def in_parts(self, whole: Sample) -> DaskSample:
        """The sample of these rows with its labels sent to the workers, once for all passes."""
        bare, labels = replace(whole, X=np.empty((len(self), 0))), []
        for rows in np.split(np.arange(len(self)), np.cumsum(self.lengths)[:-1]):
            cells = replace(whole.cells, k=whole.cells.k[rows], e=whole.cells.e[rows])
            labels.append(dask.delayed(replace(bare.rows(rows), cells=cells)))
        return DaskSample(**vars(whole), labels=list(dask.persist(*labels)), client=client_in_use())

    def groups(self, *, moments: bool) -> list[slice]:
        """Positions of consecutive parts, grouped into tasks that are worth scheduling.

        A task that returns moments should read four times the bytes of the moments of eight cells.
        The groups depend on sizes only, so that sums are the same on every cluster.
        """
        d, most = self.shape[1], LEAST_BYTES
        if moments:
            most = max(LEAST_BYTES, min(MOST_BYTES, 4 * 8 * 8 * d**2))
        group = np.cumsum(self.lengths) * 8 * d // most
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        return [slice(a, b) for a, b in pairwise([*starts.tolist(), len(group)])]


@dataclass(frozen=True, eq=False)
class DaskSample(Sample):
    """A sample whose rows are in parts: only tasks read them, and only sums come back."""

    labels: list[Any] = field(default_factory=list)  # the rest of each part, where the tasks run
    client: Any = None  # of the cluster that has the labels
    reduction: tuple[NDArray, NDArray] | None = None  # directions (d, p) and center of a projection
    has_rows = False

    @property
    def size(self) -> tuple[float, int, int]:
        """Number of rows (or their total weight), of features, and of cells."""
        n, d, cells = super().size
        return n, d if self.reduction is None else self.reduction[0].shape[1], cells

    def sums(self, of_sample: Callable[[Sample], Any], *, moments: bool) -> list[Any]:
        """One task per group of parts: the sum of a function of their samples."""
        function = dask.delayed(of_sample, traverse=False, pure=False)  # sent once per worker
        task = dask.delayed(_group_sum)
        groups = self.X.groups(moments=moments)
        return [task(self.X.parts[g], self.labels[g], function) for g in groups]

    def moments(self, keep: str) -> Moments:
        """Moments of all parts, merged in the order of the rows."""
        tasks = self.sums(partial(_moments, keep=keep), moments=keep != "mean")
        # Merge neighbours pairwise: the same sums wherever they are computed, and never more than
        # two of them on one worker.
        while len(tasks) > 1:
            tasks = [dask.delayed(sum)(tasks[i : i + 2]) for i in range(0, len(tasks), 2)]
        try:
            return computed(tasks, self.client)[0]
        except ValueError as error:
            found, names = re.match(r"feature (\d+) ", str(error)), self.X.feature_names
            if found is None or names is None:
                raise
            what = str(error)[found.end() :]
            raise ValueError(f"column {names[int(found[1])]!r} {what}") from error

    def project(self, components: NDArray, center: NDArray) -> DaskSample:
        """The same sample with centred rows projected on directions (d, p)."""
        return replace(self, reduction=(components, center))

    def logistic(self, problem: Problem) -> tuple[LogisticFit, NDArray]:
        """A logistic regression of the class in a head's coordinates, and its intercepts."""
        moments, coordinates, within = problem.moments, problem.coordinates, problem.within
        own = self.loss_terms(problem.weights, within)
        K, G = len(self.cells.classes), 1 if within is None else within.compared.shape[1]
        code = self.cells.k * G + own.get("groups", 0)
        count = np.bincount(code, own["weight"], K * G).astype(float).reshape(K, G)
        center, matrix, scatter = coordinates.eraser.center, coordinates.matrix, None
        if coordinates.linear.ndim == 1:
            share = count.sum() / moments.total[0]
            scatter = share * coordinates.scatter(moments.total_scatter())
        if self.reduction is not None:
            components, origin = self.reduction
            center, matrix = origin + components @ center, components @ matrix

        def loss(weights: Weights, within: Within | None) -> Any:
            def summed(coef: NDArray, intercept: NDArray) -> tuple[float, NDArray, NDArray]:
                """Loss and gradient. Coefficients are mapped to features, not rows to the head."""
                at = partial(_loss, weights, within, center, coef @ matrix.T, intercept)
                total = sum(computed(self.sums(at, moments=False), self.client))
                by_coef, by_intercept = np.split(total[1:], [-intercept.size])
                by_coef = by_coef.reshape(len(coef), -1) @ matrix
                return float(total[0]), by_coef, by_intercept.reshape(intercept.shape)

            return SimpleNamespace(loss_and_gradient=summed)

        tol = 1e-6 if self.X.dtype == np.float32 else 1e-9
        p, how = coordinates.linear.shape[-1], (problem.penalty, scatter, tol)
        fit = minimise(loss(problem.weights, within), p, count, *how)
        if within is None:
            return fit, fit.intercept[:, 0]
        alike = 1 / np.bincount(self.cells.k, self.weight)
        by_class = np.repeat(alike[:, None], len(self.cells.environments), axis=1), alike
        return fit, fit_intercept(loss(by_class, None), fit.coef, float(K))


def _group_sum(parts: list[Any], labels: list[Sample], of_sample: Any) -> Any:
    with threadpool_limits(limits=1):
        return sum(
            of_sample(replace(rest, X=read_part(part)))
            for part, rest in zip(parts, labels, strict=True)
            if len(rest.cells.k)
        )


def _moments(sample: Sample, keep: str) -> Moments:
    """Moments of the cells that occur in a part."""
    return replace(sample, cells=sample.cells.rows(np.arange(len(sample.cells.k)))).moments(keep)


def _loss(
    weights: Weights,
    within: Within | None,
    center: NDArray,
    coef: NDArray,
    intercept: NDArray,
    sample: Sample,
) -> NDArray:
    """Loss of the rows of a part and its derivatives, in one vector."""
    own = sample.loss_terms(weights, within)
    loss = LogisticLoss(sample.X, sample.cells.k, coordinates=partial(np.add, -center), **own)
    value, by_coef, by_intercept = loss.loss_and_gradient(coef, intercept)
    return np.concatenate([[value], by_coef.ravel(), by_intercept.ravel()])


def rows_of(X: Any, roles: dict[str, Any], features: Any, task: str) -> tuple[DaskRows, Labels]:
    """Rows of a Dask array, a Dask frame or files, and their labels in memory."""
    roles = {role: values for role, values in roles.items() if values is not None}
    if isinstance(X, str | os.PathLike):
        X = [X]
    if isinstance(X, list | tuple):
        return _of_files([Path(path) for path in X], roles, features, task)
    if is_frame(X):
        return _of_frame(X, roles, features)
    if hasattr(X, "map_blocks") and hasattr(X, "chunks"):
        if features is not None:
            raise ValueError(
                "features are columns of a frame or of files; of an array, pass X[:, features]"
            )
        return _of_array(X, roles)
    raise TypeError(
        f"X must be a Dask array, a Dask frame or a list of files; got {type(X).__name__}. Data in "
        "memory do not need Dask: call the estimator's own fit"
    )


def is_frame(X: Any) -> bool:
    """Whether X is a Dask frame."""
    return hasattr(X, "map_partitions") and hasattr(X, "columns")


def read_part(part: Any) -> Any:
    """Rows of a part, inside a task: an array, or rows of a file."""
    if sparse.issparse(part):
        raise ValueError(
            "the chunks of X are sparse, and a fit on Dask needs dense ones: make them dense with "
            "X.map_blocks(lambda chunk: chunk.toarray())"
        )
    if not isinstance(part, tuple):
        # Chunks received over the network may be unaligned, which makes reading them much slower.
        return np.require(unmasked(part), requirements="A")
    path, spec, start, stop = part
    X = _table(path, *spec).X
    # Rows of Parquet remember their position, so tasks cannot share them.
    if isinstance(X, Rows):
        return _Window(copy(X), start, (stop - start, X.shape[1]), X.dtype)
    return X[start:stop]


def _float(dtypes: Sequence[Any]) -> np.dtype:
    """float32 if all the types are, else float64."""
    return np.dtype(np.float32 if all(t == np.float32 for t in dtypes) else np.float64)


def _of_array(X: Any, roles: dict[str, Any]) -> tuple[DaskRows, Labels]:
    if X.ndim != 2 or X.dtype.kind not in "biufO":
        raise ValueError(f"X must be numbers (rows, features); got {X.dtype} of shape {X.shape}")
    if np.isnan(X.shape[0]):
        raise ValueError(
            "X's chunks have unknown lengths, so labels cannot be matched with its rows: pass the "
            "frame it came from with the names of its columns, or call X.compute_chunk_sizes()"
        )
    # Labels are small compared to the features, so they are kept in memory.
    labels = {r: as_array(v.compute() if hasattr(v, "compute") else v) for r, v in roles.items()}
    parts = X.rechunk({1: -1}).to_delayed().ravel().tolist()
    return DaskRows(parts, X.chunks[0], X.shape, _float([X.dtype])), labels


def _of_frame(frame: Any, roles: dict[str, Any], features: Any) -> tuple[DaskRows, Labels]:
    columns, named = list(frame.columns), list(roles.values())
    for role, name in [*roles.items(), *(("features", name) for name in features or ())]:
        if not isinstance(name, str) or name not in columns:
            raise ValueError(
                f"{role}: {name!r} must be the name of a column of the frame: separate columns "
                f"could be misaligned. The frame has {columns[:8]}"
            )
    if both := [name for name in features or () if name in named]:
        raise ValueError(f"column {both[0]!r} cannot be a feature: it is one of {named}")
    wanted = [c for c in columns if c not in named] if features is None else list(features)
    # Types of other libraries, such as pandas' own numbers, become floats, with NaN for NA.
    floats: dict[str, type] = {}
    for name, kind in frame[wanted].dtypes.items():
        if getattr(kind, "kind", "O") not in "biuf":
            raise ValueError(
                f"column {name!r} has the type {kind}, which is not a number: convert it, or name "
                "the columns to use in features"
            )
        floats |= {} if isinstance(kind, np.dtype) else {name: np.float64}
    # Simplified only: optimised, the graph merges partitions, and other ones for other columns.
    pieces = computed(frame[named].simplify().to_delayed(optimize_graph=False))
    labels = {r: np.concatenate([p[name].to_numpy() for p in pieces]) for r, name in roles.items()}
    X, lengths = frame[wanted].astype(floats).simplify(), tuple(map(len, pieces))
    names, parts = tuple(map(str, wanted)), X.to_delayed(optimize_graph=False)
    return DaskRows(parts, lengths, (sum(lengths), len(wanted)), _float([*X.dtypes]), names), labels


def _of_files(
    paths: list[Path], roles: dict[str, Any], features: Any, task: str
) -> tuple[DaskRows, Labels]:
    from isrlearn.io.labels import joined_labels

    if not paths:
        raise ValueError("there are no files to read; give at least one path")
    if "sample_weight" in roles:
        raise ValueError("sample_weight cannot be read from files; use a Dask frame")
    # A new name for every fit: workers must not reuse tables that an earlier fit has cached.
    features = None if features is None else tuple(features)
    spec = (roles.get("y"), roles.get("environments"), features, task, uuid4().hex)
    tables = computed([dask.delayed(_described)(path, spec) for path in paths])
    n_rows, widths, names, dtypes, *columns = zip(*tables, strict=True)
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
    joined = [joined_labels(column, paths) for column in columns]
    labels = dict(zip(("y", "environments"), joined, strict=True))
    return DaskRows(parts, lengths, (sum(lengths), widths[0]), _float(dtypes), names[0]), labels


def _described(path: Path, spec: Any) -> tuple[Any, ...]:
    """Shape of the features of a file, their names and type, labels and environments."""
    table = _table(path, *spec)
    names = table.feature_names if table.named else None
    return *table.X.shape, names, np.dtype(table.X.dtype), table.y, table.environments


@lru_cache(maxsize=2)
def _table(path: Path, label: Any, environment: Any, features: Any, task: str, fit: str) -> Any:
    """The table of a file, cached so that it is not opened again in every pass of a fit."""
    from isrlearn.io import read_table

    names = {"label": label, "environment": environment, "features": features}
    return read_table(path, **names, task=task, stream=True)


@dataclass(frozen=True, eq=False)
class _Window(Rows):
    """Consecutive rows of a source."""

    rows: Any
    start: int
    shape: tuple[int, int]
    dtype: np.dtype

    def __getitem__(self, rows: slice) -> NDArray:
        start, stop, _ = rows.indices(len(self))
        return np.asarray(self.rows[self.start + start : self.start + max(start, stop)])
