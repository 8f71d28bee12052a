"""The eraser removes the given subspace, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.core import Eraser, mean_subspace


def oblique(seed, d, r, scale):
    """An oblique eraser: U orthonormal, V any dual of it."""
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.normal(size=(d, r)))[0]
    W = rng.normal(size=(d, r))
    V = W @ np.linalg.inv(U.T @ W)  # VᵀU is the identity
    return Eraser(U, V, scale, rng.normal(size=d))


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("r", [0, 1, 3])
def test_formula(scale, r):
    eraser = oblique(0, 5, r, scale)
    X = np.random.default_rng(1).normal(size=(20, 5))
    P = eraser.basis @ eraser.dual.T
    expected = X - (1 - scale) * (X - eraser.center) @ P.T
    np.testing.assert_allclose(eraser(X), expected, atol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("shape", [(5,), (1, 5), (4, 5)])
def test_folded_head_acts_as_the_head_on_erased_rows(scale, shape):
    eraser = oblique(2, 5, 2, scale)
    rng = np.random.default_rng(3)
    coef = rng.normal(size=shape)
    intercept = rng.normal(size=shape[:-1])
    X = rng.normal(size=(30, 5))
    folded, shifted = eraser.fold(coef, intercept)
    assert folded.shape == shape
    np.testing.assert_allclose(X @ folded.T + shifted, eraser(X) @ coef.T + intercept, atol=1e-12)


def test_erasing_twice_is_erasing_once():
    eraser = oblique(4, 6, 2, 0.0)
    X = np.random.default_rng(5).normal(size=(20, 6))
    once = eraser(X)
    np.testing.assert_allclose(eraser(once), once, atol=1e-12)
    np.testing.assert_allclose((once - eraser.center) @ eraser.dual, 0.0, atol=1e-12)


def test_shifts_along_the_basis_are_removed():
    eraser = oblique(6, 6, 2, 0.0)
    rng = np.random.default_rng(7)
    X = rng.normal(size=(20, 6))
    moved = X + rng.normal(size=(20, 2)) @ eraser.basis.T
    np.testing.assert_allclose(eraser(moved), eraser(X), atol=1e-12)


def test_scale_one_changes_nothing():
    eraser = oblique(8, 4, 2, 1.0)
    X = np.random.default_rng(9).normal(size=(10, 4))
    np.testing.assert_array_equal(eraser(X), X)
    coef, intercept = eraser.fold(np.ones((1, 4)), np.array([2.0]))
    np.testing.assert_array_equal(coef, np.ones((1, 4)))
    np.testing.assert_array_equal(intercept, [2.0])


def test_the_centre_stays():
    eraser = oblique(10, 4, 2, 0.0)
    np.testing.assert_allclose(eraser(eraser.center[None]), eraser.center[None], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("r", [0, 2])
def test_precision_is_kept_and_input_left_alone(dtype, r):
    eraser = oblique(11, 4, r, 0.5)
    X = np.random.default_rng(12).normal(size=(10, 4)).astype(dtype)
    X.flags.writeable = False
    out = eraser(X)
    assert out.dtype == dtype
    assert not np.shares_memory(out, X)


def test_of_a_subspace(plant):
    model = plant(0, 3, 2, 2, 3)
    found = mean_subspace(model.moments, 2)
    eraser = Eraser.of(found, 0.25, np.zeros(5))
    assert eraser.basis is found.basis
    assert eraser.dual is found.dual
    assert eraser.scale == 0.25


def test_subspace_found_among_components_is_erased_from_the_features(plant):
    # Composed with a PCA: erasing then projecting is projecting then erasing.
    model = plant(1, 3, 2, 2, 3)
    components = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 4)))[0]
    inner = mean_subspace(model.moments.map(components), 2)
    lifted = inner.lift(components)
    np.testing.assert_allclose(lifted.basis.T @ lifted.basis, np.eye(2), atol=1e-12)
    X = np.random.default_rng(1).normal(size=(30, 5))
    below = Eraser.of(inner, 0.0, np.zeros(4))(X @ components)
    above = Eraser.of(lifted, 0.0, np.zeros(5))(X) @ components
    np.testing.assert_allclose(above, below, atol=1e-10)
