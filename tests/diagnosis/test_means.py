"""How far means shift, and how many dimensions environments can show."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.diagnosis import diagnose


def shift_of(X, y, e):
    return diagnose(X, y, e, n_bootstrap=0, compare=False).means


@pytest.mark.parametrize("distance", [0.5, 2.0, 6.0])
def test_effect_is_the_distance_in_standard_deviations(cells, distance):
    # A distance of a vector of unit noise; the mixing must not matter.
    means = np.zeros((2, 2, 8))
    means[:, 1, :2] = distance * np.array([0.6, 0.8])
    mixing = np.random.default_rng(0).normal(size=(8, 8))
    X, y, e = cells(np.full((2, 2), 2000), means, mixing=mixing)
    found = diagnose(X, y, e, n_bootstrap=0, compare=False)
    assert found.means.effect == pytest.approx(distance, abs=0.1)
    assert found.means.largest[1:] == (0, 1)


def test_effect_of_nothing_is_nothing(cells):
    X, y, e = cells(np.full((2, 3), 500), np.zeros((2, 3, 30)))
    found = diagnose(X, y, e, n_bootstrap=0, compare=False)
    assert not found.means.shifted
    # Thirty coordinates of noise would be a distance of sqrt(30 * 2 / 500) = 0.35.
    assert found.means.effect < 0.2


def test_environments_limit_what_means_can_show(cells):
    rng = np.random.default_rng(3)
    one = 3.0 * rng.normal(size=(1, 3, 6))
    alike = shift_of(*cells(np.full((2, 3), 300), np.concatenate([one, -one])))
    assert (alike.n_dimensions, alike.limit, alike.limited) == (2, 2, True)
    own = shift_of(*cells(np.full((2, 3), 300), 3.0 * rng.normal(size=(2, 3, 6))))
    assert (own.n_dimensions, own.limit, own.limited) == (4, 4, True)


def test_more_environments_than_dimensions_are_no_limit(cells):
    rng = np.random.default_rng(0)
    means = np.zeros((2, 5, 6))
    means[..., :2] = rng.normal(size=(2, 5, 2)) * 3
    found = shift_of(*cells(np.full((2, 5), 300), means))
    assert (found.n_dimensions, found.limited) == (2, False)
    # Nor are they where all features shift: there are no more.
    found = shift_of(*cells(np.full((2, 5), 300), 3.0 * rng.normal(size=(2, 5, 2))))
    assert (found.n_dimensions, found.limited) == (2, False)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_matter(shortcut, diagnosis, scale):
    X, y, e = shortcut
    units = np.array([1.0, scale, 1.0, 1.0, scale, 1.0])
    other = diagnose(X * units + 5 * units, y, e, n_bootstrap=0, compare=False)
    assert other.means.n_dimensions == diagnosis.means.n_dimensions == 1
    assert other.means.effect == pytest.approx(diagnosis.means.effect, rel=1e-4)
    assert other.means.p_value == pytest.approx(diagnosis.means.p_value, rel=1e-2, abs=1e-300)


def test_names_of_environments_do_not_matter(shortcut, diagnosis):
    X, y, e = shortcut
    renamed = np.select([e == "harbour", e == "meadow"], ["z", "a"], "m")
    other = diagnose(X, y, renamed, n_bootstrap=0, compare=False)
    assert other.means.effect == pytest.approx(diagnosis.means.effect)
    assert other.covariances.p_value == pytest.approx(diagnosis.covariances.p_value)
    assert set(other.means.largest[1:]) == {"z", "m"}
