"""Random sequences of commands over a folder: nothing is lost, half written or a traceback.

Run as a script for many of them, by one process per core: ``python tests/fuzz/command_line.py
2000``. A sample is part of the suite (``test_command_line.py``).
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

import jinja2
import numpy as np
import onnx
import safetensors.numpy
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from isrlearn import ISRClassifier, ISRClassifierCV
from isrlearn.cli.app import run
from isrlearn.datasets import make_gaussian_environments
from isrlearn.estimators import compare
from isrlearn.io import read_model, save, write_columns, write_predictions
from isrlearn.io.tables import open_table
from isrlearn.report import evidence

#: Exit codes that are not bugs: success, mistake, Ctrl-C, SIGTERM; killed before a handler was set.
CODES = (0, 2, 130, 143, -signal.SIGTERM, -signal.SIGINT)
COLUMNS = ("--label", "label", "--environment", "environment")
NEW = [
    *("new.isr", "new.csv", "new.tsv", "new.npz", "new.parquet", "new.html", "new.onnx"),
    *("new.safetensors", "neu ü ✓.csv", "sub/new.csv", "none/new.csv", "nowhere.csv"),
]
SPELLINGS = ("{}", "./{}", "sub/../{}", "{folder}/{}")
#: How often each command had each exit code, and seconds that each takes without and with a page.
SEEN: Counter[tuple[str, int]] = Counter()
SECONDS: dict[tuple[str, bool], float] = {}
#: Sequences that a process runs at a time: its generator begins anew, and progress is shown.
PART = 100
#: Seconds after which a command that should have ended at a signal is taken to hang.
PATIENCE = 300


@lru_cache
def template() -> Path:
    """A folder with tables of every format, links, a model, predictions and files of the user."""
    folder = Path(tempfile.mkdtemp(prefix="isr-fuzz-"))
    data = make_gaussian_environments(20, 3, n_invariant=2, n_spurious=1, random_state=0)
    labels = {"label": np.array(["no", "yes"])[data.y], "environment": data.environments}
    named = {f"f{i}": column for i, column in enumerate(data.X.T)} | labels
    for name in ("t.csv", "t.tsv", "t.parquet", "tä ✓.csv"):
        write_columns(folder / name, named)
    write_columns(folder / "t.npz", {"X": data.X, **labels})
    np.save(folder / "a.npy", data.X)
    write_columns(folder / "a.labels.csv", labels)
    clf = ISRClassifier(n_spurious=1).fit(data.X, labels["label"], data.environments)
    roles = {"columns": {"label": "label", "environment": "environment"}}
    save(clf, folder / "m.isr", feature_names=["f0", "f1", "f2"], metadata=roles)
    write_predictions(clf, data.X, folder / "p.csv")
    (folder / "notes.html").write_text("<!doctype html><title>mine</title>")
    (folder / "empty.csv").touch()
    (folder / "sub").mkdir()
    return folder


def states(folder: Path) -> dict[str, Any]:
    """What every name below a folder is: a link and its target, a folder, or a content."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        else:
            found[name] = ("folder",) if path.is_dir() else path.read_bytes()
    return found


def kind_of(path: Path) -> str:
    """Which of our kinds of files a file is, as a whole; otherwise "other"."""
    content = path.read_bytes()
    if content.startswith(b"<!doctype html>") and b"isrlearn report</title>" in content:
        return "report" if content.rstrip().endswith(b"</html>") else "other"
    with contextlib.suppress(Exception):
        read_model(path)
        return "model"
    with contextlib.suppress(Exception):
        return "export" if "coef" in np.load(path) else "predictions"
    with contextlib.suppress(Exception):
        onnx.checker.check_model(onnx.load_from_string(content))
        return "export"
    with contextlib.suppress(Exception):
        return "export" if "weight" in safetensors.numpy.load(content) else "other"
    with contextlib.suppress(Exception):
        source = open_table(path)
        whole = content.endswith(b"\n") or path.suffix == ".parquet"
        return "predictions" if whole and source.columns[0] == "prediction" else "other"
    return "other"


class CommandLine(RuleBasedStateMachine):
    """Commands over one folder; after each of them the folder is as it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(os.path.realpath(tempfile.mkdtemp(prefix="isr-fuzz-")))
        shutil.copytree(template(), self.folder, dirs_exist_ok=True)
        (self.folder / "symbolic.csv").symlink_to("t.csv")
        (self.folder / "dangling.csv").symlink_to("nowhere.csv")
        os.link(self.folder / "t.csv", self.folder / "hard.csv")
        os.link(self.folder / "m.isr", self.folder / "hard.isr")
        self.before = Path.cwd()
        os.chdir(self.folder)

    def teardown(self) -> None:
        os.chdir(self.before)
        shutil.rmtree(self.folder)

    def named(self, data: Any, suffixes: tuple[str, ...], *, new: bool = False) -> str:
        """A path: usually with a fitting suffix, otherwise any; it may be a new one."""
        there = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*")}
        names = sorted({*there, *(NEW if new else ())})
        fitting = [name for name in names if name.endswith(suffixes)]
        names = fitting if fitting and data.draw(st.integers(0, 4)) else names
        name = names[data.draw(st.integers(0, 10**6)) % len(names)]
        return data.draw(st.sampled_from(SPELLINGS)).format(name, folder=self.folder)

    def table(self, data: Any) -> str:
        return self.named(data, (".csv", ".tsv", ".npz", ".npy", ".parquet"))

    @rule(data=st.data(), report=st.booleans())
    def fit(self, data: Any, report: bool) -> None:
        table, out = self.table(data), self.named(data, (".isr",), new=True)
        outputs = {out: "model"}
        more = ["--out", out]
        if report:
            page = self.named(data, (".html",), new=True)
            outputs[page] = "report"
            more += ["--report", page]
        self.check(
            data,
            ["fit", table, *COLUMNS, "--no-search", "--n-spurious", "1", *more],
            [table],
            outputs,
        )

    @rule(data=st.data())
    def predict(self, data: Any) -> None:
        inputs = [self.named(data, (".isr",)), self.table(data)]
        out = self.named(data, (".csv", ".tsv", ".npz", ".parquet"), new=True)
        self.check(data, ["predict", *inputs, "--out", out], inputs, {out: "predictions"})

    @rule(data=st.data(), train=st.booleans())
    def report(self, data: Any, train: bool) -> None:
        inputs = [self.named(data, (".isr",)), self.table(data)]
        out = self.named(data, (".html",), new=True)
        more = ["--train", self.table(data)] if train else []
        arguments = ["report", *inputs, *COLUMNS, *more, "--out", out]
        self.check(data, arguments, [*inputs, *more[1:]], {out: "report"})

    @rule(data=st.data(), kind=st.sampled_from(["onnx", "torch", "numpy"]))
    def export(self, data: Any, kind: str) -> None:
        model = self.named(data, (".isr",))
        suffix = {"onnx": ".onnx", "torch": ".safetensors", "numpy": ".npz"}[kind]
        out = self.named(data, (suffix,), new=True)
        self.check(data, ["export", model, "--to", kind, "--out", out], [model], {out: "export"})

    @rule(data=st.data())
    def inspect(self, data: Any) -> None:
        model = self.named(data, (".isr",))
        self.check(data, ["inspect", model], [model], {})

    @rule(data=st.data())
    def evaluate(self, data: Any) -> None:
        inputs = [self.named(data, (".isr",)), self.table(data)]
        self.check(data, ["evaluate", *inputs, *COLUMNS], inputs, {})

    def check(
        self, data: Any, arguments: list[str], inputs: list[str], outputs: dict[str, str]
    ) -> None:
        """Run a command, possibly with a signal at a random moment, and look at the folder."""
        force = bool(outputs) and data.draw(st.integers(0, 2)) == 0
        arguments += ["--force"] * force + ["--json"] * data.draw(st.booleans())
        kinds = {out: kind_of(Path(out)) if os.path.isfile(out) else None for out in outputs}
        given = {os.path.realpath(path) for path in inputs}
        same = [p for p in outputs for q in inputs if os.path.isfile(q) and _same(p, q)]
        before = states(self.folder)
        stop = data.draw(st.sampled_from([None] * 6 + [signal.SIGINT, signal.SIGTERM]))
        moment = data.draw(st.floats(0, 1.2))
        code, said = called(arguments) if stop is None else stopped(arguments, stop, moment)
        SEEN[arguments[0], code] += 1
        after = states(self.folder)
        where = f"{arguments} ended with {code} (signal {stop}): {said[-2000:]}"
        assert code in CODES, where
        assert "Traceback" not in said, where
        assert not [name for name in after if name.endswith(".part")], where
        assert not (same and code == 0), f"an input was accepted as an output: {where}"
        written = {os.path.realpath(out) for out in outputs} - given
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                changed = os.path.realpath(self.folder / name)
                assert changed in written, f"{name} was changed by {where}"
        for out, kind in outputs.items():
            name = os.path.relpath(os.path.realpath(out), self.folder)
            if before.get(name) != after.get(name):
                assert kind_of(Path(out)) == kind, f"{name} is not a whole {kind}: {where}"
                assert force or kinds[out] in (None, kind), f"{name} was replaced: {where}"
            assert code != 0 or kind_of(Path(out)) == kind, where


def _same(path: str, other: str) -> bool:
    return os.path.exists(path) and os.path.samefile(path, other)


def called(arguments: list[str]) -> tuple[int, str]:
    """Exit code of a command in this process, and what it wrote."""
    said, start = io.StringIO(), time.monotonic()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run(arguments)
    if code == 0:
        SECONDS[arguments[0], "--report" in arguments] = time.monotonic() - start
    return code, said.getvalue()


def stopped(arguments: list[str], stop: int, moment: float) -> tuple[int, str]:
    """As `called`, in a process that gets a signal after that share of the usual time."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        # A signal that arrives during the fork itself waits until the child is ready for it.
        both = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, both)
        child = os.fork()
        if not child:
            code = 130
            # The signal raises once, wherever it arrives: one of the two ends the process, which
            # must never return to hypothesis.
            try:
                try:
                    code = _in_child(arguments, said.fileno(), both)
                finally:
                    signal.pthread_sigmask(signal.SIG_BLOCK, both)
            finally:
                os._exit(code)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, both)
        time.sleep(moment * SECONDS.get((arguments[0], "--report" in arguments), 0.1))
        os.kill(child, stop)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return code, said.read()


def _in_child(arguments: list[str], said: int, expected: set[signal.Signals]) -> int:
    """Exit code of a command in a forked process that expects one of these signals."""
    try:
        signal.alarm(PATIENCE)
        gc.callbacks.clear()  # those of hypothesis would swallow the signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(said, 1)
        os.dup2(said, 2)
        with open(1, "w", closefd=False) as sys.stdout:
            sys.stderr = sys.stdout
            signal.pthread_sigmask(signal.SIG_UNBLOCK, expected)
            return run(arguments)
    except KeyboardInterrupt:
        return 130  # before the command began, or after it had ended
    except SystemExit as stop:
        return int(stop.code or 0)
    except BaseException:
        os.write(said, traceback.format_exc().encode())
        return 1


@contextlib.contextmanager
def cheaper() -> Iterator[None]:
    """Reports that compare fewer models by fewer folds, and compile their template once.

    Each part of a report is still made, in a twentieth of the time.
    """
    compile_one, codes = jinja2.Environment.compile, {}

    def compile_once(self: Any, source: str, *names: Any) -> Any:
        if source not in codes:
            codes[source] = compile_one(self, source, *names)
        return codes[source]

    with (
        mock.patch.dict(compare.ALTERNATIVES["classification"]) as models,
        mock.patch.dict(ISRClassifierCV.__init__.__kwdefaults__, C=(0.1, 1.0)),
        mock.patch.object(evidence, "N_FOLDS", 2),
        mock.patch.object(evidence, "_SCALES", ((0.0, 1.0),) * 4),
        mock.patch.object(jinja2.Environment, "compile", compile_once),
    ):
        del models["class-balanced"]
        yield


def sequences(n: int, *, derandomize: bool = False) -> None:
    """Run that many sequences of commands; raise at the first fault."""
    chosen = settings(
        max_examples=n,
        stateful_step_count=6,
        deadline=None,
        database=None,
        derandomize=derandomize,
        # A signal arrives at another moment in every run: there is nothing to shrink.
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    with cheaper():
        run_state_machine_as_test(CommandLine, settings=chosen)


def part(n: int) -> Counter[tuple[str, int]]:
    """How often each command had each exit code in that many sequences."""
    SEEN.clear()
    try:
        sequences(n)
    except BaseException:
        # Groups of exceptions, such as hypothesis raises, do not pass from process to process.
        raise AssertionError(traceback.format_exc()) from None
    return SEEN


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=2000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given, start = parser.parse_args(), time.monotonic()
    sizes = [min(PART, given.n - i) for i in range(0, given.n, PART)]
    seen: Counter[tuple[str, int]] = Counter()
    done = 0
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as pool:
        running = {pool.submit(part, n): n for n in sizes}
        for each in as_completed(running):
            seen, done = seen + each.result(), done + running[each]
            print(f"{done} of {given.n}, {time.monotonic() - start:.0f} s", flush=True)
    for (command, code), n in sorted(seen.items()):
        print(f"{command:10} {code:4} {n:6}")
    print(f"{given.n} sequences, {sum(seen.values())} commands, {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
