"""The paper's guarantees where cells are missing: each class contributes the cells it has."""

from __future__ import annotations

from dataclasses import replace

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
)

ANGLE = 1e-8
SEEDS = range(400)
variants = pytest.mark.parametrize("variant", ["pooled", "paper"])


def without(moments: Moments, seen: np.ndarray) -> Moments:
    """The same population, of which only the cells in the mask (K, E) were seen."""
    return replace(
        moments,
        count=moments.count * seen,
        mean=moments.mean * seen[..., None],
        scatter=moments.scatter * seen[..., None, None],
    )


def patterns(plant):
    """Random models with random missing cells: model, moments of the rest, mask of the rest."""
    for seed in SEEDS:
        rng = np.random.default_rng([seed, 1])
        K, E = int(rng.integers(1, 6)), int(rng.integers(2, 7))
        d_c, d_s = (int(d) for d in rng.integers(1, 5, size=2))
        seen = rng.random((K, E)) > rng.choice([0.2, 0.4, 0.6])
        if not seen.all() and (seen.sum(axis=1) > 1).any():
            sigma_e = rng.permutation(np.linspace(0.6, 1.8, E))
            model = plant(seed, d_c, d_s, K, E, sigma_e=sigma_e)
            yield model, without(model.moments, seen), seen


def shift_rank(model, seen, classes=None) -> int | None:
    """Dimension that the shifts of the existing cells span; None if it is a matter of rounding."""
    shifts = []
    for k in range(len(seen)) if classes is None else classes:
        mean = model.moments.mean[k][seen[k]]
        shifts.append(mean[1:] - mean[:1])
    s = np.linalg.svd(np.concatenate(shifts), compute_uv=False)
    share = s / s.max(initial=np.finfo(float).tiny)
    clear = (share > 1e-2) | (share < 1e-10)
    return int(np.count_nonzero(share > 1e-2)) if clear.all() else None


def assert_recovered(found, B):
    assert found.basis.shape == B.shape
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(B.shape[1]), atol=1e-12)
    np.testing.assert_allclose(found.dual.T @ found.basis, np.eye(B.shape[1]), atol=1e-9)
    assert principal_angles(found.basis, B)[0] <= ANGLE


def check(cases, find, outside):
    """Recovered where the cells span the planted subspace, a part of it elsewhere."""
    recovered = parts = 0
    for model, moments, rank in cases:
        if rank is None:
            continue
        d_s = model.B.shape[1]
        for n_spurious in (d_s, "auto"):
            found = find(moments, n_spurious)
            assert found.rank == rank
            assert outside(found.basis, model.B) <= ANGLE
        if rank == d_s:
            assert_recovered(find(moments, d_s), model.B)
        recovered, parts = recovered + (rank == d_s), parts + (rank < d_s)
    assert recovered >= 100
    return parts


@variants
def test_means_of_one_class(plant, outside, variant):
    cases = []
    for model, moments, seen in patterns(plant):
        k = int(seen.sum(axis=1).argmax())
        cases.append((model, (moments, k), shift_rank(model, seen, [k])))
    parts = check(
        cases, lambda m, r: mean_subspace(m[0], r, classes=[m[1]], variant=variant), outside
    )
    assert parts >= 100


def test_published_means_are_those_of_the_last_class_with_two_cells(plant, outside):
    cases, skipped = [], 0
    for model, moments, seen in patterns(plant):
        last = np.flatnonzero(seen.sum(axis=1) > 1)[-1]
        skipped += last < len(seen) - 1
        cases.append((model, moments, shift_rank(model, seen, [last])))
        found = mean_subspace(moments, 1, variant="paper")
        np.testing.assert_array_equal(
            found.basis, mean_subspace(moments, 1, classes=[last], variant="paper").basis
        )
    check(cases, lambda m, r: mean_subspace(m, r, variant="paper"), outside)
    assert skipped >= 50


@pytest.mark.parametrize("form", ["mean", "multiclass, pooled", "multiclass, paper"])
def test_means_of_all_classes_together(plant, outside, form):
    find = {
        "mean": lambda m, r: mean_subspace(m, r, shared=False),
        "multiclass, pooled": multiclass_subspace,
        "multiclass, paper": lambda m, r: multiclass_subspace(m, r, variant="paper"),
    }[form]
    cases = [(model, moments, shift_rank(model, seen)) for model, moments, seen in patterns(plant)]
    assert check(cases, find, outside) >= 50


@variants
def test_covariances_of_any_two_environments_of_one_class(plant, outside, variant):
    cases = [(model, moments, model.B.shape[1]) for model, moments, _ in patterns(plant)]
    check(cases, lambda m, r: covariance_subspace(m, r, variant=variant), outside)


def test_means_and_covariances_together(plant, outside):
    cases = [(model, moments, model.B.shape[1]) for model, moments, _ in patterns(plant)]
    check(cases, joint_subspace, outside)


def test_ranks_are_exact_and_limited_by_the_cells_there_are(plant):
    for model, moments, seen in patterns(plant):
        means, covariances = mean_rank(moments), covariance_rank(moments)
        d = moments.n_features
        limit = int(np.maximum(seen.sum(axis=1) - 1, 0).sum())
        assert means.limit == min(d, limit)
        assert means.rank == min(model.B.shape[1], limit)
        assert covariances.rank == model.B.shape[1]
        assert covariances.limit == d


@variants
def test_classes_in_one_environment_contribute_nothing(plant, variant):
    """The subspace is that of the other classes."""
    seen = np.array([[1, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 1, 0]], dtype=bool)
    rest = np.flatnonzero(seen.sum(axis=1) > 1)
    for seed in range(20):
        model = plant(seed, 3, 2, 4, 4, sigma_e=[0.6, 1.0, 1.4, 1.8])
        moments = without(model.moments, seen)
        for find in (mean_subspace, multiclass_subspace, covariance_subspace):
            if find is mean_subspace and variant == "paper":
                continue  # it compares one class only
            every = find(moments, 2, variant=variant)
            if find is not multiclass_subspace:
                some = find(moments, 2, classes=rest, variant=variant)
            elif variant == "pooled":  # then it is "mean"
                some = mean_subspace(moments, 2, classes=rest)
            else:
                compared = seen & (seen.sum(axis=1) > 1)[:, None]
                some = find(without(moments, compared), 2, variant=variant)
            np.testing.assert_allclose(every.basis, some.basis, rtol=0, atol=1e-12)


def test_lda_on_what_is_left_is_proposition_1(plant):
    """With the class shares of the cells that were seen."""
    n = 0
    for model, moments, seen in patterns(plant):
        K, d_s = len(seen), model.B.shape[1]
        if K < 2 or not seen.any(axis=1).all() or shift_rank(model, seen) != d_s:
            continue
        found = mean_subspace(moments, d_s)
        eraser = Eraser.of(found, 0.0, moments.total[1])
        coef, intercept = lda_head(moments, head_coordinates(moments, eraser))
        share = moments.count.sum(axis=1) / moments.count.sum()
        wanted, bias = replace(model, prior=share).predictor
        if K > 2:  # logits are defined up to a common term
            coef, intercept = coef - coef.mean(axis=0), intercept - intercept.mean()
            wanted, bias = wanted - wanted.mean(axis=0), bias - bias.mean()
        np.testing.assert_allclose(coef, wanted, atol=1e-7 * np.abs(wanted).max())
        np.testing.assert_allclose(intercept, bias, atol=1e-6)
        n += 1
    assert n >= 100
