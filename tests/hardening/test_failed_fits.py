"""A fit that fails leaves an unfitted estimator: nothing of an earlier fit, nothing of this one."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.validation import check_is_fitted

from isrlearn import ISRClassifier, ISRRegressor, ISRTransformer, estimators
from isrlearn.paper import baselines

QUICK = {
    "DFRClassifier": {"C": 1.0, "n_subsamples": 1},
    "ISRClassifierCV": {"C": 1.0, "scale": 0.0, "n_spurious": 1, "weights": None, "cv": 2},
    "ISRRegressorCV": {"alpha": 1.0, "scale": 0.0, "n_spurious": 1, "weights": None, "cv": 2},
}
EVERY = [
    kind(**QUICK.get(name, {"max_iter": 20} if module is baselines else {}))
    for module in (estimators, baselines)
    for name in module.__all__
    if inspect.isclass(kind := getattr(module, name))
    and "environments" in inspect.signature(getattr(kind, "fit", len)).parameters
]


def data(estimator, seed=0, n=240, d=4):
    rng = np.random.default_rng(seed)
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 3
    X = rng.normal(size=(n, d))
    X[:, 0] += y
    X[:, 1] += e
    if is_classifier(estimator) or isinstance(estimator, ISRTransformer):
        return X, np.array(["no", "yes"])[y], e
    return X, X[:, 0] + rng.normal(size=n), e


def unfitted(estimator):
    assert [name for name in vars(estimator) if name.endswith("_")] == []
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)


@pytest.mark.parametrize("estimator", EVERY, ids=lambda estimator: type(estimator).__name__)
def test_a_refit_that_fails_forgets_the_fit_before(estimator, monkeypatch):
    X, y, e = data(estimator)
    wrong = [(X[:, :3], y, e[:-1]), (np.where(X > 2, np.nan, X), y, e), (X[:, :3], y, e)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i, rows in enumerate(wrong):
            estimator.fit(X, y, e)
            if i == 2:  # the last step of the fit fails, after features and classes were read
                monkeypatch.setattr(np.linalg, "svd", fail)
                monkeypatch.setattr(LogisticRegression, "fit", fail)
                monkeypatch.setattr(baselines.linear.Problem, "risks", fail)
            with pytest.raises((ValueError, ArithmeticError)):
                estimator.fit(*rows)
            unfitted(estimator)
            with pytest.raises(NotFittedError):
                getattr(estimator, "predict", getattr(estimator, "transform", None))(X)


def fail(*args, **kwargs):
    raise ArithmeticError("no convergence")


@pytest.mark.parametrize(
    ("estimator", "head"),
    [
        (ISRClassifier(), LogisticRegression(solver="none of these")),
        (ISRRegressor(), Ridge(solver="none of these")),
        (estimators.ISRClassifierCV(n_spurious=1, cv=2), LogisticRegression(solver="none")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_head_that_raises_leaves_no_classes_without_coefficients(estimator, head):
    X, y, e = data(estimator)
    estimator.set_params(**QUICK.get(type(estimator).__name__, {})).fit(X, y, e)
    other = np.where(y == "no", "never", "always") if is_classifier(estimator) else y
    with pytest.raises(ValueError, match="solver"):
        estimator.set_params(head=head).fit(X, other, e)
    unfitted(estimator)


def test_a_part_that_fails_changes_nothing():
    for estimator in (ISRClassifier(head="lda"), ISRRegressor()):
        X, y, e = data(estimator)
        estimator.partial_fit(X, y, e)
        before = dict(vars(estimator))
        with pytest.raises(ValueError, match="NaN"):
            estimator.partial_fit(np.full_like(X, np.nan), y, e)
        assert vars(estimator) == before


def test_a_whole_fit_after_too_few_parts_can_predict():
    X, y, e = data(ISRClassifier())
    clf = ISRClassifier(head="lda").partial_fit(X[e == 0], y[e == 0], e[e == 0])
    with pytest.raises(ValueError, match="not enough to predict"):
        clf.predict(X)
    assert clf.fit(X, y, e).predict(X).shape == y.shape


def test_what_was_set_besides_the_fit_survives():
    X, y, e = data(ISRTransformer())
    isr = ISRTransformer().set_output(transform="default").fit(X, y, e)
    with pytest.raises(ValueError, match="NaN"):
        isr.fit(X * np.nan, y, e)
    assert "_sklearn_output_config" in vars(isr)
