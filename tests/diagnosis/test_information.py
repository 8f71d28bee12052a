"""How well labels and environments are predicted before and after the removal."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from isrlearn.diagnosis import diagnose
from isrlearn.paper.datasets import make_regression_unit_test


def test_accuracies_are_those_of_gaussians(cells):
    # Classes 2 apart, environments 3 apart, in directions of their own.
    means = np.zeros((2, 2, 6))
    means[:, 1, 0] = 3.0
    means[1, :, 1] = 2.0
    found = diagnose(*cells(np.full((2, 2), 2000), means), n_bootstrap=0).information
    assert found.label_before == pytest.approx(norm.cdf(1.0), abs=0.02)
    assert found.label_after == pytest.approx(norm.cdf(1.0), abs=0.02)
    assert found.environment_before == pytest.approx(norm.cdf(1.5), abs=0.02)
    assert found.environment_after == pytest.approx(0.5, abs=0.03)
    assert found.environment_chance == 0.5
    assert found.label_error < 0.01


def test_labels_that_shift_with_the_environment_are_lost(cells):
    # The only direction that distinguishes classes is the one that shifts.
    means = np.zeros((2, 2, 6))
    means[1, :, 0] = 2.5
    means[:, 1, 0] += 3.0
    found = diagnose(*cells(np.full((2, 2), 1500), means), n_bootstrap=0)
    assert found.information.label_before == pytest.approx(norm.cdf(1.25), abs=0.03)
    assert found.information.label_after == pytest.approx(0.5, abs=0.04)
    assert "labels-lost" in found.recommendation.codes


def test_environments_are_predicted_by_covariances_too(cells):
    spread = np.array([[np.eye(4), np.diag([9.0, 1.0, 1.0, 1.0])]] * 2)
    means = np.zeros((2, 2, 4))
    means[1, :, 1] = 3.0
    found = diagnose(*cells(np.full((2, 2), 1000), means, spread), n_bootstrap=0)
    assert found.recommendation.parameters == {"method": "cov", "n_spurious": 1}
    assert found.information.quadratic
    assert (
        found.information.environment_before > 0.65
    )  # no mean shifts: a linear model would be at 0.5
    assert found.information.environment_after == pytest.approx(0.5, abs=0.04)


def test_probes_never_see_the_rows_the_subspace_came_from():
    # Many directions, few rows: made equal and tried on the same rows, cell means would tell
    # environments worse than chance.
    after = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(240, 12))
        y, e = np.arange(240) % 2, np.arange(240) // 2 % 2
        X[:, 0] += 3.0 * e
        after.append(diagnose(X, y, e, n_bootstrap=0).information.environment_after)
    # Half of the rows leave a little of the environment in, and nothing makes it negative.
    assert 0.5 < np.mean(after) < 0.6


def test_what_changes_more_than_a_few_directions_is_not_gone():
    # The environment multiplies the features, as coloured ink does. Their mean is taken out,
    # their spread stays.
    rng = np.random.default_rng(0)
    y, e = np.arange(2400) % 2, np.arange(2400) // 2 % 2
    X = np.abs(rng.normal(size=(2400, 8))) * np.where(e, 3.0, 1.0)[:, None]
    X[:, 0] += 3.0 * y
    found = diagnose(X, y, e, n_bootstrap=0)
    assert found.information.quadratic
    assert found.information.environment_left > 0.5
    assert "environment-left" in found.recommendation.codes


def test_regression_explains_variance_inside_environments():
    data = make_regression_unit_test(
        n_environments=8, n_samples=1000, anticausal=True, random_state=0
    ).train
    found = diagnose(data.X, data.y, data.environments, n_bootstrap=0)
    assert found.information.score == "R²"
    assert 1 > found.information.label_before > found.information.label_after > 0.9
    assert found.heads == ()


def test_a_target_that_shifts_is_reported():
    rng = np.random.default_rng(0)
    e = np.arange(900) % 3
    y = rng.normal(size=900) + 0.7 * e
    X = np.column_stack([y, rng.normal(size=900)]) + 0.3 * rng.normal(size=(900, 2))
    found = diagnose(X, y, e, n_bootstrap=0)
    assert found.task == "regression"
    assert found.target.shifted
    assert found.target.effect == pytest.approx(1.4, abs=0.2)
    assert "target-shifts" in found.recommendation.codes
