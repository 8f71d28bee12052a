"""Errors about tables and model files, and how they show what was found."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from isrlearn import markup

_LONGEST = 60
#: What a message says about columns that are not complete columns of numbers.
PREPARE = (
    "isr fit does that for .csv, .tsv and .parquet tables, without --strict and --engine dask "
    "(missing numbers: --impute); in Python, isrlearn.TablePreparer does"
)


class TableError(ValueError):
    """A table that cannot be read, or that lacks a requested column.

    Examples
    --------
    >>> from isrlearn.io import TableError, read_table
    >>> try:
    ...     read_table("no-such-table.csv")
    ... except TableError as error:
    ...     print(error)
    no-such-table.csv: there is no such file
    """


class ModelFileError(ValueError):
    r"""A model file that is damaged, hostile, or of another kind or version.

    Examples
    --------
    >>> from isrlearn.io import ModelFileError, load
    >>> _ = Path("model.isr").write_bytes(b"\x80\x04N.")
    >>> try:
    ...     load("model.isr")
    ... except ModelFileError as error:
    ...     print(error)
    model.isr: this is a pickle, which could run any code: nothing was loaded
    """


class OutputError(ValueError):
    """An output file that would replace an input, or a file of another kind.

    Examples
    --------
    >>> from isrlearn.io.files import OutputError, check_output
    >>> Path("train.csv").touch()
    >>> try:
    ...     check_output("./train.csv", inputs=["train.csv"])
    ... except OutputError as error:
    ...     print(error)
    ./train.csv: this is an input of the same command; choose another
    """


def optional(module: str, purpose: str, extra: str) -> Any:
    """A module of an optional dependency, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        hint = f'{purpose} needs {package}: pip install "isrlearn[{extra}]"'
        raise ImportError(hint) from None


def shown(value: object) -> str:
    """A value from a file, for a message: quoted, on one line, shortened if it is long."""
    if isinstance(value, str) and len(value) > _LONGEST:
        value = value[:_LONGEST] + "..."
    return markup.line(repr(value).replace("\n", " "), 2 * _LONGEST)


def listed(names: Iterable[object], most: int = 8) -> str:
    """Names separated by commas, only the first few if there are many."""
    return markup.listed([*map(shown, names)], most)


def suggestion(name: str, names: Iterable[str]) -> str:
    """What the user may have meant, or could mean, ready to be appended to a message."""
    names = list(names)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    close = close or [other for other in names if other.lower() == name.lower()][:3]
    if close:
        return f"; did you mean {' or '.join(map(shown, close))}?"
    return f"; there are {listed(names)}" if names else ""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Name the file in every error, and turn any exception of a parser into a TableError.

    On a damaged file parsers raise all kinds of exceptions; here, each means "this file is bad".
    """
    try:
        yield
    except ImportError:
        raise
    except TableError as error:
        named = str(error).startswith(f"{path}: ")
        raise TableError(str(error) if named else f"{path}: {error}") from error.__cause__
    except FileNotFoundError:
        raise TableError(f"{path}: there is no such file") from None
    except MemoryError as error:
        hint = "choose fewer features, or read a .npy, .parquet or .zarr file with stream=True"
        raise TableError(f"{path}: {error}; {hint}") from None
    except UnicodeDecodeError as error:
        at = f"byte {error.start + 1} is {error.object[error.start]:#04x}"
        raise TableError(f"{path}: this is not text in UTF-8 ({at}); save it as UTF-8") from None
    except Exception as error:
        reason = markup.line(" ".join(str(error).split()) or type(error).__name__, 300)
        raise TableError(f"{path}: cannot be read: {reason}") from error
