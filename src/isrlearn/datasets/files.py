"""Files of public data sets: found on this machine, or downloaded and checked."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import tempfile
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

VARIABLE = "ISRLEARN_DATA"
_CHUNK = 1 << 20
_SECONDS = 60.0  # without a byte, before a download is given up


class DataError(ValueError):
    """Files of a data set that are missing, damaged, or not in the expected layout.

    Examples
    --------
    >>> from isrlearn.datasets import DataError
    >>> from isrlearn.paper.datasets import load_waterbirds
    >>> try:
    ...     load_waterbirds("no-such-folder")
    ... except DataError as error:
    ...     print(str(error).partition(":")[0])
    no-such-folder/metadata.csv is not there
    """


@dataclass(frozen=True)
class Resource:
    """One file of a public data set.

    Parameters
    ----------
    path : str
        Where it belongs below the data folder. A name that ends in ``.gz`` is compressed.
    url : str
        Where it is published.
    sha256 : str
        Of the content, decompressed: archives of the same content differ by who packed them.
    """

    path: str
    url: str
    sha256: str


def cache_folder() -> Path:
    """Where downloads of this user are kept, by the custom of the system."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "isrlearn"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "isrlearn"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "isrlearn"


def folders(data_home: str | os.PathLike[str] | None = None) -> list[Path]:
    """Folders that may hold data sets, in the order they are looked at.

    The given one alone; by default the one named by the variable ISRLEARN_DATA, if it is set, and
    the user's cache.
    """
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = os.environ.get(VARIABLE)
    return [*([Path(named).expanduser()] if named else []), cache_folder()]


def located(resource: Resource, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """Where a file is on this machine, compressed or not; None if it is not there."""
    names = (resource.path, resource.path.removesuffix(".gz"))
    for folder in folders(data_home):
        for name in dict.fromkeys(names):
            if (folder / name).is_file():
                return folder / name
    return None


def content(
    resource: Resource, data_home: str | os.PathLike[str] | None = None, *, download: bool = True
) -> bytes:
    """What is in a file of a data set, decompressed and checked.

    Parameters
    ----------
    resource : Resource
    data_home : path, optional
        The folder of data sets; see `folders`.
    download : bool, default=True
        Fetch the file where it is not on this machine, into the last of the folders.
    """
    path = located(resource, data_home)
    if path is None:
        places = " or ".join(str(folder / resource.path) for folder in folders(data_home))
        if not download:
            raise DataError(
                f"{places} is not there: download it from {resource.url}, or allow the download"
            )
        path = fetched(resource, folders(data_home)[-1] / resource.path)
    data = _decompressed(path.read_bytes(), str(path))
    _check(data, resource, str(path), "remove it to have it downloaded again")
    return data


def fetched(resource: Resource, target: Path) -> Path:
    """Path of a file, now downloaded, checked and put in its place whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w+b") as file:
            _download(resource.url, file)
            file.seek(0)
            data = _decompressed(file.read(), resource.url)
        _check(data, resource, resource.url, "nothing was kept")
        # mkstemp makes files only their owner can read; a cache may be shared.
        os.chmod(beside, 0o644)
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise
    return target


def _download(url: str, file: BinaryIO) -> None:
    """Copy what is at an address to an open file, all of it."""
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as response:
            stated = response.headers.get("Content-Length")
            while chunk := response.read(_CHUNK):
                file.write(chunk)
    # OSError covers refused connections and silence; http.client's errors are ValueErrors no more.
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise DataError(
            f"{url} could not be downloaded ({error}): try again, or put the file into a folder "
            f"of your own and name that folder by {VARIABLE}"
        ) from error
    if stated is not None and file.tell() != int(stated):
        raise DataError(
            f"{url}: the download ended after {file.tell()} of {stated} bytes; nothing was kept, "
            "try again"
        )


def _decompressed(data: bytes, where: str) -> bytes:
    """The bytes, unpacked if they are gzip's, whatever the name says."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{where} is a damaged gzip file ({error})") from error


def _check(data: bytes, resource: Resource, where: str, advice: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != resource.sha256:
        raise DataError(
            f"{where} is not the published file: its content has the sha256 {found}, not "
            f"{resource.sha256}; {advice}"
        )
