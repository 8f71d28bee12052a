"""Files of public data sets: found on this machine, or downloaded and checked."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import os
import urllib.request
import zlib
from dataclasses import dataclass
from pathlib import Path

from isrlearn.io.files import atomic_write

VARIABLE = "ISRLEARN_DATA"
_TIMEOUT = 60.0  # seconds without a byte after which a download is abandoned


class DataError(ValueError):
    """Files of a data set that are missing, damaged, or not in the expected layout."""


@dataclass(frozen=True)
class Resource:
    """One file of a public data set."""

    path: str  # below the data folder; a name that ends in .gz is compressed
    url: str  # where it is published
    sha256: str  # of the decompressed content: compressed files differ by who packed them


def cache_folder() -> Path:
    """Folder of this user's downloads, by the convention of the operating system."""
    import platformdirs

    return platformdirs.user_cache_path("isrlearn", appauthor=False)


def folders(data_home: str | os.PathLike[str] | None = None) -> list[Path]:
    """Folders to search in this order: the given one, or ISRLEARN_DATA's and the user's cache."""
    if data_home is not None:
        return [Path(data_home).expanduser()]
    named = os.environ.get(VARIABLE)
    return [*([Path(named).expanduser()] if named else []), cache_folder()]


def located(resource: Resource, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """Path of a file on this machine, compressed or not; None if it is missing."""
    for folder in folders(data_home):
        for name in (resource.path, resource.path.removesuffix(".gz")):
            if (folder / name).is_file():
                return folder / name
    return None


def content(resource: Resource, data_home: str | os.PathLike[str] | None = None) -> bytes:
    """Content of a file, decompressed and checked; downloaded to the last folder if missing."""
    path = located(resource, data_home)
    if path is not None:
        return _checked(path.read_bytes(), resource, path, "delete it to have it downloaded again")
    place = folders(data_home)[-1] / resource.path
    try:
        # A connection that ends too early raises http.client.IncompleteRead.
        with urllib.request.urlopen(resource.url, timeout=_TIMEOUT) as response:
            packed = response.read()
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise DataError(
            f"{resource.url} could not be downloaded ({error}): try again, or put the file into a "
            f"folder of your own and set {VARIABLE} to that folder"
        ) from error
    data = _checked(packed, resource, resource.url, "nothing was saved")
    place.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(place) as file:
        file.write(packed)
    return data


def decompressed(packed: bytes, source: object, advice: str) -> bytes:
    """The bytes, decompressed if they are those of a gzip file."""
    try:
        return gzip.decompress(packed) if packed.startswith(b"\x1f\x8b") else packed
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{source} is a damaged gzip file ({error}); {advice}") from error


def _checked(packed: bytes, resource: Resource, source: object, advice: str) -> bytes:
    """The decompressed bytes, if they are the published ones."""
    data = decompressed(packed, source, advice)
    found = hashlib.sha256(data).hexdigest()
    if found != resource.sha256:
        raise DataError(
            f"{source} is not the published file: its content has the sha256 {found}, not "
            f"{resource.sha256}; {advice}"
        )
    return data
