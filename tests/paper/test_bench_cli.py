"""``isr bench`` from end to end: every experiment, interrupted and resumed, on bad input."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

import isrlearn
from isrlearn.cli.app import run
from isrlearn.cli.bench import numbers
from isrlearn.paper import METHODS, read_records

SMALL = ["--seeds", "2", "--environments", "2,4", "--samples", "300", "--trials", "2"]
FILES = ["figure.png", "figure.svg", "results.csv", "results.jsonl", "summary.csv", "table.md"]


def files(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if not path.name.startswith("."))


@pytest.mark.parametrize(
    ("experiment", "datasets", "n_methods"),
    [("linear-unit-tests", "2s,3'", 11), ("multiclass", "k=3", 5), ("regression", "d_s=3", 6)],
)
def test_each_experiment_writes_records_tables_and_figures(
    tmp_path, capsys, experiment, datasets, n_methods
):
    arguments = ["bench", experiment, "--datasets", datasets, *SMALL, "--out", str(tmp_path)]
    assert run(arguments) == 0
    assert files(tmp_path) == FILES
    printed = capsys.readouterr().out
    assert printed.count("Oracle") == len(datasets.split(","))
    page = (tmp_path / "table.md").read_text()
    words = shlex.split(re.search("Made by `(.*)`", page)[1])  # as a shell reads the name 3'
    assert words[:7] == ["isr", "bench", experiment, "--seeds", "2", "--datasets", datasets]
    summary = (tmp_path / "summary.csv").read_text().splitlines()
    assert len(summary) == 1 + len(datasets.split(",")) * n_methods * 2


def test_json_goes_to_standard_output_alone(tmp_path, capsys):
    arguments = ["linear-unit-tests", "--datasets", "3s", "--methods", "erm,oracle", *SMALL]
    assert run(["bench", *arguments, "--no-figures", "--json", "--out", str(tmp_path)]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {s["method"] for s in content["summaries"]} == {"erm", "oracle"}
    assert content["failures"] == []
    assert files(tmp_path) == ["results.csv", "results.jsonl", "summary.csv", "table.md"]


def test_comparing_prints_a_verdict_and_draws_the_published_curves(tmp_path, capsys):
    arguments = ["--datasets", "3s", "--methods", "oracle,erm", "--compare", "published", *SMALL]
    assert run(["bench", "linear-unit-tests", *arguments, "--out", str(tmp_path)]) == 0
    assert "Agreement with the published means" in capsys.readouterr().out
    assert "Agreement with the published means" in (tmp_path / "table.md").read_text()
    assert "Oracle, published" in (tmp_path / "figure.svg").read_text()


def test_the_published_optimiser_runs_the_published_parameters(tmp_path, capsys):
    arguments = ["--datasets", "3s", "--environments", "2", "--seeds", "1", "--samples", "50"]
    command = ["bench", "linear-unit-tests", *arguments, "--optimizer", "published"]
    assert run([*command, "--methods", "andmask", "--out", str(tmp_path)]) == 0
    (record,) = read_records(tmp_path / "results.jsonl").values()
    assert record.key.optimizer == "published"
    assert record.key.parameters["agreement"] == pytest.approx(0.92265600)


def test_theory_prints_the_bound_beside_what_was_measured(tmp_path, capsys):
    command = ["bench", "theory", "--spurious", "3", "--classes", "2", "--repeats", "2"]
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(c["algorithm"], c["bound"], c["paper"]) for c in found] == [
        ("ISR-Mean", 4, 4),
        ("ISR-Cov", 2, 2),
        ("ISR-Multiclass", 3, 3),
        ("ISR-Regression", 4, 4),
    ]
    assert run([*command, "--out", str(tmp_path)]) == 0
    assert files(tmp_path) == ["results.csv", "table.md"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["linear-unit-tests", "--methods", "irm"], "unknown method 'irm'"),
        (["linear-unit-tests", "--datasets", "7"], "unknown data set '7'"),
        (["linear-unit-tests", "--environments", "9:2"], "'9:2'"),
        (["linear-unit-tests", "--environments", "1:3"], "at least 2"),
        (["linear-unit-tests", "--seeds", "0"], "0 is not in the range"),
        (["linear-unit-tests", "--jobs", "many"], "'many' is not a valid integer"),
        (["linear-unit-tests", "--optimizer", "sgd"], "'sgd' is not one of"),
        (["linear-unit-tests", "--compare", "mine"], "'mine' is not"),
        (["multiclass", "--methods", "isr-regression"], "cannot do the classification"),
        (["regression", "--methods", "isr-mean"], "cannot do the regression"),
        (["theory", "--classes", "1"], "at least 2 classes"),
        (["nonsense"], "No such command"),
    ],
)
def test_a_mistake_is_exit_code_2_and_says_what_it_is(tmp_path, capsys, arguments, message):
    assert run(["bench", *arguments, "--out", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert shown.out == ""
    assert not (tmp_path / "out").exists()


def test_numbers_are_a_range_or_a_list():
    found = [numbers(None, None, text) for text in ("2:5", "2,4,8", "3")]
    assert found == [(2, 3, 4, 5), (2, 4, 8), (3,)]


@pytest.mark.parametrize("text", ["", "a", "5:2", "2:3:4", "2,,3", "0:3", "-1"])
def test_text_that_names_no_numbers_is_refused(text):
    with pytest.raises(ValueError, match=r"2:10|from 1 to 10,000"):
        numbers(None, None, text)


def test_records_of_another_experiment_are_exit_code_2(tmp_path, capsys):
    command = ["--methods", "oracle", *SMALL, "--no-figures", "--out", str(tmp_path)]
    assert run(["bench", "multiclass", *command, "--datasets", "k=2"]) == 0
    assert run(["bench", "regression", *command, "--datasets", "d_s=3"]) == 2
    assert "holds records of 'multiclass'" in capsys.readouterr().err


def test_cells_that_fail_are_told_and_tried_again(tmp_path, capsys, monkeypatch):
    command = ["bench", "linear-unit-tests", "--datasets", "3s", "--methods", "erm,oracle", *SMALL]
    command += ["--no-figures", "--jobs", "1", "--out", str(tmp_path)]
    fails = replace(METHODS["erm"], build=lambda panel, E: 1 / 0)
    with monkeypatch.context() as patched:
        patched.setitem(METHODS, "erm", fails)
        assert run(command) == 1
    shown = capsys.readouterr().err
    assert "4 cells failed; first erm on 3s, seed 0: ZeroDivisionError" in shown
    assert {r.key.method for r in read_records(tmp_path / "results.jsonl").values()} == {"oracle"}
    assert run(command) == 0
    assert len(read_records(tmp_path / "results.jsonl")) == 8


def numbers_of(directory: Path) -> dict[str, tuple]:
    found = read_records(directory / "results.jsonl")
    return {i: (r.value, r.validation, r.per_environment) for i, r in found.items()}


def test_the_numbers_do_not_depend_on_the_number_of_jobs(tmp_path, capsys):
    command = ["bench", "linear-unit-tests", "--datasets", "2,3s'", *SMALL, "--no-figures"]
    for jobs in ("1", "2"):
        assert run([*command, "--jobs", jobs, "--out", str(tmp_path / jobs)]) == 0
    # Bitwise: the dictionaries hold floats.
    assert numbers_of(tmp_path / "1") == numbers_of(tmp_path / "2")
    one, two = (
        json.loads((tmp_path / jobs / "results.jsonl").read_text().splitlines()[0])
        for jobs in ("1", "2")
    )
    assert one == two


COMMAND = ["bench", "linear-unit-tests", "--datasets", "3s,3s'", "--methods"]
COMMAND += ["isr-mean,isr-cov,erm,irmv1,oracle", "--seeds", "6", "--environments", "2:5"]
COMMAND += ["--samples", "2000", "--trials", "3", "--search-seeds", "2", "--no-figures"]


def started(out: Path, jobs: int, until: int, *more: str) -> subprocess.Popen:
    """The command in a process of its own, once it has recorded some cells."""
    environment = {**os.environ, "PYTHONPATH": str(Path(isrlearn.__file__).parents[1])}
    command = [*COMMAND, *more, "--jobs", str(jobs), "--out", str(out)]
    # A shell that starts tests in the background has them ignore SIGINT.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += f"from isrlearn.cli import main; main({command})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    path = out / "results.jsonl"
    deadline = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") <= until:
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return process


@pytest.mark.slow
@pytest.mark.filterwarnings("always:.*the last line was cut off")
def test_a_killed_run_resumes_with_no_cell_lost_or_repeated(tmp_path, capsys):
    assert run([*COMMAND, "--out", str(tmp_path / "whole")]) == 0
    whole = numbers_of(tmp_path / "whole")
    out = tmp_path / "killed"
    path = out / "results.jsonl"
    process = started(out, jobs=2, until=10)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = path.read_bytes()
    kept = left.count(b"\n") - 1
    assert 10 <= kept < len(whole)
    # The end of a line that a kill could have cut off.
    path.write_bytes(left + b'{"id": "0123')
    capsys.readouterr()
    assert run([*COMMAND, "--out", str(out)]) == 0
    assert "the last line was cut off" in capsys.readouterr().err
    lines = path.read_bytes().splitlines()
    assert path.read_bytes().startswith(left)  # what was finished was not run again ...
    assert len(lines) - 1 == len({json.loads(line)["id"] for line in lines[1:]})  # ... nor twice
    assert numbers_of(out) == whole


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_in_order_and_says_how_to_go_on(tmp_path, sent):
    # More seeds than can be done before the signal arrives, however busy the machine.
    process = started(tmp_path, 2, 5, "--seeds", "200")
    process.send_signal(sent)
    _, shown = process.communicate(timeout=60)
    assert process.returncode == 128 + sent
    assert b"the same command resumes" in shown
    assert b"Traceback" not in shown
    assert len(read_records(tmp_path / "results.jsonl")) >= 5  # and no warning of a cut line
