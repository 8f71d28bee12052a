"""Files that are written atomically: any file, and tables of columns and predictions."""

import csv
import errno
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from isrlearn.io._formats import PREDICTION
from isrlearn.io._parquet import pyarrow
from isrlearn.io.errors import OutputError, TableError
from isrlearn.io.labels import escaped
from isrlearn.io.tables import open_table

Columns = Mapping[str, NDArray]  # of the same length; numbers or text
#: Values converted to text at a time: as Python objects they take more memory than as arrays.
_VALUES = 1 << 18
#: How files of the kinds that we write begin.
_BEGINNINGS = {
    "model": rb'.{8}\{"__metadata__":\{"isrlearn":"\{',
    "report": rb"\s*<!doctype html>.*isrlearn report</title>",
    "card": rb"---\nlibrary_name: isrlearn\n",
    "export": rb'\x08.\x12\x08isrlearn|PK.{28}coef\.npy|.{8}\{"__metadata__":.*"estimator":"ISR',
}


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that replaces `path` when everything is written.

    The content goes to a temporary file in the same folder, which is flushed to the disk and
    renamed. Readers of `path` see the old content or the new, never a part of it; an error, a full
    disk or an interrupt leaves the old content. Links are followed; devices are written directly.
    """
    target = Path(os.path.realpath(path))
    try:
        # Renaming onto a device would put a file in its place.
        special = target.exists() and not target.is_file()
        with open(target, "wb") if special else _temporary(target) as file:
            yield file
    except OSError as error:
        if error.filename is not None and Path(error.filename).parent != target.parent:
            raise  # about another file, read while this one was written
        # A failed write has no name, or that of the temporary file: name the user's file instead.
        reason = error.strerror or str(error)
        raise OSError(error.errno or errno.EIO, reason, os.fspath(path)) from error


@contextmanager
def _temporary(target: Path) -> Iterator[BinaryIO]:
    """A file that is renamed to the target, or deleted after an error."""
    beside = target.parent / f".{target.name[:100]}.{secrets.token_hex(4)}.part"
    try:  # before the file exists: a signal may arrive as soon as it does
        with open(beside, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(beside, target.stat().st_mode & 0o777)
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError now if `atomic_write` would fail later, after the work is done."""
    name = os.fspath(path)
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise OSError(errno.EISDIR, "This is a folder; name a file in it", name)
    if not target.parent.is_dir():
        raise OSError(errno.ENOENT, "There is no such folder", os.path.dirname(name))
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise OSError(errno.EACCES, "This cannot be written to", name)


def check_output(
    path: str | os.PathLike[str],
    inputs: Iterable[str | os.PathLike[str]] = (),
    kind: str | None = None,
    *,
    force: bool = False,
) -> None:
    """Raise unless a file may be written, and replaces no input and no file of another kind.

    An `OutputError` protects the files and folders that the same command reads, whatever the
    spelling of their paths, also from links to them; and any existing file, unless it is of the
    same kind ("model", "predictions", "report" or "export") or with `force`. An OSError means
    that nothing can be written. Devices and pipes are always accepted.

    Examples
    --------
    >>> check_output("new-model.isr", inputs=["train.csv"], kind="model")
    """
    check_writable(path)
    if not os.path.isfile(path):
        return
    name, target = os.fspath(path), Path(os.path.realpath(path))
    for given in filter(os.path.exists, inputs):
        if os.path.samefile(path, given) or Path(given).resolve() in target.parents:
            what = "is" if os.path.isfile(given) else "is a part of"
            raise OutputError(f"{name}: this {what} an input of the same command; choose another")
    if not force and not _is_ours(target, kind):
        what = "a file of another kind" if kind else "this file"
        raise OutputError(f"{name}: {what} exists already; use --force to replace it")


def _is_ours(path: Path, kind: str | None) -> bool:
    """Whether a file was written by us, as far as its beginning shows."""
    if kind == "predictions":
        with suppress(TableError, ImportError):
            return open_table(path).columns[0] == PREDICTION
    elif kind is not None:
        with open(path, "rb") as file:
            return bool(re.match(_BEGINNINGS[kind], file.read(1 << 16), re.DOTALL))
    return False


def write_columns(path: str | os.PathLike[str], columns: Columns) -> None:
    """Write named columns to a .csv, .tsv, .parquet or .npz file, atomically.

    Examples
    --------
    >>> write_columns("t.csv", {"x": np.array([0.5, 1.0]), "y": np.array(["a", "b"])})
    >>> Path("t.csv").read_text().split()
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
        is read block by block.
    path : path
        Its suffix gives the format.

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> X, codes = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80)
    >>> clf = ISRClassifier(n_spurious=1).fit(X, codes % 2, environments=codes // 2 % 2)
    >>> write_predictions(clf, X, "predictions.csv")
    80
    >>> Path("predictions.csv").read_text().split()[0]
    'prediction,probability_0,probability_1'
    """
    _writer(path)
    columns = {PREDICTION: np.asarray(estimator.predict(X))}
    if hasattr(estimator, "predict_proba"):
        names = [f"probability_{name}" for name in estimator.classes_.tolist()]
        columns |= dict(zip(names, estimator.predict_proba(X).T, strict=True))
    write_columns(path, columns)
    return len(columns[PREDICTION])


def _writer(path: str | os.PathLike[str]) -> Callable[[BinaryIO, Columns], None]:
    """The function that writes files with this suffix."""
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
    words = [values.astype(str) for values in columns.values() if values.dtype.kind in "UO"]
    # By itself the module would not quote a carriage return, which ends a line for readers.
    broken = any((np.char.find(values, "\r") >= 0).any() for values in words)
    rows = csv.writer(
        text,
        delimiter=separator,
        lineterminator="\n",
        quoting=csv.QUOTE_NONNUMERIC if broken else csv.QUOTE_MINIMAL,
    )
    rows.writerow(columns)
    step = max(1, _VALUES // len(columns))
    for start in range(0, len(next(iter(columns.values()))), step):
        block = [values[start : start + step].tolist() for values in columns.values()]
        cells = [[escaped(v) if isinstance(v, str) else v for v in values] for values in block]
        rows.writerows(zip(*cells, strict=True))
    text.detach()


def _parquet(file: BinaryIO, columns: Columns) -> None:
    pa = pyarrow()
    pa.parquet.write_table(pa.table({k: pa.array(v) for k, v in columns.items()}), file)


def _npz(file: BinaryIO, columns: Columns) -> None:
    # Arrays of objects would be pickled.
    plain = {k: np.array(v.tolist()) if v.dtype.kind == "O" else v for k, v in columns.items()}
    np.savez(file, **plain)  # type: ignore[arg-type]


_WRITERS: dict[str, Callable[[BinaryIO, Columns], None]] = {
    ".csv": partial(_text, separator=","),
    ".tsv": partial(_text, separator="\t"),
    ".parquet": _parquet,
    ".npz": _npz,
}
