"""Every script of the gallery runs, and says something."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
DRAWING = ("digits_on_paper", "waterbirds_like", "gaussian_environments", "regression")
NEEDS = {
    **dict.fromkeys(DRAWING, ("matplotlib",)),
    "find_the_shortcut": ("matplotlib", "pandas"),
    "in_a_notebook": ("pandas",),
    "save_and_export": ("onnx",),
    "torch_network": ("torch",),
    "trade_off": ("matplotlib", "pandas"),
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs(script, capsys, monkeypatch, tmp_path):
    for package in NEEDS.get(script.stem, ()):
        pytest.importorskip(package, reason=f"{script.name} needs {package}")
    if "matplotlib" in NEEDS.get(script.stem, ()):
        pyplot = importlib.import_module("matplotlib.pyplot")
        pyplot.switch_backend("agg")
        monkeypatch.setattr(pyplot, "show", lambda: None)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
    if "matplotlib" in NEEDS.get(script.stem, ()):
        assert pyplot.get_fignums()
        pyplot.close("all")


def test_there_are_enough():
    assert len(SCRIPTS) >= 8
    assert {path.stem for path in SCRIPTS} >= NEEDS.keys()
