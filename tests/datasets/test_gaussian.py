"""Gaussian environments: the truth is the truth of what is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm

from isrlearn.datasets import make_gaussian_environments
from isrlearn.engine import cell_moments


def gaussian_truth(n_environments, **parameters):
    return make_gaussian_environments(0, n_environments, **parameters).truth


MODELS = {
    "binary": {"class_priors": [0.3, 0.7]},
    "four classes": {"n_classes": 4, "class_priors": [0.1, 0.2, 0.3, 0.4]},
    "regression": {"task": "regression"},
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_sample_moments_are_those_of_the_population(model):
    data = make_gaussian_environments(40_000, 3, mixing="random", random_state=0, **model)
    labels = None if "task" in model else data.y
    sample = cell_moments(data.X, labels, data.environments)
    population = data.truth.moments
    assert sample.mean.shape == population.mean.shape
    variance = np.einsum("keii->kei", population.covariance)
    standard_error = np.sqrt(variance / sample.count[..., None])
    assert (abs(sample.mean - population.mean) < 5 * standard_error).all()
    size = np.sqrt(variance[..., :, None] * variance[..., None, :])
    error = abs(sample.covariance - population.covariance) / size
    # Twice the standard error of a variance, sqrt(2 / n), is the scale of the largest of them.
    assert (error < 4 * np.sqrt(2 / sample.count)[..., None, None]).all()


def test_population_cells_weigh_as_the_priors():
    truth = gaussian_truth(4, n_classes=3, class_priors=[0.5, 0.2, 0.3], random_state=0)
    weight = truth.moments.count / truth.moments.count.sum()
    np.testing.assert_allclose(weight, np.tile([[0.125], [0.05], [0.075]], 4))


def test_labels_follow_the_priors():
    data = make_gaussian_environments(
        50_000, 2, n_classes=3, class_priors=[0.1, 0.3, 0.6], random_state=0
    )
    for e in range(2):
        share = np.bincount(data.y[data.environments == e]) / 50_000
        np.testing.assert_allclose(share, [0.1, 0.3, 0.6], atol=0.01)


@pytest.mark.parametrize("seed", range(5))
def test_binary_predictor_is_that_of_proposition_1(seed):
    eta = 0.3
    truth = gaussian_truth(
        3, n_invariant=2, n_spurious=4, mixing="random", class_priors=[1 - eta, eta],
        sigma_invariant=0.7, random_state=seed,
    )  # fmt: skip
    mu_c = truth.invariant_means[1]
    np.testing.assert_array_equal(truth.invariant_means[0], -mu_c)
    w = np.concatenate([2 * mu_c / 0.7**2, np.zeros(4)])
    np.testing.assert_allclose(truth.coef[0], np.linalg.solve(truth.mixing.T, w), rtol=1e-10)
    np.testing.assert_allclose(truth.intercept, [np.log(eta / (1 - eta))], rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_predictor_is_the_posterior_given_invariant_features(n_classes):
    priors = np.arange(1, n_classes + 1) / np.arange(1, n_classes + 1).sum()
    truth = gaussian_truth(
        2, n_classes=n_classes, n_invariant=3, n_spurious=2,
        class_priors=priors, mixing="random", random_state=n_classes,
    )  # fmt: skip
    X = np.random.default_rng(0).standard_normal((50, 5)) @ truth.mixing.T
    z_c = truth.latent(X)[:, :3]
    joint = np.column_stack(
        [
            np.log(prior) + multivariate_normal(mean, truth.sigma_invariant**2).logpdf(z_c)
            for prior, mean in zip(priors, truth.invariant_means, strict=True)
        ]
    )
    logits = X @ truth.coef.T + truth.intercept
    if n_classes == 2:
        logits = np.column_stack([np.zeros(50), logits])
    else:
        np.testing.assert_allclose(truth.coef.sum(axis=0), 0, atol=1e-12)
    log_posterior = joint - logsumexp(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(
        logits - logsumexp(logits, axis=1, keepdims=True), log_posterior, atol=1e-9
    )


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_predictor_does_not_see_the_spurious_subspace(model):
    truth = gaussian_truth(3, n_spurious=4, mixing="random", random_state=0, **model)
    basis = truth.spurious_basis
    np.testing.assert_allclose(basis.T @ basis, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(basis @ (basis.T @ truth.B), truth.B, atol=1e-12)
    np.testing.assert_allclose(truth.coef @ basis, 0, atol=1e-10)


def test_predictor_errs_as_often_as_theory_says():
    data = make_gaussian_environments(50_000, 2, n_invariant=1, mixing="random", random_state=0)
    truth = data.truth
    expected = norm.cdf(-np.linalg.norm(truth.invariant_means[1]) / truth.sigma_invariant)
    error = ((data.X @ truth.coef[0] + truth.intercept > 0) != data.y).mean()
    assert error == pytest.approx(expected, abs=4 * np.sqrt(expected / 100_000))


def test_regression_target_is_the_predictor():
    data = make_gaussian_environments(
        300, 4, task="regression", mixing="random", n_invariant=6, random_state=3
    )
    predicted = data.X @ data.truth.coef + data.truth.intercept
    np.testing.assert_allclose(predicted, data.y, atol=1e-11)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_an_environment_more_changes_nothing_of_the_others(model):
    few = make_gaussian_environments(50, 3, mixing="orthogonal", random_state=5, **model)
    many = make_gaussian_environments(50, 6, mixing="orthogonal", random_state=5, **model)
    old = many.environments < 3
    np.testing.assert_allclose(many.X[old], few.X, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(many.y[old], few.y, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(many.truth.moments.mean[:, :3], few.truth.moments.mean)


def test_seed_decides_everything():
    draw = [make_gaussian_environments(20, 2, mixing="random", random_state=s) for s in (1, 1, 2)]
    np.testing.assert_array_equal(draw[0].X, draw[1].X)
    np.testing.assert_array_equal(draw[0].y, draw[1].y)
    assert abs(draw[0].X - draw[2].X).min() > 0
    assert draw[0].X.dtype == np.float64


def test_a_generator_advances_and_no_seed_differs():
    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    first, second = (make_gaussian_environments(20, 2, random_state=rng).X for _ in range(2))
    np.testing.assert_array_equal(make_gaussian_environments(20, 2, random_state=again).X, first)
    unseeded = [make_gaussian_environments(20, 2).X for _ in range(2)]
    assert abs(first - second).min() > 0
    assert abs(unseeded[0] - unseeded[1]).min() > 0


def test_the_global_generator_is_neither_read_nor_moved():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = make_gaussian_environments(20, 2, random_state=0).X
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    np.testing.assert_array_equal(make_gaussian_environments(20, 2, random_state=0).X, first)


def test_truth_alone_is_the_truth_of_the_samples():
    truth = gaussian_truth(3, n_classes=3, mixing="random", random_state=9)
    data = make_gaussian_environments([5, 0, 7], 3, n_classes=3, mixing="random", random_state=9)
    np.testing.assert_array_equal(truth.moments.mean, data.truth.moments.mean)
    np.testing.assert_array_equal(np.bincount(data.environments), [5, 0, 7])
    assert make_gaussian_environments(0, 3, random_state=9).X.shape == (0, 10)


def test_parameters_given_are_kept_and_leave_the_others():
    drawn = gaussian_truth(3, n_spurious=2, random_state=0)
    sigmas, means = np.array([0.1, 0.2, 0.3]), np.arange(6.0).reshape(3, 2)
    given = gaussian_truth(
        3, n_spurious=2, sigma_spurious=sigmas, spurious_means=means, random_state=0
    )
    np.testing.assert_array_equal(given.sigma_spurious, sigmas)
    np.testing.assert_array_equal(given.spurious_means, [-means, means])
    np.testing.assert_array_equal(given.invariant_means, drawn.invariant_means)
    means[:] = 0
    assert given.spurious_means.any()


def test_mixing_kinds():
    for seed in range(20):
        R = gaussian_truth(1, mixing="random", random_state=seed).mixing
        Q = gaussian_truth(1, mixing="orthogonal", random_state=seed).mixing
        assert np.linalg.cond(R) <= 10
        assert abs(R.T @ R - np.diag(np.diag(R.T @ R))).max() > 0.05
        np.testing.assert_allclose(Q.T @ Q, np.eye(10), atol=1e-12)
    np.testing.assert_array_equal(gaussian_truth(1).mixing, np.eye(10))


@pytest.mark.parametrize(
    ("n_classes", "E", "rank"), [(2, 4, 3), (2, 9, 5), (3, 2, 3), (3, 3, 5), (3, 1, 0)]
)
def test_mean_rank_is_what_the_means_span(n_classes, E, rank):
    truth = gaussian_truth(E, n_classes=n_classes, random_state=0)
    assert truth.mean_rank == rank
    shifts = truth.moments.mean - truth.moments.mean.mean(axis=1, keepdims=True)
    assert np.linalg.matrix_rank(shifts.reshape(-1, 10), tol=1e-9) == rank


def test_one_deviation_is_that_of_every_environment():
    assert len(np.unique(gaussian_truth(3, random_state=0).sigma_spurious)) == 3
    given = gaussian_truth(3, sigma_spurious=0.5, random_state=0).sigma_spurious
    np.testing.assert_array_equal(given, [0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_environments": 0}, "n_environments=0 must be an integer, 1 or more"),
        ({"n_environments": 2.0}, "n_environments=2.0 must be an integer"),
        ({"n_classes": 1}, "n_classes=1 must be an integer, 2 or more"),
        ({"n_invariant": 0}, "n_invariant=0"),
        ({"n_spurious": -1}, "n_spurious=-1"),
        ({"mixing": "rotated"}, "mixing='rotated' is unknown; use one of 'identity'"),
        ({"class_priors": [0.5, 0.6]}, "sum to 1"),
        ({"class_priors": [0.0, 1.0]}, r"class_priors=.* every entry in \(0, inf\)"),
        ({"spurious_means": np.ones((2, 5))}, r"spurious_means has shape \(2, 5\)"),
        ({"spurious_means": np.full((3, 5), np.nan)}, "spurious_means holds NaN"),
        ({"spurious_means": "many"}, "must hold numbers"),
        ({"sigma_invariant": 0.0}, r"sigma_invariant=0.0 must be in \(0, inf\)"),
        ({"sigma_spurious": [1.0, 2.0]}, r"sigma_spurious has shape \(2,\); it must have \(3,\)"),
        ({"sigma_spurious": -1.0}, r"sigma_spurious=.* every entry in \(0, inf\)"),
        ({"task": "ranking"}, "task='ranking' is unknown"),
        ({"task": "regression", "class_priors": [0.5, 0.5]}, "does not apply to task='regression'"),
        ({"random_state": -1}, "random_state=-1 is not a seed"),
        ({"random_state": "a"}, "random_state='a' is not a seed"),
        ({"n_samples": -5}, "n_samples=-5 must hold integers, 0 or more"),
        ({"n_samples": [5, 5]}, r"n_samples has shape \(2,\); it must have \(3,\)"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_gaussian_environments(**{"random_state": 0, **parameters})
