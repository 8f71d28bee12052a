"""Tables and predictions written to files, some rows at a time."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.rows import ArraySource, Rows
from isrlearn.io._formats import BLOCK_BYTES
from isrlearn.io._parquet import pyarrow
from isrlearn.io.files import atomic_write
from isrlearn.validation import check_source, refuse_path

Columns = Mapping[str, NDArray]  # of the same length; numbers or text


def write_columns(path: str | os.PathLike[str], columns: Columns) -> None:
    """Write named columns to a .csv, .tsv, .parquet or .npz file, atomically.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "t.csv"
    ...     write_columns(path, {"x": np.array([0.5, 1.0]), "y": np.array(["a", "b"])})
    ...     path.read_text().split()
    ['x,y', '0.5,a', '1.0,b']
    """
    write = check_format(path)
    with atomic_write(path) as file:
        write(file, [columns])


def write_predictions(estimator: Any, X: Any, path: str | os.PathLike[str]) -> int:
    """Write the prediction of every row to a .csv, .tsv, .parquet or .npz file; return the count.

    A row has the columns ``prediction`` and, where the estimator has probabilities,
    ``probability_c`` for each class c. Rows are read, and predictions written, some at a time;
    the file is written atomically.

    Parameters
    ----------
    estimator : fitted estimator
        With `predict`.
    X : array-like of shape (n, d) or Rows
        An array, a data frame, a memory map, or the X of ``read_table(path, stream=True)``.
    path : path
        Its suffix gives the format.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn import ISRClassifier
    >>> X, codes = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80)
    >>> clf = ISRClassifier(n_spurious=1).fit(X, codes % 2, environments=codes // 2 % 2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = Path(folder) / "predictions.csv"
    ...     n = write_predictions(clf, X, out)
    ...     n, out.read_text().partition(chr(10))[0]
    (80, 'prediction,probability_0,probability_1')
    """
    write = check_format(path)
    refuse_path(X)
    rows = X if isinstance(X, Rows) else ArraySource(np.asanyarray(X))
    names = tuple(getattr(X, "columns", ()))
    if names and all(isinstance(name, str) for name in names):
        rows.feature_names = names
    check_source(estimator, rows, None, reset=False)
    with atomic_write(path) as file:
        write(file, _predicted(for_arrays(estimator), rows))
    return len(rows)


def for_arrays(estimator: Any) -> Any:
    """A copy of the estimator for plain arrays with its columns in order, without its moments.

    Examples
    --------
    >>> from isrlearn import ISRRegressor
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> hasattr(for_arrays(reg), "moments_")
    False
    """
    twin = copy(estimator)
    for name in ("feature_names_in_", "moments_"):
        vars(twin).pop(name, None)
    return twin


def check_format(path: str | os.PathLike[str]) -> Callable[[BinaryIO, Iterable[Columns]], None]:
    """The function that writes files with this suffix; an error if there is none.

    Examples
    --------
    >>> check_format("a.txt")
    Traceback (most recent call last):
    ...
    ValueError: a.txt: a table must end in .csv, .tsv, .parquet, .npz; this one ends in '.txt'
    """
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise ValueError(
            f"{os.fspath(path)}: a table must end in {', '.join(_WRITERS)}; this one ends in "
            f"{suffix!r}"
        )
    if suffix == ".parquet":
        pyarrow()
    return _WRITERS[suffix]


def _predicted(estimator: Any, rows: Rows) -> Iterator[Columns]:
    for _, block in rows.blocks():
        columns = {"prediction": np.asarray(estimator.predict(block))}
        if hasattr(estimator, "predict_proba"):
            probabilities = estimator.predict_proba(block)
            for i, name in enumerate(estimator.classes_.tolist()):
                columns[f"probability_{name}"] = probabilities[:, i]
        yield columns


def _text(file: BinaryIO, blocks: Iterable[Columns], separator: str) -> None:
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    rows = csv.writer(text, delimiter=separator, lineterminator="\n")
    for i, columns in enumerate(blocks):
        if not i:
            rows.writerow(columns)
        # Some rows at a time: their Python objects take more memory than the arrays.
        step = max(1, BLOCK_BYTES // (32 * len(columns)))
        for start in range(0, len(next(iter(columns.values()))), step):
            block = [values[start : start + step].tolist() for values in columns.values()]
            rows.writerows(zip(*block, strict=True))
    text.detach()


def _parquet(file: BinaryIO, blocks: Iterable[Columns]) -> None:
    pa = pyarrow()
    tables = (pa.table({k: pa.array(v) for k, v in columns.items()}) for columns in blocks)
    first = next(tables)
    with pa.parquet.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _npz(file: BinaryIO, blocks: Iterable[Columns]) -> None:
    parts = list(blocks)
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    # Objects become an array that needs no pickle.
    plain = {k: np.array(v.tolist()) if v.dtype.kind == "O" else v for k, v in whole.items()}
    np.savez(file, **plain)  # type: ignore[arg-type]


_WRITERS: dict[str, Callable[[BinaryIO, Iterable[Columns]], None]] = {
    ".csv": partial(_text, separator=","),
    ".tsv": partial(_text, separator="\t"),
    ".parquet": _parquet,
    ".npz": _npz,
}
