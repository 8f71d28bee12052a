"""Exit codes, messages and the speed of the bare command."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
import zipfile

import click
import numpy as np
import pytest
from sklearn.utils.validation import check_array

from isrlearn import __version__
from isrlearn.cli import app, main
from isrlearn.metrics import WorstGroupScorer
from isrlearn.progress import Terminated


@pytest.fixture
def isr(capsys):
    """Runs ``isr``: status, standard output, standard error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


@pytest.fixture
def failing(monkeypatch):
    """Adds a command ``fail`` that calls a function."""

    def add(function):
        module = type(sys)("isrlearn.cli.failing")
        module.fail = click.Command("fail", callback=function)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(app.COMMANDS, "fail", ("failing", "Fails."))

    return add


def test_help_lists_the_commands_without_importing_them(isr, failing, monkeypatch):
    monkeypatch.setitem(app.COMMANDS, "broken", ("no_such_module", "Never loaded."))
    status, out, err = isr("--help")
    assert (status, err) == (0, "")
    for name, (_, summary) in app.COMMANDS.items():
        assert name in out
        assert summary in out


@pytest.mark.parametrize("name", list(app.COMMANDS))
def test_summaries_are_the_commands_own(name):
    module, summary = app.COMMANDS[name]
    command = getattr(importlib.import_module(f"isrlearn.cli.{module}"), name)
    assert command.get_short_help_str(limit=200) == summary


def test_version(isr):
    assert isr("--version") == (0, f"isr, version {__version__}\n", "")


@pytest.mark.parametrize("arguments", [("nonsense",), ("--nonsense",), ("demo", "--seed", "x"), ()])
def test_bad_usage_exits_with_2(isr, arguments):
    status, out, err = isr(*arguments)
    assert (status, out) == (2, "")
    assert "Usage: isr" in err


def missing_file():
    with open("no/such/file.csv"):
        pass


def our_error():
    WorstGroupScorer(k=0)


def validation_error():
    check_array([[np.nan]])


def broken_extra():
    raise click.ClickException("cannot do that")


MISTAKES = {
    missing_file: "isr: No such file or directory: no/such/file.csv\n",
    our_error: "isr: k must be at least 1, got 0\n",
    validation_error: "isr: Input contains NaN.\n",
    broken_extra: "Error: cannot do that\n",
}


@pytest.mark.parametrize("function", MISTAKES, ids=lambda f: f.__name__)
def test_a_mistake_is_one_line_and_2(isr, failing, function):
    failing(function)
    assert isr("fail") == (2, "", MISTAKES[function])


def test_debug_shows_the_traceback_of_a_mistake(isr, failing):
    failing(our_error)
    status, _, err = isr("--debug", "fail")
    assert status == 2
    assert "Traceback" in err
    assert err.endswith(MISTAKES[our_error])


def bug_in_an_array_library():
    np.zeros(2).reshape(3)


def bug_of_ours():
    raise KeyError("k")


@pytest.mark.parametrize("function", [bug_in_an_array_library, bug_of_ours])
def test_a_fault_of_ours_is_1_and_shows_where(isr, failing, function):
    failing(function)
    status, out, err = isr("fail")
    assert (status, out) == (1, "")
    assert function.__name__ in err
    assert err.endswith("isr: internal error, please report it\n")


def interrupt():
    raise KeyboardInterrupt


def test_interruption_is_one_line(isr, failing):
    failing(interrupt)
    status, out, err = isr("fail")
    assert (status, out, err.strip()) == (130, "", "isr: interrupted")


def test_early_exit_keeps_its_code(isr, failing):
    failing(lambda: click.get_current_context().exit(7))
    assert isr("fail")[0] == 7


def test_what_a_command_returns_is_no_exit_code(isr, failing):
    failing(lambda: "result")
    assert isr("fail")[0] == 0


@pytest.mark.parametrize("package", ["click", "rich"])
def test_without_the_extra_it_says_what_to_install(package):
    code = f"import sys; sys.modules[{package!r}] = None; from isrlearn.cli import main; main([])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr == f'isr: {package} is not installed; run: pip install "isrlearn[cli]"\n'


@pytest.mark.parametrize("arguments", [["--help"], ["datasets", "list"]])
def test_a_reader_that_has_gone_is_no_error(arguments):
    """The exit code is that of a program ended by SIGPIPE, as of cat and grep."""
    code = f"from isrlearn.cli import main; main({arguments})"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        run.stdout.close()
        errors = run.stderr.read()
    assert (run.returncode, errors) == (141, b"")


FULL = "isr: No space left on device: standard output\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("arguments", "redirected", "outcome"),
    [
        ("--help", ">/dev/full", (2, FULL)),
        ("datasets list", ">/dev/full", (2, FULL)),
        (
            "datasets list --json",
            ">/dev/full",
            (2, FULL),
        ),
        ("nonsense", "2>/dev/full", (2, "")),
        ("inspect none.isr", "2>/dev/full", (2, "")),
        ("datasets list", ">&-", (0, "")),
        ("inspect none.isr", "2>&-", (2, "")),
        ("evaluate none.isr none.csv", "2>&-", (2, "")),
    ],
)
def test_streams_that_take_nothing(arguments, redirected, outcome):
    code = "from isrlearn.cli import main; main()"
    command = f'exec "$0" -c "{code}" {arguments} {redirected}'
    run = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == outcome


def test_help_is_quick(isr_process):
    times = []
    for _ in range(3):
        outcome, seconds = isr_process("--help")
        assert outcome.returncode == 0
        times.append(seconds)
    assert min(times) < 0.3


@pytest.mark.parametrize(("stop", "code"), [(KeyboardInterrupt, 130), (Terminated, 143)])
def test_a_signal_that_a_library_replaces_by_its_own_error(isr, failing, stop, code):
    """A ZIP archive cannot be closed while a signal has left one of its members open."""

    def fail():
        with zipfile.ZipFile(io.BytesIO(), "w") as archive:
            member = archive.open("a", "w")
            member.write(b"half")
            raise stop

    failing(fail)
    status, out, err = isr("fail")
    assert (status, out) == (code, "")
    assert err.count("\n") == 1
    assert "Traceback" not in err
