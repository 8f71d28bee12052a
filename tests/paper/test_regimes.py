"""The benchmark of regimes: what each regime does to the data, what is recorded and shown."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.cli.app import run
from isrlearn.core.labels import Cells, is_missing
from isrlearn.datasets import EnvironmentData
from isrlearn.paper.regimes import data, scores
from isrlearn.paper.regimes.data import REGIMES, Task
from isrlearn.paper.regimes.page import RegimesResult, write_regimes
from isrlearn.paper.regimes.scores import (
    METHODS,
    Method,
    RegimesPlan,
    Score,
    read_scores,
    run_regimes,
)
from isrlearn.paper.rivals import WeightedLogistic

COUNT = np.array([[300, 60, 90], [100, 200, 40]])


def _data(count, seed=0):
    y, e = (np.repeat(axis.ravel(), count.ravel()) for axis in np.indices(count.shape))
    X = np.random.default_rng(seed).standard_normal((len(y), 3)) + y[:, None] + e[:, None]
    return EnvironmentData(X, np.array(["no", "yes"])[y], np.array(["a", "b", "c"])[e])


TASK = Task(_data(COUNT), _data(COUNT // 2, 1))


def _applied(name, task=TASK):
    return list(REGIMES[name](task, np.random.default_rng(0)))


def _count(rows):
    return Cells.of(rows.y, rows.environments).count()


def test_all_groups_keeps_the_rows():
    (task,) = _applied("all groups")
    np.testing.assert_array_equal(_count(task.train), COUNT)


def test_the_smallest_cell_is_missing():
    (task,) = _applied("cell missing")
    expected = COUNT.copy()
    expected[1, 2] = 0
    np.testing.assert_array_equal(_count(task.train), expected)
    assert task.test is TASK.test
    # A cell that is all of its class or environment stays.
    alone = Task(_data(np.array([[9, 5, 0], [7, 0, 2]])), TASK.test)
    np.testing.assert_array_equal(
        _count(_applied("cell missing", alone)[0].train), [[9, 5, 0], [0, 0, 2]]
    )


def test_environments_are_known_for_the_most_frequent_class():
    (task,) = _applied("one class known")
    unknown = is_missing(task.train.environments)
    np.testing.assert_array_equal(unknown, task.train.y == "yes")


@pytest.mark.parametrize(("name", "share"), [("10 % known", 0.1), ("1 % known", 0.01)])
def test_a_share_of_every_cell_is_known(name, share):
    (task,) = _applied(name)
    np.testing.assert_array_equal(_count(task.train), np.maximum(1, np.round(share * COUNT)))
    assert len(task.train.y) == COUNT.sum()


def test_minority_cells_are_tiny():
    (task,) = _applied("10 rows")
    np.testing.assert_array_equal(_count(task.train), [[300, 10, 90], [10, 200, 10]])


def test_unseen_environments_are_tested_on():
    tasks = _applied("unseen")
    assert len(tasks) == 3
    for task in tasks:
        (left_out,) = np.unique(task.test.environments)
        assert left_out not in task.train.environments
    two = Task(_data(COUNT[:, :2]), _data(COUNT[:, :2]))
    assert _applied("unseen", two) == []


def test_shares_are_reversed():
    (task,) = _applied("reversed")
    train, test = _count(task.train), _count(task.test)
    np.testing.assert_allclose((train / train.sum(axis=0))[[0, 1, 0], range(3)], 0.9, atol=0.02)
    np.testing.assert_allclose((test / test.sum(axis=0))[[0, 1, 0], range(3)], 0.1, atol=0.05)
    assert task.score == "average"
    assert _applied("reversed", Task(_data(COUNT // 10), _data(COUNT // 10))) == []


@pytest.fixture
def small(monkeypatch):
    data._task.cache_clear()
    data.tasks.cache_clear()
    monkeypatch.setattr(data, "DATASETS", {"watch": lambda seed: TASK})
    yield RegimesPlan(("watch",), ("all groups", "unseen"), ("plain", "CorrelationRemover"), 1)
    data._task.cache_clear()
    data.tasks.cache_clear()


def test_scores_are_recorded_once_and_again_on_request(small, tmp_path, monkeypatch):
    first = run_regimes(small, tmp_path)
    assert [score.key[:3] for score in first] == [
        ("watch", "all groups", "plain"),
        ("watch", "all groups", "CorrelationRemover"),
        ("watch", "unseen", "plain"),
    ]
    assert all(0 <= score.score <= score.average <= 1 for score in first[:2])
    constant = Score("watch", "all groups", "plain", 0, 0.5, 0.5, 0.0, 'a "quoted", text')
    monkeypatch.setattr(scores, "evaluate", lambda *key: constant)
    # What does not apply is tried again, and has no record.
    only = RegimesPlan(("watch",), ("all groups",), ("plain",), 1)
    assert run_regimes(only, tmp_path) == first
    again = run_regimes(only, tmp_path, again=True)
    assert again[0] == constant
    assert again[1:] == first[1:]
    assert len((tmp_path / "results.csv").read_text().splitlines()) == 1 + 3 + 1


def test_a_failure_is_recorded_and_tried_again(small, tmp_path, monkeypatch):
    broken = Method(WeightedLogistic(C=-1.0))
    monkeypatch.setitem(METHODS, "plain", broken)
    only = RegimesPlan(("watch",), ("all groups",), ("plain",), 1)
    (score,) = run_regimes(only, tmp_path)
    assert np.isnan(score.score)
    assert "'C' parameter" in score.settings
    result = RegimesResult(only, [score])
    assert result.failures[0].message == score.settings
    assert result.cells[0].shown == "error"
    monkeypatch.setitem(METHODS, "plain", Method(WeightedLogistic()))
    (score,) = run_regimes(only, tmp_path)
    assert score.score > 0


def test_settings_are_those_of_the_best_worst_group():
    rows = _data(np.array([[400, 400, 400], [20, 20, 20]]))
    method = Method(WeightedLogistic(), {"C": [1.0], "weights": [None, "class"]})
    found = scores._searched(method, rows.X, rows.y, rows.environments, rows.environments, seed=0)
    assert found == {"C": 1.0, "weights": "class"}


def test_the_page_marks_the_best_and_what_is_near(tmp_path):
    values = {"plain": (0.5, 0.7), "CRM": (0.52, 0.72), "DARE": (0.2, 0.3)}
    values["CorrelationRemover"] = (0.9, 0.9)
    found = [
        Score("adult", "all groups", method, seed, value, value, 1.0, "{}")
        for method, pair in values.items()
        for seed, value in enumerate(pair)
    ]
    result = RegimesResult(RegimesPlan(), found)
    assert {cell.method: cell.rank for cell in result.cells} == {
        "CRM": "best",
        "plain": "near",
        "DARE": "behind",
        "CorrelationRemover": "",
    }
    write_regimes(result, tmp_path, command="isr bench regimes")
    page = (tmp_path / "table.md").read_text()
    assert "| CRM | **0.620 ± 0.100** |" in page
    assert "| plain | 0.600 ± 0.100 * |" in page
    assert "| CRM | 1/1 | 0/1 | 1/1 |" in page
    assert (tmp_path / "figure.svg").exists()


def test_the_command_resumes(tmp_path, capsys):
    command = ["bench", "regimes", "--datasets", "digits-on-paper", "--regimes", "5 rows"]
    command += ["--methods", "plain,ISRClassifier()", "--seeds", "1", "--out", str(tmp_path)]
    assert run([*command, "--no-figures"]) == 0
    recorded = (tmp_path / "results.csv").read_bytes()
    assert run([*command, "--no-figures"]) == 0
    assert (tmp_path / "results.csv").read_bytes() == recorded
    assert len(read_scores(tmp_path / "results.csv")) == 2
    assert "best or near" in capsys.readouterr().out
    what = '--datasets "digits-on-paper" --regimes "5 rows" --methods "ISRClassifier(),plain"'
    assert f"Made by `isr bench regimes --seeds 1 {what}`." in (tmp_path / "table.md").read_text()
