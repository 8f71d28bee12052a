"""Files that are never half written, and directories that one process at a time writes to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["locked", "write_beside"]


def write_beside(path: Path | str, content: bytes) -> Path:
    """Path of a file that now holds `content`, written beside and renamed.

    Whoever reads `path` sees the old content or the new, never a part.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     write_beside(Path(directory) / "a.txt", b"whole").read_bytes()
    b'whole'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files only their owner can read; results are for everybody.
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise
    return path


@contextmanager
def locked(path: Path | str) -> Iterator[None]:
    """Hold the lock of a file; BlockingIOError if another process, or this one, does.

    The file is made if it is not there and stays when the lock is freed: by the end of the
    context, or by the system, however the process ends.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as directory, locked(Path(directory) / "lock"):
    ...     try:
    ...         locked(Path(directory) / "lock").__enter__()
    ...     except BlockingIOError:
    ...         print("busy")
    busy
    """
    with open(path, "w") as file:
        _lock(file)
        yield


def _lock(file: IO[str]) -> None:
    """Lock an open file or raise BlockingIOError at once."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError as error:
            raise BlockingIOError(str(error)) from None
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
