"""On data whose truth is known the diagnosis finds the shifts that are there."""

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
    return diagnose(data.X, data.y, data.environments, n_bootstrap=0, compare=False), data.truth


def linear(name, E, seed, n=2500):
    return diagnosed(make_linear_unit_test, seed, name=name, n_environments=E, n_samples=n)


@pytest.mark.parametrize("name", ["2", "2s"])
@pytest.mark.parametrize("seed", [0, 1])
def test_example_2_shifts_along_one_dimension(name, seed):
    found, truth = linear(name, 3, seed)
    assert truth.mean_rank == found.means.n_dimensions == 1
    assert not found.means.limited  # three environments could have shown two dimensions


@pytest.mark.parametrize("name", ["3", "3s"])
@pytest.mark.parametrize("E", [2, 4])
@pytest.mark.parametrize("seed", SEEDS)
def test_example_3_has_equal_covariances_and_too_few_environments(name, E, seed):
    found, _ = linear(name, E, seed)
    assert found.means.n_dimensions == E - 1
    assert found.means.limited
    assert any("cannot show more dimensions" in text for text in found.findings)
    assert not found.covariances.shifted


@pytest.mark.parametrize("name", ["3", "3s"])
@pytest.mark.parametrize("seed", SEEDS)
def test_example_3_with_more_environments_than_dimensions(name, seed):
    found, _ = linear(name, 8, seed)
    assert found.means.n_dimensions == 5
    assert found.findings == ()


@pytest.mark.parametrize("name", ["3'", "3s'"])
@pytest.mark.parametrize("seed", SEEDS)
def test_example_3_prime_has_more_covariances_than_means(name, seed):
    found, truth = linear(name, 4, seed)
    assert np.ptp(truth.sigma_spurious) > 0.05
    assert found.covariances.n_dimensions > found.means.n_dimensions == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_covariances_alone(seed):
    data = make_gaussian_environments(
        1500, 2, spurious_means=np.zeros((2, 5)), sigma_spurious=[1.0, 2.0], random_state=seed
    )
    found = diagnose(data.X, data.y, data.environments, n_bootstrap=0, compare=False)
    assert found.covariances.n_dimensions == 5
    assert found.covariances.effect == pytest.approx(4.0, rel=0.3)


@pytest.mark.parametrize("K", [3, 5])
@pytest.mark.parametrize("seed", [0, 1])
def test_multiclass(K, seed):
    few, _ = diagnosed(
        make_multiclass_unit_test, seed, n_classes=K, n_environments=2, n_samples=2500
    )
    assert (few.means.n_dimensions, few.means.limited) == (K, True)
    enough, _ = diagnosed(
        make_multiclass_unit_test, seed, n_classes=K, n_environments=3, n_samples=2500
    )
    assert (enough.means.n_dimensions, enough.means.limited) == (5, K * 2 <= 5)


@pytest.mark.parametrize("anticausal", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_regression(anticausal, seed):
    make = {"anticausal": anticausal, "n_samples": 4000}
    few, _ = diagnosed(make_regression_unit_test, seed, n_environments=3, **make)
    assert few.task == "regression"
    assert (few.means.n_dimensions, few.means.limited) == (2, True)
    assert few.covariances is None
    assert not few.target.shifted
    enough, _ = diagnosed(make_regression_unit_test, seed, n_environments=8, **make)
    assert enough.means.n_dimensions in (4, 5)  # the weakest direction can be lost in noise


@pytest.mark.parametrize("seed", range(8))
def test_no_effect(seed):
    data = make_gaussian_environments(
        800,
        3,
        spurious_means=np.ones((3, 5)),
        sigma_spurious=1.0,
        mixing="random",
        random_state=seed,
    )
    found = diagnose(data.X, data.y, data.environments, n_bootstrap=0, compare=False)
    assert not found.means.shifted
    assert not found.covariances.shifted
