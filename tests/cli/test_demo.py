"""What the demonstration promises, and what ``isr demo`` shows of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

from isrlearn import ISRClassifier, compare_models
from isrlearn.cli.demo import demo, demonstration, spread
from isrlearn.datasets import load_digits_on_paper


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
    found = result.comparison
    text = " ".join(output.split())
    assert text.startswith(found.headline)
    for name, report in found.reports.items():
        assert name in output
        for score in (report.worst, report.average, *(g.value for g in report.groups)):
            assert f"{score:.4f}" in output
    for paragraph in (*found.sentences, *result.story):
        assert paragraph in text


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
    assert outcome.stdout.count("blue paper") >= 2


@pytest.fixture(scope="module")
def several():
    return [demonstration(seed) for seed in range(5)]


@pytest.fixture(scope="module")
def result(several):
    return several[0]


def test_isr_beats_the_shortcut(several):
    scores = spread(several)
    gain = {
        score: scores["ISR"][score]["mean"] - scores["plain"][score]["mean"]
        for score in ("worst", "average")
    }
    assert gain["worst"] > 0.1
    assert gain["average"] > 0.03
    for result in several:
        reports = result.comparison.reports
        assert reports["ISR"].worst > reports["plain"].worst


def test_the_other_models_do_not_depend_on_isr(result):
    train, test = (getattr(load_digits_on_paper(), part) for part in ("train", "test"))
    rows = train.X, train.y, train.environments
    other = compare_models(*rows, model=ISRClassifier(C=1e-6), test=test).to_dict()["models"]
    own = result.comparison.to_dict()["models"]
    assert own.pop("ISR") != other.pop("model")
    assert own == other


def test_the_paper_is_harder_to_read_after_the_removal(result):
    assert result.paper_read_before > 0.98
    assert result.paper_read_after < 0.8
    assert result.n_spurious == 1


def test_the_shortcut_is_as_strong_as_described(result):
    assert result.agreement == pytest.approx(0.95, abs=0.02)
    sizes = {g.group: g.n_train for g in result.comparison.reports["plain"].groups}
    assert sum(sizes.values()) == result.n_train
    assert set(sizes) == {(c, p) for c in ("even", "odd") for p in ("blue paper", "yellow paper")}
    assert f"smallest training group has {min(sizes.values())} images" in result.story[2]


def test_the_story_tells_the_numbers(result):
    story = " ".join(result.story)
    assert f"In {result.agreement:.0%} of the training images" in story
    assert f"classifies {result.comparison.reports['plain'].worst:.0%} of the" in story
    train = load_digits_on_paper().train
    isr = ISRClassifier().fit(train.X, train.y, environments=train.environments)
    assert f"along {isr.rank_test_.rank} of {result.n_features} directions" in story


def test_it_is_the_same_every_time(result):
    assert demonstration(seed=0).to_dict() == result.to_dict()
    assert demonstration(seed=1).to_dict() != result.to_dict()


def test_the_spread_is_over_the_runs(several):
    values = [result.comparison.reports["ISR"].worst for result in several]
    record = json.loads(json.dumps(spread(several)))
    expected = {"mean": np.mean(values), "std": np.std(values, ddof=1)}
    assert record["ISR"]["worst"] == pytest.approx(expected, rel=1e-12)
