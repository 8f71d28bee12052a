"""Predictions for rows whose environment is known: it gets its own intercept."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRRegressorCV, load, save
from isrlearn.core.moments import Moments
from isrlearn.estimators.linear import own_intercepts


@pytest.fixture(params=[2, 3])
def shifted(request):
    """Rows of two or three classes whose first feature shifts with the environment."""
    rng = np.random.default_rng(0)
    y, e = rng.integers(0, request.param, 3000), rng.integers(0, 3, 3000)
    X = rng.normal(size=(3000, 3))
    X[:, 0] += 1.5 * y + 2.0 * e
    return X, y, np.array(["north", "south", "west"])[e]


def test_an_own_intercept_undoes_a_shift_that_was_not_removed(shifted):
    X, y, e = shifted
    clf = ISRClassifier(n_spurious=0).fit(X, y, e)
    without, known = clf.score(X, y), np.mean(clf.predict(X, environments=e) == y)
    assert known > without + 0.05
    shares = clf.predict_proba(X, environments=e)
    np.testing.assert_array_equal(clf.classes_[shares.argmax(axis=1)], clf.predict(X, e))


def test_a_search_passes_environments_to_its_best_estimator(shifted):
    X, y, e = shifted
    search = ISRClassifierCV(n_spurious=0, C=0.1, scale=1.0).fit(X, y, environments=e)
    for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        found = getattr(search, method)(X, environments=e)
        expected = getattr(search.best_estimator_, method)(X, environments=e)
        np.testing.assert_array_equal(found, expected)
        assert (found != getattr(search, method)(X)).any()


def test_new_and_unknown_environments_get_the_invariant_head(shifted):
    X, y, e = shifted
    clf = ISRClassifier(n_spurious=0).fit(X, y, e)
    for nobody in (["east"] * len(y), [None] * len(y)):
        expected = clf.decision_function(X)
        np.testing.assert_array_equal(clf.decision_function(X, nobody), expected)
    with pytest.raises(ValueError, match="one label per row"):
        clf.predict(X, environments=["west"])


def test_nothing_is_added_where_the_shift_was_removed(shifted):
    X, y, e = shifted
    clf = ISRClassifier().fit(X, y, e)
    assert clf.n_spurious_ >= 1
    assert np.abs(own_intercepts(clf.moments_, clf.coef_)).max() < 0.1


def test_empty_cells_and_small_ones_say_little():
    mean = np.array([[[0.0], [4.0]], [[1.0], [0.0]]])
    large, small = (
        Moments(np.arange(2), np.arange(2), np.array([[n, n], [n, 0.0]]), mean, None)
        for n in (1e6, 1.0)
    )
    coef = np.ones((1, 1))
    # The second environment has one class, which is two above its mean there.
    np.testing.assert_allclose(own_intercepts(large, coef)[1], -2.0, atol=1e-4)
    np.testing.assert_allclose(own_intercepts(small, coef)[1], -2.0 / 11)


def test_regressions_too(tmp_path):
    rng = np.random.default_rng(1)
    e = rng.integers(0, 4, 2000)
    X = rng.normal(size=(2000, 3))
    y = X[:, 0] + 3.0 * (e == 2) + 0.1 * rng.normal(size=2000)
    reg = ISRRegressor(n_spurious=0).fit(X, y, e)
    errors = [np.square(y - p).mean() for p in (reg.predict(X), reg.predict(X, environments=e))]
    assert errors[1] < 0.02 < 1 < errors[0]
    save(reg, tmp_path / "model.isr")
    found = load(tmp_path / "model.isr").predict(X, environments=e)
    np.testing.assert_allclose(found, reg.predict(X, environments=e))


def test_searches_pass_environments_on(shifted):
    X, y, e = shifted
    search = ISRClassifierCV(n_spurious=0, scale=1.0, C=1.0).fit(X, y, e)
    expected = search.best_estimator_.predict(X, e)
    np.testing.assert_array_equal(search.predict(X, environments=e), expected)
    numbers = ISRRegressorCV(n_spurious=0, scale=1.0, alpha=1.0).fit(X, X[:, 0], e)
    assert numbers.predict(X, e).shape == (3000,)
