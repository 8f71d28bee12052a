"""Tables in README and documentation say what the committed results say."""

from __future__ import annotations

import csv
import json
import re
import runpy
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from statistics import mean, median
from types import SimpleNamespace

import pytest

from isrlearn.paper.benchmark import Result
from isrlearn.paper.experiments import EXPERIMENTS
from isrlearn.paper.partial_labels import Curve, LabelsPlan, LabelsResult
from isrlearn.paper.regimes.page import RegimesResult
from isrlearn.paper.regimes.scores import RegimesPlan, read_scores
from isrlearn.paper.summary import Summary
from isrlearn.paper.tables import Table
from isrlearn.paper.theory import Complexity, complexity_table

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs/benchmarks"
DOCS = runpy.run_path(str(ROOT / "docs/tables.py"))
FOLDERS = sorted(str(page.parent.relative_to(RESULTS)) for page in RESULTS.rglob("table.md"))


def made_by(name):
    """The words of the command that made a page."""
    page = (RESULTS / name / "table.md").read_text(encoding="utf-8")
    return re.search(r"^Made by `([^`]+)`", page, flags=re.MULTILINE)[1].split()


SYNTHETIC = [name for name in FOLDERS if set(made_by(name)[2:3]) & EXPERIMENTS.keys()]


@pytest.mark.parametrize("page", DOCS["pages"](), ids=lambda page: page.stem)
def test_tables_are_made_from_results(page):
    text = page.read_text(encoding="utf-8")
    assert DOCS["renewed"](text) == text, "run python docs/tables.py"


def test_there_are_tables():
    texts = [page.read_text(encoding="utf-8") for page in DOCS["pages"]()]
    shown = {name for text in texts for _, name, _ in DOCS["BLOCK"].findall(text)}
    assert shown >= set(DOCS["TABLES"])
    assert shown <= {*DOCS["TABLES"], *FOLDERS}


def test_a_changed_number_is_seen():
    text = (ROOT / "docs/compare.md").read_text(encoding="utf-8")
    table = DOCS["TABLES"]["worst-group"]()
    digit = table.index("0.", table.index("ERM"))
    wrong = table[:digit] + "9." + table[digit + 2 :]
    assert table in text
    assert DOCS["renewed"](text.replace(table, wrong)) == text


def test_a_table_of_a_benchmark_can_be_repeated():
    text = "<!-- table: search-speed -->\nold\n<!-- end -->"
    lines = DOCS["renewed"](text).splitlines()
    page = (RESULTS / "search-speed/table.md").read_text(encoding="utf-8")
    assert lines[1:-1] == [line for line in page.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("name", [n for n in FOLDERS if RESULTS / n not in DOCS["REAL"]])
def test_the_page_of_a_benchmark_is_its_results(name):
    if name == "torch-digits":
        pytest.importorskip("torch", reason="the script needs torch")
    page = (RESULTS / name / "table.md").read_text(encoding="utf-8")
    shown = page[page.index("### ") :]
    made = ["\n".join(table.markdown() for table in tables) for tables in versions(name)]
    for cell, *same in zip(shown.split("|"), *(text.split("|") for text in made), strict=True):
        assert cell in same


@pytest.mark.parametrize("folder", DOCS["REAL"], ids=lambda folder: folder.name)
def test_the_page_of_a_benchmark_on_real_data_describes_its_run(folder):
    assert (folder / "table.md").read_text(encoding="utf-8") == DOCS["described"](folder)


@pytest.mark.parametrize("name", FOLDERS)
def test_the_page_of_a_benchmark_says_how_it_was_made(name):
    page = (RESULTS / name / "table.md").read_text(encoding="utf-8")
    command = re.search(r"^Made by `((?:isr bench|python) [\w./-]+)", page, flags=re.MULTILINE)[1]
    assert f"`{command}" in (RESULTS / "index.md").read_text(encoding="utf-8")
    if command.startswith("python"):
        assert (ROOT / command.split()[1]).exists()
    runs = r"\d (seeds|draws|repetitions|runs|random models)|seeds \d+ to \d+|[Oo]ne (run|seed)"
    assert re.search(runs, page), "how many seeds, or repetitions?"


@pytest.mark.parametrize("name", SYNTHETIC)
def test_summaries_are_those_of_the_cells(name):
    cells = {}
    for row in rows_of(name):
        key = (row["dataset"], row["method"], row["n_environments"])
        cells.setdefault(key, []).append((float(row["error"]), float(row["excess"] or "nan")))
    for row in rows_of(name, "summary.csv"):
        found = cells.pop((row["dataset"], row["method"], row["n_environments"]))
        errors, excess = zip(*found, strict=True)
        assert len(errors) == int(row["n_seeds"])
        made = (mean(errors), median(errors), mean(excess), median(excess))
        kept = (row[k] or "nan" for k in ("mean", "median", "excess_mean", "excess_median"))
        kept = [float(value) for value in kept]
        assert made == pytest.approx(kept, rel=1e-4, abs=1e-6, nan_ok=True)
    assert not cells


def versions(name):
    """The tables of a benchmark; more than once where digits that are not kept may decide."""
    if name in SYNTHETIC:
        return [synthetic(name, nudge) for nudge in (1, 1 - 1e-5, 1 + 1e-5)]
    if (RESULTS / name / "results.csv").exists() and "column" in rows_of(name)[0]:
        return [timed(rows_of(name))]
    return [MADE[name]()]


def synthetic(name, nudge):
    """Tables of a summary whose numbers, of which six digits are kept, are a little larger."""
    kinds = {str: str, int: int, float: lambda text: nudge * float(text or "nan")}
    found = [
        Summary(**{f.name: kinds[f.type](row[f.name]) for f in fields(Summary)})
        for row in rows_of(name, "summary.csv")
    ]
    plan = SimpleNamespace(
        experiment=made_by(name)[2],
        datasets=list(dict.fromkeys(summary.dataset for summary in found)),
        methods=list(dict.fromkeys(summary.method for summary in found)),
    )
    result = Kept(plan, [], [], "--compare" in made_by(name), found)
    return result.tables() + result.excess_tables()


@dataclass(frozen=True)
class Kept(Result):
    """A result whose summaries were read from a file."""

    summaries: list = None


def timed(rows):
    """Tables of which every cell is kept."""
    tables = {}
    for row in rows:
        lines = tables.setdefault(row["table"], {})
        lines.setdefault(row["line"], {})[row["column"]] = row["value"]
    return [
        Table(title, list(lines["0"]), [list(line.values()) for line in lines.values()])
        for title, lines in tables.items()
    ]


def by_script(name, script):
    table = runpy.run_path(str(ROOT / "benchmarks" / f"{script}.py"))["table"]
    return [table([values(row) for row in rows_of(name)])]


def worst_group():
    script = runpy.run_path(str(ROOT / "benchmarks/worst_group.py"))
    rows = [values(row) for row in rows_of("worst-group")]
    return [script["table"](data, rows) for data in script["DATA"]]


def counts(name, script):
    script = runpy.run_path(str(ROOT / "benchmarks" / f"{script}.py"))
    return script["tables"]([values(row) for row in rows_of(name)])


def theory():
    return [complexity_table(Complexity(**values(row)) for row in rows_of("theory"))]


def partial_labels(name):
    kept = json.loads((RESULTS / name / "curves.json").read_text(encoding="utf-8"))

    class Read(LabelsResult):
        curves = [
            Curve(**{k: nan_for_none(v) for k, v in curve.items()}) for curve in kept["curves"]
        ]

    return Read(LabelsPlan(**kept["plan"]), [], []).tables()


def regimes(name):
    return RegimesResult(RegimesPlan(), read_scores(RESULTS / name / "results.csv")).tables()


MADE = {
    "coverage": lambda: by_script("coverage", "coverage"),
    "diagnosis": lambda: counts("diagnosis", "diagnosis"),
    "isr-vs-irm": lambda: by_script("isr-vs-irm", "isr_vs_irm"),
    "level": lambda: counts("level", "level"),
    "new-sites": lambda: counts("new-sites", "new_sites"),
    **{name: partial(partial_labels, name) for name in FOLDERS if name.startswith("partial-")},
    "rank": lambda: counts("rank", "rank_accuracy"),
    **{name: partial(regimes, name) for name in ("regimes", "regimes-defaults")},
    "regression-unseen": lambda: counts("regression-unseen", "regression"),
    "scan": lambda: counts("scan", "scan"),
    "search-speed": lambda: by_script("search-speed", "search_speed"),
    "theory": theory,
    "torch-digits": lambda: by_script("torch-digits", "torch_digits"),
    "units": lambda: by_script("units", "units"),
    "worst-group": worst_group,
}


def test_pages_of_times_keep_every_cell(tmp_path, capsys):
    tables = [Table("Fits", ["shape", "s"], [["10 × 2", "0.1"], ["20 × 2", "0.2"]])]
    tables.append(Table("Reads", ["shape", "s", "ratio"], [["10 × 2", "0.1", "1.5"]]))
    written = runpy.run_path(str(ROOT / "benchmarks/_clock.py"))["written"]
    written("Speed", "python benchmarks/speed.py fit", tables, tmp_path, [])
    assert timed(rows_of(tmp_path)) == tables
    assert "".join(table.markdown() for table in tables) in capsys.readouterr().out.replace(
        "\n\n###", "\n###"
    )


def rows_of(name, file="results.csv"):
    with (RESULTS / name / file).open(encoding="utf-8", newline="") as opened:
        return list(csv.DictReader(opened))


def values(row):
    """The row with numbers for texts; data sets may be called 2."""
    return {name: text if name == "data" else value(text) for name, text in row.items()}


def value(text):
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def nan_for_none(value):
    return float("nan") if value is None else value
