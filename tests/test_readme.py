"""The README is true: its code runs, its commands exist, its numbers come out."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from isrlearn.cli import main
from isrlearn.cli.app import COMMANDS
from isrlearn.cli.demo import demonstration, spread

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda source: f"{len(source)} characters")
def test_examples_run(source, capsys):
    exec(compile(source, "README.md", "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out


def test_there_are_examples():
    assert len(EXAMPLES) >= 1


def test_make_targets_and_commands_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^make ([a-z-]+)", README, flags=re.MULTILINE))
    assert {"demo", "test"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
    commands = set(re.findall(r"`isr ([a-z]+)", README))
    assert commands <= set(COMMANDS)


def test_three_commands_from_a_table_to_a_report(tmp_path, monkeypatch, capsys):
    block = next(b for b in re.findall(r"```\n(.*?)```", README, flags=re.DOTALL) if "isr fit" in b)
    commands = block.splitlines()
    assert len(commands) == 3
    monkeypatch.chdir(tmp_path)
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "isr"
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
    scores = capsys.readouterr().out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    of_fit, of_evaluate = (line for line in scores.splitlines() if "the worst group is" in line)
    assert of_fit == of_evaluate  # the model is read from its file in between
    assert f"<h1>{of_fit}</h1>" in page


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README) + re.findall(r'src="([^"]+)"', README)
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists()
    assert links


@pytest.mark.slow
@pytest.mark.parametrize(("score", "row"), [("worst", "worst group"), ("average", "average")])
def test_numbers_of_the_demo(score, row, twenty_seeds):
    line = next(line for line in README.splitlines() if line.startswith(f"| {row} |"))
    printed = [float(number) for number in re.findall(r"\d\.\d+", line)]
    scores = [each[score] for each in twenty_seeds.values()]
    computed = [number for each in scores for number in (each["mean"], each["std"])]
    # Solvers and BLAS differ in the last digits of a score over 500 images.
    assert printed == pytest.approx(computed, abs=0.005)


@pytest.fixture(scope="module")
def twenty_seeds():
    return spread([demonstration(seed) for seed in range(20)])
