"""On data whose truth is known the diagnosis recommends the right method and names its limits."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.datasets import make_gaussian_environments
from isrlearn.diagnosis import diagnose
from isrlearn.paper.datasets import (
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
)

SEEDS = range(4)


def diagnosed(make, seed, **parameters):
    data = make(random_state=seed, **parameters)
    data = getattr(data, "train", data)
    return diagnose(data.X, data.y, data.environments, n_bootstrap=0), data.truth


def linear(name, E, seed, n=2500):
    return diagnosed(make_linear_unit_test, seed, name=name, n_environments=E, n_samples=n)


@pytest.mark.parametrize("name", ["2", "2s"])
@pytest.mark.parametrize("seed", [0, 1])
def test_example_2_shifts_along_one_dimension(name, seed):
    found, truth = linear(name, 3, seed)
    assert truth.mean_rank == 1
    assert found.recommendation.parameters == {"method": "mean", "n_spurious": 1}
    assert not found.means.limited  # three environments could have shown two dimensions
    assert "too-few-environments" not in found.recommendation.codes


@pytest.mark.parametrize("name", ["3", "3s"])
@pytest.mark.parametrize("E", [2, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_example_3_has_equal_covariances_and_too_few_environments(name, E, seed):
    found, _ = linear(name, E, seed)
    assert found.recommendation.parameters == {"method": "mean", "n_spurious": E - 1}
    assert found.means.n_patterns == 1  # the classes mirror each other
    assert found.means.limited
    assert {"too-few-environments", "covariances-equal"} <= set(found.recommendation.codes)


@pytest.mark.parametrize("name", ["3", "3s"])
@pytest.mark.parametrize("seed", SEEDS)
def test_example_3_with_more_environments_than_dimensions(name, seed):
    found, _ = linear(name, 8, seed)
    assert found.recommendation.parameters == {"method": "mean", "n_spurious": 5}
    assert "too-few-environments" not in found.recommendation.codes
    assert found.information.unseen_after > 0.97
    assert found.information.unseen_after - found.information.unseen_before > 0.01


@pytest.mark.parametrize("name", ["3'", "3s'"])
@pytest.mark.parametrize("seed", SEEDS)
def test_example_3_prime_needs_covariances(name, seed):
    found, truth = linear(name, 4, seed)
    assert np.ptp(truth.sigma_spurious) > 0.05
    assert found.recommendation.parameters == {"method": "joint", "n_spurious": 5}
    assert found.means.limited  # the means alone would have shown three
    assert "too-few-environments" not in found.recommendation.codes
    assert "covariances-shift" in found.recommendation.codes


@pytest.mark.parametrize("seed", SEEDS)
def test_two_nearly_equal_variances_are_called_weak(seed):
    data = make_gaussian_environments(
        4000,
        2,
        spurious_means=np.zeros((2, 5)),
        sigma_spurious=[1.0, 1.07],
        random_state=seed,
    )
    found = diagnose(data.X, data.y, data.environments, n_bootstrap=0)
    if found.covariances.shifted:
        assert found.covariances.weak
        assert "weak-covariances" in found.recommendation.codes


@pytest.mark.parametrize("seed", SEEDS)
def test_covariances_alone(seed):
    data = make_gaussian_environments(
        1500, 2, spurious_means=np.zeros((2, 5)), sigma_spurious=[1.0, 2.0], random_state=seed
    )
    found = diagnose(data.X, data.y, data.environments, n_bootstrap=0)
    assert found.n_spurious == 5
    if not found.means.shifted:  # one test in a hundred says they do
        assert found.recommendation.parameters == {"method": "cov", "n_spurious": 5}
        assert found.recommendation.codes[:2] == ("means-equal", "covariances-shift")
    # |σ₁² − σ₂²| over their mean, for deviations of 1 and 2
    assert found.covariances.ratio == pytest.approx(3 / 2.5, rel=0.1)


@pytest.mark.parametrize("K", [3, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_multiclass(K, seed):
    few, _ = diagnosed(
        make_multiclass_unit_test, seed, n_classes=K, n_environments=2, n_samples=2500
    )
    assert few.recommendation.parameters == {"method": "multiclass", "n_spurious": K}
    assert "too-few-environments" in few.recommendation.codes
    enough, _ = diagnosed(
        make_multiclass_unit_test, seed, n_classes=K, n_environments=3, n_samples=2500
    )
    assert enough.recommendation.parameters == {"method": "multiclass", "n_spurious": 5}
    assert "too-few-environments" not in enough.recommendation.codes


@pytest.mark.parametrize("anticausal", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_regression(anticausal, seed):
    make = {"anticausal": anticausal, "n_samples": 4000}
    few, _ = diagnosed(make_regression_unit_test, seed, n_environments=3, **make)
    assert few.task == "regression"
    assert few.recommendation.estimator == "ISRRegressor"
    assert few.recommendation.parameters == {"n_spurious": 2}
    assert "too-few-environments" in few.recommendation.codes
    assert "covariances-not-valid" in few.recommendation.codes
    assert "target-shifts" not in few.recommendation.codes
    enough, _ = diagnosed(make_regression_unit_test, seed, n_environments=8, **make)
    assert enough.n_spurious in (4, 5)  # the weakest of five directions can be lost in noise
    assert "too-few-environments" not in enough.recommendation.codes


@pytest.mark.parametrize("seed", range(8))
def test_no_effect_and_nothing_removed(seed):
    data = make_gaussian_environments(
        800,
        3,
        spurious_means=np.ones((3, 5)),
        sigma_spurious=1.0,
        mixing="random",
        random_state=seed,
    )
    found = diagnose(data.X, data.y, data.environments)
    assert found.recommendation.parameters == {"n_spurious": 0}
    assert found.recommendation.codes == ("no-shift",)
    assert "no environment effect" in str(found)
    assert found.recommendation.summary.startswith("Remove nothing")
    assert found.stability is None
