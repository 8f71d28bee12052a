"""Two models on the same rows: exact tests per group, and intervals of the differences."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from isrlearn.metrics import group_report, paired_report

RNG = np.random.default_rng(0)
Y, E = RNG.integers(2, size=600), RNG.integers(3, size=600)
BEFORE = np.where(RNG.random(600) < np.where((Y == 1) & (E == 2), 0.5, 0.9), Y, 1 - Y)
AFTER = np.where(RNG.random(600) < 0.85, Y, 1 - Y)


def test_groups_are_those_of_the_two_reports():
    report = paired_report(Y, BEFORE, AFTER, E)
    before, after = group_report(Y, BEFORE, E), group_report(Y, AFTER, E)
    for pair, one, other in zip(report.groups, before.groups, after.groups, strict=True):
        assert pair.group == one.group
        assert pair.n == one.n
        assert (pair.before, pair.after) == pytest.approx((one.value, other.value))
        assert pair.after - pair.before == pytest.approx((pair.gained - pair.lost) / pair.n)
        rows = (pair.label == Y) & (pair.environment == E)
        assert pair.gained == np.sum(rows & (BEFORE != Y) & (AFTER == Y))
        both = pair.gained + pair.lost
        assert pair.p_value == binomtest(pair.gained, both).pvalue
    assert (report.worst.before, report.worst.after) == pytest.approx((before.worst, after.worst))
    assert (report.average.before, report.average.after) == pytest.approx(
        (before.average, after.average)
    )
    assert report.worst.low > 0  # 0.5 to about 0.8


def test_paired_rows_decide_where_intervals_overlap():
    # Seven rows are right only with the second model, none only with the first.
    y, environments = np.zeros(40, dtype=int), np.zeros(40)
    before, after = np.arange(40) < 17, np.arange(40) < 10
    one, other = (group_report(y, p.astype(int), environments).groups[0] for p in (before, after))
    assert one.high > other.low
    report = paired_report(y, before.astype(int), after.astype(int), environments)
    assert (report.groups[0].gained, report.groups[0].lost) == (7, 0)
    assert report.groups[0].p_value == 2 * 0.5**7
    assert report.worst.low > 0


def test_the_same_predictions_do_not_differ():
    report = paired_report(Y, BEFORE, BEFORE, E)
    assert all(g.p_value == 1 and g.gained == g.lost == 0 for g in report.groups)
    assert report.worst.difference == report.average.difference == 0
    # Rows that do not differ here may differ in other data.
    assert report.worst.low < 0 < report.worst.high


def test_swapping_the_models_swaps_the_answer():
    one, other = paired_report(Y, BEFORE, AFTER, E), paired_report(Y, AFTER, BEFORE, E)
    for a, b in zip(one.groups, other.groups, strict=True):
        assert (a.gained, a.lost, a.p_value) == (b.lost, b.gained, b.p_value)
    assert one.worst.difference == -other.worst.difference
    assert one.worst.low == pytest.approx(-other.worst.high, abs=0.03)


def test_rows_of_a_cluster_count_once():
    # Every row five times: the scores stay, the certainty must not grow.
    copies = np.repeat(np.arange(600), 5)
    plain = paired_report(Y, BEFORE, AFTER, E)
    given = paired_report(Y[copies], BEFORE[copies], AFTER[copies], E[copies], clusters=copies)
    blind = paired_report(Y[copies], BEFORE[copies], AFTER[copies], E[copies])

    def width(change):
        return change.high - change.low

    for a, b in zip(plain.groups, given.groups, strict=True):
        assert (a.before, a.after, 5 * a.gained) == pytest.approx((b.before, b.after, b.gained))
        assert a.p_value == b.p_value
    for name in ("worst", "average"):
        a, b, c = (width(getattr(report, name)) for report in (plain, given, blind))
        assert b == pytest.approx(a, rel=0.15)
        assert c < 0.6 * a


@pytest.mark.parametrize("gain", [0.0, 0.2])
def test_the_interval_of_the_worst_group_covers_the_difference(gain):
    covered = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        y, e = np.zeros(240, dtype=int), np.repeat(np.arange(4), 60)
        first, change = rng.random(240) < 0.6, rng.random(240)
        second = np.where(first, change > 0.05, change < (0.05 * 0.6 + gain) / 0.4)
        report = paired_report(y, 1 - first, 1 - second, e, n_bootstrap=300)
        covered += report.worst.low - 1e-9 <= gain <= report.worst.high + 1e-9
    assert covered / 200 > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 200)


def test_a_regression_compares_squared_errors():
    rng = np.random.default_rng(0)
    y, e = rng.normal(size=400), np.array([*"ab"] * 200)
    before = y + rng.normal(size=400) * np.where(e == "a", 2.0, 1.0)
    after = y + rng.normal(size=400)
    report = paired_report(y, before, after, e, metric="rmse")
    for g in report.groups:
        rows = e == g.environment
        assert g.before == pytest.approx(np.sqrt(np.mean((y - before)[rows] ** 2)))
        assert g.gained == np.sum(np.abs(after - y)[rows] < np.abs(before - y)[rows])
        assert g.label is None
    assert report.worst.before == report.groups[0].before
    assert report.worst.high < 0
    assert report.groups[0].p_value < 1e-6 < 0.01 < report.groups[1].p_value


def test_one_row_decides_nothing():
    rng = np.random.default_rng(0)
    y, e = rng.normal(size=201), np.array([*"ab"] * 100 + ["c"])
    before = y + rng.normal(size=201)
    after = before + 0.01 * rng.normal(size=201)
    before[-1], after[-1] = y[-1] + 12, y[-1] + 9
    found = paired_report(y, before, after, e, metric="rmse").worst
    assert found.difference == pytest.approx(-3)
    assert found.low < -2 < 2 < found.high
    same = paired_report(y, before, before, e, metric="rmse").worst
    assert same.low == same.high == 0


def test_rows_without_an_environment_count_in_the_average_only():
    e = E.astype(float)
    e[:100] = np.nan
    report = paired_report(Y, BEFORE, AFTER, e)
    assert sum(g.n for g in report.groups) == 500
    assert report.average.before == pytest.approx(np.mean(Y == BEFORE))


def test_text_and_json():
    report = paired_report(Y, BEFORE, AFTER, E)
    lines = str(report).splitlines()
    assert lines[0].split() == [
        *("class", "environment", "n", "before", "after", "gained", "lost", "p-value")
    ]
    assert len(lines) == 1 + 6 + 1 + 2
    assert lines[-1].startswith("average")
    plain = json.loads(json.dumps(report.to_dict()))
    assert plain["worst"]["after"] == report.worst.after
    assert plain["groups"][0]["gained"] == report.groups[0].gained
    assert report == paired_report(Y, BEFORE, AFTER, E)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"after": AFTER[:5]}, "y_true has 600 rows and after has 5"),
        ({"before": AFTER.astype(str)}, "before .* can never be equal"),
        ({"metric": "r2"}, "'accuracy' or 'rmse' for a comparison, got 'r2'"),
        ({"level": 95}, "strictly between 0 and 1"),
        ({"clusters": [1, 2]}, "each of the 600 rows"),
        ({"clusters": np.where(E > 0, E, np.nan)}, "each of the 600 rows"),
        ({"environments": None}, "need environments"),
    ],
)
def test_mistakes_are_named(change, message):
    given = {"y_true": Y, "before": BEFORE, "after": AFTER, "environments": E} | change
    with pytest.raises(ValueError, match=message):
        paired_report(**given)
