"""The multiclass unit test."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import norm

from isrlearn.engine import cell_moments
from isrlearn.paper.datasets import make_multiclass_unit_test


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_true_predictor_has_the_error_of_the_invariant_features(n_classes):
    for seed in range(5):
        splits = make_multiclass_unit_test(n_classes, n_samples=5_000, random_state=seed)
        test, truth = splits.test, splits.test.truth
        logits = test.X @ truth.coef.T + truth.intercept
        predicted = logits[:, 0] > 0 if n_classes == 2 else logits.argmax(axis=1)
        error = (predicted != test.y).mean()
        gaps = pdist(truth.invariant_means) / (2 * truth.sigma_invariant)
        # Bayes' error of equal balls: the tail beyond half the gap, summed over pairs at most.
        bound = 2 / n_classes * norm.sf(gaps).sum()
        spread = 4 * np.sqrt(bound / len(test.y)) + 1e-3
        assert error <= bound + spread
        if n_classes == 2:
            assert error >= bound - spread


@pytest.mark.parametrize("scramble", [False, True])
def test_scales_and_population(scramble):
    data = make_multiclass_unit_test(
        3, n_environments=2, n_samples=30_000, scramble=scramble, random_state=0
    ).train
    truth = data.truth
    assert truth.sigma_invariant == pytest.approx(0.01)
    np.testing.assert_allclose(truth.sigma_spurious, 0.1)
    sample = cell_moments(data.X, data.y, data.environments)
    variance = np.einsum("keii->kei", truth.moments.covariance)
    assert (abs(sample.mean - truth.moments.mean) < 5 * np.sqrt(variance / 10_000)).all()
    np.testing.assert_allclose(np.bincount(data.y) / 60_000, 1 / 3, atol=0.01)


def test_means_are_uniform_before_scaling():
    parameters = {"n_environments": 40, "n_samples": 0, "n_invariant": 50, "random_state": 0}
    truth = make_multiclass_unit_test(30, **parameters).train.truth
    for means, scale in ((truth.invariant_means, 0.1), (truth.spurious_means, 1.0)):
        assert 0 <= means.min() < 0.01 * scale
        assert 0.99 * scale < means.max() < scale
        assert means.mean() == pytest.approx(scale / 2, rel=0.05)


@pytest.mark.parametrize(("k", "E"), [(2, 2), (2, 4), (3, 2), (7, 2), (4, 3)])
def test_means_reveal_a_dimension_a_class_and_environment(k, E):
    truth = make_multiclass_unit_test(k, n_environments=E, n_samples=0, random_state=0).train.truth
    assert truth.mean_rank == min(5, k * (E - 1))


def test_environments_stay_and_test_is_permuted():
    few, many = (
        make_multiclass_unit_test(3, n_environments=E, n_samples=3_000, random_state=0)
        for E in (2, 5)
    )
    np.testing.assert_allclose(
        many.train.X[many.train.environments < 2], few.train.X, rtol=0, atol=1e-14
    )
    for data, linked in ((few.train, True), (few.validation, True), (few.test, False)):
        first = data.environments == 0
        z = data.truth.latent(data.X)[first, 5:]
        means = np.array([z[data.y[first] == k].mean(axis=0) for k in range(3)])
        assert (np.ptp(means, axis=0).max() > 0.5) == linked


def test_bad_parameters():
    with pytest.raises(ValueError, match="n_classes=1 must be an integer, 2 or more"):
        make_multiclass_unit_test(1)
