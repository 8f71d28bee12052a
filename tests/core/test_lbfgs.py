"""L-BFGS: to the minimum of convex losses, whatever their values' rounding."""

from __future__ import annotations

import numpy as np
import pytest
from isrlearn.core._lbfgs import Descent
from scipy import special


def bowl(condition, p=40, seed=0):
    """A quadratic loss with its minimum at ones."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    H = (Q * np.logspace(0, -np.log10(condition), p)) @ Q.T

    def loss(u):
        gradient = H @ (u - 1.0)
        return 0.5 * float(gradient @ (u - 1.0)), gradient

    return loss


@pytest.mark.parametrize(("condition", "goal"), [(1.0, 1e-10), (1e2, 1e-10), (1e4, 1e-6)])
def test_finds_the_minimum_of_a_bowl(condition, goal):
    descent = Descent(np.zeros(40))
    found = descent(bowl(condition), goal=goal, visible=1e-6, most=1000)
    assert found.norm <= goal
    np.testing.assert_allclose(found.u, 1.0, atol=1.01 * goal * condition)
    np.testing.assert_array_equal(descent.u, found.u)
    assert descent.calls <= {1.0: 3, 1e2: 150, 1e4: 900}[condition]


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_first_steps_may_be_far_too_short_or_too_long(scale):
    def loss(u):
        value = np.logaddexp(0, scale * u).sum() - 0.3 * scale * u.sum()
        return float(value), scale * (special.expit(scale * u) - 0.3)

    found = Descent(np.ones(3))(loss, goal=1e-8 * scale, visible=1e-10 * scale, most=100)
    np.testing.assert_allclose(scale * found.u, np.log(0.3 / 0.7), rtol=1e-6)


def test_values_that_are_rounded_do_not_matter_near_the_minimum():
    exact = bowl(100.0)
    rng = np.random.default_rng(1)

    def loss(u):
        value, gradient = exact(u)
        return value + 1e-9 * rng.normal(), gradient

    assert Descent(np.zeros(40))(loss, goal=1e-10, visible=1e-3, most=200).norm <= 1e-10
    # Were they to be believed, one would be stuck well before.
    assert Descent(np.zeros(40))(loss, goal=1e-10, visible=0.0, most=200).norm > 1e-6


def test_what_a_draft_taught_is_kept():
    calls = np.zeros(2)
    for seed in range(10):
        exact = bowl(1e2, seed=seed)

        def rounded(u, exact=exact):
            value, gradient = exact(u.astype(np.float32))
            return float(np.float32(value)), gradient.astype(np.float32).astype(float)

        taught = Descent(np.zeros(40))
        taught(rounded, goal=1e-3, visible=1e-2, most=200)
        drafted, untaught = taught.calls, Descent(taught.u)
        for descent in (taught, untaught):
            assert descent(exact, goal=1e-8, visible=1e-6, most=400).norm <= 1e-8
        calls += taught.calls - drafted, untaught.calls
    assert calls[0] < calls[1]


def test_stops_where_rounding_leaves_nothing_to_gain():
    rng = np.random.default_rng(2)

    def loss(u):
        return 0.5 * float(u @ u), u + 1e-5 * rng.normal(size=len(u))

    descent = Descent(np.ones(40))
    found = descent(loss, goal=1e-12, visible=1e-3, most=1000)
    assert 1e-12 < found.norm < 1e-3
    assert descent.calls < 400


@pytest.mark.parametrize("most", [1, 2, 7])
def test_computes_the_loss_no_more_often_than_allowed(most):
    descent = Descent(np.zeros(40))
    found = descent(bowl(1e4), goal=1e-10, visible=1e-6, most=most)
    assert descent.calls == most
    assert found.norm > 1e-10
