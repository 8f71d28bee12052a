"""Errors of bad tables and model files, and how they name what was found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_LONGEST = 60


class TableError(ValueError):
    """A table that cannot be read, or does not hold what was asked for.

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
    >>> import tempfile
    >>> from isrlearn.io import ModelFileError, load
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"\x80\x04N.")
    ...     file.flush()
    ...     try:
    ...         load(file.name)
    ...     except ModelFileError as error:
    ...         print(str(error).partition(": ")[2])
    this is a pickle, which could run any code: nothing was loaded
    """


def shown(value: object) -> str:
    r"""A value from a file as it can be shown: quoted, on one line, not too long.

    Examples
    --------
    >>> shown("a" * 100)[-10:], shown("two\nlines")
    ("aaaaaa...'", "'two\\nlines'")
    """
    if isinstance(value, str) and len(value) > _LONGEST:
        value = value[:_LONGEST] + "..."
    text = repr(value)
    return text if len(text) <= 2 * _LONGEST else text[: 2 * _LONGEST] + "..."


def listed(names: Iterable[object], most: int = 8) -> str:
    """Names in a row, the first few of many."""
    names = list(names)
    text = ", ".join(map(shown, names[:most]))
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint at what the user may have meant, ready to be appended to a message.

    Examples
    --------
    >>> nearest("lable", ["label", "hospital"])
    "; did you mean 'label'?"
    >>> nearest("x", ["label", "hospital"])
    "; there are 'label', 'hospital'"
    """
    names = list(names)
    if not names:
        return ""
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    if not close:
        by_small = {other.lower(): other for other in names}
        close = [by_small[name.lower()]] if name.lower() in by_small else []
    if close:
        return f"; did you mean {' or '.join(map(shown, close))}?"
    return f"; there are {listed(names)}"


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a parser throws at a bad file into a TableError that names the file.

    Parsers of foreign formats raise anything on a damaged file, MemoryError for a size that is a
    lie included; here is the one place where all of it means "this file is no good".
    """
    try:
        yield
    except TableError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        reason = "".join(c if c.isprintable() else "?" for c in reason)
        if len(reason) > 300:
            reason = reason[:300] + "..."
        raise TableError(f"{path}: cannot be read as {kind}: {reason}") from error


def refuse_labels(labels: Sequence[str], path: Path) -> None:
    """Raise if labels are asked of a file that is one array of features."""
    if labels:
        raise TableError(
            f"{path}: one array holds no column {shown(labels[0])}; keep labels in a file beside it"
        )
