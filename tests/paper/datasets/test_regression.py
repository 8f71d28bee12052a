"""The regression unit test and its anti-causal variant."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.engine import cell_moments
from isrlearn.paper.datasets import make_regression_unit_test


def least_squares(data):
    design = np.column_stack([data.X, np.ones(len(data.X))])
    return np.linalg.lstsq(design, data.y, rcond=None)[0]


def squared_error(data, coef, intercept):
    return np.mean((data.X @ coef + intercept - data.y) ** 2)


@pytest.mark.parametrize("anticausal", [False, True])
@pytest.mark.parametrize("n_spurious", [3, 6])
def test_sample_moments_are_those_of_the_population(anticausal, n_spurious):
    data = make_regression_unit_test(
        n_samples=40_000, n_spurious=n_spurious, anticausal=anticausal, random_state=0
    ).train
    sample = cell_moments(data.X, None, data.environments)
    population = data.truth.moments
    variance = np.einsum("keii->kei", population.covariance)
    assert (abs(sample.mean - population.mean) < 5 * np.sqrt(variance / 40_000)).all()
    size = np.sqrt(variance[..., :, None] * variance[..., None, :])
    assert (abs(sample.covariance - population.covariance) / size).max() < 4 * np.sqrt(2 / 40_000)


def test_least_squares_solves_the_model_of_the_paper():
    splits = make_regression_unit_test(n_environments=3, n_samples=1_000, random_state=0)
    truth = splits.test.truth
    *coef, intercept = least_squares(splits.train)
    assert squared_error(splits.test, np.array(coef), intercept) < 1e-20
    assert squared_error(splits.test, truth.coef, truth.intercept) < 1e-20
    assert truth.target_noise == truth.spurious_noise == 0
    np.testing.assert_array_equal(truth.invariant_mean, np.ones(5))


def test_spurious_features_are_large_in_the_model_of_the_paper():
    parameters = {"n_environments": 5, "n_samples": 0, "random_state": 0}
    paper = make_regression_unit_test(**parameters).train.truth
    assert paper.maps.std() == pytest.approx(50.0, rel=0.2)
    assert paper.offsets.std() == pytest.approx(50.0, rel=0.4)


@pytest.mark.parametrize("E", [2, 10])
def test_the_shortcut_pays_in_the_variant(E):
    # Over many seeds least squares has 0.062 at two and 0.045 at ten environments; 0.01 is the
    # variance of the noise in y.
    errors, oracles = [], []
    for seed in range(30):
        splits = make_regression_unit_test(
            n_environments=E, n_samples=1_000, anticausal=True, random_state=seed
        )
        *coef, intercept = least_squares(splits.train)
        truth = splits.test.truth
        errors.append(squared_error(splits.test, np.array(coef), intercept))
        oracles.append(squared_error(splits.test, truth.coef, truth.intercept))
        assert errors[-1] > oracles[-1]
        assert squared_error(splits.train, np.array(coef), intercept) < 0.01
    assert 0.035 < np.mean(errors) < 0.09
    assert np.mean(oracles) == pytest.approx(0.01, rel=0.03)


def test_the_variant_as_written():
    data = make_regression_unit_test(
        n_environments=50, n_samples=2_000, anticausal=True, scramble=False, random_state=0
    ).train
    truth = data.truth
    assert (truth.gains == truth.gains[:, :1]).all()
    assert ((truth.gains >= 0.5) & (truth.gains <= 1.5)).all()
    assert truth.offsets.std() == pytest.approx(0.1, rel=0.15)
    residual = data.X[:, 5:] - data.y[:, None] * truth.gains[data.environments]
    residual -= truth.offsets[data.environments]
    assert residual.std() == pytest.approx(0.1, rel=0.02)
    assert abs(residual.mean()) < 0.001
    assert (data.y - data.X[:, :5] @ truth.weights).std() == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("anticausal", [False, True])
def test_environments_stay_and_test_is_permuted(anticausal):
    few, many = (
        make_regression_unit_test(
            n_environments=E, n_samples=3_000, anticausal=anticausal, random_state=0
        )
        for E in (3, 8)
    )
    np.testing.assert_allclose(many.test.X[many.test.environments < 3], few.test.X, atol=1e-10)
    np.testing.assert_array_equal(many.test.y[many.test.environments < 3], few.test.y)
    for data, linked in ((few.train, True), (few.validation, True), (few.test, False)):
        first = data.environments == 0
        z = data.truth.latent(data.X)[first, 5:]
        assert (abs(np.corrcoef(data.y[first], z.T)[0, 1:]).max() > 0.3) == linked
    assert few.train.truth.mean_rank == 2
    assert many.train.truth.mean_rank == 5


def test_bad_parameters():
    with pytest.raises(ValueError, match="n_environments=0"):
        make_regression_unit_test(n_environments=0)
