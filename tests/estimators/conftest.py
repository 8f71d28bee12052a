"""Samples with a shortcut in them, small enough to fit in milliseconds."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.datasets import make_gaussian_environments

NAMES = np.array(["north", "south", "east", "west"])


@pytest.fixture(scope="session")
def binary():
    """Two classes, four environments by name, three invariant and two spurious dimensions."""
    return _named(make_gaussian_environments(
        [150, 250, 200, 120], 4, n_invariant=3, n_spurious=2, mixing="random",
        class_priors=[0.35, 0.65], random_state=0,
    ))  # fmt: skip


@pytest.fixture(scope="session")
def ternary():
    """Three classes by name, otherwise as the binary data."""
    X, y, e = _named(make_gaussian_environments(
        [200, 260, 220, 180], 4, n_classes=3, n_invariant=3, n_spurious=2, mixing="random",
        class_priors=[0.2, 0.5, 0.3], random_state=1,
    ))  # fmt: skip
    return X, np.array(["ant", "bee", "cat"])[y], e


@pytest.fixture(scope="session")
def continuous():
    """A real target; z_e follows the target in part, so that a plain regression uses it."""
    rng = np.random.default_rng(2)
    n, e = 800, np.arange(800) % 4
    Zc = rng.normal(size=(n, 3))
    y = Zc @ [1.0, -2.0, 0.5] + 3.0 + 0.3 * rng.normal(size=n)
    Ze = np.outer(y, [1.0, 0.5]) + 0.5 * rng.normal(size=(4, 2))[e] + 0.1 * rng.normal(size=(n, 2))
    R = np.linalg.qr(rng.normal(size=(5, 5)))[0] * [1.0, 2.0, 0.5, 1.5, 1.0]
    return np.hstack([Zc, Ze]) @ R.T, y, NAMES[e]


@pytest.fixture(scope="session")
def few():
    """Fewer than twenty rows per feature: nothing is whitened."""
    X, y, e = _named(make_gaussian_environments(
        15, 4, n_invariant=6, n_spurious=2, mixing="random", random_state=3
    ))  # fmt: skip
    return X, y, e


def _named(data):
    X, y, e = data.X + 2.0, data.y, NAMES[data.environments]
    for array in (X, y, e):
        array.flags.writeable = False
    return X, y, e
