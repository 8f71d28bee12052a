"""Summaries, tables and figures from made-up records."""

from __future__ import annotations

import csv
import io
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from scipy import stats

from isrlearn.paper.experiments import METHODS
from isrlearn.paper.figures import STYLES, error_figure
from isrlearn.paper.records import CellKey, Record
from isrlearn.paper.summary import (
    Comparison,
    Published,
    Summary,
    compared,
    comparison_tables,
    csv_of_records,
    csv_of_scores,
    error_tables,
    mean_interval,
    published_results,
    summaries,
)
from isrlearn.paper.tables import (
    Table,
    csv_of,
    csv_text,
    markdown,
    number,
    plus_minus,
    result_dict,
    write_files,
)

TITLES = {"3": "Example-3", "3s": "Example-3s"}
LABELS = {"erm": "ERM", "oracle": "Oracle"}


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    return [
        Record(
            CellKey(dataset, method, E, seed, "converged", {}, {}),
            float(errors.mean()),
            0.1,
            errors.tolist(),
            0.5,
            ["w"] * (seed == 0),
        )
        for dataset in TITLES
        for method in LABELS
        for E in (2, 3)
        for seed in range(6)
        for errors in [rng.uniform(0.0, 0.4, E)]
    ]


def test_mean_interval_and_spread_are_the_textbook_ones(records):
    picked = [r for r in records if (r.key.dataset, r.key.method) == ("3s", "erm")]
    picked = [r for r in picked if r.key.n_environments == 3]
    value = np.array([r.value for r in picked])
    found = next(
        s for s in summaries(records) if (s.dataset, s.method, s.n_environments) == ("3s", "erm", 3)
    )
    low, high = stats.t.interval(0.95, 5, loc=value.mean(), scale=stats.sem(value))
    assert found.mean == pytest.approx(value.mean())
    assert found.half_width == pytest.approx((high - low) / 2)
    assert found.std_environment == pytest.approx(
        np.mean([np.std([r.per_environment[e] for r in picked], ddof=1) for e in range(3)])
    )
    assert found.n_seeds == 6
    assert found.warned == 1


def test_excess_is_taken_seed_by_seed_from_the_oracle_on_the_same_data(records):
    of = {(r.key.dataset, r.key.method, r.key.n_environments, r.key.seed): r.value for r in records}
    differences = [of["3", "erm", 2, s] - of["3", "oracle", 2, s] for s in range(6)]
    found = next(
        s for s in summaries(records) if (s.dataset, s.method, s.n_environments) == ("3", "erm", 2)
    )
    assert found.excess_mean == pytest.approx(np.mean(differences))
    assert found.excess_median == pytest.approx(np.median(differences))


def test_without_an_oracle_there_is_no_excess(records):
    found = summaries([r for r in records if r.key.method == "erm"])
    assert all(np.isnan(s.excess_mean) for s in found)
    row = next(csv.DictReader(io.StringIO(csv_of(Summary, found))))
    assert row["excess_mean"] == ""


def test_one_seed_has_no_interval(records):
    (found,) = summaries(records[:1])
    assert np.isnan(found.half_width)
    assert error_tables([found], TITLES, LABELS)[0].rows[0][1] == number(found.mean)


def test_tables_have_a_row_a_method_and_a_column_an_environment_count(records):
    tables = error_tables(summaries(records), TITLES, LABELS)
    assert [table.title for table in tables] == ["Example-3", "Example-3s"]
    assert tables[0].columns == ["method", "E = 2", "E = 3"]
    assert [row[0] for row in tables[0].rows] == ["ERM", "Oracle"]


def test_the_csv_has_a_line_a_cell_and_reads_back(records):
    rows = list(csv.DictReader(io.StringIO(csv_of_records(records))))
    assert len(rows) == len(records)
    for row, record in zip(rows, records, strict=True):
        assert float(row["error"]) == pytest.approx(record.value, rel=1e-5)
        assert int(row["warned"]) == (record.key.seed == 0)


def test_a_markdown_table_has_as_many_cells_in_each_line():
    lines = Table("T", ["a", "b", "c"], [["1", "2", "3"]]).markdown().splitlines()
    assert {line.count("|") for line in lines if line.startswith("|")} == {4}


def test_a_figure_has_a_panel_a_data_set_and_is_the_same_every_time(records):
    found = summaries(records)
    first = error_figure(found, TITLES, LABELS, published=published_results())
    again = error_figure(found, TITLES, LABELS, published=published_results())
    assert first == again
    text = first["figure.svg"].decode()
    ElementTree.fromstring(text)
    for word in ("Example-3", "Example-3s", "ERM", "Oracle", "ERM, published", "Test error"):
        assert f">{word}<" in text
    assert "<dc:date>" not in text


def test_without_published_results_none_are_drawn(records):
    text = error_figure(summaries(records), TITLES, LABELS)["figure.svg"].decode()
    assert "published" not in text


def test_a_logarithmic_figure_takes_errors_of_zero(records):
    from dataclasses import replace

    zero = [replace(r, value=0.0, per_environment=[0.0]) for r in records[:2]]
    assert error_figure(summaries(zero), TITLES, LABELS, log=True)["figure.png"]


def test_without_matplotlib_the_error_names_the_extra(records, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"isrlearn\[plot\]"):
        error_figure(summaries(records), TITLES, LABELS)


def test_methods_shown_together_differ_in_colour_and_in_marker():
    from isrlearn.paper.experiments import EXPERIMENTS

    assert set(METHODS) <= set(STYLES)
    for experiment in EXPERIMENTS.values():
        for names in (experiment.methods, experiment.published_methods):
            colours, markers = zip(*(STYLES[name] for name in names), strict=True)
            assert len(set(colours)) == len(set(markers)) == len(names)


def test_the_published_file_is_whole():
    found = published_results()
    datasets = {dataset for dataset, _, _ in found}
    assert datasets == {"1", "1s", "2", "2s", "3", "3s"}
    assert len(found) == 6 * 5 * 9
    assert all(p.mean >= 0 and p.std >= 0 for p in found.values())
    assert found["3", "irmv1", 6].mean == pytest.approx(0.144, abs=5e-4)


def test_differences_are_counted_as_in_a_two_sample_t_test():
    rng = np.random.default_rng(1)
    ours, theirs = rng.normal(0.3, 0.05, 6), rng.normal(0.2, 0.05, 50)
    keys = [CellKey("3", "erm", 2, seed, "published") for seed in range(6)]
    # Both environments alike: the spread in one is the spread of their mean.
    found = summaries([Record(k, v, 0.0, [v, v], 0.1) for k, v in zip(keys, ours, strict=True)])
    published = {("3", "erm", 2): Published(theirs.mean(), theirs.std(ddof=1), {})}
    (c,) = compared(found, published)
    assert c.z == pytest.approx(stats.ttest_ind(ours, theirs).statistic, abs=1e-6)


@pytest.mark.parametrize(
    ("ours", "error", "agrees"),
    [(0.13, 0.01, True), (0.1301, 0.01, False), (0.1, 0.0, True), (0.1 + 1e-9, 0.0, False)],
)
def test_three_standard_errors_decide(ours, error, agrees):
    assert Comparison("3", "erm", 2, ours, 0.1, error).agrees is agrees


def test_the_verdict_counts_environments_within():
    lines = [Comparison("3", "erm", E, 0.1 + 0.01 * E, 0.1, 0.01) for E in (2, 3, 4)]
    verdicts, differences = comparison_tables(lines, TITLES, LABELS)
    assert verdicts.rows == [["Example-3", "ERM", "2 of 3", "4.0 (E = 4)"]]
    assert len(differences.rows[0]) == 4


def test_numbers_as_text():
    assert number(0.25) == "0.2500"
    assert number(1.234e-7) == "0.0000"
    assert number(1.234e-7, exponent=True) == "1.23e-07"
    assert number(float("nan")) == "–"
    assert plus_minus(0.25, 0.01) == "0.250 ± 0.010"
    assert plus_minus(0.25, float("nan"), sign="+") == "+0.250"
    assert mean_interval([0.2, 0.4]) == pytest.approx((0.3, 0.141, 1.271), abs=1e-3)
    assert mean_interval([0.2]) == pytest.approx((0.2, np.nan, np.nan), nan_ok=True)


def test_pages_and_files(tmp_path):
    table = Table("Errors", ["method", "2"], [["erm", "0.5"]])
    page = markdown("Run", ["One seed."], [table], command="isr bench")
    rows = "| method | 2 |\n| :-- | --: |\n| erm | 0.5 |\n"
    assert page == f"# Run\n\nMade by `isr bench`.\n\nOne seed.\n\n### Errors\n\n{rows}"
    (path,) = write_files(tmp_path / "new", {"a.txt": "whole"})
    assert path.read_text() == "whole"


def test_columns_of_the_files():
    text = csv_text(["method", "error"], [{"method": "erm", "error": 1 / 3}])
    assert text.splitlines() == ["method,error", "erm,0.333333"]
    assert csv_of_records([]).strip() == (
        "dataset,method,n_environments,seed,optimizer,parameters,error,excess,validation,"
        "seconds,warned"
    )
    expected = "dataset,optimizer,method,score,seed,validation,test,seconds,chosen"
    assert csv_of_scores([], ["score"]).strip() == expected


def test_a_result_for_json_has_none_for_nan():
    found = Comparison("3", "erm", 2, 0.1, 0.1, float("nan"))
    content = result_dict(found, [], compared=[found])
    assert content["compared"][0]["standard_error"] is None
    assert content["failures"] == []
