"""The paper's guarantees, on exact moments: at least 256 random models each."""

from __future__ import annotations

from functools import partial
from itertools import product
from math import ceil

import numpy as np
import pytest

from isrlearn.core import (
    Eraser,
    Moments,
    covariance_rank,
    covariance_subspace,
    head_coordinates,
    joint_subspace,
    lda_head,
    mean_rank,
    mean_subspace,
    multiclass_subspace,
    principal_angles,
    regression_subspace,
    ridge_head,
)

DIMENSIONS = range(1, 9)
CASES = [(d_c, d_s, rep) for d_c, d_s in product(DIMENSIONS, DIMENSIONS) for rep in range(4)]
# Every pair of dimensions once for each number of classes: 384 models together.
MULTICLASS = [(d_c, d_s, K) for K in range(2, 8) for d_c, d_s in product(DIMENSIONS, DIMENSIONS)]
ANGLE = 1e-8
VARIANTS = ("pooled", "paper")
variants = pytest.mark.parametrize("variant", VARIANTS)


def two_classes(plant, d_c, d_s, rep, E):
    """Half of the cases have the paper's opposite means, half a model of each class."""
    return plant([d_c, d_s, rep], d_c, d_s, 2, E, opposite=rep % 2 == 0)


def assert_recovered(found, B):
    assert found.basis.shape == B.shape
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(B.shape[1]), atol=1e-12)
    np.testing.assert_allclose(found.dual.T @ found.basis, np.eye(B.shape[1]), atol=1e-9)
    assert principal_angles(found.basis, B)[0] <= ANGLE


@variants
def test_means_of_one_environment_more_than_dimensions_recover_the_subspace(plant, variant):
    for d_c, d_s, rep in CASES:
        model = two_classes(plant, d_c, d_s, rep, E=d_s + 1)
        for k in (0, 1):
            found = mean_subspace(model.moments, d_s, classes=[k], variant=variant)
            assert_recovered(found, model.B)


@variants
def test_means_of_one_environment_fewer_find_a_part_of_it(plant, outside, variant):
    for d_c, d_s, rep in CASES:
        model = two_classes(plant, d_c, d_s, rep, E=d_s)
        found = mean_subspace(model.moments, d_s, classes=[1], variant=variant)
        assert found.rank == d_s - 1
        assert outside(found.basis, model.B) <= ANGLE


def test_pooled_means_of_opposite_classes_show_no_more_than_one_class(plant, outside):
    # -mu_e shifts along the directions of mu_e: the second class adds none.
    for d_c, d_s, rep in CASES:
        model = plant([d_c, d_s, rep], d_c, d_s, 2, d_s, opposite=True)
        found = mean_subspace(model.moments, d_s)
        assert found.rank == d_s - 1
        assert outside(found.basis, model.B) <= ANGLE


@pytest.mark.parametrize("form", ["pair", "flag mean", "pooled"])
def test_covariances_of_two_environments_recover_the_subspace(plant, form):
    for d_c, d_s, rep in CASES:
        sigma_e = np.random.default_rng([7, d_c, d_s, rep]).permutation([0.7, 1.5])
        model = plant([d_c, d_s, rep], d_c, d_s, 2, 2, sigma_e=sigma_e)
        if form == "pair":
            found = covariance_subspace(model.moments, d_s, classes=[rep % 2], variant="paper")
        else:
            variant = "paper" if form == "flag mean" else "pooled"
            found = covariance_subspace(model.moments, d_s, variant=variant)
        assert_recovered(found, model.B)


@pytest.mark.parametrize("carrier", ["covariances", "means", "both"])
def test_joint_recovers_whichever_moment_carries_the_signal(plant, carrier):
    for d_c, d_s, rep in CASES[:: 2 if carrier == "both" else 4]:
        E = 2 if carrier == "covariances" else d_s + 1
        sigma_e = 1.0 if carrier == "means" else np.linspace(0.7, 1.5, E)
        model = plant([d_c, d_s, rep], d_c, d_s, 2, E, sigma_e=sigma_e)
        assert_recovered(joint_subspace(model.moments, d_s), model.B)
        assert_recovered(joint_subspace(model.moments), model.B)  # the rank is found as well


def test_joint_adds_the_two_kinds_of_shift(plant):
    # Means shift along e_0 and e_1, a variance along e_2: neither moment alone shows all three.
    mean = np.zeros((1, 3, 5))
    mean[0, 1, 0], mean[0, 2, 1] = 1.0, 2.0
    covariance = np.stack([np.eye(5), np.diag([1.0, 1.0, 3.0, 1.0, 1.0]), np.eye(5)])[None]
    moments = Moments.population(mean, covariance)
    assert_recovered(joint_subspace(moments), np.eye(5)[:, :3])
    assert_recovered(mean_subspace(moments), np.eye(5)[:, :2])
    assert_recovered(covariance_subspace(moments), np.eye(5)[:, 2:3])


@variants
def test_flag_mean_leaves_out_pairs_with_equal_covariances(plant, variant):
    # Environments 0 and 2 have equal covariances; the other two pairs do all the work.
    for d_c, d_s, rep in CASES[::4]:
        model = plant([d_c, d_s, rep], d_c, d_s, 2, 3, sigma_e=[1.0, 0.6, 1.0])
        assert_recovered(covariance_subspace(model.moments, d_s, variant=variant), model.B)


def test_equal_covariances_are_an_error(plant):
    model = plant(0, 2, 2, 2, 3, sigma_e=1.0)
    with pytest.raises(ValueError, match="no two environments have different covariances"):
        covariance_subspace(model.moments, 2, variant="paper")
    with pytest.raises(ValueError, match="no two environments have different covariances"):
        covariance_subspace(model.moments, 2, variant="pooled")


@variants
def test_multiclass_needs_a_kth_of_the_environments(plant, variant):
    for d_c, d_s, K in MULTICLASS:
        model = plant([d_c, d_s, K], d_c, d_s, K, ceil(d_s / K) + 1)
        found = multiclass_subspace(model.moments, d_s, variant=variant)
        assert_recovered(found, model.B)


@variants
def test_multiclass_with_one_environment_fewer_finds_a_part(plant, outside, variant):
    for d_c, d_s, K in MULTICLASS:
        E = ceil(d_s / K)
        model = plant([d_c, d_s, K], d_c, d_s, K, E)
        found = multiclass_subspace(model.moments, d_s, variant=variant)
        assert found.rank == K * (E - 1) < d_s
        assert outside(found.basis, model.B) <= ANGLE


def planted_regression(seed, d_c, d_s, E):
    """y = w z_c + b, z_e = W_e z_c + b_e: basis B, head on x, and moments of (x, y)."""
    rng = np.random.default_rng(seed)
    d = d_c + d_s
    U, V = (np.linalg.qr(rng.normal(size=(d, d)))[0] for _ in range(2))
    R = U * rng.uniform(1.0, 4.0, d) @ V
    mu, sigma, w, b = rng.normal(size=d_c), rng.uniform(0.5, 2.0), rng.normal(size=d_c), 0.3
    mean, covariance = [], []
    for _ in range(E):
        W, offset = rng.normal(size=(d_s, d_c)), rng.normal(size=d_s)
        to_x = R @ np.vstack([np.eye(d_c), W])  # x = to_x @ z_c + R @ (0, offset)
        to_xy = np.vstack([to_x, w])
        mean.append(to_xy @ mu + np.append(R[:, d_c:] @ offset, b))
        covariance.append(sigma**2 * to_xy @ to_xy.T)
    joint = Moments.population(np.array(mean)[None], np.array(covariance)[None])
    return R[:, d_c:], w @ np.linalg.inv(R)[:d_c], b, joint


@variants
def test_regression_recovers_the_subspace_and_its_head_the_weights(variant):
    for d_c, d_s, rep in CASES:
        B, coef, bias, joint = planted_regression([d_c, d_s, rep], d_c, d_s, d_s + 1)
        features = joint.columns(d_c + d_s)
        found = regression_subspace(features, d_s, variant=variant)
        assert_recovered(found, B)
        eraser = Eraser.of(found, 0.0, features.total[1])
        w, b = ridge_head(joint, head_coordinates(features, eraser), alpha=0.0)
        np.testing.assert_allclose(w, coef, atol=1e-6)
        np.testing.assert_allclose(b, bias, atol=1e-6)


@variants
def test_regression_with_one_environment_fewer_finds_a_part(outside, variant):
    for d_c, d_s, rep in CASES:
        B, _, _, joint = planted_regression([d_c, d_s, rep], d_c, d_s, d_s)
        found = regression_subspace(joint.columns(d_c + d_s), d_s, variant=variant)
        assert found.rank == d_s - 1
        assert outside(found.basis, B) <= ANGLE


def test_covariances_of_the_regression_model_change_outside_the_spurious_subspace(outside):
    # Why regression compares means only.
    B, _, _, joint = planted_regression(0, 3, 2, 4)
    found = covariance_subspace(joint.columns(5), 2)
    assert outside(found.basis, B) > 0.01


joint_rank = partial(covariance_rank, means=True)
METHODS = {
    "mean": (lambda m, r, v: mean_subspace(m, r, classes=[1], variant=v), lambda d_s, K: d_s + 1),
    "cov": (lambda m, r, v: covariance_subspace(m, r, variant=v), lambda d_s, K: 2),
    "multiclass": (
        lambda m, r, v: multiclass_subspace(m, r, variant=v),
        lambda d_s, K: ceil(d_s / K) + 1,
    ),
}


@variants
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("K", [2, 3])
def test_lda_on_what_is_left_is_proposition_1(plant, K, method, variant):
    find, environments = METHODS[method]
    for d_c, d_s, rep in CASES if K == 2 else CASES[::4]:
        E = environments(d_s, K)
        model = plant([d_c, d_s, rep], d_c, d_s, K, E, sigma_e=np.linspace(0.7, 1.6, E))
        found = find(model.moments, d_s, variant)
        eraser = Eraser.of(found, 0.0, model.moments.total[1])
        coef, intercept = lda_head(model.moments, head_coordinates(model.moments, eraser))
        wanted, bias = model.predictor
        if K > 2:  # logits are defined up to a common term
            coef, intercept = coef - coef.mean(axis=0), intercept - intercept.mean()
            wanted, bias = wanted - wanted.mean(axis=0), bias - bias.mean()
        cosine = coef.ravel() @ wanted.ravel() / np.linalg.norm(coef) / np.linalg.norm(wanted)
        assert cosine >= 1 - 1e-10
        np.testing.assert_allclose(coef, wanted, atol=1e-7 * np.abs(wanted).max())
        np.testing.assert_allclose(intercept, bias, atol=1e-6)


def test_without_erasure_the_head_is_not_proposition_1(plant):
    # Negative control: the theorem is about the subspace, not about the head.
    for d_c, d_s, rep in CASES[::7]:
        model = plant([d_c, d_s, rep], d_c, d_s, 2, d_s + 1)
        none = np.zeros((d_c + d_s, 0))
        nothing = Eraser(none, none, 0.0, np.zeros(d_c + d_s))
        coef, _ = lda_head(model.moments, head_coordinates(model.moments, nothing))
        wanted, _ = model.predictor
        cosine = coef.ravel() @ wanted.ravel() / np.linalg.norm(coef) / np.linalg.norm(wanted)
        assert cosine < 1 - 1e-6


@pytest.mark.parametrize("K", [1, 2, 4])
@pytest.mark.parametrize("E", [2, 3, 6])
def test_rank_of_population_means_is_exact(plant, K, E):
    for d_c, d_s in product(DIMENSIONS, DIMENSIONS):
        moments = plant([d_c, d_s], d_c, d_s, K, E).moments
        test = mean_rank(moments)
        assert test.rank == min(d_s, K * (E - 1))
        assert test.limit == min(d_c + d_s, K * (E - 1))
        assert test.limited == (d_s >= K * (E - 1))
        assert multiclass_subspace(moments).rank == test.rank
        assert mean_subspace(moments).rank == min(test.rank, E - 1)  # what classes can share
        assert mean_subspace(moments).tested == test.rank


@pytest.mark.parametrize("E", [2, 3, 6])
def test_rank_of_population_covariances_is_exact(plant, E):
    for d_c, d_s in product(DIMENSIONS, DIMENSIONS):
        sigma_e = np.linspace(0.7, 1.5, E)
        moments = plant([d_c, d_s], d_c, d_s, 2, E, sigma_e=sigma_e).moments
        for rank in (covariance_rank, joint_rank):
            assert rank(moments).rank == d_s
            assert rank(moments).limit == d_c + d_s
        equal = plant([d_c, d_s], d_c, d_s, 1, E).moments
        assert joint_rank(equal).rank == mean_rank(equal).rank == min(d_s, E - 1)
