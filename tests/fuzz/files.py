"""Damaged and hostile model files and tables: each is loaded correctly or refused by our error.

Run as a script for many of them: ``python tests/fuzz/files.py 40000``; ``--first 123`` repeats from
file 123. A sample is part of the suite (``test_sample.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import csv
import gzip
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import safetensors.numpy
import zarr
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import isrlearn
from isrlearn import ISRClassifier, TablePreparer
from isrlearn.io import ModelFileError, TableError, read_table
from isrlearn.io import model as model_module

#: Limits of one file: processor seconds, seconds until it counts as hanging, bytes beside 8 times
#: its size, and bytes of address space that stop a process before the machine suffers.
SECONDS, HANGING, BYTES, SPACE = 5.0, 600, 200 << 20, 8 << 30

Rng = np.random.Generator
Tree = Any  # nested lists and dicts

# ---------------------------------------------------------------------------------------------
# Sound files


@lru_cache
def sample() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, classes and environments of 60 rows."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(60) % 2, "cow", "camel")
    e = np.where(np.arange(60) % 4 < 2, "grass", "sand")
    X = rng.standard_normal((60, 4)).astype(np.float32)
    X[:, 0] += y == "cow"
    X[:, -1] += 3 * (e == "sand")
    return X, y, e


@lru_cache
def models() -> list[bytes]:
    """Two model files, and one with a preparation."""
    X, y, e = sample()
    found = []
    messy = {f"f{i}": X[:, i] for i in range(4)} | {
        "kind": np.array(["a", "b", ""])[np.arange(len(y)) % 3]
    }
    messy["f1"] = np.where(np.arange(len(y)) % 7, messy["f1"], np.nan)
    steps = make_pipeline(TablePreparer(), StandardScaler())
    Z = steps.fit_transform(messy)
    for settings in ({}, {"n_spurious": 1, "head": "lda"}, {"n_spurious": 2}):
        prepared = len(found) == 2
        model: Any = ISRClassifier(**settings).fit(Z if prepared else X, y, environments=e)
        names = None if prepared else list("abcd")
        model = make_pipeline(*steps.named_steps.values(), model) if prepared else model
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.isr"
            isrlearn.save(model, path, feature_names=names, metadata={"note": ["x", {"y": 1}]})
            found.append(path.read_bytes())
    return found


@lru_cache
def original() -> list[Any]:
    """What predictions of the first model depend on."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.isr"
        path.write_bytes(models()[0])
        return affine(isrlearn.load(path))


def affine(estimator: Any) -> list[Any]:
    estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    arrays = estimator.coef_, estimator.intercept_, estimator.classes_
    return [(array.tobytes(), array.shape) for array in arrays]


def parts(content: bytes) -> tuple[Tree, bytes]:
    """Header and data of a model file."""
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def joined(header: Tree, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def signed(arrays: dict[str, np.ndarray], record: Tree) -> bytes:
    """A model file with a valid hash, whatever its content: an attacker can compute it too."""
    if isinstance(record, dict):
        record = {name: value for name, value in record.items() if name != "sha256"}
        record["sha256"] = model_module._digest(arrays, record)
    return safetensors.numpy.save(arrays, {"isrlearn": json.dumps(record)})


def archive(arrays: dict[str, Any], compression: int = 0) -> bytes:
    """A .npz file; values are arrays, or the bytes of their files."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as members:
        for name, value in arrays.items():
            members.writestr(f"{name}.npy", value if isinstance(value, bytes) else npy(value))
    return file.getvalue()


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def parquet(columns: dict[str, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, **options)
    return file.getvalue()


@lru_cache
def tables() -> dict[str, bytes]:
    """The sample in every format that is one file."""
    X, y, e = sample()
    columns = {f"f{i}": X[:, i] for i in range(4)}
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow([*columns, "y", "e"])
    rows.writerows(zip(*(c.tolist() for c in (*columns.values(), y, e)), strict=True))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), 4)
    return {
        "t.csv": text.getvalue().encode(),
        "t.csv.gz": gzip.compress(text.getvalue().encode()),
        "t.parquet": parquet({**columns, "y": y, "e": e}),
        "lists.parquet": parquet({"f": lists, "y": y, "e": e}),
        "t.npz": archive({"X": X, "y": y, "e": e}),
        "z.npz": archive({"X": X, "y": y, "e": e}, zipfile.ZIP_DEFLATED),
        "t.npy": npy(X),
    }


# ---------------------------------------------------------------------------------------------
# Damage


def damaged(content: bytes, rng: Rng, other: bytes = b"") -> bytes:
    """Bytes flipped, overwritten, lost, added, moved, or spliced with those of another file."""
    out, n = bytearray(content), len(content)
    a, b = np.sort(rng.integers(n, size=2)).tolist()
    what = rng.integers(9)
    if what <= 1:
        for place in rng.integers(n, size=rng.integers(1, 6)):
            out[place] ^= 1 << int(rng.integers(8))
    elif what == 2:
        out[a : a + rng.integers(1, 64)] = rng.bytes(rng.integers(1, 64))
    elif what == 3:
        del out[a : min(b, a + 100) + 1]
    elif what == 4:
        del out[b:]
    elif what == 5:
        out += rng.bytes(rng.integers(1, 200))
    elif what == 6:
        out = out[a:b] + out[:a] + out[b:]
    elif what == 7:
        out[a:] = other[a:]
    else:  # a giant number
        width = int(rng.choice([2, 4, 8]))
        out[a : a + width] = int(rng.integers(1 << 8 * width - 2)).to_bytes(width, "little")
    return bytes(out)


WEIRD: list[Tree] = [
    *(None, True, -1, 0, 1, 10**9, 10**18, 10**30, 1e308, "", "x" * 1000, "nan", [], [[]], {}),
    *("ISRTransformer", "LinearSVC", "os.system", [0, 0], [10**6, 10**6], "<f8", "|O", "<U9"),
    {"pairs": [[1, 2]]},
    {"pairs": [[[], 2]]},
    {"tuple": [1, "a"]},
    {"estimator": ["LogisticRegression", {"C": 3}]},
    {"estimator": ["system", {"command": "touch x"}]},
    {"value": ["Eraser", {}]},
    {"array": ["coef_", "C"]},
    {"array": ["no_such", "C"]},
    {"labels": ["object", [None]]},
    {"labels": ["int8", [1, 2, 400]]},
    {"labels": ["str", ["a", "b", "b"]]},
    {"labels": ["str", ["a\0", "a"]]},
    {"labels": ["float64", [1, 2, 3]]},
    {"name": "gzip", "configuration": {"level": 99}},
    {"id": "pickle", "protocol": 5},
]


def nodes(tree: Tree, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value of nested lists and dicts."""
    yield path
    if isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield from nodes(tree[key], (*path, key))


def changed(tree: Tree, rng: Rng) -> Tree:
    """A tree with one value replaced, removed, duplicated or added."""
    tree = copy.deepcopy(tree)
    paths = list(nodes(tree))[1:]
    *above, last = paths[rng.integers(len(paths))]
    place = tree
    for key in above:
        place = place[key]
    what = rng.integers(8)
    if what == 0:
        del place[last]
    elif what == 1 and isinstance(place, list):
        place.append(place[last])
    elif what == 1:
        place["another"] = place[last]
    else:
        place[last] = WEIRD[rng.integers(len(WEIRD))]
    return tree


# ---------------------------------------------------------------------------------------------
# Cases: each writes a file into a folder and returns its path


def write(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def model_bytes(rng: Rng, folder: Path) -> Path:
    one, *_, other = models()
    if rng.integers(8) == 0:
        length = min(int(2 ** rng.uniform(0, 64)), 2**64 - 1)
        return write(folder, "m.isr", length.to_bytes(8, "little") + one[8:])
    return write(folder, "m.isr", damaged(one, rng, other))


def model_header(rng: Rng, folder: Path) -> Path:
    header, data = parts(models()[0])
    if rng.integers(2):
        return write(folder, "m.isr", joined(changed(header, rng), data))
    record = json.loads(header["__metadata__"]["isrlearn"])
    header["__metadata__"]["isrlearn"] = json.dumps(changed(record, rng))
    return write(folder, "m.isr", joined(header, data))


def model_signed(rng: Rng, folder: Path) -> Path:
    content = models()[rng.integers(3)]
    record = json.loads(parts(content)[0]["__metadata__"]["isrlearn"])
    arrays = {name: np.array(a) for name, a in safetensors.numpy.load(content).items()}
    for _ in range(rng.integers(1, 3)):
        record = changed(record, rng) if isinstance(record, dict) and record else record
    if rng.integers(2):
        name = list(arrays)[rng.integers(len(arrays))]
        array, what = arrays[name], rng.integers(6)
        if what == 0:
            del arrays[name]
        elif what == 1:
            arrays[f"{name}_"] = array
        elif what == 2 and array.size:
            array.flat[rng.integers(array.size)] = [np.nan, np.inf, 1e308][rng.integers(3)]
        elif what == 3:
            arrays[name] = array[None]
        elif what == 4:
            arrays[name] = np.zeros((0, *array.shape[1:]))
        else:
            arrays[name] = array.astype([np.float32, np.int64, np.float16][rng.integers(3)])
    return write(folder, "m.isr", signed(arrays, record))


def model_bomb(rng: Rng, folder: Path) -> Path:
    """Content with a valid hash that takes far more memory than the file, if it is believed."""
    content = models()[2]
    record = json.loads(parts(content)[0]["__metadata__"]["isrlearn"])
    arrays = safetensors.numpy.load(content)
    n, what = int(10 ** rng.uniform(3, 5.7)), rng.integers(6)
    if what == 0:
        labels = {"labels": ["str", ["a" * n, *map(str, range(n // 5))]]}
        fitted = record["state"]["fitted"]
        fitted["classes_"] = fitted["environments_"] = labels
        fitted["moments_"]["value"][1] |= {"classes": labels, "environments": labels}
    elif what == 1:
        record["metadata"] = {"x": [[] for _ in range(n)]}
    elif what == 2:
        record["state"]["parameters"] = {f"{i}": {} for i in range(n)}
    elif what == 3:
        record["feature_names"] = [f"{i}" for i in range(n)]
    elif what == 4:
        column = record["preparation"][0]["fitted"]["columns_"]["tuple"][-1]["value"][1]
        column |= {"name": "x" * n, "categories": {"tuple": [f"{i}" for i in range(n // 5)]}}
    else:
        arrays |= {f"{i}": np.zeros((0, 10**9)) for i in range(n // 10)}
    return write(folder, "m.isr", signed(arrays, record))


def table_bytes(rng: Rng, folder: Path) -> Path:
    names = list(tables())
    name = names[rng.integers(len(names))]
    return write(folder, name, damaged(tables()[name], rng, tables()["z.npz"]))


CELLS = [
    *("", " ", "nan", "inf", "-inf", "1e308", "1e-320", "0", "-0", "007", "9" * 400, "1_0", "0x10"),
    *("١٢", "'", '"', '""', '"unclosed', "a,b", "line\nbreak", "\r", "\x00", "=1+1", "True"),
    *("é" * 50, "\ufeff1", "\ud7ff", "f0", "Unnamed: 0", "x" * 5000),
]


def table_cells(rng: Rng, folder: Path) -> Path:
    table = [line.split(",") for line in tables()["t.csv"].decode().splitlines()]
    for _ in range(rng.integers(1, 5)):
        row, column = rng.integers(len(table)), rng.integers(len(table[0]))
        text, what = CELLS[rng.integers(len(CELLS))], rng.integers(6)
        if what == 0:
            for line in table[1:]:
                line[column % len(line)] = text
        elif what == 1:
            table = table[: row + 1]
        elif what == 2:
            table[row] = [*table[row], text]
        else:
            table[row][column % len(table[row])] = text
    name = "t.tsv" if rng.integers(8) == 0 else "t.csv"
    return write(folder, name, "\n".join(",".join(row) for row in table).encode())


DTYPES = [
    *("f2", "f4", "f8", ">f8", "f16", "i1", "u8", "?", "c16", "U3", ">U3", "S3", "V4", "M8[s]"),
    *("m8[s]", "O", "U0", "U250000000", "S1000000000", "V2000000000", "f4,i4", "(2,3)f8"),
]
SHAPES = ["()", "(60,)", "(60, 4)", "(0, 4)", "(60, 0)", "(-1, 4)", "(60, 4, 1)", "(10**9, 10**9)"]
SHAPES += ["(1000000000000, 0)", "(0, 1000000000000)", "(240, 1)", "60", "(6e1, 4)", "[60, 4]"]


def claimed(array: np.ndarray, rng: Rng) -> bytes:
    """The bytes of a .npy file whose header claims another type, shape or order."""
    kind = DTYPES[rng.integers(len(DTYPES))] if rng.integers(2) else array.dtype.str
    shape = SHAPES[rng.integers(len(SHAPES))] if rng.integers(2) else str(array.shape)
    order = bool(rng.integers(2))
    text = f"{{'descr': {kind!r}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    size = len(text) if rng.integers(10) else int(rng.integers(1 << 16))
    return b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little") + text + array.tobytes()


def table_arrays(rng: Rng, folder: Path) -> Path:
    X, y, e = sample()
    if rng.integers(3) == 0:
        return write(folder, "t.npy", claimed(X, rng))
    members: dict[str, Any] = {"X": X, "y": y, "e": e}
    for name in rng.choice(["X", "y", "e"], size=rng.integers(1, 4), replace=False):
        array, what = members[name], rng.integers(4)
        if what == 0:
            members[name] = claimed(array, rng)
        elif what == 1:
            members[name] = damaged(npy(array), rng, npy(X))
        elif what == 2:
            kind = np.dtype(["f2", ">f8", "i1", "?", "c16", "U3", "S3", "M8[s]"][rng.integers(8)])
            values = np.frombuffer(array.tobytes() * 8, dtype=kind, count=array.size)
            members[name] = values.reshape(array.shape)
        else:
            del members[name]
    members |= {"feature_names": np.array(CELLS[:4])} if rng.integers(4) == 0 else {}
    return write(folder, "t.npz", archive(members, int(rng.choice([0, 8, 12, 14]))))


def column(rng: Rng, n: int) -> Any:
    """A column of some type that Parquet knows."""
    nulls = rng.random(n) < 0.1
    makers = [
        lambda: pa.array(rng.standard_normal(n), mask=nulls),
        lambda: pa.array(rng.standard_normal(n).astype(np.float16)),
        lambda: pa.array(rng.integers(0, 3, n), mask=nulls),
        lambda: pa.array([str(i % 3) for i in range(n)]).dictionary_encode(),
        lambda: pa.array([b"\xff"] * n),
        lambda: pa.array([None] * n),
        lambda: pa.array([[1.0] * (i % 3) for i in range(n)]),
        lambda: pa.array([[None, 2.0]] * n),
        lambda: pa.array([{"a": 1}] * n),
        lambda: pa.array(np.arange(n)).cast(pa.timestamp("s")),
        lambda: pa.array(np.arange(n) % 2 == 0),
        lambda: pa.array(np.arange(n)).cast(pa.decimal128(30, 2)),
        lambda: pa.array(np.arange(n, dtype=np.uint64) + np.uint64(2**63)),
        lambda: pa.array(["\0", "a", "", " "] * (n // 4)),
    ]
    return makers[rng.integers(len(makers))]()


def table_columns(rng: Rng, folder: Path) -> Path:
    X, y, e = sample()
    columns = {f"f{i}": X[:, i] for i in range(4)} | {"y": y, "e": e}
    for name in rng.choice(list(columns), size=rng.integers(1, 3), replace=False):
        new = ["f_0", "__index_level_0__", "", "y "][rng.integers(4)]
        columns[name if rng.integers(4) else new] = column(rng, len(X))
    table = pa.table(columns)
    if rng.integers(3) == 0:
        about = WEIRD[rng.integers(len(WEIRD))]
        text = json.dumps({"index_columns": about} if rng.integers(2) else about)
        table = table.replace_schema_metadata({"pandas": text})
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=int(rng.integers(1, 80)))
    return write(folder, "t.parquet", file.getvalue())


def table_zarr(rng: Rng, folder: Path) -> Path:
    path, X = folder / "t.zarr", sample()[0]
    form = int(rng.integers(2, 4))
    array = zarr.create_array(
        store=str(path), shape=X.shape, chunks=(20, 4), dtype=X.dtype, zarr_format=form
    )
    array[:] = X
    about = path / ("zarr.json" if form == 3 else ".zarray")
    what = rng.integers(4)
    if what <= 1:
        tree = changed(json.loads(about.read_text()), rng)
        for key in ("shape", "chunks"):
            if key in tree and rng.integers(4) == 0:
                tree[key] = [int(10 ** rng.uniform(0, 12)), int(10 ** rng.uniform(0, 6))]
        about.write_text(json.dumps(tree))
    elif what == 2:
        about.write_bytes(damaged(about.read_bytes(), rng, b""))
    else:
        chunks = sorted(p for p in path.rglob("*") if p.is_file() and p != about)
        chunk = chunks[rng.integers(len(chunks))]
        chunk.write_bytes(damaged(chunk.read_bytes(), rng, chunks[0].read_bytes()))
    (folder / "t.labels.csv").write_bytes(
        b"y,e\n" + b"".join(f"{y},{e}\n".encode() for y, e in zip(*sample()[1:], strict=True))
    )
    return path


def table_bomb(rng: Rng, folder: Path) -> Path:
    """Small files that hold, or claim to hold, very much."""
    n, what = int(10 ** rng.uniform(3, 5.5)), rng.integers(10)
    deflated = zipfile.ZIP_DEFLATED
    if what == 0:  # one long line
        return write(folder, "t.csv", ",".join(f"a{i}" for i in range(n)).encode() + b"\n1,2\n")
    if what == 1:  # many columns of numbers
        text = ",".join(f"a{i}" for i in range(n)) + ",y,e\n" + 2 * ("12," * n + "a,b\n")
        return write(folder, "t.csv", text.encode())
    if what == 2:  # one long label, many others
        text = (
            "x,y,e\n"
            + f"1,{'a' * min(n, 131_000)},b\n"
            + "".join(f"1,{i},{i % 7}\n" for i in range(n))
        )
        return write(folder, "t.csv", text.encode())
    if what == 3:
        kind = ["S", "U"][rng.integers(2)]
        labels = np.zeros(n, dtype=f"{kind}{100_000_000 // (n * (4 if kind == 'U' else 1))}")
        return write(folder, "t.npz", archive({"X": np.ones((n, 1)), "y": labels}, deflated))
    if what == 4:
        zeros = np.zeros((n, min(1000, 150_000_000 // (8 * n))))
        return write(folder, "t.npz", archive({"X": zeros, "y": np.arange(n) % 2}, deflated))
    if what == 5:
        days = np.arange(n).astype("M8[s]")
        return write(folder, "t.npz", archive({"X": np.ones((n, 1)), "y": days, "e": days}))
    if what == 6:  # run lengths
        values = {"v": np.zeros(30 * n), "y": np.zeros(30 * n, dtype=int)}
        return write(folder, "t.parquet", parquet({**values, "e": values["y"]}))
    if what == 7:
        text = pa.DictionaryArray.from_arrays(np.zeros(n, dtype=np.int32), ["x" * n])
        return write(folder, "t.parquet", parquet({"v": np.zeros(n), "y": text, "e": text}))
    if what == 8:
        line = b"0,a,b\n" if rng.integers(2) else b"0,"
        return write(folder, "t.csv.gz", gzip.compress(b"x,y,e\n" + 100 * n * line))
    path = folder / "t.zarr"
    shape = n * int(10 ** rng.uniform(0, 6)), int(10 ** rng.uniform(0, 6))
    zarr.create_array(store=str(path), shape=shape, chunks=shape, dtype="f8")
    return path


def load_model(path: Path, rng: Rng) -> str:
    estimator = isrlearn.load(path)
    if isinstance(estimator, Pipeline):
        columns = getattr(estimator[0], "feature_names_in_", range(estimator[0].n_features_in_))
        row: Any = {name: np.array([None, "b"]) for name in columns}
        if not isinstance(estimator[0], TablePreparer):  # a scaler takes arrays alone
            row = np.zeros((2, len(columns)))
        with contextlib.suppress(ValueError):  # "b" is not a number
            estimator.predict(row)
    return "same" if affine(estimator) == original() else "other"


def load_unsigned(path: Path, rng: Rng) -> str:
    if load_model(path, rng) != "same":
        raise AssertionError("a model without a valid hash was loaded")
    return "same"


def load_table(path: Path, rng: Rng) -> str:
    beside = path.suffix in (".npy",)
    roles = {} if beside else {"label": "y", "environment": "e"}
    prepare = TablePreparer() if rng.integers(2) else None
    table = read_table(path, **roles, stream=bool(rng.integers(2)), prepare=prepare)
    X = np.asarray(table.X[: len(table)])
    n = len(table)
    if X.shape != (n, len(table.feature_names)) or X.dtype not in (np.float32, np.float64):
        raise AssertionError(f"{X.shape} {X.dtype}")
    if not beside and not n == len(table.y) == len(table.environments):
        raise AssertionError("lengths differ")
    return "loaded"


Case = tuple[Callable[[Rng, Path], Path], Callable[[Path, Rng], str], type[Exception], int]
#: What writes a file, what loads it, the error that may refuse it, and how often it is drawn.
#: Another kind of file is one more entry.
CASES: dict[str, Case] = {
    "model bytes": (model_bytes, load_unsigned, ModelFileError, 20),
    "model header": (model_header, load_unsigned, ModelFileError, 12),
    "model signed": (model_signed, load_model, ModelFileError, 16),
    "model bomb": (model_bomb, load_model, ModelFileError, 1),
    "table bytes": (table_bytes, load_table, TableError, 20),
    "table cells": (table_cells, load_table, TableError, 10),
    "table arrays": (table_arrays, load_table, TableError, 10),
    "table columns": (table_columns, load_table, TableError, 6),
    "table zarr": (table_zarr, load_table, TableError, 4),
    "table bomb": (table_bomb, load_table, TableError, 1),
}


# ---------------------------------------------------------------------------------------------
# Running


def memory(entry: str) -> int:
    """Bytes of VmRSS (now) or VmHWM (at most) of this process; 0 where that is not known."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(entry)), 0)


def reset_peak() -> int:
    """Forget the peak so far; the memory that is in use now."""
    if os.path.exists("/proc/self/clear_refs"):
        Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def size_of(path: Path) -> int:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return sum(file.stat().st_size for file in files)


def check(i: int, folder: Path, seed: int = 0) -> tuple[str, str, str | None]:
    """Name of case i, its outcome, and what is wrong with it, if anything."""
    rng = np.random.default_rng([seed, i])
    weights = np.array([case[-1] for case in CASES.values()], dtype=float)
    name = list(CASES)[rng.choice(len(CASES), p=weights / weights.sum())]
    make, load, refusal, _ = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path, fault = make(rng, folder), None
        before, start = reset_peak(), time.process_time()
        try:
            outcome = load(path, rng)
        except refusal as error:
            outcome = "refused"
            if "\n" in str(error) or len(str(error)) > 1500:
                fault = f"a message of {len(str(error))} characters: {str(error)[:100]!r}"
        except Exception as error:
            outcome, fault = "fault", f"{type(error).__name__}: {str(error)[:200]}"
    seconds, used = time.process_time() - start, memory("VmHWM") - before
    if used > 8 * size_of(path) + BYTES:
        fault = f"{used >> 20} MB for a file of {size_of(path)} bytes ({outcome})"
    if seconds > SECONDS:
        fault = f"{seconds:.1f} s for a file of {size_of(path)} bytes ({outcome})"
    return name, outcome, fault


def run(first: int, last: int, seed: int, report: Callable[[str], None]) -> None:
    """Check cases of one process: one line of JSON per case, and one before it."""
    resource.setrlimit(resource.RLIMIT_AS, (SPACE, SPACE))
    for i in range(first, last):
        report(json.dumps([i]))
        signal.alarm(HANGING)
        with tempfile.TemporaryDirectory() as folder:
            report(json.dumps([i, *check(i, Path(folder), seed)]))
    signal.alarm(0)


def supervised(first: int, last: int, seed: int) -> Iterator[list[Any]]:
    """Results of `run` in a process of its own, which is started again after a crash."""
    while first < last:
        command = [sys.executable, __file__, str(last), "--first", str(first), "--seed", str(seed)]
        child = subprocess.Popen([*command, "--child"], stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        for line in child.stdout:
            i, *result = json.loads(line)
            first = i + 1
            if result:
                yield [i, *result]
        if child.wait():
            yield [first - 1, "?", "crash", f"the process ended with {child.returncode}"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("last", type=int, nargs="?", default=40_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help="print one line of JSON per file")
    given = parser.parse_args()
    if given.child:
        run(given.first, given.last, given.seed, lambda line: print(line, flush=True))
        return 0
    seen: Counter[tuple[str, str]] = Counter()
    faults, start = [], time.monotonic()
    for i, name, outcome, fault in supervised(given.first, given.last, given.seed):
        seen[name, outcome] += 1
        if fault:
            faults.append(f"file {i}, {name}: {fault}")
            print(faults[-1], flush=True)
        if (i + 1) % 1000 == 0:
            print(f"{i + 1} of {given.last}, {time.monotonic() - start:.0f} s", flush=True)
    for (name, outcome), n in sorted(seen.items()):
        print(f"{name:15} {outcome:8} {n:6}")
    seconds = time.monotonic() - start
    print(f"{sum(seen.values())} files in {seconds:.0f} s, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())
