"""Odd arguments: each command succeeds, or says in one line what is wrong with them."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from isrlearn.cli.app import run

FILES = [
    *("t.csv", "r.csv", "z.npz", "x.npy", "y.npy", "objects.npy", "scalar.npy", "cube.npy"),
    *("empty.csv", "empty.isr", "empty.npz", "header.csv", "bytes.csv", "nan.csv", "one.csv"),
    *("constant.csv", "folder", "folder.csv", "folder.isr", "folder.zarr", "dangling.csv"),
    *("loop.csv", "m.isr", "none.csv", "", "/", "/dev/null", "/proc/self/mem", "none/x.csv"),
    *("x" * 300 + ".csv", "t.csv/", "-", "t.CSV", "x\ny.csv", "file:///t.csv", "*.csv", ".csv"),
    *("ü ✓.csv", os.fsdecode(b"\xff.csv")),
]
NUMBERS = [
    *("0", "1", "-1", "2", "0.5", "1e400", "1e-400", "nan", "inf", "-inf", "9" * 400, "0x10"),
    *("", "½", "auto", "none", "permutation", "1e10", str(2**64), " 1", "None"),
]
NAMES = [
    *("label", "environment", "a", "none", "", "y.npy", "x.npy", "objects.npy", "none.npy"),
    *("a,b", "a:c", "c:a", "a:", "*", "[", "\x1b[31m", "ü", "label,label", "folder"),
]
COLUMNS = {"--label": NAMES, "--environment": NAMES, "--features": NAMES, "--labels": FILES}
OUTPUT = {"--out": FILES, "--force": [None], "--json": [None]}
SETTINGS = ("--n-spurious", "--level", "--scale", "--components", "--C", "--alpha")
#: Of each command: arguments that work, and the odd values of options.
COMMANDS = {
    "fit": (
        ["t.csv", "--label=label", "--environment=environment", "--out=new.isr", "--n-spurious=1"],
        COLUMNS
        | OUTPUT
        | dict.fromkeys(SETTINGS, NUMBERS)
        | dict.fromkeys(("--validation", "--report", "--test"), FILES)
        | {"--task": ["regression"], "--fill-environments": [None]},
    ),
    "diagnose": (
        ["t.csv", "--label=label", "--environment=environment"],
        COLUMNS | {"--level": NUMBERS, "--seed": NUMBERS, "--task": ["regression"]},
    ),
    "scan": (
        ["t.csv", "--label=label"],
        {"--label": NAMES, "--labels": FILES, "--candidates": NAMES, "--seed": NUMBERS}
        | OUTPUT
        | {"--level": NUMBERS},
    ),
    "predict": (["m.isr", "t.csv", "--out=new.csv"], OUTPUT | {"--features": NAMES}),
    "evaluate": (["m.isr", "t.csv"], COLUMNS | {"--baseline": FILES, "--metric": ["r2"]}),
    "inspect": (["m.isr"], {"--json": [None]}),
    "export": (["m.isr", "--to=numpy", "--out=new.npz"], OUTPUT | {"--to": ["onnx", "torch"]}),
    "report": (["m.isr", "t.csv", "--out=new.html"], COLUMNS | OUTPUT | {"--train": FILES}),
}


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    """Tables, a model, and all kinds of files that are neither."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)

    def write(name, labels, a="{:.4f}"):
        rows = [f"{a},{{:.4f}},{labels[i % 2]},{'ef'[i // 2 % 2]}" for i in range(40)]
        lines = ["a,b,label,environment", *(row.format(*rng.normal(size=2)) for row in rows)]
        (tmp_path / name).write_text("\n".join(lines))

    write("t.csv", ("no", "yes"))
    write("r.csv", ("0.5", "1.25"))
    write("constant.csv", ("no", "yes"), a="1")
    np.savez("z.npz", X=rng.normal(size=(40, 2)), label=np.arange(40) % 2)
    for name, array in {"x": np.ones((40, 2)), "y": np.arange(40) % 2, "scalar": 3.0}.items():
        np.save(name, array)
    np.save("objects", np.array([{}] * 40, dtype=object), allow_pickle=True)
    np.save("cube", np.ones((4, 4, 4)))
    for name in ("empty.csv", "empty.isr", "empty.npz"):
        (tmp_path / name).touch()
    (tmp_path / "header.csv").write_text("a,b,label,environment\n")
    (tmp_path / "bytes.csv").write_bytes(bytes(range(256)) * 20)
    (tmp_path / "nan.csv").write_text("a,b,label,environment\nnan,1,x,e\n2,inf,y,f\n")
    (tmp_path / "one.csv").write_text("a,b,label,environment\n1,2,x,e\n")
    for name in ("folder", "folder.csv", "folder.isr", "folder.zarr"):
        (tmp_path / name).mkdir()
    (tmp_path / "dangling.csv").symlink_to("nowhere/there.csv")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    assert run(["fit", *COMMANDS["fit"][0][:3], "--out", "m.isr", "--n-spurious", "1"]) == 0
    capsys.readouterr()
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_one_line_or_success(command, folder, capsys):
    usual, odd = COMMANDS[command]
    rng = random.Random(command)
    kept = {path: path.read_bytes() for path in (folder / "t.csv", folder / "m.isr")}
    for _ in range(50):
        arguments = [command, *usual]
        places = [i for i, given in enumerate(arguments) if i and not given.startswith("-")]
        if rng.random() < 0.4:
            arguments[rng.choice(places)] = rng.choice(FILES)
        for option in rng.sample(sorted(odd), min(len(odd), rng.choice([0, 1, 1, 2, 3]))):
            value = rng.choice(odd[option])
            arguments.append(option if value is None else f"{option}={value}")
        code = run(arguments)
        err = capsys.readouterr().err
        ignored = ("Usage: ", "Try 'isr", "isr: warning: ", "Note: ", "Columns of ", " ")
        lines = [line for line in err.splitlines() if line and not line.startswith(ignored)]
        assert (code, len(lines)) in ((0, 0), (2, 1)), f"{arguments}: {code}, {err}"
        for path, content in kept.items():
            if not any("--force" in arguments and f"={path.name}" in a for a in arguments):
                assert path.read_bytes() == content, arguments
            path.write_bytes(content)
