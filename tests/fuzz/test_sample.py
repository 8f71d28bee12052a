"""A sample of the damaged files of ``make fuzz``."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

FUZZ = runpy.run_path(str(Path(__file__).with_name("files.py")))


@pytest.mark.parametrize("part", range(5))
def test_damaged_files_are_refused_or_loaded_correctly(tmp_path, part):
    seen = set()
    for i in range(50 * part, 50 * part + 50):
        folder = tmp_path / str(i)
        folder.mkdir()
        name, outcome, fault = FUZZ["check"](i, folder)
        assert fault is None, f"file {i}, {name}: {fault}"
        seen.add(outcome)
    assert {"refused", "loaded"} <= seen


def test_a_fault_is_noticed(tmp_path):
    """The limits of memory and the classes of errors are really checked."""

    def make(rng, folder):
        return FUZZ["write"](folder, "f", b"x")

    def greedy(path, rng):
        return "loaded" if bytearray(b"x" * (300 << 20)) else ""

    def wrong(path, rng):
        raise KeyError("not ours")

    cases, kept = FUZZ["CASES"], dict(FUZZ["CASES"])
    try:
        for load, fault in {greedy: "MB for a file of 1 bytes", wrong: "KeyError"}.items():
            cases.clear()
            cases["f"] = make, load, ValueError, 1
            assert fault in FUZZ["check"](0, tmp_path)[2]
    finally:
        cases.clear()
        cases.update(kept)
