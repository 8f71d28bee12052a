"""``isr demo`` shows what the demonstration found."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from isrlearn.cli.demo import demo, demonstration, spread


@pytest.fixture
def run():
    def invoke(*arguments):
        outcome = CliRunner().invoke(
            demo, arguments, catch_exceptions=False, env={"COLUMNS": "200"}
        )
        assert outcome.exit_code == 0
        return outcome.output

    return invoke


def test_tables_and_story(run):
    result = demonstration(1)
    output = run("--seed", "1")
    for report in (result.plain, result.isr):
        for group in report.groups:
            assert f"{group.value:.3f} [{group.low:.2f}, {group.high:.2f}]" in output
        assert f"{report.average:.3f}" in output
    for paragraph in result.story:
        assert paragraph in " ".join(output.split())


def test_json(run):
    assert json.loads(run("--json", "--seed", "1")) == demonstration(1).to_dict()
    several = spread([demonstration(0), demonstration(1)])
    assert json.loads(run("--json", "--repeat", "2")) == {"seeds": [0, 1], **several}


def test_repetitions(run):
    scores = spread([demonstration(0), demonstration(1)])["plain"]["worst"]
    output = run("--repeat", "2")
    assert "over 2 seeds" in output
    assert f"{scores['mean']:.3f} ± {scores['std']:.3f}" in output


def test_it_takes_less_than_ten_seconds_and_fits_a_narrow_pipe(isr_process):
    outcome, seconds = isr_process("demo")
    assert outcome.returncode == 0
    assert seconds < 10
    assert outcome.stderr == ""
    assert "\x1b" not in outcome.stdout
    assert max(map(len, outcome.stdout.splitlines())) <= 80
    # Nothing is broken over two lines but headings: a score and its interval stay together.
    assert outcome.stdout.count("]") == 1 + 2 * 4
    assert all(line.count("[") == line.count("]") for line in outcome.stdout.splitlines())
