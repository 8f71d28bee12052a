"""What the tests of the commands share."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest


@pytest.fixture
def isr_process():
    """Runs ``isr`` in a fresh interpreter: its outcome and the processor seconds it took.

    Processor time, because the time on the clock is that of everything else on the machine.
    """

    def run(*arguments):
        code = f"from isrlearn.cli import main; main({list(arguments)!r})"
        before = _seconds()
        outcome = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        return outcome, _seconds() - before

    return run


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
