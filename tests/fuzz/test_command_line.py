"""A sample of the sequences of commands of ``make fuzz``, and that a fault would be noticed."""

from __future__ import annotations

import os
import runpy
from pathlib import Path

import pytest

pytest.importorskip("onnx")
if not hasattr(os, "fork"):
    pytest.skip("commands are interrupted in forked processes", allow_module_level=True)

FUZZ = runpy.run_path(str(Path(__file__).with_name("command_line.py")))


def test_sequences_of_commands_lose_nothing():
    FUZZ["sequences"](12, derandomize=True)
    commands = {command for command, code in FUZZ["SEEN"] if code == 0}
    assert len(commands) >= 3, "too few commands succeeded for the sample to say anything"


def half_file(arguments):
    Path("new.isr").write_bytes(b"half")


def lost_input(arguments):
    Path("t.csv").unlink()


def left_behind(arguments):
    Path(".new.isr.0.part").touch()


def traceback(arguments):
    print("Traceback (most recent call last)")


@pytest.mark.parametrize("fault", [half_file, lost_input, left_behind, traceback])
def test_a_fault_is_noticed(monkeypatch, fault):
    def run(arguments):
        fault(arguments)
        return 2

    monkeypatch.setitem(FUZZ["called"].__globals__, "run", run)
    with pytest.raises(AssertionError):
        FUZZ["sequences"](20, derandomize=True)
