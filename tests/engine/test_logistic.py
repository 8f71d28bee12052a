"""The logistic solver: equal to scikit-learn and to its own formula, in few passes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from isrlearn.core import Coordinates, Eraser, head_coordinates
from isrlearn.engine import (
    ArrayRows,
    LogisticLoss,
    cell_moments,
    column_squares,
    fit_intercept,
    fit_logistic,
    minimise,
)


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


class Parts:
    """Rows in parts that sum the loss themselves: what a cluster does."""

    def __init__(self, X, codes, weight=None, cuts=(3, 50)):
        index = np.split(np.arange(len(X)), cuts)
        self.calls = 0
        self.parts = [
            LogisticLoss(X[i], codes[i], None if weight is None else weight[i]) for i in index
        ]

    def loss_and_gradient(self, coef, intercept):
        self.calls += 1
        found = [part.loss_and_gradient(coef, intercept) for part in self.parts]
        return tuple(sum(values) for values in zip(*found, strict=True))


@pytest.mark.parametrize("condition", [1.0, 1e6])
@pytest.mark.parametrize(("n", "p", "K"), [(600, 20, 2), (900, 90, 2), (800, 25, 3)])
@pytest.mark.parametrize("C", [0.1, 1e4])
def test_same_coefficients_as_newton_cholesky(n, p, K, condition, C):
    Z, codes = features_and_codes(n, p, K, condition=condition)
    expected = reference(Z, codes, C)
    found = fit_logistic(Z, codes, n_classes=K, penalty=1 / C)
    assert found.converged
    assert found.n_passes <= 60
    assert relative(found.coef, expected.coef_) < 1e-6
    np.testing.assert_allclose(
        Z @ found.coef.T + found.intercept.T,
        Z @ expected.coef_.T + expected.intercept_,
        atol=1e-6,
    )


@pytest.mark.parametrize("K", [2, 4])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_separable_classes(K, C):
    Z = np.random.default_rng(1).normal(size=(300, 50))
    codes = np.digitize(Z[:, 0], np.linspace(-0.8, 0.9, K - 1))
    found, expected = fit_logistic(Z, codes, n_classes=K, penalty=1 / C), reference(Z, codes, C)
    assert found.converged
    assert relative(found.coef, expected.coef_) < 1e-6


def test_many_classes():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(60), 20)
    Z = 1.5 * rng.normal(size=(60, 10))[codes] + rng.normal(size=(1200, 10))
    found, expected = fit_logistic(Z, codes, n_classes=60), reference(Z, codes, 1.0)
    assert found.converged
    assert relative(found.coef, expected.coef_) < 1e-6
    # Rows in parts have no curvature per class: the same minimum in more passes.
    parts = minimise(Parts(Z, codes), 10, np.bincount(codes), 1.0, Z.T @ Z)
    assert relative(found.coef, parts.coef) < 1e-6
    assert found.n_passes < 0.75 * parts.n_passes


def objective_for(K):
    rng = np.random.default_rng(2)
    Z, codes = features_and_codes(40, 3, K, seed=3)
    weight = rng.uniform(0.2, 3.0, size=40)
    m = 1 if K == 2 else K
    return LogisticLoss(Z, codes, weight), rng.normal(size=(m, 3)), rng.normal(size=(m, 1))


@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_gradient_is_the_derivative(K):
    loss, coef, b = objective_for(K)
    stacked = np.column_stack([coef, b]).ravel()

    def value(x):
        x = x.reshape(-1, 4)
        return loss.loss_and_gradient(x[:, :3], x[:, 3:])

    steps = 1e-5 * np.eye(len(stacked))
    numeric = [(value(stacked + h)[0] - value(stacked - h)[0]) / 2e-5 for h in steps]
    _, by_coef, by_b = value(stacked)
    found = np.column_stack([by_coef, by_b]).ravel()
    np.testing.assert_allclose(found, numeric, rtol=1e-6, atol=1e-6)


def test_the_curvature_of_a_class_is_the_derivative_of_its_gradient():
    loss, coef, b = objective_for(5)
    stacked, found = np.column_stack([coef, b]), loss.class_curvature(coef, b)
    for k, j in np.ndindex(stacked.shape):
        step = np.zeros(stacked.shape)
        step[k, j] = 1e-5
        ends = [
            loss.loss_and_gradient(x[:, :3], x[:, 3:]) for x in (stacked + step, stacked - step)
        ]
        gradients = [np.append(by_coef[k], by_b[k]) for _, by_coef, by_b in ends]
        numeric = (gradients[0] - gradients[1]) / 2e-5
        np.testing.assert_allclose(found[k, j], numeric, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("K", [2, 3])
def test_a_weight_is_a_repetition(K):
    Z, codes = features_and_codes(200, 6, K)
    times = np.random.default_rng(0).integers(0, 4, size=200)
    weighted = fit_logistic(Z, codes, n_classes=K, penalty=1 / 2.0, weight=times)
    rows = np.repeat(np.arange(200), times)
    repeated = fit_logistic(Z[rows], codes[rows], n_classes=K, penalty=1 / 2.0)
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(weighted.intercept, repeated.intercept, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("condition", [1.0, 1e4])
def test_the_preconditioner_is_what_saves_passes(monkeypatch, condition):
    monkeypatch.setattr("isrlearn.engine.logistic._MOST_PASSES", 200)
    Z, codes = features_and_codes(500, 40, 2, condition=condition)
    Z -= Z.mean(axis=0)
    count, scatter = np.bincount(codes), Z.T @ Z
    full, none = (
        minimise(LogisticLoss(Z, codes), 40, count, 1e-6, known)
        for known in (scatter, (Z[:0].T, np.zeros(0), float(np.trace(scatter)) / 40))
    )
    assert full.n_passes < (1.5 if condition == 1.0 else 0.5) * none.n_passes


def test_any_scatter_leads_to_the_same_minimum():
    Z, codes = features_and_codes(300, 8, 3, condition=10.0)
    expected = fit_logistic(Z, codes, n_classes=3, penalty=0.1)
    loss, count, nothing = LogisticLoss(Z, codes), np.bincount(codes), np.zeros((8, 0))
    for scatter in (None, (nothing, np.zeros(0), 8.0), np.diag(np.arange(1.0, 9.0))):
        found = minimise(loss, 8, count, 0.1, scatter)
        assert found.converged
        assert relative(found.coef, expected.coef) < 1e-6


def test_float32_features_lose_nothing():
    Z, codes = features_and_codes(500, 20, 2)
    narrow = Z.astype(np.float32)
    a, b = (
        fit_logistic(rows, codes, n_classes=2, penalty=1 / 10.0, tol=1e-9)
        for rows in (narrow, narrow.astype(float))
    )
    assert relative(a.coef, b.coef) < 1e-8


@pytest.mark.parametrize("K", [2, 3])
def test_blocks_make_no_difference(K):
    # 40,000 rows are read in several blocks; one by one they are the same.
    Z, codes = features_and_codes(40_000, 30, K)
    weight = np.random.default_rng(0).uniform(size=len(Z))
    coef = np.random.default_rng(1).normal(size=(1 if K == 2 else K, 30))
    b = np.zeros((len(coef), 1))
    whole = LogisticLoss(Z, codes, weight).loss_and_gradient(coef, b)
    parts = Parts(Z, codes, weight, cuts=(7, 20_000)).loss_and_gradient(coef, b)
    for own, other in zip(parts, whole, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-10)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_may_sum_the_loss_themselves(K, weighted):
    Z, codes = features_and_codes(400, 10, K)
    weight = np.random.default_rng(1).uniform(0.1, 2.0, 400) if weighted else None
    Z -= np.average(Z, axis=0, weights=weight)
    rows, count = Parts(Z, codes, weight), np.bincount(codes, weight, K)
    scatter = Z.T @ Z if weight is None else (Z.T * weight) @ Z
    parts = minimise(rows, 10, count, 1 / 3.0, scatter)
    whole = fit_logistic(Z, codes, n_classes=K, penalty=1 / 3.0, weight=weight)
    assert parts.converged
    assert relative(parts.coef, whole.coef) < 1e-8
    assert parts.n_passes == rows.calls


@pytest.mark.parametrize("n", [60, 400])
def test_rows_may_be_read_block_by_block(tmp_path, n):
    Z, codes = features_and_codes(n, 100, 2)
    np.save(tmp_path / "Z.npy", Z)
    stored = np.load(tmp_path / "Z.npy", mmap_mode="r")
    whole = fit_logistic(Z, codes, n_classes=2)
    for rows in (stored, ArrayRows(stored)):
        np.testing.assert_array_equal(fit_logistic(rows, codes, n_classes=2).coef, whole.coef)


def test_collinear_and_constant_features():
    Z, codes = features_and_codes(200, 4, 2)
    wide = np.column_stack([Z, Z[:, :2] @ [1.0, 1.0], np.ones(200)])
    found, expected = (
        fit_logistic(wide, codes, n_classes=2, penalty=1 / 2.0),
        reference(wide, codes, 2.0),
    )
    np.testing.assert_allclose(found.coef, expected.coef_, atol=1e-6)
    free = fit_logistic(wide, codes, n_classes=2, penalty=0.0)
    scores = reference(Z, codes, 1e12).decision_function(Z)
    np.testing.assert_allclose(wide @ free.coef[0] + free.intercept[0], scores, atol=1e-5)


@pytest.mark.parametrize("K", [4, 25])
def test_coefficients_of_many_classes_add_up_to_zero(K):
    Z, codes = features_and_codes(600, 5, K)
    found = fit_logistic(Z, codes, n_classes=K)
    assert np.abs(found.coef.sum(axis=0)).max() < 1e-12
    assert abs(found.intercept.sum()) < 1e-12


def test_says_when_it_ran_out_of_passes(monkeypatch):
    monkeypatch.setattr("isrlearn.engine.logistic._MOST_PASSES", 4)
    Z, codes = features_and_codes(300, 30, 2)
    found = fit_logistic(Z, codes, n_classes=2, penalty=1 / 1e3)
    assert not found.converged
    assert found.gradient_norm > 1e-9


@pytest.mark.parametrize("K", [2, 3])
def test_stops_where_rounding_leaves_nothing_to_gain(K):
    Z, codes = features_and_codes(300, 30, K)
    found = fit_logistic(Z, codes, n_classes=K, tol=1e-18)
    assert found.gradient_norm < 1e-10
    assert found.n_passes < 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"codes": [0, 1]}, r"codes has shape \(2,\), but X has 4 rows"),
        ({"codes": [0, 1, 2, 1]}, "for 2 classes; they run from 0 to 2"),
        ({"codes": [0, 0, 0, 0], "n_classes": 1}, "codes must lie in 0, …, 1 for 1 classes"),
        ({"penalty": -2.0}, r"penalty must not be negative; got -2\.0"),
        ({"weight": [1.0]}, r"weight has shape \(1,\), but X has 4 rows"),
    ],
)
def test_errors_name_the_value(change, message):
    Z = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match=message):
        fit_logistic(Z, **{"codes": [0, 1, 0, 1], "n_classes": 2} | change)


def head_problem(n, d, K, *, dtype=np.float64, seed=0):
    """Rows, codes, moments and an eraser of one direction."""
    Z, codes = features_and_codes(n, d, K, condition=30.0, seed=seed)
    X = Z.astype(dtype)
    moments = cell_moments(X, codes, np.arange(n) % 2, pooled=True)
    direction = np.linalg.qr(np.random.default_rng(seed).normal(size=(d, 1)))[0]
    return X, codes, moments, Eraser(direction, direction, 0.0, moments.total[1])


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    ("n", "d"), [(900, 30), (300, 40), (60, 80)], ids=["whitened", "standardised", "row space"]
)
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_head_seen_from_the_rows_is_the_head_on_its_coordinates(K, n, d, reduced, weighted):
    X, codes, moments, eraser = head_problem(n, d, K)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, n) if weighted else None
    coordinates = head_coordinates(moments, eraser)
    if reduced:
        linear = np.linalg.qr(np.random.default_rng(1).normal(size=(d, 10)))[0]
        coordinates = Coordinates(eraser, linear)
    options = {"n_classes": K, "coordinates": coordinates, "weight": weight}
    options["scatter"] = moments.total[2]
    for C in (0.5, 0.4):
        fit = fit_logistic(X, codes, penalty=1 / C, **options)
        assert fit.converged
        expected = reference(coordinates(X), codes, C, weight)
        scores = expected.decision_function(coordinates(X)).reshape(n, -1)
        coef, intercept = coordinates.fold(fit.coef, fit.intercept[:, 0])
        np.testing.assert_allclose(X @ coef.T + intercept, scores, atol=1e-6)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-6), (np.float32, 3e-4)])
@pytest.mark.parametrize("shift", [0.0, 50.0], ids=["near", "far"])
@pytest.mark.parametrize("n", [70, 250])
def test_a_head_without_second_moments_is_the_same(K, weighted, dtype, atol, shift, n):
    X, codes, *_ = head_problem(n, 80, K)
    X = (X - 3.0 + shift).astype(dtype)
    weight = np.random.default_rng(2).uniform(0.1, 3.0, n) if weighted else None
    center = cell_moments(X, codes, codes, order=1).total[1]
    eraser = Eraser(np.zeros((80, 0)), np.zeros((80, 0)), 1.0, center)
    deviation = np.sqrt(column_squares(X, np.zeros((80, 0)), center)[0] / (n - 1))
    coordinates = Coordinates(eraser, 1.0 / deviation)
    fit = fit_logistic(
        X, codes, n_classes=K, penalty=1 / 0.5, coordinates=coordinates, weight=weight
    )
    assert fit.converged
    Z = coordinates(X.astype(np.float64))
    expected = reference(Z, codes, 0.5, weight).decision_function(Z).reshape(n, -1)
    coef, intercept = coordinates.fold(fit.coef, fit.intercept[:, 0])
    np.testing.assert_allclose(X @ coef.T + intercept, expected, atol=atol)


@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_float32_rows_give_the_head_to_float32_digits(shift):
    X, codes, *_ = head_problem(800, 30, 2)
    narrow = (X + shift).astype(np.float32)
    nothing = np.zeros((30, 0))
    scores = []
    for rows in (narrow, narrow.astype(np.float64)):
        moments = cell_moments(rows, codes, codes, pooled=True)
        coordinates = head_coordinates(moments, Eraser(nothing, nothing, 1.0, moments.total[1]))
        fit = fit_logistic(rows, codes, n_classes=2, coordinates=coordinates)
        assert fit.converged
        coef, intercept = coordinates.fold(fit.coef, fit.intercept[:, 0])
        scores.append(rows.astype(float) @ coef[0] + intercept)
    np.testing.assert_allclose(scores[0], scores[1], atol=3e-4)


@pytest.mark.parametrize("K", [2, 3])
def test_lifted_coefficients_are_those_of_the_coordinates(K):
    """Dense coordinates are never computed for the rows, and give the same sums."""
    X, codes, moments, eraser = head_problem(700, 30, K)
    coordinates = head_coordinates(moments, eraser)
    assert coordinates.linear.ndim == 2
    rng = np.random.default_rng(3)
    m = 1 if K == 2 else K
    coef, b, weight = rng.normal(size=(m, 30)), rng.normal(size=(m, 1)), rng.uniform(size=700)
    lifted = LogisticLoss(X, codes, weight, coordinates).loss_and_gradient(coef, b)
    copied = LogisticLoss(coordinates(X), codes, weight).loss_and_gradient(coef, b)
    for own, other in zip(lifted, copied, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_intercepts_of_groups_are_those_of_indicators(K):
    Z, codes = features_and_codes(400, 4, K)
    groups = np.random.default_rng(1).integers(0, 3, 400)
    found = fit_logistic(Z, codes, n_classes=K, penalty=1.0, groups=groups)
    # A penalty of 1e-8 on the coefficients of indicators is nearly none.
    same = fit_logistic(np.hstack([Z, 1e4 * np.eye(3)[groups]]), codes, n_classes=K, penalty=1.0)
    np.testing.assert_allclose(found.coef, same.coef[:, :4], atol=1e-6)
    scores = same.coef[:, 4:] * 1e4 + same.intercept
    np.testing.assert_allclose(np.diff(found.intercept), np.diff(scores), atol=1e-4)


def test_rows_are_compared_with_the_classes_of_their_group():
    Z, codes = features_and_codes(300, 4, 3)
    groups = np.random.default_rng(1).integers(0, 2, 300)
    codes = np.where((groups == 1) & (codes == 2), 0, codes)
    compared = np.array([[True, True], [True, True], [True, False]])
    how = {"n_classes": 3, "penalty": 1.0, "groups": groups}
    exact = fit_logistic(Z, codes, **how, compared=compared)
    # Without saying so, the intercept of the absent class tends to minus infinity.
    limit = fit_logistic(Z, codes, **how)
    assert exact.converged
    np.testing.assert_allclose(exact.coef, limit.coef, atol=1e-4)


@pytest.mark.parametrize("K", [2, 3])
def test_the_intercept_alone_is_fitted_given_the_coefficients(K):
    Z, codes = features_and_codes(300, 4, K)
    fit = fit_logistic(Z, codes, n_classes=K, penalty=1.0)
    found = fit_intercept(LogisticLoss(Z, codes), fit.coef, 300.0)
    np.testing.assert_allclose(found, fit.intercept[:, 0], atol=1e-6)
