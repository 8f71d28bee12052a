"""Tables in README and documentation say what the committed results say."""

from __future__ import annotations

import csv
import json
import runpy
from contextlib import suppress
from pathlib import Path

import pytest

from isrlearn.benchmarks.experiments import EXPERIMENTS
from isrlearn.benchmarks.methods import METHODS
from isrlearn.benchmarks.real.scores import SCORES

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs/benchmarks"
DOCS = runpy.run_path(str(ROOT / "docs/tables.py"))
WITH_SUMMARY = sorted(path.parent.name for path in RESULTS.glob("*/summary.csv"))
SYNTHETIC = [name for name in WITH_SUMMARY if name.removesuffix("-published") in EXPERIMENTS]
BY_SCRIPT = {
    "worst-group": "worst_group",
    "torch-digits": "torch_digits",
    "isr-vs-irm": "isr_vs_irm",
}


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def value(text):
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


@pytest.mark.parametrize("page", DOCS["pages"](), ids=lambda page: page.stem)
def test_tables_are_made_from_results(page):
    text = page.read_text(encoding="utf-8")
    assert DOCS["renewed"](text) == text, "python docs/tables.py writes the tables anew"


def test_there_are_tables():
    texts = [page.read_text(encoding="utf-8") for page in DOCS["pages"]()]
    shown = {name for text in texts for _, name, _ in DOCS["BLOCK"].findall(text)}
    assert shown == set(DOCS["TABLES"])


def test_a_changed_number_is_seen():
    text = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
    table = DOCS["TABLES"]["worst-group"]()
    digit = table.index("0.", table.index("ERM"))
    wrong = table[:digit] + "9." + table[digit + 2 :]
    assert table in text
    assert DOCS["renewed"](text.replace(table, wrong)) == text


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_page_of_a_benchmark_is_its_summary(name):
    page = (RESULTS / name / "table.md").read_text(encoding="utf-8")
    panels = EXPERIMENTS[name.removesuffix("-published")].panels
    checked = 0
    for row in rows_of(RESULTS / name / "summary.csv"):
        shown = cell_of(page, panels[row["dataset"]].title, METHODS[row["method"]].label, row)
        for text, exact in zip(shown.split(" ± "), (row["mean"], row["half_width"]), strict=True):
            assert rounds_to(float(exact), text), (row, text)
        checked += 1
    assert checked > 100


def cell_of(page, title, label, row):
    """The cell of a page in the table, line and column of a row."""
    _, _, rest = page.partition(f"### {title}\n\n")
    head, _, *lines = rest.partition("\n\n")[0].splitlines()
    column = head.removesuffix(" |").split(" | ").index(f"E = {row['n_environments']}")
    line = next(line for line in lines if line.startswith(f"| {label} |"))
    return line.removesuffix(" |").split(" | ")[column]


def rounds_to(exact, text):
    """Whether a text is a number to the digits it has; results are kept to six."""
    digits, _, exponent = text.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
    return abs(float(text) - exact) <= 0.5 * unit + 1e-5 * abs(exact)


def test_rounding():
    assert rounds_to(0.12345, "0.1234")
    assert rounds_to(3.50289e-6, "3.50e-06")
    assert not rounds_to(0.12345, "0.1233")
    assert not rounds_to(3.50289e-6, "3.51e-06")


@pytest.mark.parametrize("name", [name for name in WITH_SUMMARY if name not in SYNTHETIC])
def test_the_page_of_real_data_is_its_summary(name):
    page = (RESULTS / name / "table.md").read_text(encoding="utf-8")
    for row in rows_of(RESULTS / name / "summary.csv"):
        score, std = SCORES[row["score"]], float(row["std"] or "nan")
        shown = [score.factor * float(row["mean"])] + ([] if std != std else [score.factor * std])
        # Six digits are kept: a tie may be rounded up from all of them and down from these.
        texts = [
            " ± ".join(f"{number * nudge:.{score.decimals}f}" for number in shown)
            for nudge in (1 - 1e-5, 1 + 1e-5)
        ]
        lines = [x for x in page.splitlines() if x.startswith(f"| {row['trained_with']} |")]
        assert any(text in line for line in lines for text in texts), row


@pytest.mark.parametrize("name", BY_SCRIPT)
def test_the_page_of_a_script_is_its_results(name):
    if name == "torch-digits":
        pytest.importorskip("torch", reason="the script needs torch")
    script = runpy.run_path(str(ROOT / "benchmarks" / f"{BY_SCRIPT[name]}.py"))
    rows = [
        {key: value(text) for key, text in row.items()}
        for row in rows_of(RESULTS / name / "results.csv")
    ]
    page = (RESULTS / name / "table.md").read_text(encoding="utf-8")
    parts = {row["data"]: None for row in rows} if name == "worst-group" else {}
    tables = [script["table"](part, rows) for part in parts] or [script["table"](rows)]
    for table in tables:
        assert table.markdown() in page, table.title


def test_the_page_of_partial_labels_is_its_curves():
    found = json.loads((RESULTS / "partial-labels/curves.json").read_text(encoding="utf-8"))
    page = (RESULTS / "partial-labels/table.md").read_text(encoding="utf-8")
    for curve in found["curves"]:
        assert f"{curve['mean']:.3f} ± {curve['half_width']:.3f}" in page, curve
