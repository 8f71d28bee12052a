"""Intervals agree with SciPy's, and contain the truth as often as their level says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import r2_score, root_mean_squared_error

from isrlearn.metrics import group_report


@pytest.mark.parametrize(("successes", "n"), [(0, 1), (1, 1), (0, 7), (3, 7), (84, 84), (41, 1000)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_interval_of_an_accuracy_is_the_exact_one_of_scipy(successes, n, level):
    predicted = np.arange(n) < successes
    (group,) = group_report(np.full(n, True), predicted, np.zeros(n), level=level).groups
    expected = binomtest(successes, n).proportion_ci(level, method="exact")
    assert group.value == successes / n
    np.testing.assert_allclose((group.low, group.high), (expected.low, expected.high), atol=1e-12)


def test_the_intervals_of_many_groups_hold_together(predictions):
    y, predicted, environments = predictions([0.9, 0.7, 0.8], 40)
    report = group_report(y, predicted, environments)
    for g in report.groups:
        each = binomtest(round(g.value * g.n), g.n).proportion_ci(1 - 0.05 / 3, method="exact")
        np.testing.assert_allclose((g.low, g.high), (each.low, each.high))
    # The lowest true accuracy is below every upper limit; its lower limit needs no adjustment.
    alone = [
        binomtest(round(g.value * g.n), g.n).proportion_ci(0.95, "exact") for g in report.groups
    ]
    low, high = report.worst_interval
    assert low == pytest.approx(min(ci.low for ci in alone))
    assert high == min(g.high for g in report.groups)
    assert report.by_rank[0].low < low


def test_the_worst_of_a_regression_is_the_largest_error():
    rng = np.random.default_rng(0)
    y, environments = rng.normal(size=200), np.arange(200) % 2
    predicted = y + rng.normal(size=200) * np.where(environments, 2.0, 1.0)
    report = group_report(y, predicted, environments, metric="rmse")
    one = group_report(
        y[environments == 1], predicted[environments == 1], np.ones(100), metric="rmse"
    )
    low, high = report.worst_interval
    assert low == report[1].low < one.groups[0].low
    assert high == one.groups[0].high < report[1].high


@pytest.mark.parametrize("accuracies", [[0.8] * 4, [0.98] * 10, [0.6, 0.9, 0.9, 0.9]])
@pytest.mark.parametrize("n", [10, 100])
def test_intervals_cover_the_group_named_worst_and_the_lowest_accuracy(predictions, accuracies, n):
    # All of benchmarks/coverage.py in small: 95 % less three standard errors of 300 trials.
    named = lowest = 0
    for seed in range(300):
        report = group_report(*predictions(accuracies, n, seed=seed))
        worst, (low, high) = report.by_rank[0], report.worst_interval
        named += worst.low <= accuracies[worst.environment] <= worst.high
        lowest += low <= min(accuracies) <= high
    assert min(named, lowest) / 300 > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 300)


@pytest.mark.parametrize("metric", ["accuracy", "rmse", "r2"])
def test_copies_of_rows_make_no_interval_shorter(metric):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=300) if metric == "accuracy" else rng.normal(size=300)
    noise = rng.random(300) < 0.2 if metric == "accuracy" else rng.normal(size=300) / 2
    e, copies = np.arange(300) % 3, np.repeat(np.arange(300), 5)
    predicted = y ^ noise if metric == "accuracy" else y + noise
    plain = group_report(y, predicted, e, metric=metric)
    known, blind = (
        group_report(y[copies], predicted[copies], e[copies], metric=metric, clusters=clusters)
        for clusters in (copies, None)
    )
    for a, b, c in zip(plain.groups, known.groups, blind.groups, strict=True):
        assert a.value == pytest.approx(b.value)
        assert b.high - b.low == pytest.approx(a.high - a.low, rel=0.06)
        assert c.high - c.low < 0.6 * (a.high - a.low)


def test_intervals_of_clustered_rows_cover_the_truth():
    # Forty patients with ten rows each; accuracies of patients vary around 0.8.
    covered = blind = 0
    patient = np.repeat(np.arange(40), 10)
    for seed in range(300):
        rng = np.random.default_rng(seed)
        right = (rng.random(400) < rng.beta(4, 1, size=40)[patient]).astype(int)
        given = np.ones(400, dtype=int), right, np.zeros(400)
        (group,) = group_report(*given, clusters=patient).groups
        covered += group.low <= 0.8 <= group.high
        (group,) = group_report(*given).groups
        blind += group.low <= 0.8 <= group.high
    assert covered / 300 > 0.92
    assert blind / 300 < 0.9


def test_groups_that_are_right_everywhere_have_as_many_rows_as_clusters():
    right = np.ones(60, dtype=int)
    report = group_report(right, right, np.zeros(60), clusters=np.arange(60) // 10)
    assert report.groups[0].low < group_report(right[:7], right[:7], np.zeros(7)).groups[0].low
    (one,) = group_report(right, right, np.zeros(60), clusters=np.zeros(60)).groups
    assert one.low == pytest.approx(0.025)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, float("nan")])
def test_level_lies_between_0_and_1(level):
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        group_report([0, 1], [0, 1], environments=[0, 0], level=level)


@pytest.fixture
def predictions():
    """Rows of one class whose predictions are correct with a probability per environment."""

    def drawn(accuracies, n, seed=0):
        rng = np.random.default_rng(seed)
        environments = np.repeat(np.arange(len(accuracies)), n)
        correct = rng.random(len(environments)) < np.asarray(accuracies)[environments]
        return np.ones(len(correct), dtype=int), correct.astype(int), environments

    return drawn


NOISE = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "uniform": lambda rng, size: rng.uniform(-np.sqrt(3), np.sqrt(3), size),
    "laplace": lambda rng, size: rng.laplace(scale=np.sqrt(0.5), size=size),
}


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("metric", ["rmse", "r2"])
def test_regression_intervals_contain_the_truth_95_percent_of_the_time(metric, noise):
    # y = signal + residual, both of variance 1 up to scale 2: RMSE is 2, R² is 1 − 4/(4+9).
    rng = np.random.default_rng(0)
    truth = {"rmse": 2.0, "r2": 9 / 13}[metric]
    trials, n = 1000, 120
    signal = 3 * rng.standard_normal((trials, n))
    target = signal + 2 * NOISE[noise](rng, (trials, n))
    covered = 0
    for y, prediction in zip(target, signal, strict=True):
        (group,) = group_report(y, prediction, environments=np.zeros(n), metric=metric).groups
        covered += group.low <= truth <= group.high
    # Three standard errors of a share of 0.95 are 0.02. Heavy tails may cost 0.02 more: the
    # squares of Laplace residuals are so skewed that 120 of them are not yet a normal mean.
    assert (0.91 if noise == "laplace" else 0.93) <= covered / trials <= 0.97


def test_normal_residuals_are_not_assumed():
    # Half of the residuals are ±1 and half are 0: their squares vary half as much as those of
    # normal residuals, whose chi-square interval is sqrt(2) times too wide here.
    y = np.tile([0.0, 0.0, 1.0, -1.0], 250)
    (group,) = group_report(y, np.zeros(1000), environments=np.zeros(1000), metric="rmse").groups
    normal_theory = 2 * 1.96 * group.value / np.sqrt(2 * 1000)
    np.testing.assert_allclose(group.high - group.low, normal_theory / np.sqrt(2), rtol=0.01)


@pytest.mark.parametrize(
    ("metric", "reference"), [("rmse", root_mean_squared_error), ("r2", r2_score)]
)
def test_regression_scores_are_scikit_learns(metric, reference):
    rng = np.random.default_rng(1)
    y, prediction = rng.standard_normal((2, 90))
    environments = rng.integers(3, size=90)
    report = group_report(y, prediction, environments=environments, metric=metric)
    for group in report.groups:
        rows = environments == group.environment
        np.testing.assert_allclose(group.value, reference(y[rows], prediction[rows]), rtol=1e-12)
        assert group.low < group.value < group.high
        assert group.n == rows.sum()
    np.testing.assert_allclose(report.average, reference(y, prediction), rtol=1e-12)


def test_scores_do_not_depend_on_units():
    rng = np.random.default_rng(2)
    y, prediction = rng.standard_normal((2, 40))
    environments = np.zeros(40)
    small = group_report(y, prediction, environments=environments, metric="rmse").groups[0]
    large = group_report(1e6 * y, 1e6 * prediction, environments=environments, metric="rmse")
    np.testing.assert_allclose(
        [large.groups[0].low, large.groups[0].high], [1e6 * small.low, 1e6 * small.high]
    )
    before = group_report(y, prediction, environments=environments, metric="r2").groups[0]
    after = group_report(3 * y + 7, 3 * prediction + 7, environments=environments, metric="r2")
    np.testing.assert_allclose(
        [after.groups[0].low, after.groups[0].high], [before.low, before.high]
    )


def test_one_row_has_an_unbounded_rmse_interval_and_a_perfect_fit_none():
    report = group_report(
        [1.0, 2.0, 3.0], [2.0, 2.0, 3.0], environments=["a", "b", "b"], metric="rmse"
    )
    assert (report["a"].value, report["a"].low, report["a"].high) == (1.0, 0.0, np.inf)
    assert (report["b"].value, report["b"].low, report["b"].high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
def test_r2_of_a_constant_target_is_an_error_that_names_the_environment(value):
    y = np.r_[0.0, 1.0, np.full(50, value)]
    environments = ["varies"] * 2 + ["constant"] * 50
    with pytest.raises(ValueError, match=r"'constant'.*does not vary.*metric='rmse'"):
        group_report(y, y + 1, environments=environments, metric="r2")
