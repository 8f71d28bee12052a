"""Outcomes do not depend on the number of processes, and a lost process is noticed."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest

from isrlearn.paper.records import CellKey, Failure, Record, RecordFile
from isrlearn.paper.runner import complete, outcomes
from isrlearn.progress import terminated_as_interrupted


def test_several_processes_yield_what_one_does():
    tasks = [3, 1, 4, 1, 5, 0, 2]
    assert sorted(outcomes(range, tasks, 2)) == sorted(outcomes(range, tasks, 1))


def test_nothing_to_do_yields_nothing():
    assert list(outcomes(range, [], 4)) == []


def test_a_process_that_dies_is_an_error():
    with pytest.raises(RuntimeError, match="a worker process died"):
        list(outcomes(os._exit, [7, 7], 2))


def test_an_error_in_a_process_is_raised():
    with pytest.raises(json.JSONDecodeError):
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


def key(seed, dataset="3s", method="erm"):
    return CellKey(dataset, method, 2, seed, "converged")


def test_cells_that_share_their_data_are_run_together_and_each_one_once(tmp_path):
    keys = [key(s, d, m) for m in ("erm", "iga") for d in ("2", "3s") for s in (1, 0)]
    run = []

    def work(cells):
        run.append(cells)
        return [Record(cell, 0.5, 0.0, [0.5], 0.1) for cell in cells]

    with RecordFile(tmp_path, "example") as records:
        complete(records, keys * 2, work, group=lambda key: (key.seed, key.dataset))
        assert [(cell.seed, cell.dataset) for cells in run for cell in cells] == sorted(
            (cell.seed, cell.dataset) for cell in keys
        )
        assert [len(cells) for cells in run] == [2, 2, 2, 2]
        assert set(records.by_id) == {cell.id for cell in keys}


def test_failures_are_returned_and_not_recorded(tmp_path):
    def work(cells):
        return [Failure(cell, "ValueError: no") for cell in cells]

    with RecordFile(tmp_path, "example") as records:
        (failure,) = complete(records, [key(0)], work, group=lambda key: key.seed)
        assert failure.key == key(0)
        assert not records.by_id


def test_on_a_terminal_the_bar_counts_cells(tmp_path, capfd, monkeypatch):
    def work(cells):
        return [Record(cell, 0.5, 0.0, [0.5], 0.1) for cell in cells]

    with RecordFile(tmp_path, "example") as records:
        complete(records, [key(0)], work, group=lambda key: key.seed)
        assert capfd.readouterr() == ("", "")
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        complete(records, [key(0), key(1)], work, group=lambda key: key.seed, label="fits")
    shown = capfd.readouterr().err
    assert "fits" in shown
    assert "2/2" in shown


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_finaliser_is_not_lost(number, capsys):
    class Closing:
        def __del__(self):
            signal.raise_signal(number)

    def finalised():
        with terminated_as_interrupted():
            held = Closing()
            del held
            time.sleep(5)

    # As in a new process: a test that ran here before may have left SIGINT ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            finalised()
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr().err == ""
