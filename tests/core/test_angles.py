"""Angles and distances between subspaces."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.core import principal_angles


def rotated(seed, d):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


@pytest.mark.parametrize("angle", [1e-12, 1e-9, 1e-4, 0.3, 1.0, np.pi / 2 - 1e-9, np.pi / 2])
def test_known_angles_come_back(angle):
    # Two planes of R^5 that share one direction and are turned by `angle` in another.
    Q = rotated(0, 5)
    A = Q[:, :2]
    B = np.column_stack([Q[:, 0], np.cos(angle) * Q[:, 1] + np.sin(angle) * Q[:, 2]])
    np.testing.assert_allclose(principal_angles(A, B), [angle, 0.0], rtol=1e-6, atol=1e-15)


def test_only_the_span_matters():
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(6, 2)), rng.normal(size=(6, 3))
    angles = principal_angles(A, B)
    assert len(angles) == 2
    assert (np.diff(angles) <= 0).all()
    other = principal_angles(A @ rng.normal(size=(2, 2)), B @ rng.normal(size=(3, 3)))
    np.testing.assert_allclose(other, angles, atol=1e-12)
    Q = rotated(2, 6)
    np.testing.assert_allclose(principal_angles(Q @ A, Q @ B), angles, atol=1e-12)
    np.testing.assert_allclose(principal_angles(B, A), angles, atol=1e-12)


def test_nothing_makes_no_angle():
    none, one = np.zeros((3, 0)), np.eye(3)[:, :1]
    assert principal_angles(none, one).shape == (0,)
