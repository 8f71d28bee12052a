"""The rank tests keep their level without equal covariances and without Gaussian features."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.core import METHODS
from isrlearn.core.laws import RowSample
from isrlearn.engine import cell_moments

DRAWS = 60


def alarms(draw, counts, method, level=0.05):
    """Number of draws in which a test finds a shift."""
    K, E = len(counts), len(counts[0])
    k, e = (np.repeat(axis.ravel(), np.ravel(counts)) for axis in np.indices((K, E)))
    found = 0
    for seed in range(DRAWS):
        X = draw(np.random.default_rng(seed), k, e)
        test = METHODS[method].rank(cell_moments(X, k, e), level=level, rows=RowSample(X, k, e))
        found += test.rank > 0
    return found


def spread(by_class, by_environment=(1.0, 1.0)):
    def draw(rng, k, e):
        sd = np.take(by_class, k) * np.take(by_environment, e)
        return sd[:, None] * rng.standard_normal((len(k), 6))

    return draw


@pytest.mark.parametrize("method", ["mean", "cov", "joint"])
@pytest.mark.parametrize("sd", [(3.0, 1.0), (1.0, 3.0), (1.0, 2.0)])
def test_classes_may_spread_differently(method, sd):
    # With one pooled covariance, 48 to 100 % of such draws were alarms.
    assert alarms(spread(sd), [[400, 400], [40, 40]], method) <= 9


@pytest.mark.parametrize("sd", [(1.0, 2.0), (2.0, 1.0)])
def test_environments_may_spread_differently(sd):
    # With one pooled covariance, 93 % were alarms where the small cell has the larger spread.
    assert alarms(spread((1.0, 1.0), sd), [[600, 40], [600, 40]], "mean") <= 9


@pytest.mark.parametrize("method", ["cov", "joint"])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng, k, e: rng.exponential(size=(len(k), 6)),
        lambda rng, k, e: rng.standard_t(5, size=(len(k), 6)),
        lambda rng, k, e: 2.0 * (rng.random((len(k), 6)) < 0.05) - 1.0,
    ],
    ids=["exponential", "t5", "rare"],
)
def test_features_need_not_be_gaussian(method, draw):
    # The Gaussian test alarmed in 40 to 97 %.
    assert alarms(draw, [[100, 100], [100, 100]], method) <= 9


def test_a_shift_of_a_narrow_class_is_found_beside_a_wide_one():
    # With one pooled covariance, none of these shifts was found.
    draw = spread((3.0, 1.0))

    def shifted(rng, k, e):
        X = draw(rng, k, e)
        X[:, 0] += 0.8 * ((k == 1) & (e == 1))
        return X

    assert alarms(shifted, [[1000, 1000], [100, 100]], "mean", level=0.01) >= 0.8 * DRAWS


def test_tiny_cells_are_not_compared_and_the_test_says_so():
    rng = np.random.default_rng(0)
    X, e = rng.normal(size=(80, 5)) * (1 + 9 * (np.arange(80) % 4))[:, None], np.arange(80) % 4
    test = METHODS["cov"].rank(cell_moments(X, None, e))
    assert (test.rank, test.p_values) == (0, (1.0,))
    assert "no class has 30 rows in two environments" in test.note


def test_scales_of_classes_do_not_depend_on_units_and_rotations():
    rng = np.random.default_rng(0)
    k, e = np.arange(600) % 2, np.arange(600) // 2 % 3
    X = rng.normal(size=(600, 4)) * (1 + 2 * k)[:, None]
    X[:, 0] += e
    mixing = rng.normal(size=(4, 4))
    one, other = (METHODS["mean"].rank(cell_moments(Z, k, e)) for Z in (X, X @ mixing))
    np.testing.assert_allclose(one.p_values, other.p_values, rtol=1e-6)
    np.testing.assert_allclose(one.spectrum, other.spectrum, rtol=1e-6)
