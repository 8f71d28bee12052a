"""Whether covariances can be compared, and with which test."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn import ISRClassifier
from isrlearn.diagnosis import diagnose


def noise_of(X, y, e):
    return diagnose(X, y, e, n_bootstrap=0).covariances.noise


def test_gaussian_features_have_gaussian_noise(cells):
    # Neither different covariances of the cells nor few rows may look like heavy tails.
    rng = np.random.default_rng(0)
    spread = np.array([[np.diag(rng.uniform(0.2, 5, size=8)) for _ in range(3)] for _ in range(2)])
    X, y, e = cells(np.full((2, 3), 2000), np.zeros((2, 3, 8)), spread)
    assert noise_of(X, y, e) == pytest.approx(1.0, abs=0.03)
    small = [noise_of(*cells(np.full((2, 3), 30), np.zeros((2, 3, 8)), seed=i)) for i in range(60)]
    assert np.mean(small) == pytest.approx(1.0, abs=3 * np.std(small) / 60**0.5 + 0.005)


@pytest.mark.parametrize("dof", [12, 30])
def test_noise_of_t_distributed_features_is_that_of_their_kurtosis(dof):
    rng = np.random.default_rng(0)
    n, p = 60_000, 6
    X = rng.normal(size=(n, p)) / np.sqrt(rng.chisquare(dof, size=n) / dof)[:, None]
    kappa = 6 / (dof - 4)  # excess kurtosis of each feature
    expected = ((p + 2) * (1 + kappa / 3) - 1) / (p + 1)
    y, e = np.arange(n) // 2 % 2, np.arange(n) % 2
    assert noise_of(X, y, e) == pytest.approx(expected, rel=0.03)


def test_heavy_tails_do_not_pass_for_a_shift():
    alarms = heavy = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y, e = rng.integers(2, size=1200), rng.integers(2, size=1200)
        X = rng.normal(size=(1200, 6)) / np.sqrt(rng.chisquare(5, size=1200) / 5)[:, None]
        found = diagnose(X, y, e, n_bootstrap=0)
        heavy += found.covariances.heavy_tailed
        alarms += found.covariances.shifted
    assert heavy == 12
    assert alarms <= 1
    assert "heavy-tails" in found.recommendation.codes


def test_a_real_shift_is_found_under_heavy_tails():
    rng = np.random.default_rng(0)
    y, e = rng.integers(2, size=3000), rng.integers(2, size=3000)
    X = rng.normal(size=(3000, 6)) / np.sqrt(rng.chisquare(6, size=3000) / 6)[:, None]
    X[:, 0] *= 1 + e
    found = diagnose(X, y, e, n_bootstrap=20)
    assert found.covariances.heavy_tailed
    assert found.recommendation.parameters["method"] == "cov"
    assert found.n_spurious == 1


def test_covariances_that_differ_everywhere_are_left_alone(cells):
    # All of six variances differ: there is no subspace to spare.
    spread = np.array([[np.eye(6), 3 * np.eye(6)]] * 2)
    means = np.zeros((2, 2, 6))
    means[:, 1, 0] = 5.0
    means[1, :, 1] = 4.0
    found = diagnose(*cells(np.full((2, 2), 800), means, spread), n_bootstrap=0)
    assert found.covariances.n_dimensions_joint >= 5
    assert found.recommendation.parameters["method"] == "mean"
    assert found.n_spurious == 1
    assert "covariances-shift-everywhere" in found.recommendation.codes


def test_a_class_too_small_for_covariances_is_to_be_unlabelled(cells):
    # Covariances of class 0 differ along one dimension; class 1 has a cell of twelve rows.
    spread = np.array([[np.eye(5), np.diag([6.0, 1, 1, 1, 1])]] * 2)
    means = np.zeros((2, 2, 5))
    means[1, :, 1] = 3.0
    X, y, e = cells([[900, 900], [12, 900]], means, spread)
    found = diagnose(X, y, e, n_bootstrap=0)
    assert found.covariances.compared == (0,)
    assert found.recommendation.parameters["method"] == "cov"
    assert found.recommendation.unlabel == (1,)
    assert "the rows of class 1 to None" in found.recommendation.summary
    known = e.astype(float)
    known[y == 1] = np.nan
    clf = ISRClassifier(**found.recommendation.parameters).fit(X, y, environments=known)
    assert abs(clf.spurious_basis_[0, 0]) > 0.9
