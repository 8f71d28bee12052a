"""Sparse rows give what the same rows give as an array, and are never made dense as a whole."""

from __future__ import annotations

import inspect
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression, Ridge

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRTransformer, estimators
from isrlearn.diagnosis import diagnose
from isrlearn.engine import SparseRows, cell_moments
from isrlearn.estimators import infer_environments
from isrlearn.paper import baselines

SMALL = {"scale": 0.0, "n_spurious": [0, 1], "cv": 2}
SETTINGS = {
    "DFRClassifier": [{"C": 1.0, "n_subsamples": 2, "random_state": 0}],
    "ISRClassifierCV": [{"C": [0.1, 1.0], **SMALL}],
    "ISRRegressorCV": [{"alpha": [0.1, 1.0], **SMALL}],
    "ISRClassifier": [
        {},
        {"head": "lda"},
        {"method": "cov", "n_spurious": 1},
        {"method": "joint"},
        {"variant": "paper", "head": "lda"},  # its logistic head has another solver in memory
        {"n_components": 5, "weights": "group"},
        {"n_components": None, "scale": 0.3},
        {"head": LogisticRegression(tol=1e-10, max_iter=1000)},
        {"n_spurious": "permutation"},
    ],
    "ISRRegressor": [{}, {"n_components": 0.9}, {"head": Ridge()}, {"weights": "group"}],
    "ISRTransformer": [{}, {"output": "invariant"}, {"n_components": 4}, {"method": "regression"}],
}
EVERY = [
    kind(**settings)
    for module in (estimators, baselines)
    for name in module.__all__
    if inspect.isclass(kind := getattr(module, name))
    and "environments" in inspect.signature(getattr(kind, "fit", len)).parameters
    for settings in SETTINGS.get(name, [{"max_iter": 50, "random_state": 0}])
]


def data(n=400, d=12, seed=0, density=0.3):
    rng = np.random.default_rng(seed)
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 3
    X = rng.poisson(1.0, size=(n, d)) * (rng.random((n, d)) < density) * rng.uniform(0.5, 2.0, d)
    X[:, 0] += 2.0 * y * (rng.random(n) < 0.7)
    X[:, 1] += 1.5 * e * (rng.random(n) < 0.8)
    return X, y, e


def target(estimator, X, y):
    return X[:, 0] + 0.1 * X[:, -1] if is_regressor(estimator) else np.array(["no", "yes"])[y]


def same(estimator, X, y, e, formed, **options):
    """Fits on an array and on sparse rows, and all that comes from both, compared to 1e-10."""
    dense, thin = clone(estimator), clone(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dense.fit(X, y, environments=e, **options)
        thin.fit(formed, y, environments=e, **options)
    if hasattr(dense, "transform"):
        for rows in (X, formed):
            np.testing.assert_allclose(thin.transform(rows), dense.transform(X), atol=1e-10)
        return
    close = {"rtol": 1e-10, "atol": 1e-10 * np.abs(dense.coef_).max()}
    np.testing.assert_allclose(thin.coef_, dense.coef_, **close)
    np.testing.assert_allclose(thin.intercept_, dense.intercept_, atol=1e-9)
    for name in ("predict", "decision_function", "predict_proba"):
        if hasattr(dense, name) and (name == "predict" or is_classifier(dense)):
            expected, found = getattr(dense, name)(X), getattr(thin, name)(formed)
            if expected.dtype.kind == "U":
                np.testing.assert_array_equal(found, expected)
            else:
                np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("estimator", EVERY, ids=str)
def test_every_estimator_is_the_same_on_sparse_rows(estimator):
    X, y, e = data()
    same(estimator, X, target(estimator, X, y), e, sparse.csr_array(X))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_format_is_read(form, kind):
    X, y, e = data()
    formed = getattr(sparse, f"{form}_{kind}")(X)
    before = formed.copy()
    same(ISRClassifier(), X, y, e, formed)
    same(ISRTransformer(), X, y, e, formed)
    assert (formed != before).nnz == 0


@pytest.mark.parametrize(("weighted", "partly"), [(False, False), (True, True)])
@pytest.mark.parametrize(
    ("n", "d", "estimator"),
    [
        (300, 700, ISRClassifier(head="lda")),  # fewer rows than features: no components
        (300, 700, ISRClassifier()),
        (300, 700, ISRClassifier(C=10.0, weights="group")),
        (900, 1000, ISRClassifier(n_components=None)),
        (1300, 900, ISRClassifier()),  # components from moments
        (1200, 3000, ISRClassifier()),  # components from the Gram matrix of the rows
        (1200, 3000, ISRClassifier("cov")),
        (1200, 3000, ISRRegressor()),
        (4200, 1100, ISRClassifier(n_components=20)),  # components by iteration
        (4200, 1100, ISRTransformer(n_components=20, output="invariant")),
    ],
    ids=str,
)
def test_wide_rows_are_the_same(n, d, estimator, weighted, partly):
    X, y, e = data(n, d, density=0.05)
    weight = np.random.default_rng(1).integers(0, 3, n).astype(float) if weighted else None
    names = np.array(["a", "b", "c"], dtype=object)[e]
    if partly:
        names[::5] = None
    y = target(estimator, X, y)
    same(estimator, X, y, names, sparse.csr_array(X), sample_weight=weight)


def test_float32_rows_and_repeated_entries():
    X, y, e = data()
    X = X.astype(np.float32)
    clf = ISRClassifier().fit(sparse.csr_array(X), y, e)
    np.testing.assert_allclose(clf.coef_, ISRClassifier().fit(X, y, e).coef_, rtol=1e-4, atol=1e-5)
    i, j = np.nonzero(X)
    halves = (np.r_[X[i, j], X[i, j]] / 2, (np.r_[i, i], np.r_[j, j]))
    twice = sparse.coo_array(halves, shape=X.shape)
    np.testing.assert_allclose(ISRClassifier().fit(twice, y, e).coef_, clf.coef_, rtol=1e-5)


@pytest.mark.parametrize("order", [1, 2])
def test_moments_are_those_of_the_array(order):
    X, y, e = data(500, 70)
    weight, t = np.random.default_rng(0).integers(0, 3, 500), X[:, 0] + 1e6
    options = {"order": order, "targets": t, "sample_weight": weight, "chunk_size": 64}
    found = cell_moments(SparseRows(sparse.csr_array(X)), y, e, **options)
    expected = cell_moments(X, y, e, **options)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-12)
    np.testing.assert_allclose(found.count, expected.count)


def test_parts_and_validation_rows_may_be_sparse():
    X, y, e = data()
    thin = sparse.csr_array(X)
    whole = ISRClassifier(head="lda").fit(X, y, e)
    parts = ISRClassifier(head="lda")
    for rows in (slice(0, 150), slice(150, 400)):
        parts.partial_fit(thin[rows], y[rows], e[rows])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-10)
    search = ISRClassifierCV(**SMALL | {"C": 1.0})
    expected = clone(search).fit(X, y, e, validation=(X, y, e))
    found = search.fit(thin, y, e, validation=(thin, y, e))
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-10)
    assert found.best_score_ == expected.best_score_


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_a_diagnosis_of_sparse_rows_is_that_of_the_array(task):
    X, y, e = data(600)
    y = X[:, 0] + np.random.default_rng(1).normal(size=600) if task == "regression" else y
    assert str(diagnose(sparse.csr_array(X), y, e)) == str(diagnose(X, y, e))


@pytest.mark.parametrize("strategy", ["errors", "clusters", "labels"])
def test_inferred_environments_are_those_of_the_array(strategy):
    X, y, e = data(600)
    X = np.round(X + np.random.default_rng(1).normal(size=X.shape), 1)
    known = np.where(np.arange(600) % 3 > 0, None, e) if strategy == "labels" else None
    options = {"strategy": strategy, "environments": known, "random_state": 0}
    found = infer_environments(sparse.csr_array(X), y, **options)
    np.testing.assert_array_equal(found, infer_environments(X, y, **options))


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(wrong):
    X, y, e = data()
    X[3, 2] = wrong
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        ISRClassifier().fit(sparse.csr_array(X), y, e)


def test_memory_grows_with_the_entries_not_with_the_features():
    rng = np.random.default_rng(0)
    n, d, per_row = 5000, 20_000, 20
    place = np.repeat(np.arange(n), per_row), rng.integers(0, d, n * per_row)
    X = sparse.csr_array((rng.random(n * per_row), place), shape=(n, d))
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 3
    tracemalloc.start()
    clf = ISRClassifier(n_components=20).fit(X, y, e)
    clf.predict(X)
    assert tracemalloc.get_traced_memory()[1] < n * d * 8 / 2
    tracemalloc.stop()
    isr = ISRTransformer(n_components=20, output="invariant").fit(X, y, e)
    assert isr.transform(X).shape[1] <= 20


def test_a_dense_result_that_is_too_large_is_refused():
    X = sparse.csr_array((60_000, 20_000))
    small = sparse.random(60, 20_000, density=0.001, format="csr", random_state=0)
    isr = ISRTransformer(n_spurious=1).fit(small, np.arange(60) % 2, np.arange(60) // 2 % 3)
    with pytest.raises(ValueError, match=r"dense, 60000 × 20000 numbers: .*output='invariant'"):
        isr.transform(X)
