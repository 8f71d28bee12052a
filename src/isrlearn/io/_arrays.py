"""Tables as arrays: one NumPy or Zarr array, or a NumPy archive of several."""

from __future__ import annotations

import math
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from isrlearn.core.rows import ArraySource
from isrlearn.io._source import Source, as_labels, check_room, numbered
from isrlearn.io.errors import TableError, listed, reading, shown

_NAMES = "feature_names"


class ArrayTable(Source):
    """Features in one .npy or .zarr array, opened and not read; columns are f0, f1 and so on."""

    named = False

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "an array"):
            zarr = path.suffix.lower() == ".zarr"
            self._array = _open_zarr(path) if zarr else npy.open_memmap(path, mode="r")
        _check_array(self._array.shape, self._array.dtype, path)
        if len(self._array.shape) != 2:
            raise TableError(
                f"{path}: a table must have 2 dimensions, (rows, columns); this array has the "
                f"shape {self._array.shape}"
            )
        self.columns = self.features = numbered("f", self._array.shape[1])
        self.groups = {"X": self.columns}

    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Features as they are on the disk: a memory map, or rows that are converted when read."""
        if labels:
            raise TableError(
                f"{self.path}: an array has no column {shown(labels[0])}; keep the labels in a "
                "file next to it"
            )
        return _chosen(self._array, features, self.columns, self.path), {}


class NpzTable(Source):
    """Features in a two-dimensional array of an archive, labels in one-dimensional ones.

    Columns of the array named X, or of the only one with two dimensions, are f0, f1, … or what
    an array "feature_names" calls them; those of another array A are A_0, A_1, …
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "a NumPy archive"), zipfile.ZipFile(path) as archive:
            shapes = _shapes(archive, path)
            tables = {name: shape[1] for name, shape in shapes.items() if len(shape) == 2}
            main = "X" if "X" in tables else next(iter(tables)) if len(tables) == 1 else None
            groups = {
                name: numbered("f" if name == main else f"{name}_", width)
                for name, width in tables.items()
            }
            self.named = main is not None and _NAMES in shapes
            if main is not None and self.named:
                groups[main] = self._names(_member(archive, _NAMES, path), main, tables[main])
        self.groups = groups
        self.features = groups[main] if main else ()
        vectors = [name for name, shape in shapes.items() if len(shape) == 1]
        columns = [column for names in groups.values() for column in names]
        self.columns = tuple(dict.fromkeys([*columns, *vectors]))

    def _names(self, found: NDArray, main: str, width: int) -> tuple[str, ...]:
        """Names of the main array's columns."""
        names = tuple(str(name) for name in found.ravel())
        if len(names) != width or len(set(names)) != width:
            raise TableError(
                f"{self.path}: {_NAMES!r} must hold {width} distinct names, one per column of "
                f"{main!r}; it holds {listed(names, 4)}"
            )
        return names

    def read(self, features: Sequence[str], labels: Sequence[str]) -> tuple[Any, dict[str, Any]]:
        """Features and labels, each array read whole."""
        with reading(self.path, "a NumPy archive"), zipfile.ZipFile(self.path) as archive:
            kept = {
                name: as_labels(_member(archive, name, self.path), self.path, name)
                for name in labels
            }
            if not features:
                return None, kept
            for name, columns in self.groups.items():
                if set(features) <= set(columns):
                    array = _member(archive, name, self.path)
                    return _chosen(array, features, columns, self.path), kept
        raise TableError(f"{self.path}: features must be columns of one of {listed(self.groups)}")


def read_vector(path: Path) -> NDArray:
    """Labels of a one-dimensional .npy array."""
    if not path.is_file():
        raise TableError(f"{path}: there is no such file")
    with reading(path, "an array"):
        values = npy.open_memmap(path, mode="r")
        _check_array(values.shape, values.dtype, path)
        return as_labels(np.array(values), path, path.name)


def _chosen(array: Any, wanted: Sequence[str], columns: Sequence[str], path: Path) -> Any:
    """The wanted columns of numbers; the array itself where it needs no conversion."""
    if array.dtype.kind not in "biuf":
        raise TableError(f"{path}: features must be numbers; they are of type {array.dtype}")
    every = tuple(wanted) == tuple(columns)
    if every and isinstance(array, np.ndarray) and array.dtype in (np.float32, np.float64):
        return array
    place = {name: i for i, name in enumerate(columns)}
    return ArraySource(array, None if every else [place[name] for name in wanted])


def _check_array(shape: tuple[int, ...], dtype: np.dtype, path: Path) -> None:
    """Raise if an array has no bytes, and could so have any number of rows or columns."""
    if 0 in shape or dtype.itemsize == 0:
        raise TableError(f"{path}: an array of shape {shape} and type {dtype} is empty")


def _shapes(archive: zipfile.ZipFile, path: Path) -> dict[str, tuple[int, ...]]:
    """Shape of every array of an archive, checked against its size before any is read."""
    shapes: dict[str, tuple[int, ...]] = {}
    members = [info for info in archive.infolist() if info.filename.endswith(".npy")]
    if not members:
        raise TableError(f"{path}: the archive holds no array")
    first, n = Counter(info.filename for info in members).most_common(1)[0]
    if n > 1:
        raise TableError(f"{path}: {n} arrays are named {shown(first.removesuffix('.npy'))}")
    for info in members:
        name = info.filename.removesuffix(".npy")
        with archive.open(info) as file:
            old = npy.read_magic(file) == (1, 0)
            parse = npy.read_array_header_1_0 if old else npy.read_array_header_2_0
            shape, _, dtype = parse(file)
            size = file.tell() + math.prod(shape) * dtype.itemsize
        _check_array(shape, dtype, path)
        if not dtype.hasobject and size != info.file_size:
            raise TableError(
                f"{path}: array {shown(name)} has {info.file_size} bytes; its header says {size}"
            )
        check_room(shape, dtype, path)
        shapes[name] = shape
    return shapes


def _member(archive: zipfile.ZipFile, name: str, path: Path) -> NDArray:
    with archive.open(f"{name}.npy") as file:
        try:
            return npy.read_array(file, allow_pickle=False)
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise
            raise TableError(
                f"{path}: array {shown(name)} holds Python objects, which are not read because "
                "they could run code; save it as numbers or text, for example .astype(str)"
            ) from None


def _open_zarr(path: Path) -> Any:
    try:
        import zarr
    except ImportError:
        raise ImportError('reading Zarr arrays needs zarr: pip install "isrlearn[zarr]"') from None
    array = zarr.open_array(str(path), mode="r")
    codecs = [
        *(getattr(array.metadata, "filters", None) or ()),
        getattr(array.metadata, "compressor", None),
    ]
    # The older of the two formats of Zarr lets chunks be pickles.
    if any(getattr(codec, "codec_id", None) == "pickle" for codec in codecs):
        raise TableError(f"{path}: its chunks are pickles, which could run any code; none was read")
    return array
