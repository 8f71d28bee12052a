"""The command of the partial-labels benchmark."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from isrlearn.cli.bench import bench

QUICK = ["--jobs=1", "--draws=1", "--datasets=digits-on-paper", "--methods=plain", "--labels=100"]


@pytest.fixture
def run(tmp_path):
    def invoke(*arguments):
        out = ["--out", str(tmp_path / "out"), "--no-figures"]
        return CliRunner().invoke(bench, ["partial-labels", *QUICK, *out, *arguments])

    return invoke


def test_tables_are_printed_and_files_written(run, tmp_path):
    result = run()
    assert result.exit_code == 0
    assert "Digits on paper" in result.stdout
    assert "nothing removed, worst group" in result.stdout
    page = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    given = "isr bench partial-labels --draws 1 --datasets digits-on-paper --methods plain"
    assert f"Made by `{given} --labels 100`." in page


def test_json(run):
    result = run("--json")
    assert result.exit_code == 0
    assert [c["score"] for c in json.loads(result.stdout)["curves"]] == ["worst group", "average"]


def test_percentages_that_are_none(run):
    result = run("--labels", "some")
    assert result.exit_code == 2
    assert "not a list of percentages" in result.output
