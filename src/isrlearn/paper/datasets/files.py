"""Files of public data sets: found on this machine, or downloaded and checked."""

import gzip
import hashlib
import http.client
import os
import struct
import urllib.request
import zlib
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets.parameters import choice
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


_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}

_SHA256 = {
    "mnist": (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    "fashion-mnist": (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
}
_ADDRESS = {
    "mnist": "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "fashion-mnist": "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
}


def _files(name: str) -> tuple[Resource, ...]:
    """Images and labels of training, then of test."""
    kinds = product(("train", "t10k"), ("images-idx3", "labels-idx1"))
    files = (f"{part}-{kind}-ubyte.gz" for part, kind in kinds)
    return tuple(
        Resource(f"{name}/{file}", _ADDRESS[name] + file, sha256)
        for file, sha256 in zip(files, _SHA256[name], strict=True)
    )


#: The four files of each data set.
IDX_FILES = {name: _files(name) for name in _SHA256}


def read_idx(source: str | os.PathLike[str] | bytes) -> NDArray:
    """The array of an idx file, compressed by gzip or not.

    Parameters
    ----------
    source : path or bytes
        A file, or its content.

    Returns
    -------
    ndarray
        In the machine's byte order.

    Examples
    --------
    >>> from isrlearn.paper.datasets import read_idx
    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    array([7, 8, 9], dtype=uint8)
    """
    where = "the content" if isinstance(source, bytes) else os.fspath(source)
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    data = decompressed(data, where, "download it again")
    if len(data) < 4 or data[:2] != b"\0\0" or data[2] not in _TYPES:
        raise DataError(
            f"{where} is not an idx file: it begins with {data[:4].hex(' ') or '(nothing)'}, an "
            "idx file with two bytes of zero and a type (08, 09, 0b, 0c, 0d or 0e)"
        )
    dtype, n_axes = np.dtype(_TYPES[data[2]]), data[3]
    start = 4 + 4 * n_axes
    if len(data) < start:
        raise DataError(f"{where} ends after {len(data)} bytes, inside its header of {start}")
    shape = struct.unpack(f">{n_axes}I", data[4:start])
    expected = start + dtype.itemsize * int(np.prod(shape, dtype=object))
    if len(data) != expected:
        raise DataError(
            f"{where} has {len(data)} bytes; an idx file of shape {shape} and type {dtype.name} "
            f"has {expected}"
        )
    array = np.frombuffer(data, dtype, offset=start).reshape(shape)
    return array.astype(dtype.newbyteorder("="))


def load_idx_images(
    name: str = "mnist", *, part: str = "all"
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images (n, 28, 28) and labels (n,) of MNIST or Fashion-MNIST, as uint8.

    Parameters
    ----------
    name : {"mnist", "fashion-mnist"}, default="mnist"
    part : {"all", "train", "test"}, default="all"
        The 60,000 training images, the 10,000 test images, or the former followed by the latter.

    Notes
    -----
    Files are looked up in the folder named by ISRLEARN_DATA, then in the user's cache. Missing
    ones (12 or 31 MB) are downloaded and checked by their sha256.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_idx_images
    >>> images, labels = load_idx_images("mnist", part="test")  # doctest: +SKIP
    >>> images.shape  # doctest: +SKIP
    (10000, 28, 28)
    """
    files = choice("name", name, IDX_FILES)
    chosen = {"all": files, "train": files[:2], "test": files[2:]}
    arrays = [read_idx(content(file)) for file in choice("part", part, chosen)]
    return np.concatenate(arrays[::2]), np.concatenate(arrays[1::2])
