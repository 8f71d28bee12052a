"""Files that are never half written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

__all__ = ["write_beside"]


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
