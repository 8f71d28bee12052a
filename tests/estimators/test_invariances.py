"""What must not matter does not: order, rotation, units, names, memory layout, the last fit."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, RidgeClassifier

from isrlearn import ISRClassifier, ISRRegressor, ISRTransformer

CLASSIFIERS = {
    "mean": ISRClassifier(),
    "mean, lda": ISRClassifier(head="lda"),
    "mean, paper": ISRClassifier(variant="paper", n_spurious=2, head="lda"),
    "cov": ISRClassifier("cov", n_spurious=2),
    "cov, paper, lda": ISRClassifier("cov", n_spurious=2, variant="paper", head="lda"),
    "multiclass": ISRClassifier("multiclass", n_spurious=2, weights="group"),
    "multiclass, paper": ISRClassifier("multiclass", n_spurious=2, variant="paper", head="lda"),
    "joint": ISRClassifier("joint", weights="class"),
    "joint, lda": ISRClassifier("joint", head="lda", weights="group"),
    "ridge classifier": ISRClassifier(head=RidgeClassifier()),
}
REGRESSORS = {
    "ridge": ISRRegressor(),
    "balanced ridge": ISRRegressor(weights="group"),
    "paper": ISRRegressor(variant="paper", n_spurious=2),
    "least squares": ISRRegressor(head=LinearRegression()),
}
ESTIMATORS = CLASSIFIERS | REGRESSORS
# The forms that find the subspace in whitened features: all but the published ones.
WHITENED = [name for name in ESTIMATORS if "paper" not in name]

every = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture
def case(name, ternary, continuous):
    """An unfitted estimator and data for it."""
    X, y, e = ternary if name in CLASSIFIERS else continuous
    if name == "mean, paper":
        # It compares one class: bees, whatever their name is.
        e = np.where(y == "bee", e, None)
    return clone(ESTIMATORS[name]), (X, y, e)


def scores(estimator, X):
    """What is predicted, as numbers."""
    return getattr(estimator, "decision_function", estimator.predict)(X)


def fit(estimator, X, y, e, **keywords):
    return clone(estimator).fit(X, y, environments=e, **keywords)


@every
def test_rows_permuted(case):
    estimator, (X, y, e) = case
    order = np.random.default_rng(0).permutation(len(y))
    expected = scores(fit(estimator, X, y, e), X)
    found = scores(fit(estimator, X[order], y[order], e[order]), X)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@every
def test_features_rotated(case):
    estimator, (X, y, e) = case
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(5, 5)))[0]
    a, b = fit(estimator, X, y, e), fit(estimator, X @ Q, y, e)
    np.testing.assert_allclose(scores(b, X @ Q), scores(a, X), atol=1e-8)
    # Not the predictions alone: the map is the same map.
    np.testing.assert_allclose(b.coef_, a.coef_ @ Q, atol=1e-8)


@every
def test_features_moved(case):
    estimator, (X, y, e) = case
    a, b = fit(estimator, X, y, e), fit(estimator, X + 100.0, y, e)
    np.testing.assert_allclose(scores(b, X + 100.0), scores(a, X), atol=1e-8)


@pytest.mark.parametrize("name", WHITENED)
@pytest.mark.parametrize("seed", range(3))
def test_features_under_any_invertible_map(case, seed):
    estimator, (X, y, e) = case
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(5, 5)))[0] for _ in range(2))
    M = U * 10.0 ** rng.uniform(-1.5, 1.5, 5) @ V
    a, b = fit(estimator, X, y, e), fit(estimator, X @ M, y, e)
    np.testing.assert_allclose(scores(b, X @ M), scores(a, X), atol=1e-6)


@pytest.mark.parametrize("name", ["mean, paper", "paper"])
def test_published_forms_do_depend_on_units(case):
    # Negative control for the test above.
    estimator, (X, y, e) = case
    M = np.diag([1.0, 30.0, 0.1, 1.0, 5.0])
    a, b = fit(estimator, X, y, e), fit(estimator, X @ M, y, e)
    assert np.abs(scores(b, X @ M) - scores(a, X)).max() > 1e-3


@every
def test_environments_relabelled(case):
    estimator, (X, y, e) = case
    codes = {"north": 7, "south": 2, "east": 9, "west": -1}
    other = np.array([codes.get(name) for name in e])
    np.testing.assert_allclose(
        scores(fit(estimator, X, y, other), X), scores(fit(estimator, X, y, e), X), atol=1e-8
    )


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_relabelled(case):
    estimator, (X, y, e) = case
    names = {"ant": "zebra", "bee": "bee", "cat": "aardvark"}  # sorted the other way around
    other = np.array([names[k] for k in y])
    a, b = fit(estimator, X, y, e), fit(estimator, X, other, e)
    assert b.classes_.tolist() == ["aardvark", "bee", "zebra"]
    np.testing.assert_allclose(scores(b, X)[:, ::-1], scores(a, X), atol=1e-8)
    np.testing.assert_array_equal(b.predict(X), [names[k] for k in a.predict(X)])


def test_two_classes_swapped(binary):
    X, y, e = binary
    for estimator in (ISRClassifier(), ISRClassifier(head="lda"), ISRClassifier("joint")):
        a, b = fit(estimator, X, y, e), fit(estimator, X, 1 - y, e)
        np.testing.assert_allclose(scores(b, X), -scores(a, X), atol=1e-8)


@pytest.mark.filterwarnings("ignore:.* rows repeat another one")
@every
def test_integer_weights_are_repeated_rows(case):
    estimator, (X, y, e) = case
    w = np.random.default_rng(2).integers(0, 4, size=len(y))
    rows = np.repeat(np.arange(len(y)), w)
    a = fit(estimator, X, y, e, sample_weight=w)
    b = fit(estimator, X[rows], y[rows], e[rows])
    np.testing.assert_allclose(scores(a, X), scores(b, X), atol=1e-8)
    assert a.n_spurious_ == b.n_spurious_


@every
def test_environments_by_position_or_by_name(case):
    estimator, (X, y, e) = case
    np.testing.assert_array_equal(
        clone(estimator).fit(X, y, e).coef_, fit(estimator, X, y, e).coef_
    )


@every
def test_equal_weights_are_no_weights(case):
    estimator, (X, y, e) = case
    a, b = fit(estimator, X, y, e), fit(estimator, X, y, e, sample_weight=np.ones(len(y)))
    np.testing.assert_allclose(scores(a, X), scores(b, X), atol=1e-8)


def same(a, b):
    """Whether two fitted values are equal, whatever they are made of."""
    if isinstance(a, np.ndarray):
        return type(b) is np.ndarray and a.dtype == b.dtype and np.array_equal(a, b)
    if hasattr(a, "__dataclass_fields__"):
        names = a.__dataclass_fields__
        return type(a) is type(b) and all(same(getattr(a, f), getattr(b, f)) for f in names)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "get_params"):
        return type(a) is type(b) and same(vars(a), vars(b))
    return bool(a == b)


@every
def test_refit_leaves_nothing_of_the_first_fit(case, binary):
    estimator, (X, y, e) = case
    fresh = fit(estimator, X, y, e)
    # First on other data: other features, names, environments, weights.
    rng = np.random.default_rng(3)
    n = 300
    other = [rng.normal(size=(n, 7)), rng.choice(["ant", "bee"], n), rng.choice(["u", "v"], n)]
    other[0][other[2] == "u"] *= np.arange(1, 8)
    target = rng.normal(size=n) if estimator.__class__ is ISRRegressor else other[1]
    used = clone(estimator).set_params(n_spurious=1)
    used.fit(other[0], target, environments=other[2])
    used.set_params(n_spurious=estimator.n_spurious).fit(X, y, environments=e)
    assert same(vars(used), vars(fresh))


def test_refit_with_other_parameters_leaves_nothing_either(binary):
    X, y, e = binary
    chain = [
        {"method": "mean", "head": "lda", "n_components": 4, "n_spurious": "auto"},
        {"method": "cov", "head": "logistic", "n_components": None, "n_spurious": 2},
        {"method": "mean", "head": (np.ones((1, 5)), [0.0]), "scale": 0.5, "n_spurious": 1},
        {"method": "joint", "head": "lda", "scale": 0.0, "n_spurious": "auto"},
    ]
    used = ISRClassifier()
    for parameters in chain:
        used.set_params(**parameters).fit(X, y, environments=e)
        assert same(vars(used), vars(fit(used, X, y, e)))


def test_moments_after_rows_leave_no_names(binary):
    X, y, e = binary
    frame = pd.DataFrame(X, columns=list("abcde"))
    clf = ISRClassifier(head="lda").fit(frame, y, environments=e)
    moments = clf.moments_
    fresh = ISRClassifier(head="lda").fit_moments(moments)
    assert same(vars(clf.fit_moments(moments)), vars(fresh))
    assert not hasattr(clf, "feature_names_in_")


def test_names_of_an_earlier_fit_are_gone(binary):
    X, y, e = binary
    clf = ISRClassifier().fit(pd.DataFrame(X, columns=list("abcde")), y, environments=e)
    clf.fit(X, y, environments=e)
    assert not hasattr(clf, "feature_names_in_")


@every
def test_inputs_and_parameters_never_change(case):
    estimator, data = case
    arrays = [np.array(a) for a in data] + [
        np.random.default_rng(4).uniform(1.0, 2.0, size=len(data[1]))
    ]
    before = copy.deepcopy(arrays)
    parameters = copy.deepcopy(estimator.get_params())
    X, y, e, w = arrays
    estimator.fit(X, y, environments=e, sample_weight=w)
    scores(estimator, X)
    assert same(arrays, before)
    assert same(estimator.get_params(), parameters)


def test_transformer_does_not_change_its_input(binary):
    X, y, e = (np.array(a) for a in binary)
    before = X.copy()
    for output in ("same", "invariant"):
        ISRTransformer(output=output).fit(X, y, environments=e).transform(X)
        np.testing.assert_array_equal(X, before)


def test_heads_given_as_arrays_never_change(binary):
    X, y, e = binary
    coef, intercept = np.ones((1, 5)), np.zeros(1)
    clf = ISRClassifier(head=(coef, intercept), scale=1.0, n_spurious=1).fit(X, y, environments=e)
    clf.coef_ += 1.0
    clf.intercept_ += 1.0
    assert coef.tolist() == [[1.0] * 5]
    assert intercept.tolist() == [0.0]


@every
def test_memory_layout_does_not_matter(case, tmp_path):
    estimator, (X, y, e) = case
    expected = scores(fit(estimator, X, y, e), X)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert not mapped.flags.writeable
    wide = np.zeros((len(X), 10))
    wide[:, ::2] = X
    for layout in (np.asfortranarray(X), mapped, wide[:, ::2], X[::-1].copy()[::-1]):
        found = fit(estimator, layout, y, e)
        np.testing.assert_allclose(scores(found, layout), expected, atol=1e-8)


@every
def test_clones_and_pickles(case):
    estimator, (X, y, e) = case
    fitted = fit(estimator, X, y, e)
    assert same(clone(fitted).get_params(), estimator.get_params())
    assert not hasattr(clone(fitted), "coef_")
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(scores(again, X), scores(fitted, X))
    assert same(vars(again), vars(fitted))


def test_pairs_survive_cloning(binary):
    X, y, e = binary
    clf = ISRClassifier(head=(np.ones((1, 5)), np.zeros(1)), n_spurious=1)
    a, b = fit(clf, X, y, e), fit(clone(clf), X, y, e)
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert "head=(array(" in repr(clf)


@pytest.mark.parametrize("estimator", [ISRClassifier(), ISRClassifier("joint"), ISRTransformer()])
def test_two_fits_are_the_same_fit(ternary, estimator):
    X, y, e = ternary
    assert same(vars(fit(estimator, X, y, e)), vars(fit(estimator, X, y, e)))
