"""What `make bench` runs does run, and leaves a table."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = re.compile(r"for part in ([a-z ]+); do.*?benchmarks/(\w+)\.py", flags=re.DOTALL)
RUNS = [
    (script, part)
    for parts, script in RECIPE.findall((ROOT / "Makefile").read_text(encoding="utf-8"))
    for part in parts.split()
]
NEEDED = {"moments": ("concept_erasure", "fairlearn", "torch"), "dask": ("dask", "distributed")}


def test_all_parts_are_run():
    assert len(RUNS) >= 7
    for script in ("speed", "scale"):
        text = (ROOT / f"benchmarks/{script}.py").read_text(encoding="utf-8")
        documented = set(re.findall(rf"    python benchmarks/{script}\.py (\w+)", text))
        assert documented == {part for name, part in RUNS if name == script}


@pytest.mark.slow
@pytest.mark.parametrize(("script", "part"), RUNS)
def test_a_quick_run_leaves_a_table(script, part, tmp_path):
    missing = [name for name in NEEDED.get(part, ()) if find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {missing[0]}")
    command = [sys.executable, ROOT / f"benchmarks/{script}.py", part, "--quick", "--out", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    page = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert f"Made by `python benchmarks/{script}.py {part} --quick`." in page
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(lines) >= 3  # heads, rule, numbers
    assert re.search(r"\| \d+\.\d+ \|", lines[-1])
    assert "nan" not in page
