"""Files that are whole or not there at all."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path` when all is written.

    The content goes to a file beside it, which is flushed to the disk and renamed. Whoever reads
    `path` sees the old content or the new, never a part; an error, a full disk or an interrupt
    leaves the old one alone. A link is followed, a device written to as it is.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.txt"
    ...     with atomic_write(path) as file:
    ...         _ = file.write(b"whole")
    ...     path.read_bytes(), len(list(Path(folder).iterdir()))
    (b'whole', 1)
    """
    target = Path(os.path.realpath(path))
    try:
        # Renaming onto a device would put a file in its place.
        special = target.exists() and not target.is_file()
        with open(target, "wb") if special else _beside(target) as file:
            yield file
    except OSError as error:
        if error.filename is not None and Path(error.filename).parent != target.parent:
            raise  # of another file, read while this one was written
        # A write that fails knows no name, and the file beside is no name of the user's.
        reason = error.strerror or str(error)
        raise OSError(error.errno or errno.EIO, reason, os.fspath(path)) from error


@contextmanager
def _beside(target: Path) -> Iterator[BinaryIO]:
    beside = target.parent / f".{target.name[:100]}.{secrets.token_hex(4)}.part"
    # Made like any new file, so that the user's umask says who may read it.
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            os.chmod(beside, target.stat().st_mode & 0o777)
        os.replace(beside, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(beside)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an OSError now if `atomic_write` would surely fail later, after the work is done.

    Examples
    --------
    >>> check_writable("no-such-folder/model.isr")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] There is no such folder: 'no-such-folder'
    """
    name = os.fspath(path)
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise OSError(errno.EISDIR, "This is a folder; name a file in it", name)
    if not target.parent.is_dir():
        raise OSError(errno.ENOENT, "There is no such folder", os.path.dirname(name))
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise OSError(errno.EACCES, "This cannot be written to", name)
