"""The rank tests: correct where shifts are clear, and at their level where nothing shifts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from isrlearn.core import METHODS, covariance_rank, mean_rank
from isrlearn.engine import cell_moments
from isrlearn.paper.datasets import make_linear_unit_test


def example(name, seed, E):
    """The model of a unit test, no samples drawn."""
    splits = make_linear_unit_test(name, n_environments=E, n_samples=0, random_state=seed)
    return splits.train.truth


def moments_of(data, **keep):
    return cell_moments(data.X, data.y, data.environments, **keep)


@pytest.mark.parametrize(
    ("n", "E"),
    [(1000, 3), (1000, 7), (1000, 10), pytest.param(10_000, 7, marks=pytest.mark.slow)],
)
def test_rank_of_example_3_is_found(n, E):
    right = 0
    for seed in range(100):
        truth = example("3", seed, E)
        assert truth.mean_rank == min(5, E - 1)
        found = mean_rank(moments_of(truth.sample(n, random_state=seed), pooled=True))
        right += found.rank == truth.mean_rank
    assert right >= 95


NOTHING_SHIFTS = {
    # rows, features, environments, classes
    "many rows": (2000, 10, 3, 2),
    "many environments": (2000, 10, 7, 2),
    "just enough rows to whiten": (106, 10, 3, 2),
    "no classes": (400, 8, 5, 1),
    "more than one feature per twenty rows": (60, 20, 2, 2),
    "more features than a tenth of the rows, many cells": (300, 100, 3, 3),
}


@pytest.mark.parametrize("shape", NOTHING_SHIFTS.values(), ids=NOTHING_SHIFTS)
def test_nothing_is_found_where_nothing_shifts(shape):
    n, d, E, K = shape
    zeros = 0
    for seed in range(300):
        rng = np.random.default_rng([seed, n, d])
        y, environments = rng.integers(K, size=n), rng.integers(E, size=n)
        mixing = np.eye(d) + 0.3 * rng.normal(size=(d, d))
        X = rng.normal(size=(n, d)) @ mixing + 3.0 * y[:, None]  # classes differ, cells do not
        zeros += mean_rank(cell_moments(X, y, environments, pooled=True)).rank == 0
    assert zeros >= 0.97 * 300


def test_level_is_the_share_of_false_alarms():
    # At level 0.2 a fifth of the seeds must alarm: a test that never did would pass the others.
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        X, environments = rng.normal(size=(300, 6)), np.arange(300) % 3
        alarms += mean_rank(cell_moments(X, None, environments), level=0.2).rank > 0
    low, high = stats.binom.interval(0.999, 400, 0.2)
    assert low <= alarms <= high


def test_level_holds_once_the_true_dimensions_are_removed():
    # Two strong shifts, then noise: "two are enough" must be rejected as often as its level says.
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        X, environments = rng.normal(size=(400, 6)), np.arange(400) % 4
        X[:, :2] += 3.0 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[environments]
        test = mean_rank(cell_moments(X, None, environments), level=0.2)
        assert test.rank >= 2
        alarms += test.rank > 2
    low, high = stats.binom.interval(0.999, 400, 0.2)
    assert low <= alarms <= high


def example_3_prime(seed, *, sigmas, shift):
    """Example-3' in three environments with these deviations; the means shift or do not."""
    truth = example("3'", seed, 3)
    means = truth.spurious_means if shift else truth.spurious_means[:, [0, 0, 0]]
    return replace(truth, sigma_spurious=np.asarray(sigmas), spurious_means=means)


def test_covariance_and_joint_rank_of_example_3_prime():
    right = {"cov": 0, "joint": 0, "joint, means equal": 0}
    for seed in range(60):
        moving = example_3_prime(seed, sigmas=[0.1, 0.2, 0.3], shift=True)
        moments = moments_of(moving.sample(1000, random_state=seed))
        right["cov"] += covariance_rank(moments).rank == 5
        right["joint"] += METHODS["joint"].rank(moments).rank == 5
        still = example_3_prime(seed, sigmas=[0.1, 0.2, 0.3], shift=False)
        moments = moments_of(still.sample(1000, random_state=seed))
        right["joint, means equal"] += METHODS["joint"].rank(moments).rank == 5
    assert min(right.values()) >= 57, right


def test_covariance_and_joint_rank_are_zero_where_nothing_shifts():
    zeros = {"cov": 0, "joint": 0, "joint, small cells": 0}
    for seed in range(100):
        still = example_3_prime(seed, sigmas=[0.1, 0.1, 0.1], shift=False)
        moments = moments_of(still.sample(500, random_state=seed))
        zeros["cov"] += covariance_rank(moments).rank == 0
        zeros["joint"] += METHODS["joint"].rank(moments).rank == 0
        small = moments_of(still.sample(40, random_state=seed))  # 20 rows per cell, 10 features
        zeros["joint, small cells"] += METHODS["joint"].rank(small).rank == 0
    assert min(zeros.values()) >= 97, zeros


def test_sequence_of_p_values_explains_the_rank():
    truth = example("3", 0, 4)
    test = mean_rank(moments_of(truth.sample(1000, random_state=0)))
    assert test.rank == 3
    assert len(test.p_values) == 4
    assert all(p <= test.level for p in test.p_values[:3])
    assert test.p_values[3] > test.level == 0.01
    assert test.limit == 6  # two classes, three differences each
    assert not test.limited
    assert len(test.spectrum) == test.limit
    assert (test.spectrum[:3] > test.noise).all()
    assert (test.spectrum[3:] < test.noise).all()


def test_rank_is_limited_by_environments():
    truth = example("3", 0, 2)
    moments = moments_of(truth.sample(1000, random_state=0))
    one_class = mean_rank(moments, np.array([0]))
    assert (one_class.rank, one_class.limit, one_class.limited) == (1, 1, True)
    assert len(one_class.p_values) == 1


def test_statistic_is_the_one_of_the_formula():
    # With an almost exact covariance the test is the chi-square one of the docstring.
    rng = np.random.default_rng(1)
    n, p, E = 30_000, 4, 3
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    environments = np.arange(n) % E
    moments = cell_moments(X, None, environments)
    test = mean_rank(moments, level=0.0)
    Z = X @ np.linalg.inv(np.linalg.cholesky(moments.within() / moments.dof)).T
    means = np.array([Z[environments == e].mean(axis=0) for e in range(E)])
    t = np.linalg.svd(np.sqrt(n / E) * (means - means.mean(axis=0)), compute_uv=False) ** 2
    np.testing.assert_allclose(test.spectrum, t[: E - 1], rtol=1e-9)
    expected = stats.chi2.sf(t.sum(), p * (E - 1))
    np.testing.assert_allclose(test.p_values[0], expected, rtol=1e-2)


def test_too_few_rows_give_rank_zero():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6, 3)) + 100.0 * (np.arange(6) % 2)[:, None]
    test = mean_rank(cell_moments(X, None, np.arange(6) % 2))
    assert test.rank == 0
    assert test.p_values == (1.0,)


def test_one_environment_has_rank_zero():
    X = np.random.default_rng(3).normal(size=(50, 3))
    test = mean_rank(cell_moments(X, None, np.zeros(50)))
    assert (test.rank, test.limit, test.p_values) == (0, 0, ())


def test_answers_are_values_with_identity():
    X = np.random.default_rng(4).normal(size=(50, 3))
    moments = cell_moments(X, None, np.arange(50) % 2)
    test = mean_rank(moments)
    same = test
    assert test == same
    assert test != mean_rank(moments)  # arrays inside: compared by identity, never ambiguous
    assert len({test, same}) == 1
