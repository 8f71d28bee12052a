"""The safetensors format: a header of JSON, then arrays, and nothing that could run.

Eight bytes say how long the header is, the header where each array lies. Reading is stricter
than the format asks: sizes are compared with the file's before anything is allocated, a key may
stand once, arrays of float64 or float32 follow one another without gap or overlap.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from isrlearn.io.errors import ModelFileError, shown

#: Longest header: room for the names of hundreds of thousands of features.
MAX_HEADER = 1 << 24
_DTYPES: dict[str, np.dtype[Any]] = {"F64": np.dtype("<f8"), "F32": np.dtype("<f4")}
_NAME_OF = {dtype: name for name, dtype in _DTYPES.items()}
_MAX_ARRAYS, _MAX_DIMENSIONS = 64, 4
_METADATA = "__metadata__"


def write_arrays(
    file: BinaryIO, arrays: Mapping[str, NDArray], metadata: Mapping[str, str]
) -> None:
    """Write arrays, in C order, and metadata to an open file."""
    header: dict[str, Any] = {_METADATA: dict(metadata)}
    start = 0
    for name, array in arrays.items():
        stop = start + array.nbytes
        header[name] = {
            "dtype": _NAME_OF[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [start, stop],
        }
        start = stop
    text = json.dumps(header, separators=(",", ":")).encode()
    # Arrays start at a multiple of eight bytes, so that they can be mapped.
    text += b" " * (-len(text) % 8)
    if len(text) > MAX_HEADER:
        raise ModelFileError(
            f"names and metadata take {len(text)} bytes; a model file has room for {MAX_HEADER}"
        )
    file.write(len(text).to_bytes(8, "little") + text)
    for array in arrays.values():
        file.write(np.ascontiguousarray(array).data)


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray], dict[str, str]]:
    """Arrays and metadata of a file; ModelFileError unless it is sound."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = int.from_bytes(start, "little")
        if len(start) < 8 or length > min(size - 8, MAX_HEADER):
            raise ModelFileError(_other_kind(start, size))
        header = read_json(file.read(length), "header")
        if not isinstance(header, dict):
            raise ModelFileError("the header is no JSON object")
        metadata = _checked_metadata(header.pop(_METADATA, {}))
        places = _checked_places(header, size - 8 - length)
        # Not more than the file holds, which the places just were compared with.
        data = file.read(size - 8 - length)
    if len(data) != size - 8 - length:
        raise ModelFileError("the file became shorter while it was read")
    arrays = {
        name: np.frombuffer(data, dtype, math.prod(shape), begin).reshape(shape).copy()
        for name, (dtype, shape, begin) in places.items()
    }
    return arrays, metadata


def read_json(text: str | bytes, what: str) -> Any:
    """What a JSON text says, if it says each thing once and names no NaN."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        reason = "too deeply nested" if isinstance(error, RecursionError) else shown(str(error))
        raise ModelFileError(f"the {what} is not sound JSON: {reason}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _other_kind(start: bytes, size: int) -> str:
    """What a file is whose first bytes are no length of a header."""
    if start[:1] == b"\x80" and start[1:2] <= b"\x05":
        return "this is a pickle, which could run any code: nothing was loaded"
    if start.startswith(b"PK\x03\x04"):
        return (
            "this is an archive: if skops wrote it, open it with "
            "skops.io.load(path, trusted=isrlearn.io.TRUSTED_TYPES)"
        )
    return f"this is no model file, or a damaged one ({size} bytes that begin with {start!r})"


def _checked_metadata(metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ModelFileError("the header's metadata must be texts with names")
    return metadata


def _checked_places(
    header: dict[str, Any], size: int
) -> dict[str, tuple[np.dtype, tuple[int, ...], int]]:
    """Type, shape and first byte of each array; they must fill the file exactly."""
    if len(header) > _MAX_ARRAYS:
        raise ModelFileError(f"there are {len(header)} arrays; a model has {_MAX_ARRAYS} at most")
    places = {name: _place(name, entry, size) for name, entry in header.items()}
    end = 0
    sizes = {name: dtype.itemsize * math.prod(shape) for name, (dtype, shape, _) in places.items()}
    # Of arrays that start at one byte all but one are empty: those come first.
    for name in sorted(places, key=lambda name: (places[name][2], sizes[name])):
        if places[name][2] != end:
            raise ModelFileError(f"there is a gap or an overlap before array {shown(name)}")
        end += sizes[name]
    if end != size:
        raise ModelFileError(
            f"the arrays take {end} bytes and the file holds {size}: it is cut off or damaged"
        )
    return places


def _place(name: str, entry: Any, size: int) -> tuple[np.dtype, tuple[int, ...], int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise ModelFileError(f"array {shown(name)} is not described by type, shape and offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in _DTYPES:
        raise ModelFileError(f"array {shown(name)} has type {shown(kind)}; known are F64 and F32")
    for numbers in (shape, offsets):
        whole = isinstance(numbers, list) and all(type(i) is int and i >= 0 for i in numbers)
        if not whole or len(numbers) > _MAX_DIMENSIONS:
            raise ModelFileError(f"array {shown(name)} has a shape or offsets that are none")
    # Python's integers do not overflow: no product of sizes can wrap to a small one.
    if len(offsets) != 2 or offsets[1] > size:
        raise ModelFileError(f"array {shown(name)} lies outside the file: it is cut off or damaged")
    if offsets[1] - offsets[0] != math.prod(shape) * _DTYPES[kind].itemsize:
        raise ModelFileError(f"array {shown(name)} is not as long as its shape says")
    if any(i > size for i in shape):
        raise ModelFileError(f"array {shown(name)} has no elements and an impossible shape")
    return _DTYPES[kind], tuple(shape), offsets[0]
