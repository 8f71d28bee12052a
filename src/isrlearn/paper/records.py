"""Append-only records of benchmark runs, one line per finished cell.

A record file is JSON lines. Its first line is a header naming the schema and the experiment;
every further line is one :class:`Record`. A line is written whole, flushed and synced before the
run continues, so a run that is killed loses at most the cell it was working on.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, TypeVar

from isrlearn.io.files import atomic_write

SCHEMA = "isrlearn-benchmark/1"
Item = TypeVar("Item")
Name = TypeVar("Name")


class RecordError(ValueError):
    """A record file that cannot be used as it is; the message says what to do."""


@dataclass(frozen=True)
class CellKey:
    """What was run: one method on one data set, at one number of environments and one seed."""

    dataset: str  # the panel, such as "3s'" or "k=3"
    method: str
    n_environments: int
    seed: int  # of the data and of the method's initial weights
    optimizer: str  # "converged" or "published"; on real data, the objective of the network
    parameters: Mapping[str, Any] = field(default_factory=dict)  # of the method
    options: Mapping[str, Any] = field(default_factory=dict)  # what else determines the result

    @property
    def id(self) -> str:
        """Sixteen hexadecimal digits that depend on the contents of the key only."""
        text = json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Failure:
    """A cell that raised an error; it is not recorded, so that the next run tries it again."""

    key: CellKey
    message: str


@dataclass(frozen=True)
class Record:
    """The outcome of one cell: classification or mean squared errors, infinite if it diverged."""

    key: CellKey
    value: float  # mean test error over the environments
    validation: float  # the same on the validation split, by which hyper-parameters are chosen
    per_environment: list[float]  # test errors
    seconds: float  # duration of the fit
    warnings: list[str] = field(default_factory=list)  # distinct ones of the fit
    versions: Mapping[str, str] = field(default_factory=dict)  # of isrlearn and its dependencies
    chosen: Mapping[str, Any] = field(default_factory=dict)  # settings, by the validation split

    def line(self) -> str:
        """One line of JSON, without the newline; null stands for an infinite error."""
        fields = _errors(asdict(self), lambda error: None if error == math.inf else error)
        return json.dumps({"id": self.key.id, **fields}, allow_nan=False)

    @classmethod
    def from_line(cls, line: str) -> Record:
        """The record of a line; ValueError or KeyError if the line is not a record."""
        fields = json.loads(line)
        if not isinstance(fields, dict):
            raise ValueError("not a JSON object")
        stated = fields.pop("id")
        fields = _errors(fields, lambda error: math.inf if error is None else float(error))
        record = cls(**{**fields, "key": CellKey(**fields["key"])})
        if record.key.id != stated:
            raise ValueError(f"id {stated!r} does not belong to its key")
        return record


def _errors(fields: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The fields with every error changed."""
    each = [change(error) for error in fields["per_environment"]]
    found = {name: change(fields[name]) for name in ("value", "validation")}
    return {**fields, **found, "per_environment": each}


def grouped(items: Iterable[Item], by: Callable[[Item], Name]) -> dict[Name, list[Item]]:
    """The items with each value of a function, in order."""
    groups: dict[Name, list[Item]] = {}
    for item in items:
        groups.setdefault(by(item), []).append(item)
    return groups


def read_records(path: Path | str) -> dict[str, Record]:
    """Records of a file by their id, in the order they were written; the file is not changed.

    A truncated last line is skipped with a warning.

    Examples
    --------
    >>> read_records("no-such-run/results.jsonl")
    {}
    """
    path = Path(path)
    return _parsed(path, path.read_bytes())[1] if path.exists() else {}


class RecordFile:
    """The records of one run, open for appending by this process alone, or RecordError."""

    def __init__(self, directory: Path | str, experiment: str, command: str = "") -> None:
        self.path = Path(directory) / "results.jsonl"
        self._header = {"schema": SCHEMA, "experiment": experiment, "command": command}
        self.by_id: dict[str, Record] = {}

    def __enter__(self) -> RecordFile:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            lock = stack.enter_context(open(self.path.parent / ".lock", "w"))
            try:
                _lock(lock)
            except BlockingIOError:
                raise RecordError(
                    f"another run is writing to {self.path.parent}: wait for it, or choose another "
                    "directory"
                ) from None
            self._open()
            stack.callback(os.close, self._fd)
            self._held = stack.pop_all()
        return self

    def _open(self) -> None:
        if not self.path.exists():
            self._write([json.dumps(self._header)])
        content = self.path.read_bytes()
        header, self.by_id = _parsed(self.path, content)
        if header["experiment"] != self._header["experiment"]:
            raise RecordError(
                f"{self.path} holds records of {header['experiment']!r}, not of "
                f"{self._header['experiment']!r}: choose another output directory"
            )
        # A damaged end is repaired by writing what could be parsed.
        if not content.endswith(b"\n") or content.count(b"\n") != 1 + len(self.by_id):
            self._write([json.dumps(header), *(r.line() for r in self.by_id.values())])
        self._fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))

    def _write(self, lines: list[str]) -> None:
        with atomic_write(self.path) as file:
            file.write("".join(line + "\n" for line in lines).encode())

    def append(self, record: Record) -> None:
        """Write one record and wait until it is on the disk."""
        data = (record.line() + "\n").encode()
        # One write call per line, so that a signal cannot interrupt inside a line.
        written = os.write(self._fd, data)
        if written != len(data):
            raise OSError(f"{self.path}: only {written} of {len(data)} bytes written: disk full?")
        os.fsync(self._fd)
        self.by_id[record.key.id] = record

    def __exit__(self, *error: object) -> None:
        self._held.close()


def _lock(file: IO[str]) -> None:
    """Lock an open file, until it is closed or the process ends, or raise BlockingIOError."""
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


def _parsed(path: Path, content: bytes) -> tuple[dict[str, Any], dict[str, Record]]:
    """Header and records of a file; a bad last line is dropped with a warning."""
    lines = content.removesuffix(b"\n").split(b"\n")
    header = _header(path, lines[0])
    by_id: dict[str, Record] = {}
    for number, line in enumerate(lines[1:], start=2):
        try:
            record = Record.from_line(line.decode())
        except (ValueError, KeyError, TypeError) as error:
            if number < len(lines):
                raise RecordError(
                    f"{path}, line {number} is not a record ({error}). It is not the last line, so "
                    "no interruption caused this; remove it by hand or start a new directory"
                ) from None
            warnings.warn(
                f"{path}: the last line was cut off ({len(line)} bytes) and is dropped; "
                "its cell will be run again",
                stacklevel=4,
            )
        else:
            by_id[record.key.id] = record
    return header, by_id


def _header(path: Path, line: bytes) -> dict[str, Any]:
    """The header line, checked for its schema."""
    try:
        header = json.loads(line)
        schema = header["schema"]
    except (ValueError, KeyError, TypeError):
        raise RecordError(
            f"{path} does not begin with a header of schema {SCHEMA!r}: "
            "it is not a record file; choose another output directory"
        ) from None
    if schema != SCHEMA:
        raise RecordError(
            f"{path} has schema {schema!r}, this version reads {SCHEMA!r}: "
            "choose another output directory, or use the version of isrlearn that wrote it"
        )
    return dict(header)
