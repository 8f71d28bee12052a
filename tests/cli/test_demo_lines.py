"""What the demonstration promises."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isrlearn.cli.demo import demonstration, spread


@pytest.fixture(scope="module")
def several():
    return [demonstration(seed) for seed in range(5)]


@pytest.fixture(scope="module")
def result(several):
    return several[0]


def test_isr_beats_the_shortcut(several):
    scores = spread(several)
    gain = {
        score: scores["isr"][score]["mean"] - scores["plain"][score]["mean"]
        for score in ("worst", "average")
    }
    assert gain["worst"] > 0.1
    assert gain["average"] > 0.03
    assert all(result.isr.worst > result.plain.worst for result in several)


def test_the_paper_is_harder_to_read_after_the_removal(result):
    assert result.paper_read_before > 0.98
    assert result.paper_read_after < 0.8
    assert 1 <= result.n_spurious <= 3


def test_the_shortcut_is_as_strong_as_described(result):
    assert result.agreement == pytest.approx(0.95, abs=0.02)
    sizes = {g.group: g.n_train for g in result.plain.groups}
    assert sum(sizes.values()) == result.n_train
    assert set(sizes) == {(c, p) for c in ("even", "odd") for p in ("blue paper", "yellow paper")}
    assert f"smallest training group has {min(sizes.values())} images" in result.story[2]


def test_the_story_tells_the_numbers(result):
    story = " ".join(result.story)
    assert f"{result.agreement:.0%} of the images" in story
    assert f"gets {result.plain.worst:.0%} right" in story
    assert f"along {result.n_spurious} of {result.n_features} directions" in story


def test_it_is_the_same_every_time(result):
    assert demonstration(seed=0) == result
    assert demonstration(seed=1) != result


def test_the_spread_is_over_the_runs(several):
    values = [result.isr.worst for result in several]
    record = json.loads(json.dumps(spread(several)))
    expected = {"mean": np.mean(values), "std": np.std(values, ddof=1)}
    assert record["isr"]["worst"] == pytest.approx(expected, rel=1e-12)
