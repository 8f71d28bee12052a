"""Classes that were not seen in every environment: each contributes the cells it has."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from isrlearn import ISRClassifier, ISRClassifierCV, ISRTransformer
from isrlearn.core import METHODS
from isrlearn.engine import cell_moments

FORMS = [
    {"method": "mean"},
    {"method": "mean", "variant": "paper"},
    {"method": "multiclass", "variant": "paper"},
    {"method": "cov"},
    {"method": "cov", "variant": "paper"},
    {"method": "joint"},
]
forms = pytest.mark.parametrize("form", FORMS, ids=str)


def seen_cells(data, *missing):
    """The rows that are in none of the missing (class, environment) cells."""
    X, y, e = data
    rows = np.full(len(y), True)
    for k, name in missing:
        rows &= ~((y == k) & (e == name))
    return X[rows], y[rows], e[rows]


@pytest.fixture(params=["one cell", "a cell of each class", "all but one of a class"])
def data(request, ternary):
    missing = {
        "one cell": [("cat", "west")],
        "a cell of each class": [("ant", "north"), ("bee", "south"), ("cat", "east")],
        "all but one of a class": [("bee", name) for name in ("north", "south", "east")],
    }
    return seen_cells(ternary, *missing[request.param])


@forms
@pytest.mark.parametrize("n_spurious", [2, "auto"])
def test_estimators_are_the_functions(data, form, n_spurious):
    X, y, e = data
    moments = cell_moments(X, y, e)
    assert (moments.count == 0).any()
    keywords = {name: value for name, value in form.items() if name != "method"}
    expected = METHODS[form["method"]].find(moments, n_spurious, **keywords)
    for estimator in (ISRClassifier, ISRTransformer):
        fitted = estimator(n_spurious=n_spurious, **form).fit(X, y, e)
        assert fitted.n_spurious_ == expected.rank
        np.testing.assert_allclose(fitted.spurious_basis_, expected.basis, atol=1e-9)
        assert fitted.environments_.tolist() == ["east", "north", "south", "west"]


@pytest.mark.parametrize("head", ["logistic", "lda"])
def test_nothing_is_left_of_what_shifts(data, ternary, head):
    X, y, e = data
    clf = ISRClassifier(head=head).fit(X, y, e)
    whole = ISRClassifier(head=head).fit(*ternary)
    assert clf.n_spurious_ == whole.n_spurious_ == 2
    assert np.abs(clf.coef_ @ clf.spurious_basis_).max() < 1e-8
    assert clf.score(X, y) > whole.score(X, y) - 0.05
    erased = ISRTransformer(n_spurious=2).fit(X, y, e).transform(X)
    again = ISRClassifier(n_spurious=0, head=head, C=1e6).fit(erased, y, e)
    free = ISRClassifier(n_spurious=2, head=head, C=1e6).fit(X, y, e)
    np.testing.assert_allclose(
        again.decision_function(erased), free.decision_function(X), atol=1e-4
    )


def test_classes_weigh_alike_and_so_do_the_environments_of_each(data):
    X, y, e = data
    weight = np.empty(len(y))
    for k in np.unique(y):
        places = np.unique(e[y == k])
        for j in places:
            cell = (y == k) & (e == j)
            weight[cell] = len(y) / (len(np.unique(y)) * len(places) * cell.sum())
    plain = {"n_spurious": 0, "head": "lda", "C": np.inf}
    a = ISRClassifier(weights="group", **plain).fit(X, y, e)
    b = ISRClassifier(**plain).fit(X, y, e, sample_weight=weight)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=1e-8)


def test_parts_are_the_whole(data):
    X, y, e = data
    whole, parts = ISRClassifier(head="lda").fit(X, y, e), ISRClassifier(head="lda")
    for rows in np.array_split(np.argsort(e, kind="stable"), 5):
        parts.partial_fit(X[rows], y[rows], e[rows])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-8)
    np.testing.assert_allclose(parts.intercept_, whole.intercept_, atol=1e-8)


SEARCH = {"n_spurious": [0, 2], "scale": [0.0], "C": [0.1, 1.0], "cv": 3}


@pytest.mark.parametrize("form", [{}, {"variant": "paper"}, {"method": ["mean", "cov"]}], ids=str)
def test_search_is_its_best_estimator(data, form):
    X, y, e = data
    search = ISRClassifierCV(**SEARCH | form).fit(X, y, e)
    fixed = {"variant": form.get("variant", "pooled")}
    again = ISRClassifier(**search.best_params_, **fixed).fit(X, y, e)
    np.testing.assert_array_equal(search.coef_, again.coef_)
    assert np.isfinite(search.cv_results_["mean_worst_group"]).all()


def test_search_by_left_out_environments_needs_two_others_of_a_class(ternary):
    data = seen_cells(ternary, ("ant", "north"), ("bee", "south"), ("cat", "east"))
    search = ISRClassifierCV(**SEARCH, selection="leave-one-environment-out")
    assert search.fit(*data).n_splits_ == 4
    X, y, e = data
    home = {"ant": ("south", "west"), "bee": ("north", "west"), "cat": ("north", "west")}
    rows = np.array([name in home[k] for k, name in zip(y, e, strict=True)])
    with pytest.raises(ValueError, match="no class has rows in two environments"):
        clone(search).fit(X[rows], y[rows], e[rows])


UNKNOWN = {"None": None, "NaN": np.nan, "NA": pd.NA}


@pytest.mark.parametrize("unknown", UNKNOWN.values(), ids=UNKNOWN)
@forms
def test_class_of_unknown_environments_contributes_nothing(ternary, form, unknown):
    """Fitted, the subspace is that of the other classes; the class still trains the head."""
    X, y, e = ternary
    partly = np.where(y == "bee", np.array(unknown, dtype=object), e.astype(object))
    other = y != "bee"
    parameters = {"n_spurious": 2, **form}
    clf = ISRClassifier(**parameters).fit(X, y, partly)
    isr = ISRTransformer(**parameters).fit(X, y, partly)
    without = ISRTransformer(**parameters).fit(X[other], y[other], e[other])
    for fitted in (clf, isr):
        np.testing.assert_allclose(fitted.spurious_basis_, without.spurious_basis_, atol=1e-9)
    assert clf.classes_.tolist() == ["ant", "bee", "cat"]
    assert np.mean(clf.predict(X)[~other] == "bee") > 0.5


@pytest.mark.parametrize(
    "form", [form for form in FORMS if form.get("variant") == "paper"], ids=str
)
@pytest.mark.parametrize("head", ["logistic", "lda"])
def test_class_in_one_environment_may_as_well_be_unknown(ternary, form, head):
    """The published algorithms do not look at a class that cannot be compared."""
    X, y, e = seen_cells(ternary, *[("bee", name) for name in ("north", "south", "east")])
    unknown = np.where(y == "bee", None, e)
    parameters = {"n_spurious": 2, "head": head, **form}
    a, b = (ISRClassifier(**parameters).fit(X, y, given) for given in (e, unknown))
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(a.predict(X), b.predict(X))
    del parameters["head"]
    a, b = (ISRTransformer(**parameters).fit(X, y, given) for given in (e, unknown))
    np.testing.assert_allclose(a.transform(X), b.transform(X), atol=1e-8)


def test_search_does_not_change_either(ternary):
    X, y, e = seen_cells(ternary, *[("bee", name) for name in ("north", "south", "east")])
    unknown = np.where(y == "bee", None, e)
    search = ISRClassifierCV(
        **SEARCH | {"n_spurious": 2, "selection": "average", "weights": None}, variant="paper"
    )
    a, b = (clone(search).fit(X, y, given) for given in (e, unknown))
    assert a.best_params_ == b.best_params_
    np.testing.assert_allclose(
        a.cv_results_["mean_average"], b.cv_results_["mean_average"], atol=1e-12
    )
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-8)
