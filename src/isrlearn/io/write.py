"""Tables and predictions written to files."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Mapping
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from isrlearn.io._parquet import pyarrow
from isrlearn.io.files import atomic_write

Columns = Mapping[str, NDArray]  # of the same length; numbers or text
#: Values that are text at a time: as Python objects they take more memory than the arrays.
_VALUES = 1 << 18


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
    write = _writer(path)
    with atomic_write(path) as file:
        write(file, columns)


def write_predictions(estimator: Any, X: Any, path: str | os.PathLike[str]) -> int:
    """Write the prediction of every row to a .csv, .tsv, .parquet or .npz file; return the count.

    A row has the columns ``prediction`` and, where the estimator has probabilities,
    ``probability_c`` for each class c. The file is written atomically.

    Parameters
    ----------
    estimator : fitted estimator
        With `predict`.
    X : array-like of shape (n, d) or Rows
        An array, a data frame, a memory map, or the X of ``read_table(path, stream=True)``, which
        is read some rows at a time.
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
    _writer(path)
    columns = {"prediction": np.asarray(estimator.predict(X))}
    if hasattr(estimator, "predict_proba"):
        names = [f"probability_{name}" for name in estimator.classes_.tolist()]
        columns |= dict(zip(names, estimator.predict_proba(X).T, strict=True))
    write_columns(path, columns)
    return len(columns["prediction"])


def _writer(path: str | os.PathLike[str]) -> Callable[[BinaryIO, Columns], None]:
    """The function that writes files with this suffix; an error if there is none."""
    suffix = Path(path).suffix.lower()
    if suffix not in _WRITERS:
        raise ValueError(
            f"{os.fspath(path)}: a table must end in {', '.join(_WRITERS)}; this one ends in "
            f"{suffix!r}"
        )
    if suffix == ".parquet":
        pyarrow()
    return _WRITERS[suffix]


def _text(file: BinaryIO, columns: Columns, separator: str) -> None:
    text = TextIOWrapper(file, encoding="utf-8", newline="")
    rows = csv.writer(text, delimiter=separator, lineterminator="\n")
    rows.writerow(columns)
    step = max(1, _VALUES // len(columns))
    for start in range(0, len(next(iter(columns.values()))), step):
        block = [values[start : start + step].tolist() for values in columns.values()]
        rows.writerows(zip(*block, strict=True))
    text.detach()


def _parquet(file: BinaryIO, columns: Columns) -> None:
    pa = pyarrow()
    pa.parquet.write_table(pa.table({k: pa.array(v) for k, v in columns.items()}), file)


def _npz(file: BinaryIO, columns: Columns) -> None:
    # Objects become an array that needs no pickle.
    plain = {k: np.array(v.tolist()) if v.dtype.kind == "O" else v for k, v in columns.items()}
    np.savez(file, **plain)  # type: ignore[arg-type]


_WRITERS: dict[str, Callable[[BinaryIO, Columns], None]] = {
    ".csv": partial(_text, separator=","),
    ".tsv": partial(_text, separator="\t"),
    ".parquet": _parquet,
    ".npz": _npz,
}
