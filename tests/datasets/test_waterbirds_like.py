"""The simulation of Waterbirds' features."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression

from isrlearn.core import mean_subspace, principal_angles
from isrlearn.datasets import make_waterbirds_like
from isrlearn.metrics import group_sizes, worst_group_accuracy

SMALL = {"n_features": 40, "n_test": ((4000, 4000), (4000, 4000))}


@pytest.fixture(scope="module")
def splits():
    return make_waterbirds_like(**SMALL, random_state=3)


def test_groups_are_those_of_waterbirds():
    splits = make_waterbirds_like(n_features=25)
    groups = [("landbird", "land"), ("landbird", "water"), ("waterbird", "land")]
    groups.append(("waterbird", "water"))
    for data, counts in (
        (splits.train, [3498, 184, 56, 1057]),
        (splits.validation, [467, 466, 133, 133]),
        (splits.test, [2255, 2255, 642, 642]),
    ):
        assert group_sizes(data.y, data.environments) == dict(zip(groups, counts, strict=True))
    assert (splits.train.y[:100] == "waterbird").any(), "rows come in random order"


def test_means_move_inside_the_spurious_subspace_alone(splits):
    truth = splits.train.truth
    found = mean_subspace(truth.moments, shared=False)  # classes move along different directions
    assert found.rank == truth.mean_rank == 2
    assert principal_angles(found.basis, truth.spurious_basis).max() < 1e-7
    gap = truth.moments.mean[1] - truth.moments.mean[0]
    core = np.linalg.qr(truth.A[:, truth.invariant_means[0] != 0])[0]
    assert core.shape[1] == 20
    inside = np.hstack([core, truth.spurious_basis])
    np.testing.assert_allclose(gap, gap @ inside @ inside.T, atol=1e-12)
    np.testing.assert_allclose(core.T @ truth.spurious_basis, 0, atol=1e-12)


def test_spectrum_of_the_covariance_is_a_power_law():
    moments = make_waterbirds_like(n_features=30).train.truth.moments
    values = np.linalg.eigvalsh(moments.covariance[1, 0])[::-1]
    np.testing.assert_allclose(values, 1 / np.arange(1, 31.0), rtol=1e-9)


def test_distances_are_in_deviations_of_a_cell(splits):
    moments = splits.train.truth.moments
    inverse = np.linalg.inv(moments.covariance[0, 0])

    def distance(gap):
        return np.sqrt(gap @ inverse @ gap)

    background = moments.mean[:, 1] - moments.mean[:, 0]
    assert distance(background.mean(axis=0)) == pytest.approx(3.5)
    assert distance((background[1] - background[0]) / 2) == pytest.approx(0.3 * 3.5)
    B = splits.train.truth.spurious_basis
    classes = moments.mean[1, 0] - moments.mean[0, 0]
    assert distance(classes - B @ (B.T @ classes)) == pytest.approx(3.75)


def test_samples_have_the_moments_of_the_truth(splits):
    data, truth = splits.test, splits.test.truth
    cell = (data.y == "waterbird") & (data.environments == "land")
    exact = truth.moments
    z = truth.latent(data.X[cell] - exact.mean[1, 0])
    assert stats.kstest(z.ravel(), "norm").pvalue > 0.01
    np.testing.assert_allclose(z.T @ z / len(z), np.eye(40), atol=5 * np.sqrt(2 / len(z)))


def test_best_invariant_predictor_is_as_good_as_promised(splits):
    data, truth = splits.test, splits.test.truth
    np.testing.assert_allclose(truth.coef @ truth.spurious_basis, 0, atol=1e-12)
    predicted = data.X @ truth.coef[0] + truth.intercept[0] > 0
    share = (predicted == (data.y == "waterbird")).mean()
    expected = stats.norm.cdf(3.75 / 2)
    assert abs(share - expected) < 3 * np.sqrt(expected * (1 - expected) / len(data.y))


def test_there_is_a_shortcut_and_truth_removes_it(splits):
    train, test, B = splits.train, splits.test, splits.train.truth.spurious_basis
    P = np.eye(40) - B @ B.T

    def worst(P):
        head = LogisticRegression(class_weight="balanced", max_iter=1000)
        predicted = head.fit(train.X @ P, train.y).predict(test.X @ P)
        return worst_group_accuracy(test.y, predicted, test.environments)

    assert worst(np.eye(40)) < 0.85
    assert worst(P) > 0.94


def test_a_seed_gives_one_data_set():
    first, again = (make_waterbirds_like(n_features=30, random_state=5) for _ in range(2))
    np.testing.assert_array_equal(first.train.X, again.train.X)
    other = make_waterbirds_like(n_features=30, random_state=6)
    assert not np.allclose(first.train.X, other.train.X)
    fewer = make_waterbirds_like(n_features=30, n_train=((5, 5), (5, 5)), random_state=5)
    np.testing.assert_array_equal(first.test.X, fewer.test.X)
    assert len(fewer.train.y) == 20


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_spurious": 1}, "n_spurious=1 must be an integer, 2 or more"),
        ({"n_features": 20}, "at most n_features=20"),
        ({"n_spurious": 21}, "among the 20 leading"),
        ({"n_train": (1, 2)}, r"n_train has shape \(2,\); it must have \(2, 2\)"),
        ({"n_test": ((1, 2), (3, -4))}, "integers, 0 or more"),
        ({"spurious_distance": np.nan}, "spurious_distance"),
    ],
)
def test_mistakes_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_waterbirds_like(**parameters)
