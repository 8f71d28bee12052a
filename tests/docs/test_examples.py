"""Every script of the gallery runs, and says something."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
NEEDS = {
    "find_the_shortcut": "pandas",
    "in_a_notebook": "pandas",
    "save_and_export": "onnx",
    "torch_network": "torch",
    "trade_off": "pandas",
}


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_runs(script, capsys, monkeypatch, tmp_path):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="every script draws")
    if script.stem in NEEDS:
        pytest.importorskip(NEEDS[script.stem], reason=f"{script.name} needs {NEEDS[script.stem]}")
    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out
    assert pyplot.get_fignums(), "its thumbnail would be a placeholder"
    pyplot.close("all")


def test_there_are_enough():
    assert len(SCRIPTS) >= 8
    assert {path.stem for path in SCRIPTS} >= NEEDS.keys()
