"""Outcomes do not depend on the number of processes, and a lost process is noticed."""

from __future__ import annotations

import json
import os
import signal

import pytest

from isrlearn.paper.runner import outcomes, progress, terminated_as_interrupted

# With several jobs the work is looked up by name in fresh processes: builtins are there too.


def test_several_processes_yield_what_one_does():
    tasks = [3, 1, 4, 1, 5, 0, 2]
    assert sorted(outcomes(range, tasks, 2)) == sorted(outcomes(range, tasks, 1))


def test_nothing_to_do_yields_nothing():
    assert list(outcomes(range, [], 4)) == []


def test_a_process_that_dies_is_an_error_with_its_exit_code():
    with pytest.raises(RuntimeError, match="exit code 7"):
        list(outcomes(os._exit, [7, 7], 2))


def test_an_error_in_a_process_is_raised_with_its_traceback():
    with pytest.raises(RuntimeError, match="JSONDecodeError"):
        list(outcomes(json.loads, ["no json", "no json"], 2))


def test_the_number_of_jobs_must_be_positive():
    with pytest.raises(ValueError, match="n_jobs=0"):
        list(outcomes(range, [1], 0))


def test_a_consumer_that_stops_early_leaves_no_process_behind():
    import multiprocessing

    found = outcomes(range, [10, 10, 10], 2)
    next(found)
    found.close()
    assert multiprocessing.active_children() == []


def test_sigterm_interrupts_and_the_old_handler_comes_back():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), terminated_as_interrupted():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_no_bar_is_drawn_when_output_is_no_terminal(capfd):
    with progress(3, "cells") as advance:
        advance()
    assert capfd.readouterr() == ("", "")


def test_on_a_terminal_the_bar_counts_cells_and_tells_the_time_left(capfd, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with progress(4, "cells", done=1) as advance:
        advance()
    shown = capfd.readouterr().err
    assert "cells" in shown
    assert "2/4" in shown
