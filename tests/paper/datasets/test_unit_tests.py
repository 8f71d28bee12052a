"""The linear unit tests: constants, splits, names and seeds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from isrlearn.datasets import EnvironmentData, make_gaussian_environments
from isrlearn.engine import cell_moments
from isrlearn.paper.datasets import LINEAR_UNIT_TESTS, make_linear_unit_test, permute_spurious

PLAIN = [name for name in LINEAR_UNIT_TESTS if not name.endswith("-scrambled")]
ALIASES = {
    "causal-regression": ["1", "Example1", "Example-1", "example 1"],
    "cows-camels-scrambled": ["2s", "Example2s", "Example-2s", "Cows-Camels-Scrambled"],
    "small-margin": ["3", "Example3"],
    "small-margin-variance": ["3'", "Example-3'", "3′"],
    "small-margin-variance-scrambled": ["3s'", "3's", "Example-3s'", "Example3s'"],
}


def small(name: str, **parameters):
    return make_linear_unit_test(
        name, **{"n_environments": 2, "n_samples": 30, "random_state": 0} | parameters
    )


def test_every_test_has_its_published_name():
    assert list(LINEAR_UNIT_TESTS.items()) == [
        ("causal-regression", "Example-1"),
        ("cows-camels", "Example-2"),
        ("small-margin", "Example-3"),
        ("small-margin-variance", "Example-3'"),
        ("causal-regression-scrambled", "Example-1s"),
        ("cows-camels-scrambled", "Example-2s"),
        ("small-margin-scrambled", "Example-3s"),
        ("small-margin-variance-scrambled", "Example-3s'"),
    ]


@pytest.mark.parametrize("name", ALIASES)
def test_published_names_are_aliases(name):
    expected = small(name)
    for alias in [*ALIASES[name], LINEAR_UNIT_TESTS[name]]:
        np.testing.assert_array_equal(small(alias).test.X, expected.test.X)


@pytest.mark.parametrize("name", ["4", "Example-4s", "", "3ss", "3-scrambled", "small", 3.5, None])
def test_unknown_names_are_told_the_legal_ones(name):
    with pytest.raises(ValueError, match=r"not a linear unit test; use one of .*Example-3s'"):
        small(name)


@pytest.mark.parametrize("name", PLAIN)
def test_scrambled_is_a_rotation_of_plain(name):
    plain, scrambled = small(name), small(name + "-scrambled")
    Q = scrambled.train.truth.mixing
    np.testing.assert_array_equal(plain.train.truth.mixing, np.eye(10))
    np.testing.assert_allclose(Q.T @ Q, np.eye(10), atol=1e-12)
    assert abs(Q - np.eye(10)).max() > 0.5
    for a, b in zip(vars(plain).values(), vars(scrambled).values(), strict=True):
        np.testing.assert_allclose(b.X, a.X @ Q.T, atol=1e-12)
        np.testing.assert_array_equal(b.y, a.y)


@pytest.mark.parametrize("name", LINEAR_UNIT_TESTS)
def test_splits_are_independent_and_seeded(name):
    one, same, other = small(name), small(name), small(name, random_state=1)
    for split in ("train", "validation", "test"):
        np.testing.assert_array_equal(getattr(one, split).X, getattr(same, split).X)
        assert abs(getattr(one, split).X - getattr(other, split).X).min() > 0
        np.testing.assert_array_equal(getattr(one, split).environments, np.repeat([0, 1], 30))
    assert abs(one.train.X - one.validation.X).min() > 0
    assert abs(one.train.X - one.test.X).min() > 0
    assert one.train.truth is one.test.truth


@pytest.mark.parametrize("name", LINEAR_UNIT_TESTS)
def test_an_environment_more_changes_nothing_of_the_others(name):
    few, many = small(name, n_environments=4), small(name, n_environments=7)
    for split in ("train", "test"):
        a, b = getattr(few, split), getattr(many, split)
        np.testing.assert_allclose(b.X[b.environments < 4], a.X, atol=1e-14)
        np.testing.assert_array_equal(b.y[b.environments < 4], a.y)


@pytest.mark.parametrize("name", PLAIN)
def test_in_test_the_spurious_part_is_permuted_within_environments(name):
    truth = small(name).train.truth
    plain = truth.sample(4_000, random_state=3)
    permuted = truth.sample(4_000, random_state=3, permuted=True)
    np.testing.assert_array_equal(permuted.y, plain.y)
    np.testing.assert_array_equal(permuted.X[:, :5], plain.X[:, :5])
    for e in range(2):
        rows = plain.environments == e
        kept, moved = plain.X[rows, 5:], permuted.X[rows, 5:]
        np.testing.assert_array_equal(np.unique(moved, axis=0), np.unique(kept, axis=0))
        link = [abs(np.corrcoef(plain.y[rows], z.T)[0, 1:]).max() for z in (kept, moved)]
        assert link[1] < 4.5 / np.sqrt(4_000)
    assert link[0] > 0.15


@pytest.mark.parametrize("name", ["2", "3s'"])
def test_test_split_is_permuted_and_validation_is_not(name):
    splits = small(name, n_samples=4_000)

    def link(data):
        z = data.truth.latent(data.X)[data.environments == 0, 5:]
        return abs(np.corrcoef(data.y[data.environments == 0], z.T)[0, 1:]).max()

    assert min(link(splits.train), link(splits.validation)) > 0.5
    assert link(splits.test) < 4.5 / np.sqrt(4_000)
    assert link(permute_spurious(splits.train, random_state=0)) < 4.5 / np.sqrt(4_000)


def test_noise_of_example_1():
    splits = small("1", n_environments=40)
    noise = splits.train.truth.noise
    np.testing.assert_array_equal(noise[:3], [0.1, 1.5, 2.0])
    assert ((noise[3:] > 0.01) & (noise[3:] < 10)).all()
    assert noise.max() > 3
    assert noise.min() < 0.03
    assert splits.train.truth.mean_rank == 0


def test_example_1_has_the_published_oracle_error():
    # The noise of y has variance d_c s_e^2: 5 (0.01 + 2.25 + 4) / 3 on average.
    splits = make_linear_unit_test("1s", n_environments=3, random_state=0)
    truth = splits.test.truth
    residual = splits.test.y - splits.test.X @ truth.coef - truth.intercept
    error = np.mean(residual**2)
    assert error == pytest.approx(5 * (0.1**2 + 1.5**2 + 2.0**2) / 3, rel=0.03)


def test_example_1_sample_moments_are_those_of_the_population():
    data = make_linear_unit_test("1s", n_samples=40_000, random_state=0).train
    sample = cell_moments(data.X, None, data.environments)
    population = data.truth.moments
    variance = np.einsum("keii->kei", population.covariance)
    size = np.sqrt(variance[..., :, None] * variance[..., None, :])
    assert (abs(sample.covariance - population.covariance) / size).max() < 4 * np.sqrt(2 / 40_000)
    assert (abs(sample.mean) < 5 * np.sqrt(variance / 40_000)).all()


def test_example_2_is_made_of_animals_and_backgrounds():
    data = make_linear_unit_test("2", n_environments=3, n_samples=20_000, random_state=0).train
    np.testing.assert_array_equal(data.y, data.X[:, :5].sum(axis=1) > 0)
    background = data.X[:, 5:].sum(axis=1) > 0
    for e, (p, s) in enumerate([(0.95, 0.3), (0.97, 0.5), (0.99, 0.7)]):
        rows = data.environments == e
        assert data.y[rows].mean() == pytest.approx(s, abs=0.015)
        assert (background == data.y)[rows].mean() == pytest.approx(p, abs=0.006)
    # Noise has variance 0.1; the animal's scale is 0.01, the background's 1.
    deviation = abs(data.X).std(axis=0) / np.repeat([0.01, 1.0], 5)
    np.testing.assert_allclose(deviation, np.sqrt(0.1), rtol=0.02)
    np.testing.assert_allclose(abs(data.X[:, :5]).mean(axis=0), 0.01, rtol=0.02)


def test_example_2_beyond_the_third_environment_and_its_rank():
    truth = small("2s", n_environments=30).train.truth
    np.testing.assert_array_equal(truth.agreement[:3], [0.95, 0.97, 0.99])
    assert ((truth.agreement[3:] >= 0.9) & (truth.agreement[3:] <= 1)).all()
    assert ((truth.animal[3:] >= 0.3) & (truth.animal[3:] <= 0.7)).all()
    assert truth.mean_rank == 1
    equal = replace(small("2").train.truth, agreement=np.full(2, 0.9))
    assert equal.mean_rank == 0


def test_example_2_is_predicted_without_error():
    test = make_linear_unit_test("2s", n_samples=2_000, random_state=0).test
    predicted = test.X @ test.truth.coef[0] + test.truth.intercept[0] > 0
    assert (predicted == test.y).all()


@pytest.mark.parametrize("name", ["3s", "3s'"])
def test_example_3_has_the_published_oracle_error(name):
    test = make_linear_unit_test(name, n_environments=5, random_state=0).test
    predicted = test.X @ test.truth.coef[0] + test.truth.intercept[0] > 0
    expected = norm.cdf(-np.sqrt(5))
    assert (predicted != test.y).mean() == pytest.approx(
        expected, abs=4 * np.sqrt(expected / 50_000)
    )


def test_example_3_classes():
    data = make_linear_unit_test("3", n_samples=10_001, random_state=0).train
    truth = data.truth
    for e in range(3):
        rows = data.environments == e
        assert abs(np.diff(np.bincount(data.y[rows]))) <= 1
        zero = data.X[rows & (data.y == 0)]
        np.testing.assert_allclose(zero[:, :5].mean(axis=0), 0.1, atol=0.006)
        np.testing.assert_allclose(zero[:, 5:].mean(axis=0), truth.spurious_means[0, e], atol=0.006)
        np.testing.assert_allclose(zero.std(axis=0), 0.1, rtol=0.05)
    np.testing.assert_array_equal(truth.spurious_means[1], -truth.spurious_means[0])
    assert np.ptp(truth.sigma_spurious) == 0
    assert truth.mean_rank == 2


def test_example_3_prime_keeps_its_deviations_in_every_split():
    splits = make_linear_unit_test("3'", n_environments=20, n_samples=2_000, random_state=0)
    sigma = splits.train.truth.sigma_spurious
    assert ((sigma > 0.1) & (sigma < 0.3)).all()
    assert np.ptp(sigma) > 0.1
    for data in (splits.train, splits.validation):
        for e in range(20):
            zero = data.X[(data.environments == e) & (data.y == 0), 5:]
            assert zero.std(axis=0).mean() == pytest.approx(sigma[e], rel=0.05)
    np.testing.assert_array_equal(
        small("3").train.truth.spurious_means, small("3'").train.truth.spurious_means
    )


def test_no_spurious_features_at_all():
    for name in LINEAR_UNIT_TESTS:
        splits = small(name, n_spurious=0)
        assert splits.test.X.shape == (60, 5)
        assert splits.test.truth.mean_rank == 0


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("1", {"n_environments": 0}, "n_environments=0"),
        ("1", {"n_invariant": 0}, "n_invariant=0"),
        ("1", {"n_samples": 1.5}, "n_samples=1.5"),
    ],
)
def test_bad_parameters(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        small(name, **parameters)


def test_permuting_keeps_what_is_invariant_and_breaks_the_link():
    data = make_gaussian_environments(5_000, 3, mixing="random", random_state=0)
    permuted = permute_spurious(data, random_state=1)
    before, after = data.truth.latent(data.X), data.truth.latent(permuted.X)
    np.testing.assert_array_equal(permuted.y, data.y)
    np.testing.assert_allclose(after[:, :5], before[:, :5], atol=1e-9)
    for e in range(3):
        rows = data.environments == e
        spurious = [np.sort(z[rows, 5:], axis=0) for z in (before, after)]
        np.testing.assert_allclose(*spurious, atol=1e-9)
        link = [abs(np.corrcoef(data.y[rows], z[rows, 5:].T)[0, 1:]).max() for z in (before, after)]
        assert link[0] > 0.3
        assert link[1] < 4 / np.sqrt(5_000)
    again = permute_spurious(data, random_state=1)
    np.testing.assert_array_equal(again.X, permuted.X)


def test_only_data_with_a_known_mixing_can_be_permuted():
    data = EnvironmentData(np.zeros((3, 2)), np.zeros(3), np.zeros(3))
    with pytest.raises(ValueError, match="knows its mixing"):
        permute_spurious(data)
