"""The logistic solver: right against scikit-learn and against its own formula, in few passes."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from isrlearn.core._log_loss import ArrayRows, LogisticObjective
from isrlearn.core._logistic_head import logistic_head
from isrlearn.core._range import CentredRows
from isrlearn.core.logistic import fit_logistic, solve_logistic
from sklearn.linear_model import LogisticRegression

from isrlearn.core import Eraser, _log_loss, _logistic_head, head_coordinates, logistic
from isrlearn.core.heads import standardising_coordinates
from isrlearn.engine import cell_moments


def features_and_codes(n, p, K, *, condition=1.0, seed=0):
    """Features with singular values from 1 to 1/condition, far from the origin, and K classes."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(n, p))
    U, V = (np.linalg.qr(rng.normal(size=(p, p)))[0] for _ in range(2))
    logits = G @ rng.normal(size=(p, K)) * (2 / np.sqrt(p)) + rng.gumbel(size=(n, K))
    scale = np.logspace(0, -np.log10(condition), p)
    return (G @ (U * scale)) @ V + 3.0, logits.argmax(axis=1)


def reference(Z, codes, C, weight=None):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        head = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000)
        return head.fit(Z, codes, weight)


def relative(a, b):
    return np.linalg.norm(a - b) / np.linalg.norm(b)


@pytest.fixture(params=["lbfgs", "newton"])
def solver(request, monkeypatch):
    monkeypatch.setattr(logistic, "_NEWTON_SIZE", 0 if request.param == "lbfgs" else 10**6)
    return request.param


@pytest.mark.parametrize("condition", [1.0, 1e6])
@pytest.mark.parametrize(("n", "p", "K"), [(600, 20, 2), (900, 90, 2), (800, 25, 3)])
@pytest.mark.parametrize("C", [0.1, 1e4])
def test_same_coefficients_as_newton_cholesky(solver, n, p, K, condition, C):
    Z, codes = features_and_codes(n, p, K, condition=condition)
    expected = reference(Z, codes, C)
    found = fit_logistic(Z, codes, 1 / C)
    assert found.converged
    assert found.n_passes <= 60
    assert relative(found.coef, expected.coef_) < 1e-6
    np.testing.assert_allclose(
        Z @ found.coef.T + found.intercept,
        Z @ expected.coef_.T + expected.intercept_,
        atol=1e-6,
    )


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_separable_classes(solver, K, C):
    Z = np.random.default_rng(1).normal(size=(300, 50))
    codes = np.digitize(Z[:, 0], np.linspace(-0.8, 0.9, K - 1))
    found, expected = fit_logistic(Z, codes, 1 / C), reference(Z, codes, C)
    assert found.converged
    assert relative(found.coef, expected.coef_) < 1e-6


def objective_for(K, curved):
    rng = np.random.default_rng(2)
    Z, codes = features_and_codes(40, 3, K, seed=3)
    penalty, center = np.array([0.0, 0.3, 2.0]), rng.normal(size=3)
    rows = ArrayRows(Z, codes, rng.uniform(0.2, 3.0, size=40))
    objective = LogisticObjective(rows, K, penalty, center)
    V, b = rng.normal(size=(3, K - 1)), rng.normal(size=K - 1)
    return objective, V, b, objective(V, b, curved=curved)


@pytest.mark.parametrize("K", [2, 3, 5])
def test_gradient_and_hessian_are_the_derivatives(K):
    objective, V, b, at = objective_for(K, "full")
    m = K - 1
    # Order of a Hessian's entries: score by score, its coefficients and then its intercept.
    stacked = np.concatenate([V, b[None]]).T.ravel()

    def value(x):
        x = x.reshape(m, 4).T
        return objective(x[:3], x[3])

    def gradient(x):
        at = value(x)
        return np.concatenate([at.slope, at.level[None]]).T.ravel()

    steps = 1e-5 * np.eye(len(stacked))
    numeric = [(value(stacked + h).loss - value(stacked - h).loss) / 2e-5 for h in steps]
    np.testing.assert_allclose(gradient(stacked), numeric, rtol=1e-6, atol=1e-6)
    numeric = np.array([(gradient(stacked + h) - gradient(stacked - h)) / 2e-5 for h in steps])
    hessian = at.curvature.reshape(m * 4, m * 4) + np.diag(np.tile([0.0, 0.3, 2.0, 0.0], m))
    np.testing.assert_allclose(hessian, numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("K", [2, 4])
def test_mean_curvature_is_the_mean_of_the_diagonal_blocks(K):
    full = objective_for(K, "full")[3].curvature
    mean = objective_for(K, "mean")[3].curvature
    np.testing.assert_allclose(mean[0, :, 0], np.einsum("ipiq->pq", full) / (K - 1), rtol=1e-12)


@pytest.mark.parametrize("K", [2, 3])
def test_a_weight_is_a_repetition(solver, K):
    Z, codes = features_and_codes(200, 6, K)
    times = np.random.default_rng(0).integers(0, 4, size=200)
    weighted = fit_logistic(Z, codes, 0.5, weight=times)
    repeated = fit_logistic(np.repeat(Z, times, axis=0), np.repeat(codes, times), 0.5)
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(weighted.intercept, repeated.intercept, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("K", [2, 3])
def test_an_infinite_penalty_leaves_the_feature_out(solver, K):
    Z, codes = features_and_codes(200, 6, K)
    penalty = np.array([1.0, np.inf, 0.0, 2.0, np.inf, 0.5])
    left = np.isfinite(penalty)
    found = fit_logistic(Z, codes, penalty, start=fit_logistic(Z, codes, 1.0))
    without = fit_logistic(Z[:, left], codes, penalty[left])
    assert not found.coef[:, ~left].any()
    np.testing.assert_allclose(found.coef[:, left], without.coef, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_scaling_a_feature_is_a_change_of_its_penalty(solver, K):
    Z, codes = features_and_codes(300, 5, K)
    scale = np.array([1.0, 0.25, 1.0, 0.5, 1.0])
    scaled = fit_logistic(Z * scale, codes, 2.0)
    penalised = fit_logistic(Z, codes, 2.0 / scale**2)
    np.testing.assert_allclose(scaled.coef * scale, penalised.coef, rtol=1e-7, atol=1e-9)


def test_warm_starts_save_passes(solver):
    Z, codes = features_and_codes(800, 60, 2, condition=100.0)
    start = fit_logistic(Z, codes, 1.0)
    cold, warm = fit_logistic(Z, codes, 1.1), fit_logistic(Z, codes, 1.1, start=start)
    assert warm.n_passes < cold.n_passes
    assert relative(warm.coef, cold.coef) < 1e-7
    assert fit_logistic(Z, codes, 1.0, start=start).n_passes <= 2


@pytest.mark.parametrize("condition", [1.0, 1e4])
def test_the_preconditioner_is_what_saves_passes(monkeypatch, condition):
    monkeypatch.setattr(logistic, "_NEWTON_SIZE", 0)
    Z, codes = features_and_codes(500, 40, 2, condition=condition)
    Z -= Z.mean(axis=0)
    full = fit_logistic(Z, codes, 1e-6, scatter=Z.T @ Z)
    none = fit_logistic(Z, codes, 1e-6, scatter=np.full(40, np.sum(Z**2) / 40), max_passes=200)
    assert full.n_passes < (1.5 if condition == 1.0 else 0.5) * none.n_passes


def test_any_scatter_leads_to_the_same_minimum(monkeypatch):
    monkeypatch.setattr(logistic, "_NEWTON_SIZE", 0)
    Z, codes = features_and_codes(300, 8, 3, condition=10.0)
    expected = fit_logistic(Z, codes, 0.1)
    for scatter in (np.ones(8), np.diag(np.arange(1.0, 9.0)), 100 * Z.T @ Z):
        found = fit_logistic(Z, codes, 0.1, scatter=scatter)
        assert found.converged
        assert relative(found.coef, expected.coef) < 1e-6


def test_float32_features_lose_nothing(solver):
    Z, codes = features_and_codes(500, 20, 2)
    narrow = Z.astype(np.float32)
    a, b = fit_logistic(narrow, codes, 0.1), fit_logistic(narrow.astype(float), codes, 0.1)
    assert relative(a.coef, b.coef) < 1e-8


def test_blocks_make_no_difference(solver, monkeypatch):
    Z, codes = features_and_codes(500, 12, 3)
    weight = np.random.default_rng(0).uniform(size=500)
    whole = fit_logistic(Z, codes, 0.1, weight=weight)
    monkeypatch.setattr(_log_loss, "_BLOCK_BYTES", 1)
    blocks = list(ArrayRows(Z, codes, weight))
    assert len(blocks) > 5
    assert sum(len(block.Z) for block in blocks) == 500
    parts = fit_logistic(Z, codes, 0.1, weight=weight)
    assert relative(parts.coef, whole.coef) < 1e-7


@pytest.mark.parametrize("K", [2, 3])
def test_rows_may_come_in_blocks_from_anywhere(solver, K):
    Z, codes = features_and_codes(400, 10, K)

    class Blocks:
        """Uneven blocks, weights in some of them only, made anew at every pass."""

        def __iter__(self):
            for rows in np.split(np.arange(400), [3, 50, 300]):
                yield Z[rows], codes[rows], None if len(rows) < 60 else np.ones(len(rows))

    centred = Z - Z.mean(axis=0)
    parts = solve_logistic(
        Blocks(), np.full(10, 0.3), np.bincount(codes), Z.mean(axis=0), centred.T @ centred
    )
    whole = fit_logistic(Z, codes, 0.3)
    assert parts.converged
    assert relative(parts.coef, whole.coef) < 1e-8
    assert parts.n_passes == whole.n_passes - 1


def test_collinear_and_constant_features(solver):
    Z, codes = features_and_codes(200, 4, 2)
    wide = np.column_stack([Z, Z[:, :2] @ [1.0, 1.0], np.ones(200)])
    found, expected = fit_logistic(wide, codes, 0.5), reference(wide, codes, 2.0)
    np.testing.assert_allclose(found.coef, expected.coef_, atol=1e-6)
    free = fit_logistic(wide, codes, 0.0)
    scores = reference(Z, codes, 1e12).decision_function(Z)
    np.testing.assert_allclose(wide @ free.coef[0] + free.intercept, scores, atol=1e-5)


def test_coefficients_of_many_classes_add_up_to_zero(solver):
    Z, codes = features_and_codes(300, 5, 4)
    found = fit_logistic(Z, codes, 1.0)
    assert np.abs(found.coef.sum(axis=0)).max() < 1e-12
    assert abs(found.intercept.sum()) < 1e-12


def test_says_when_it_ran_out_of_passes(solver):
    Z, codes = features_and_codes(300, 30, 2)
    found = fit_logistic(Z, codes, 1e-3, max_passes=4)
    assert not found.converged
    assert found.gradient_norm > 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": [0, 1]}, r"codes has shape \(2,\)"),
        ({"codes": [0, 1, 2, 1], "n_classes": 2}, "run from 0 to 2"),
        ({"penalty": [1.0, -2.0]}, r"must not be negative; got -2\.0"),
        ({"weight": [1.0]}, r"weight has shape \(1,\)"),
        ({"start": "three classes"}, r"coefficients of shape \(3, 2\)"),
    ],
)
def test_errors_name_the_value(change, message):
    Z = np.arange(8.0).reshape(4, 2)
    if "start" in change:
        change = {"start": fit_logistic(Z, [0, 1, 2, 1])}
    with pytest.raises(ValueError, match=message):
        fit_logistic(Z, **{"codes": [0, 1, 0, 1], "penalty": 1.0} | change)


def head_problem(n, d, K, *, dtype=np.float64, seed=0):
    """Rows, codes, moments and an eraser of one direction."""
    Z, codes = features_and_codes(n, d, K, condition=30.0, seed=seed)
    X = Z.astype(dtype)
    moments = cell_moments(X, codes, np.arange(n) % 2, pooled=True)
    direction = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, 1)))[0]
    return X, codes, moments, Eraser(direction, direction, 0.0, moments.total[1])


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(("n", "d"), [(900, 30), (300, 40)], ids=["whitened", "standardised"])
@pytest.mark.parametrize("route", ["mapped", "copied", "newton"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_head_seen_from_the_rows_is_the_head_on_its_coordinates(
    monkeypatch, K, n, d, route, weighted
):
    monkeypatch.setattr(logistic, "_NEWTON_SIZE", 10**6 if route == "newton" else 0)
    X, codes, moments, eraser = head_problem(n, d, K)
    components = None
    if route == "copied":
        components = np.linalg.qr(np.random.default_rng(1).normal(size=(d, 10)))[0]
        basis = components @ np.eye(10)[:, :1]
        eraser = Eraser(basis, basis, 0.0, eraser.center)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, n) if weighted else None
    coordinates = head_coordinates(moments, eraser, components)
    coef, intercept, fit = logistic_head(X, codes, moments, coordinates, C=0.5, weight=weight)
    assert fit.converged
    expected = reference(coordinates(X), codes, 0.5, weight)
    np.testing.assert_allclose(
        X @ coef.T + intercept,
        expected.decision_function(coordinates(X)).reshape(n, -1),
        atol=1e-6,
    )


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-6), (np.float32, 3e-4)])
@pytest.mark.parametrize("shift", [0.0, 50.0], ids=["near", "far"])
def test_a_head_without_second_moments_is_the_same(monkeypatch, K, weighted, dtype, atol, shift):
    monkeypatch.setattr(logistic, "_NEWTON_SIZE", 0)
    drafts = []
    solve = _logistic_head.solve_logistic
    monkeypatch.setattr(
        _logistic_head,
        "solve_logistic",
        lambda *args, draft, **kw: drafts.append(draft) or solve(*args, draft=draft, **kw),
    )
    X, codes, *_ = head_problem(250, 80, K)
    X = (X - 3.0 + shift).astype(dtype)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, 250) if weighted else None
    means = cell_moments(X, codes, codes, order=1)
    nothing = np.zeros((80, 0))
    eraser = Eraser(nothing, nothing, 1.0, means.total[1])
    coordinates = standardising_coordinates(CentredRows(X, eraser.center), 249, eraser)
    coef, intercept, fit = logistic_head(X, codes, means, coordinates, C=0.5, weight=weight)
    assert fit.converged
    assert [draft is not None for draft in drafts] == [dtype == np.float32 and not shift]
    Z = coordinates(X.astype(np.float64))
    expected = reference(Z, codes, 0.5, weight).decision_function(Z).reshape(250, -1)
    np.testing.assert_allclose(X @ coef.T + intercept, expected, atol=atol)


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_float32_rows_give_the_head_to_float32_digits(monkeypatch, shift):
    monkeypatch.setattr(logistic, "_NEWTON_SIZE", 0)
    X, codes, *_ = head_problem(800, 30, 2)
    narrow = (X + shift).astype(np.float32)
    nothing = np.zeros((30, 0))
    scores = []
    for rows in (narrow, narrow.astype(np.float64)):
        moments = cell_moments(rows, codes, codes, pooled=True)
        eraser = Eraser(nothing, nothing, 1.0, moments.total[1])
        coef, intercept, fit = logistic_head(
            rows, codes, moments, head_coordinates(moments, eraser)
        )
        assert fit.converged
        scores.append(rows.astype(float) @ coef[0] + intercept)
    np.testing.assert_allclose(scores[0], scores[1], atol=3e-4)


@pytest.mark.parametrize("curved", [None, "full", "mean"])
@pytest.mark.parametrize("K", [2, 3])
def test_sums_over_parts_add_up(K, curved):
    Z, codes = features_and_codes(90, 4, K)
    rng = np.random.default_rng(1)
    query = _log_loss.Query(
        rng.normal(size=(4, K - 1)), rng.normal(size=K - 1), Z.mean(axis=0), K, curved
    )
    whole, *parts = (
        _log_loss.loss_sums(ArrayRows(Z[rows], codes[rows]), query)
        for rows in (slice(None), slice(0, 30), slice(30, None))
    )
    for own, other in zip(parts[0] + parts[1], whole, strict=True):
        if own is None:
            assert curved is None
            assert other is None
        else:
            np.testing.assert_allclose(own, other, rtol=1e-10)


def test_newton_gives_up_inside_a_step_when_its_passes_are_over(monkeypatch):
    """From a point so far out that the first full step overshoots, with one pass to spare."""
    monkeypatch.setattr(logistic, "_NEWTON_SIZE", 10**6)
    Z, codes = features_and_codes(60, 3, 2)
    best = fit_logistic(Z, codes, 1e-3)
    far = replace(best, coef=100.0 * best.coef, intercept=100.0 * best.intercept)
    stopped = fit_logistic(Z, codes, 1e-3, start=far, max_passes=2)
    assert not stopped.converged
    assert np.isfinite(stopped.coef).all()
    # With passes enough it comes back.
    again = fit_logistic(Z, codes, 1e-3, start=far)
    assert again.converged
    np.testing.assert_allclose(again.coef, best.coef, rtol=1e-5)
