"""Predictions of rows that need not fit in memory, written as they are made."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Iterator
from copy import copy
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.rows import ArraySource, Rows
from isrlearn.io._parquet import pyarrow
from isrlearn.io.files import atomic_write
from isrlearn.validation import check_source, refuse_path

Blocks = Iterator[dict[str, NDArray]]


def write_predictions(estimator: Any, X: Any, path: str | os.PathLike[str]) -> int:
    """Write the prediction of every row to a .csv, .tsv or .parquet file; return how many.

    A row has the columns ``prediction`` and, where the estimator knows them, ``probability_c`` for
    each class c. Rows are read, and predictions written, some at a time; the file is there whole
    or not at all.

    Parameters
    ----------
    estimator : fitted estimator
        With `predict`.
    X : array-like of shape (n, d) or Rows
        An array, a memory map, or the X of ``read_table(path, stream=True)``.
    path : path
        Its suffix tells the format.

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
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise ValueError(
            f"{os.fspath(path)}: predictions are written to a file that ends in "
            f"{', '.join(_WRITERS)}; this one ends in {suffix!r}"
        )
    refuse_path(X)
    rows = _rows(X)
    check_source(estimator, rows, None, reset=False)
    with atomic_write(path) as file:
        _WRITERS[suffix](file, _predicted(estimator, rows))
    return len(rows)


def _rows(X: Any) -> Rows:
    if isinstance(X, Rows):
        return X
    rows, names = ArraySource(np.asanyarray(X)), tuple(getattr(X, "columns", ()))
    if names and all(isinstance(name, str) for name in names):
        rows.feature_names = names
    return rows


def for_arrays(estimator: Any) -> Any:
    """The estimator for plain arrays with its columns in their order, without its moments."""
    twin = copy(estimator)
    for name in ("feature_names_in_", "moments_"):
        vars(twin).pop(name, None)
    return twin


def _predicted(estimator: Any, rows: Rows) -> Blocks:
    estimator = for_arrays(estimator)
    for _, block in rows.blocks():
        columns = {"prediction": np.asarray(estimator.predict(block))}
        if hasattr(estimator, "predict_proba"):
            probabilities = estimator.predict_proba(block)
            for i, name in enumerate(estimator.classes_.tolist()):
                columns[f"probability_{name}"] = probabilities[:, i]
        yield columns


def _text(separator: str) -> Callable[[BinaryIO, Blocks], None]:
    def write(file: BinaryIO, blocks: Blocks) -> None:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        out = csv.writer(text, delimiter=separator, lineterminator="\n")
        for i, columns in enumerate(blocks):
            if not i:
                out.writerow(columns)
            out.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
        text.detach()

    return write


def _parquet(file: BinaryIO, blocks: Blocks) -> None:
    pa, writer = pyarrow(), None
    for columns in blocks:
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        if writer is None:
            writer = pa.parquet.ParquetWriter(file, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


_WRITERS: dict[str, Callable[[BinaryIO, Blocks], None]] = {
    ".csv": _text(","),
    ".tsv": _text("\t"),
    ".parquet": _parquet,
}
