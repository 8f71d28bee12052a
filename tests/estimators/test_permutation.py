"""The permutation form of the rank test: no distribution assumed, the same answers elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.core import METHODS
from isrlearn.core.labels import Cells
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.permutation import permutation_rank
from isrlearn.paper.datasets import make_linear_unit_test


def rank(X, y, e, method="mean", **keywords):
    return permutation_rank(Sample(X, Cells.of(y, e)), METHODS[method], **keywords)


def heavy_tails(seed, n=600, d=4):
    rng = np.random.default_rng(seed)
    return rng.standard_t(3, size=(n, d)), rng.integers(2, size=n), rng.integers(3, size=n)


@pytest.mark.parametrize("method", ["mean", "cov", "joint"])
def test_level_holds_under_heavy_tails(method):
    zeros = sum(rank(*heavy_tails(seed, n=240), method=method).rank == 0 for seed in range(30))
    assert zeros >= 29


def test_shifts_of_means_are_found_under_heavy_tails():
    for seed in range(3):
        X, y, e = heavy_tails(seed, n=300)
        X[:, 0] += 2.0 * e
        X[:, 1] += 2.0 * (e == 1)
        assert rank(X, y, e).rank == 2
        # A heavy tail's covariance noise may lead, and cost a dimension more.
        assert rank(X, y, e, method="joint").rank >= 2


def test_shifts_of_covariances_are_found():
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, e = rng.normal(size=(300, 4)), np.arange(300) % 2
        X[e == 1, 2] *= 3.0
        found.append([rank(X, None, e, method=m).rank for m in ("cov", "joint", "mean")])
    # A step in a hundred rejects what is true; five seeds may hold one of them.
    assert np.sum(np.array(found) != [1, 1, 0]) <= 1


def test_example_3():
    truth = make_linear_unit_test("3", n_environments=4, n_samples=0, random_state=1).train.truth
    data = truth.sample(500, random_state=1)
    test = rank(data.X, data.y, data.environments)
    assert test.rank == truth.mean_rank == 3
    assert len(test.p_values) == 4
    assert all(p <= 0.01 for p in test.p_values[:3])
    assert test.p_values[3] > 0.01
    assert (test.spectrum[:3] > test.noise).all()


def test_answers_repeat_and_unknown_environments_are_not_used():
    X, y, e = heavy_tails(0)
    X[:, 0] += e
    once, twice = rank(X, y, e), rank(X, y, e)
    assert once.p_values == twice.p_values
    partly = np.append(e.astype(object), [None] * 50)
    more = rank(np.vstack([X, np.full((50, 4), 1e3)]), np.append(y, np.zeros(50, int)), partly)
    assert more.p_values == once.p_values


def test_one_environment_has_no_shifts():
    X, y, _ = heavy_tails(0)
    assert rank(X, y, np.zeros(len(X))).rank == 0


def test_too_few_permutations_for_the_level_are_as_many_as_it_needs():
    X, y, e = heavy_tails(0)
    X[:, 0] += e
    few, enough = (rank(X, y, e, n_permutations=n) for n in (50, 99))
    assert few.rank == 1
    assert few.p_values == enough.p_values
    # A smaller level needs more of them: 199 could not give a p-value below it.
    small = rank(X, y, e, level=0.004)
    assert small.rank == 1
    assert small.p_values[0] <= 0.004


@pytest.mark.parametrize("shape", [(20, 4, 10), (20, 12, 40)])
def test_level_holds_with_many_small_cells(shape):
    # Whitening by the scatter inside the observed cells, held fixed, alarmed in 18 and 58 %.
    E, n, d = shape
    e, alarms = np.repeat(np.arange(E), n), 0
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(E * n, d))
        alarms += rank(X, None, e, level=0.05, n_permutations=19).rank > 0
    assert alarms <= 4
