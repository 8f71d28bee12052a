"""Tables as NumPy arrays: one array, or an archive of several."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from isrlearn.core.rows import ArraySource
from isrlearn.io._source import Source, as_features, as_labels, check_room
from isrlearn.io.errors import TableError, listed, reading, refuse_labels, shown

#: Deflate packs at most so many bytes into one; a member that claims more is lying.
_MOST_DEFLATED = 1032
_NAMES = "feature_names"


class _Header(NamedTuple):
    shape: tuple[int, ...]
    dtype: np.dtype


def _numbered(prefix: str, n: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{i}" for i in range(n))


class NpyTable(Source):
    """Features in one .npy array, mapped and not read; columns are f0, f1 and so on."""

    named = False

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "a NumPy array"):
            self._array = npy.open_memmap(path, mode="r")
        _check_shape(self._array, path)
        if self._array.ndim != 2:
            raise TableError(
                f"{path}: a table must have 2 dimensions, (rows, columns); this array has the "
                f"shape {self._array.shape}"
            )
        self.columns = self.features = _numbered("f", self._array.shape[1])
        self.groups = {"X": self.columns}

    def read(
        self, features: Sequence[str], labels: Sequence[str]
    ) -> tuple[NDArray, dict[str, NDArray]]:
        """Features as they lie on the disk; only some of them are copied."""
        refuse_labels(labels, self.path)
        return _picked(self._array, features, self.columns, self.path), {}

    def rows(self, features: Sequence[str]) -> Any:
        """Features as they lie on the disk, only some of them taken from each block."""
        if tuple(features) == self.columns:
            return self.read(features, [])[0]
        as_features(self._array[:1], self.path)
        place = {name: i for i, name in enumerate(self.columns)}
        return ArraySource(self._array, [place[name] for name in features])


def read_vector(path: Path) -> NDArray:
    """Labels of a one-dimensional .npy array."""
    if not path.is_file():
        raise TableError(f"{path}: there is no such file")
    with reading(path, "a NumPy array"):
        values = npy.open_memmap(path, mode="r")
        _check_shape(values, path)
        return as_labels(np.array(values), path, path.name)


class NpzTable(Source):
    """Features in a two-dimensional array of an archive, labels in one-dimensional ones.

    Columns of the array named X, or of the only one with two dimensions, are f0, f1, … or what
    an array "feature_names" calls them; those of another array A are A_0, A_1, …
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with reading(path, "a NumPy archive"), zipfile.ZipFile(path) as archive:
            self._headers = _headers(archive, path)
            tables = [name for name, head in self._headers.items() if len(head.shape) == 2]
            main = "X" if "X" in tables else tables[0] if len(tables) == 1 else None
            names = self._names(archive, main)
        self.named = names is not None
        groups: dict[str, tuple[str, ...]] = {}
        for name in tables:
            width = self._headers[name].shape[1]
            own = names if name == main and names else None
            groups[name] = own or _numbered("f" if name == main else f"{name}_", width)
        self.groups = groups
        self.features = groups[main] if main else ()
        vectors = [name for name, head in self._headers.items() if len(head.shape) == 1]
        inner = [column for columns in groups.values() for column in columns]
        self.columns = tuple(dict.fromkeys([*inner, *vectors]))

    def _names(self, archive: zipfile.ZipFile, main: str | None) -> tuple[str, ...] | None:
        """Names of the main array's columns, where the archive has them."""
        head = self._headers.get(_NAMES)
        if main is None or head is None:
            return None
        names = tuple(str(name) for name in _member(archive, _NAMES, self.path).ravel())
        width = self._headers[main].shape[1]
        if len(names) != width or len(set(names)) != width:
            raise TableError(
                f"{self.path}: {_NAMES!r} must name the {width} columns of {main!r}, each "
                f"differently; it holds {listed(names, 4)}"
            )
        return names

    def read(
        self, features: Sequence[str], labels: Sequence[str]
    ) -> tuple[NDArray, dict[str, NDArray]]:
        """Features and labels, each array read whole."""
        with reading(self.path, "a NumPy archive"), zipfile.ZipFile(self.path) as archive:
            kept = {}
            for name in labels:
                kept[name] = as_labels(_member(archive, name, self.path), self.path, name)
            if not features:
                return np.empty((len(next(iter(kept.values()))), 0)), kept
            chosen = self._table_of(features)
            head = self._headers[chosen]
            check_room(math.prod(head.shape) * head.dtype.itemsize, self.path)
            array = _member(archive, chosen, self.path)
            return _picked(array, features, self.groups[chosen], self.path), kept

    def _table_of(self, features: Sequence[str]) -> str:
        """The one array that holds all the features."""
        wanted = set(features)
        for name, columns in self.groups.items():
            if wanted <= set(columns):
                return name
        raise TableError(f"{self.path}: features must be columns of one of {listed(self.groups)}")


def _headers(archive: zipfile.ZipFile, path: Path) -> dict[str, _Header]:
    """Shape and type of every array of an archive, sizes checked against what is there."""
    headers: dict[str, _Header] = {}
    for info in archive.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename:
            continue
        if name in headers:
            raise TableError(f"{path}: two arrays are named {shown(name)}")
        with archive.open(info) as file:
            version = npy.read_magic(file)
            parse = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = parse(file)
            start = file.tell()
        header = _Header(shape, dtype)
        _check_shape(header, path)
        size = math.prod(shape) * dtype.itemsize
        lying = info.file_size > _MOST_DEFLATED * info.compress_size + 64
        if not dtype.hasobject and (start + size != info.file_size or lying):
            raise TableError(f"{path}: array {shown(name)} is not as long as it says")
        headers[name] = header
    if not headers:
        raise TableError(f"{path}: the archive holds no array")
    return headers


def _check_shape(array: _Header | NDArray, path: Path) -> None:
    """Raise if an array of no bytes could have any number of rows or columns."""
    if 0 in array.shape or array.dtype.itemsize == 0:
        raise TableError(
            f"{path}: there is nothing in an array of shape {array.shape} and type {array.dtype}"
        )


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


def _picked(array: NDArray, wanted: Sequence[str], columns: Sequence[str], path: Path) -> NDArray:
    """The wanted columns as features; the array itself where they are all, in order."""
    if tuple(wanted) != tuple(columns):
        place = {name: i for i, name in enumerate(columns)}
        array = array[:, [place[name] for name in wanted]]
    return as_features(array, path)
