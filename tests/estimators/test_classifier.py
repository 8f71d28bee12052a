"""ISRClassifier: the core's answers, folded into one affine map."""

from __future__ import annotations

import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from isrlearn import ISRClassifier, ISRClassifierCV, ISRTransformer
from isrlearn.core import (
    METHODS,
    Moments,
    covariance_subspace,
    head_coordinates,
    joint_subspace,
    mean_subspace,
    multiclass_subspace,
    principal_angles,
    principal_components,
)
from isrlearn.core.labels import Cells
from isrlearn.engine import ArrayRows, cell_moments
from isrlearn.estimators import heads
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.permutation import permutation_rank
from isrlearn.estimators.pipeline import Fitter, Settings
from isrlearn.metrics import worst_group_accuracy

HEADS = ["logistic", "lda", RidgeClassifier(), LogisticRegression(C=0.1)]
FORMS = [
    {"method": "mean"},
    {"method": "mean", "variant": "paper"},
    {"method": "mean", "only": "bee"},
    {"method": "mean", "only": "ant", "variant": "paper"},
    {"method": "cov"},
    {"method": "cov", "variant": "paper"},
    {"method": "cov", "only": "ant", "variant": "paper"},
    {"method": "multiclass"},
    {"method": "multiclass", "variant": "paper"},
    {"method": "joint"},
]


def only(data, form):
    """Data and parameters: the environments of all classes but ``form["only"]`` are unknown."""
    X, y, e = data
    if "only" in form:
        e = np.where(y == form["only"], e, None)
    return (X, y, e), {name: value for name, value in form.items() if name != "only"}


def fit(data, **parameters):
    (X, y, e), parameters = only(data, parameters)
    return ISRClassifier(**parameters).fit(X, y, environments=e)


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("form", FORMS, ids=str)
def test_decision_function_is_one_affine_map(ternary, form, head):
    X, y, _ = ternary
    clf = fit(ternary, n_spurious=2, head=head, **form)
    assert clf.coef_.shape == (3, 5)
    assert clf.intercept_.shape == (3,)
    np.testing.assert_array_equal(clf.decision_function(X), X @ clf.coef_.T + clf.intercept_)
    np.testing.assert_array_equal(
        clf.predict(X), clf.classes_[clf.decision_function(X).argmax(axis=1)]
    )
    assert clf.score(X, y) == np.mean(clf.predict(X) == y)
    np.testing.assert_allclose(clf.spurious_basis_.T @ clf.spurious_basis_, np.eye(2), atol=1e-12)
    assert np.abs(clf.coef_ @ clf.spurious_basis_).max() < 1e-8  # nothing is left to see


@pytest.mark.parametrize("head", HEADS, ids=str)
def test_two_classes_have_one_score(binary, head):
    X, _, _ = binary
    clf = fit(binary, head=head)
    assert clf.coef_.shape == (1, 5)
    assert clf.intercept_.shape == (1,)
    scores = clf.decision_function(X)
    np.testing.assert_array_equal(scores, (X @ clf.coef_.T + clf.intercept_)[:, 0])
    np.testing.assert_array_equal(clf.predict(X), (scores > 0).astype(int))


@pytest.mark.parametrize("head", ["logistic", "lda", LogisticRegression()], ids=str)
def test_probabilities_are_the_links_of_the_scores(binary, ternary, head):
    two, three = fit(binary, head=head), fit(ternary, head=head)
    X = binary[0]
    p = two.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), two.decision_function(X), atol=1e-8)
    np.testing.assert_allclose(
        three.predict_proba(X), softmax(three.decision_function(X), axis=1), atol=1e-12
    )
    np.testing.assert_allclose(three.predict_log_proba(X), np.log(three.predict_proba(X)))


def test_heads_without_probabilities_have_no_such_method(binary):
    assert not hasattr(fit(binary, head=RidgeClassifier()), "predict_proba")
    assert not hasattr(fit(binary, head=RidgeClassifier()), "predict_log_proba")
    assert hasattr(fit(binary, head="lda"), "predict_proba")


def test_only_heads_from_moments_can_be_fitted_in_parts():
    pair = (np.ones((1, 5)), [0.0])
    for head, possible in [("lda", True), (pair, True), ("logistic", False), (Ridge(), False)]:
        for method in ("partial_fit", "fit_moments"):
            assert hasattr(ISRClassifier(head=head), method) == possible


CORE = {
    "mean": mean_subspace,
    "cov": covariance_subspace,
    "multiclass": multiclass_subspace,
    "joint": joint_subspace,
}


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("n_spurious", [1, 2, "auto"])
def test_estimator_is_the_function(ternary, form, n_spurious):
    clf = fit(ternary, n_spurious=n_spurious, head="lda", **form)
    data, parameters = only(ternary, form)
    find = CORE[parameters.pop("method")]
    found = find(cell_moments(*data), n_spurious, **parameters)
    if "only" in form:
        # The same as naming the class to the function.
        k = np.flatnonzero(clf.classes_ == form["only"])
        again = find(cell_moments(*data), n_spurious, classes=k, **parameters)
        np.testing.assert_allclose(again.basis, found.basis, atol=1e-9)
    assert clf.n_spurious_ == found.rank
    np.testing.assert_allclose(clf.spurious_basis_, found.basis, atol=1e-9)
    np.testing.assert_allclose(clf.spectrum_, found.spectrum, atol=1e-7)
    assert (clf.rank_test_ is None) == (n_spurious != "auto")
    center = 0.0 if "variant" in form else ternary[0].mean(axis=0)
    np.testing.assert_allclose(clf.eraser_.center, center, atol=1e-12)


def naive_span(form, data, r):
    """Algorithms 1 and 2 in a few lines of NumPy."""
    X, y, e = data
    k = form.get("only", max(set(y)))
    cells = [X[(y == k) & (e == v)] for v in np.unique(e)]
    if form["method"] == "mean":
        return np.linalg.svd(np.cov(np.array([c.mean(axis=0) for c in cells]).T))[0][:, :r]
    found = []
    for a, b in combinations(cells, 2):
        values, vectors = np.linalg.eigh(np.cov(a.T) - np.cov(b.T))
        found.append(vectors[:, np.argsort(-np.abs(values))[:r]])
    return np.linalg.svd(np.hstack(found))[0][:, :r]


@pytest.mark.parametrize(
    "form",
    [
        {"method": "mean", "only": "ant"},
        {"method": "mean", "only": "cat"},
        {"method": "mean"},
        {"method": "cov", "only": "bee"},
    ],
    ids=str,
)
def test_paper_variant_is_the_published_algorithm(ternary, form):
    X, y, _ = ternary
    span = naive_span(form, ternary, 2)
    clf = fit(ternary, n_spurious=2, variant="paper", head="lda", C=np.inf, **form)
    assert principal_angles(clf.spurious_basis_, span)[0] < 1e-7
    # The invariant features are the null space; the head does not care which basis it has.
    left = np.linalg.svd(span)[0][:, 2:]
    reference = LinearDiscriminantAnalysis().fit(X @ left, y)
    np.testing.assert_array_equal(clf.predict(X), reference.predict(X @ left))


def test_logistic_head_is_scikit_learns_on_the_coordinates(ternary):
    X, y, _ = ternary
    for C in (0.01, 1.0):
        clf = fit(ternary, C=C, weights=None)
        Z = head_coordinates(clf.moments_, clf.eraser_)(X)
        reference = LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(Z, y)
        np.testing.assert_allclose(clf.predict_proba(X), reference.predict_proba(Z), atol=1e-5)


def test_unpenalised_logistic_head_is_scikit_learns_on_transformed_rows(binary):
    X, y, e = binary
    clf = fit(binary, C=1e10, weights=None)
    isr = ISRTransformer(output="invariant").fit(X, y, environments=e)
    reference = LogisticRegression(C=1e10, tol=1e-10, max_iter=10_000).fit(isr.transform(X), y)
    np.testing.assert_allclose(
        clf.predict_proba(X), reference.predict_proba(isr.transform(X)), atol=1e-5
    )


@pytest.mark.parametrize("form", [{"variant": "pooled"}, {"variant": "paper"}], ids=str)
def test_lda_head_is_scikit_learns_on_invariant_coordinates(binary, form):
    X, y, e = binary
    clf = fit(binary, n_spurious=2, head="lda", C=np.inf, weights=None, **form)
    isr = ISRTransformer(n_spurious=2, output="invariant", **form).fit(X, y, environments=e)
    Z = isr.transform(X)
    n, prior = len(y), np.log(np.mean(y == 1) / np.mean(y == 0))
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(Z, y).decision_function(Z)
    # scikit-learn divides the scatter by n, we by n - 2.
    found = (clf.decision_function(X) - prior) * n / (n - 2) + prior
    np.testing.assert_allclose(found, reference, atol=1e-7)


def test_given_estimator_is_cloned_and_fitted_on_the_coordinates(ternary):
    X, y, _ = ternary
    head = RidgeClassifier(alpha=3.0)
    clf = fit(ternary, head=head, weights=None)
    assert not hasattr(head, "coef_")
    Z = head_coordinates(clf.moments_, clf.eraser_)(X)
    reference = clone(head).fit(Z, y)
    np.testing.assert_allclose(clf.decision_function(X), reference.decision_function(Z), atol=1e-9)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_penalty_of_the_lda_head_is_that_of_the_formula(ternary, C):
    X, y, _ = ternary
    clf = fit(ternary, head="lda", C=C, weights=None)
    Z = head_coordinates(clf.moments_, clf.eraser_)(X)
    mean = np.array([Z[y == k].mean(axis=0) for k in clf.classes_])
    D = Z - mean[np.searchsorted(clf.classes_, y)]
    coef = np.linalg.solve((D.T @ D + np.eye(Z.shape[1]) / C) / (len(y) - 3), mean.T).T
    prior = np.array([np.mean(y == k) for k in clf.classes_])
    expected = Z @ coef.T - 0.5 * np.sum(coef * mean, axis=1) + np.log(prior)
    found = clf.decision_function(X)
    np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-7)
    free = fit(ternary, head="lda", C=np.inf, weights=None).decision_function(X)
    assert np.abs(found - free).max() > 1e-4


def test_tiny_invariant_features_survive_the_penalty(binary):
    # The published pitfall: C = 1 on raw features that are a hundred times too small.
    X, y, e = binary
    units = np.array([1.0, 1e-3, 1.0, 1e-2, 1e-4])
    a, b = fit(binary), fit((X * units, y, e))
    np.testing.assert_allclose(b.decision_function(X * units), a.decision_function(X), atol=1e-6)


def test_rows_of_weight_zero_draw_no_unknown_environments(binary):
    X, y, e = binary
    known = np.where(np.random.default_rng(0).random(len(y)) < 0.5, e.astype(object), None)
    noise = np.random.default_rng(1).normal(size=X.shape) * 100
    more = np.vstack([X, noise]), np.append(y, y), np.append(known, np.roll(e, 1))
    weight = np.repeat([1.0, 0.0], len(y))
    found = ISRClassifier(n_spurious=1).fit(*more, sample_weight=weight)
    expected = ISRClassifier(n_spurious=1).fit(X, y, known)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-6)


def test_default_penalty_is_weaker_for_three_classes_or_more(binary, ternary):
    for data, C in ((binary, 0.1), (ternary, 1.0)):
        assert np.array_equal(fit(data).coef_, fit(data, C=C).coef_)
        X, y, e = data
        search = ISRClassifierCV(C=["auto"], scale=0.0, n_spurious="auto").fit(X, y, e)
        assert np.array_equal(search.coef_, fit(data, C=C).coef_)


@pytest.mark.parametrize("seed", range(3))
def test_classes_between_others_are_predicted_from_few_rows(seed):
    rng = np.random.default_rng(seed)
    y, e = rng.integers(0, 5, 300), rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 4)) + np.outer(4 * y, [1, 0, 0, 0]) + np.outer(2 * e, [0, 0, 0, 1])
    clf = fit((X, y, e))
    assert min(np.mean(clf.predict(X[y == k]) == k) for k in range(5)) > 0.85


# Heads that cannot be folded


@pytest.mark.parametrize("head", [DecisionTreeClassifier(), SVC()], ids=str)
def test_heads_must_be_linear(ternary, head):
    with pytest.raises((ValueError, AttributeError), match=r"no coef_|linear"):
        fit(ternary, head=head)


def test_heads_must_score_one_row_per_class(ternary, binary):
    # One-against-one coefficients of three classes have three rows too, and mean something else.
    with pytest.raises(ValueError, match=r"SVC .* decision function"):
        fit(ternary, head=SVC(kernel="linear"))
    assert fit(binary, head=SVC(kernel="linear")).score(*binary[:2]) > 0.7
    assert fit(ternary, head=LinearSVC(max_iter=10_000)).score(*ternary[:2]) > 0.5


# Weights


def groups(y, e):
    return np.unique(np.char.add(y.astype(str), e), return_inverse=True)[1]


def balanced(labels):
    """The paper's weights: n / (number of groups · rows of the group)."""
    count = np.bincount(labels)
    return len(labels) / (len(count) * count[labels])


def test_group_weight_is_the_papers_reweighting(binary):
    X, y, e = binary
    w = balanced(groups(y, e))
    # With nothing removed the subspace cannot depend on the weights; the head must.
    # No penalty: it would be one of coordinates that depend on sample weights.
    plain = {"n_spurious": 0, "head": "lda", "C": np.inf}
    a = fit(binary, weights="group", **plain)
    b = ISRClassifier(**plain, weights=None).fit(X, y, environments=e, sample_weight=w)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-9)
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=1e-9)
    assert np.abs(a.intercept_ - fit(binary, **plain, weights=None).intercept_) > 0.01


@pytest.mark.parametrize(
    ("parameters", "weight"),
    [
        ({"weights": "group"}, lambda y, e: balanced(groups(y, e))),
        ({"weights": "class"}, lambda y, e: balanced(y)),
        ({"weights": {0: 3.0, 1: 0.5}}, lambda y, e: np.where(y == 0, 3.0, 0.5)),
        ({"weights": {0: 3.0}}, lambda y, e: np.where(y == 0, 3.0, 1.0)),
    ],
    ids=["groups", "classes", "dict", "part of a dict"],
)
def test_weights_reach_the_head_and_not_the_subspace(binary, parameters, weight):
    X, y, e = binary
    plain, weighted = fit(binary, weights=None), fit(binary, C=1.0, **parameters)
    np.testing.assert_array_equal(weighted.spurious_basis_, plain.spurious_basis_)
    Z = head_coordinates(plain.moments_, plain.eraser_)(X)
    reference = LogisticRegression(tol=1e-10, max_iter=10_000)
    reference.fit(Z, y, sample_weight=weight(y, e))
    np.testing.assert_allclose(weighted.predict_proba(X), reference.predict_proba(Z), atol=1e-5)
    assert np.abs(plain.intercept_ - weighted.intercept_).max() > 0.01
    # Sample weights multiply them: their cells count as the weights say.
    own = np.where(np.arange(len(y)) % 2, 1.0, 2.0)
    both = ISRClassifier(n_spurious=0, **parameters)
    both.fit(X, y, environments=e, sample_weight=own)
    twice = np.repeat(np.arange(len(y)), own.astype(int))
    repeated = ISRClassifier(n_spurious=0, **parameters)
    repeated.fit(X[twice], y[twice], environments=e[twice])
    np.testing.assert_allclose(both.coef_, repeated.coef_, atol=1e-7)


@pytest.mark.parametrize("method", ["mean", "cov", "joint"])
def test_tests_count_a_row_of_weight_two_twice(binary, method):
    X, y, e = binary
    weight = np.arange(len(y)) % 3
    rows = np.repeat(np.arange(len(y)), weight)
    repeated = ISRClassifier(method)
    with pytest.warns(UserWarning, match="rows repeat another one"):
        repeated.fit(X[rows], y[rows], e[rows])
    weighted = ISRClassifier(method).fit(X, y, e, sample_weight=weight)
    p_values = repeated.rank_test_.p_values
    np.testing.assert_allclose(weighted.rank_test_.p_values, p_values, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("parameters", "clustered"),
    [({}, False), ({"weights": "subsample"}, False), ({"n_spurious": "permutation"}, False),
     ({"method": "joint"}, False), ({}, True), ({"method": "joint"}, True)],
)  # fmt: skip
def test_rows_of_weight_zero_are_not_there(binary, parameters, clustered):
    X, y, e = binary
    kept = (e != "south") & (np.arange(len(y)) % 5 > 0)
    clusters = np.arange(len(y)) // 2 if clustered else None
    rest = {"clusters": None if clusters is None else clusters[kept]}
    expected = ISRClassifier(**parameters).fit(X[kept], y[kept], e[kept], **rest)
    X = np.where(kept[:, None], X, 100.0 * X)
    clf = ISRClassifier(**parameters)
    clf.fit(X, y, e, sample_weight=kept.astype(float), clusters=clusters)
    assert clf.n_spurious_ == expected.n_spurious_
    np.testing.assert_allclose(clf.coef_, expected.coef_, atol=1e-8)
    np.testing.assert_allclose(clf.intercept_, expected.intercept_, atol=1e-8)


@pytest.mark.parametrize("parameters", [{"weights": "group"}, {"weights": "class"}])
def test_weights_reach_the_closed_form_head(ternary, parameters):
    X, y, e = ternary
    clf = fit(ternary, head="lda", C=np.inf, **parameters)
    by_group = parameters["weights"] == "group"
    g = groups(y, e) if by_group else np.unique(y, return_inverse=True)[1]
    w = balanced(g)
    left = np.linalg.svd(clf.spurious_basis_)[0][:, 2:]
    Z, classes = X @ left, np.unique(y)
    mean = np.array([np.average(Z[y == k], axis=0, weights=w[y == k]) for k in classes])
    D = Z - mean[np.searchsorted(classes, y)]
    S = (w[:, None] * D).T @ D / (w.sum() - 3)
    prior = np.array([w[y == k].sum() for k in classes]) / w.sum()
    coef = np.linalg.solve(S, mean.T).T
    expected = Z @ coef.T - 0.5 * np.sum(coef * mean, axis=1) + np.log(prior)
    found = clf.decision_function(X)
    np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], atol=1e-7)


@pytest.mark.parametrize("head", ["logistic", "lda", RidgeClassifier()], ids=str)
def test_groups_are_treated_alike_by_default(binary, head):
    X, y, e = binary
    default = ISRClassifier(head=head).fit(X, y, environments=e)
    weights = "within" if head == "logistic" else "group"
    np.testing.assert_array_equal(default.coef_, fit(binary, head=head, weights=weights).coef_)
    published = ISRClassifier(head=head, variant="paper").fit(X, y, environments=e)
    plain = fit(binary, head=head, variant="paper", weights=None)
    np.testing.assert_array_equal(published.coef_, plain.coef_)


def test_a_head_within_environments_is_that_of_one_environment_where_it_alone_has_two_classes():
    rng = np.random.default_rng(0)
    X, y, e = rng.normal(size=(600, 4)), rng.integers(0, 2, 600), rng.integers(0, 2, 600)
    y[e == 1] = 0
    X[:, 0] += y + 5 * e
    found = ISRClassifier(n_spurious=0, C=1.0).fit(X, y, e)
    # Environment 1, with one class, says nothing about the difference of the classes.
    Z, inside = StandardScaler().fit(X), e == 0
    whitening = np.linalg.inv(np.linalg.cholesky(np.cov(Z.transform(X).T)))
    rows_inside = Z.transform(X[inside]) @ whitening.T
    one = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(rows_inside, y[inside])
    expected = (one.coef_ @ whitening) / Z.scale_
    np.testing.assert_allclose(found.coef_, expected, rtol=1e-5, atol=1e-7)
    # The intercept gives both classes the same weight.
    weight = np.where(y == 1, np.mean(y == 0), np.mean(y == 1))
    residual = weight * (found.predict_proba(X)[:, 1] - y)
    assert abs(residual.sum()) < 1e-5 * weight.sum()


def test_what_distinguishes_environments_has_no_influence_within_them():
    rng = np.random.default_rng(1)
    y, e = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000)
    y = np.where(rng.random(4000) < 0.9, e, y)
    X = np.column_stack([y + rng.normal(size=4000), 3.0 * e + rng.normal(size=4000)])
    plain, within = (ISRClassifier(n_spurious=0, weights=w).fit(X, y, e) for w in (None, "within"))
    # The second feature is the environment: within an environment it is noise.
    assert plain.coef_[0, 1] > 0.5
    assert abs(within.coef_[0, 1]) < 0.15
    assert within.coef_[0, 0] > 0.7


@pytest.mark.parametrize("environments", [[0, 1, 2, 3], [0, 0, 1, 1]])
def test_classes_are_weighed_where_two_share_no_environment(environments):
    rng = np.random.default_rng(2)
    y, e = np.repeat([0, 1, 1, 2], 50), np.repeat(environments, 50)
    X = rng.normal(size=(200, 3)) + y[:, None]
    found, expected = (ISRClassifier(weights=w).fit(X, y, e) for w in ("within", "group"))
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_unknown_environments_are_drawn_within(binary):
    X, y, e = binary
    some = e.astype(object)
    some[::2] = None
    first, second = (ISRClassifier().fit(X, y, environments=some) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert first.score(X, y) > 0.6


def test_a_few_unknown_environments_are_one_more():
    rng, k, e = np.random.default_rng(0), np.arange(1000) % 2, np.arange(1000) // 2 % 2
    X = rng.normal(size=(1000, 3)) + np.column_stack([k, e, 0 * k])
    for n_unknown, expected in ((10, [0, 1, 2]), (11, [0, 1, -1])):
        some = np.where(np.arange(1000) < n_unknown, None, e)
        sample = heads.Sample(X, Cells.of(k, some))
        within = heads.Within.among(sample)
        assert within.group.tolist() == expected
        used = np.unique(sample.loss_terms(None, within)["groups"])
        assert len(used) == (3 if n_unknown == 10 else 2)


def test_within_needs_the_logistic_head(binary):
    with pytest.raises(ValueError, match="needs head='logistic'"):
        fit(binary, head="lda", weights="within")


def test_subsamples_have_equally_many_rows_of_every_group():
    k, e = np.repeat([0, 0, 1, 1], [500, 8, 300, 40]), np.repeat([0, 1, 0, 1], [500, 8, 300, 40])
    X = np.random.default_rng(0).normal(size=(len(k), 2))
    sample = heads.Sample(X, Cells.of(k, e))
    parts = sample.subsamples()
    assert len(parts) == 10
    for part in parts:
        assert part.cells.count().tolist() == [[8, 8], [8, 8]]
        assert part.weight.tolist() == [1.0] * 32
    assert len({part.X.tobytes() for part in parts}) == 10
    # A class that was seen in one environment has as much weight as one that was seen in two.
    parts = sample.rows(np.flatnonzero((k == 0) | (e == 0))).subsamples()
    by_class = [np.bincount(part.cells.k, part.weight) for part in parts]
    np.testing.assert_allclose(by_class, 12.0)
    # A class of which no environment is known is one group, and unknown rows of others are left.
    names = np.where(np.arange(len(k)) % 2, e.astype(object), None)
    names[k == 1] = None
    (part, *_) = heads.Sample(X, Cells.of(k, names)).subsamples()
    assert np.bincount(part.cells.k).tolist() == [9, 5]


def test_a_subsampled_head_is_the_average_of_heads(binary):
    X, y, e = binary
    free = {"n_spurious": 0, "head": "lda", "C": np.inf, "n_components": None}
    clf = fit(binary, weights="subsample", **free)
    parts = heads.Sample(X, Cells.of(y, e)).subsamples()
    rest = [ISRClassifier(**free, weights=None) for _ in parts]
    for part, own in zip(parts, rest, strict=True):
        own.fit(part.X, part.cells.k, environments=part.cells.e, sample_weight=part.weight)
    np.testing.assert_allclose(clf.coef_, np.mean([own.coef_ for own in rest], axis=0), atol=1e-8)
    mean = np.mean([own.intercept_ for own in rest], axis=0)
    np.testing.assert_allclose(clf.intercept_, mean, atol=1e-8)


def test_subsamples_of_wide_rows_need_no_scatter():
    d = 4_000
    X, k = np.random.default_rng(0).normal(size=(40, d)), np.arange(40) % 2
    tracemalloc.start()
    ISRClassifier(n_spurious=1, weights="subsample").fit(X, k, np.arange(40) // 20)
    assert tracemalloc.get_traced_memory()[1] < d * d * 8 / 2
    tracemalloc.stop()


def test_heads_that_take_no_weights_say_so(binary):
    class Unweighted(RidgeClassifier):
        def fit(self, X, y):
            return super().fit(X, y)

    with pytest.raises(ValueError, match="Unweighted takes no sample_weight"):
        fit(binary, head=Unweighted(), weights="class")
    assert fit(binary, head=Unweighted()).coef_.shape == (1, 5)


# Rows without an environment


@pytest.mark.parametrize("missing", [None, np.nan])
@pytest.mark.parametrize("head", ["logistic", "lda"])
def test_unlabelled_rows_train_the_head_only(binary, missing, head):
    X, y, e = binary
    some = np.arange(len(y)) % 3 == 0
    partly = e.astype(object)
    partly[some] = missing
    how = {"n_spurious": 2, "head": head, "weights": None, "C": 1.0}
    clf = fit((X, y, partly), **how)
    labelled = fit((X[~some], y[~some], e[~some]), **how)
    assert clf.moments_.count.sum() == np.sum(~some)
    assert clf.moments_.total[0] == len(y)
    np.testing.assert_allclose(clf.spurious_basis_, labelled.spurious_basis_, atol=1e-10)
    Z = head_coordinates(clf.moments_, clf.eraser_)(X)
    if head == "logistic":
        reference = LogisticRegression(tol=1e-10, max_iter=10_000).fit(Z, y)
        np.testing.assert_allclose(clf.predict_proba(X), reference.predict_proba(Z), atol=1e-5)
    else:
        left = np.linalg.svd(clf.spurious_basis_)[0][:, 2:]
        reference = LinearDiscriminantAnalysis().fit(X @ left, y)
        np.testing.assert_array_equal(clf.predict(X), reference.predict(X @ left))
    assert np.abs(clf.coef_ - labelled.coef_).max() > 1e-3


def test_unlabelled_rows_weigh_as_their_class_would(binary):
    X, y, e = binary
    partly = e.astype(object)
    partly[::3] = None
    clf = fit((X, y, partly), n_spurious=2, weights="group", C=1.0)
    known = np.arange(len(y)) % 3 != 0
    w = balanced(y)
    # Labelled rows keep their class's share of the weight, spread evenly over its environments.
    cells = np.bincount(groups(y[known], e[known]))
    seen = np.bincount(y[known])
    w[known] *= seen[y[known]] / (4 * cells[groups(y[known], e[known])])
    Z = head_coordinates(clf.moments_, clf.eraser_)(X)
    reference = LogisticRegression(tol=1e-10, max_iter=10_000).fit(Z, y, sample_weight=w)
    np.testing.assert_allclose(clf.predict_proba(X), reference.predict_proba(Z), atol=1e-5)
    closed = fit((X, y, partly), n_spurious=2, weights="group", head="lda")
    assert np.mean(closed.predict(X) == clf.predict(X)) > 0.95


# In parts, and from moments


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("weights", [{}, {"weights": "group"}], ids=str)
@pytest.mark.filterwarnings("ignore:covariances do not differ")  # not yet, in the first parts
def test_parts_are_the_whole(ternary, form, weights):
    X, y, e = ternary
    e = e.astype(object)
    e[::7] = None
    (X, y, e), form = only((X, y, e), form)
    parameters = {"head": "lda", "n_spurious": 2, **form, **weights}
    whole = fit((X, y, e), **parameters)
    parts = ISRClassifier(**parameters)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), 7):
        parts.partial_fit(X[rows], y[rows], environments=e[rows])
    elsewhere = ISRClassifier(**parameters).fit_moments(cell_moments(X, y, e))
    for clf in (parts, elsewhere):
        np.testing.assert_allclose(clf.coef_, whole.coef_, atol=1e-8)
        np.testing.assert_allclose(clf.intercept_, whole.intercept_, atol=1e-8)
        assert principal_angles(clf.spurious_basis_, whole.spurious_basis_)[0] < 1e-8
        assert clf.classes_.tolist() == whole.classes_.tolist()
        assert clf.environments_.tolist() == whole.environments_.tolist()
        assert clf.n_features_in_ == 5


@pytest.mark.parametrize("n_spurious", [2, "auto"])
@pytest.mark.parametrize("variant", ["pooled", "paper"])
def test_environments_may_come_one_after_the_other(binary, n_spurious, variant):
    X, y, e = binary
    parameters = {"head": "lda", "n_spurious": n_spurious, "variant": variant}
    clf = ISRClassifier(**parameters)
    for name in np.unique(e):
        clf.partial_fit(X[e == name], y[e == name], environments=e[e == name])
    np.testing.assert_allclose(clf.coef_, fit(binary, **parameters).coef_, atol=1e-8)


def test_before_enough_was_seen_predicting_says_what_is_missing(binary):
    X, y, e = binary
    north, south, zero = e == "north", e == "south", y == 0
    clf = ISRClassifier(head="lda")
    with pytest.raises(NotFittedError):
        clf.predict(X)
    missing = "the rows seen so far are not enough to predict: "
    rows = north & zero
    clf.partial_fit(X[rows], y[rows], environments=e[rows])
    with pytest.raises(ValueError, match=missing + "y has only one class, 0"):
        clf.predict(X)
    rows = north & ~zero
    clf.partial_fit(X[rows], y[rows], environments=e[rows])
    with pytest.raises(ValueError, match=missing + ".*needs at least two; known so far: .'north'."):
        clf.predict(X)
    # One class in two environments is enough; each further part changes the answer.
    seen = north.copy()
    for rows in (south & zero, south & ~zero, (e == "east") & zero):
        seen |= rows
        clf.partial_fit(X[rows], y[rows], environments=e[rows])
        whole = fit((X[seen], y[seen], e[seen]), head="lda")
        np.testing.assert_allclose(clf.coef_, whole.coef_, atol=1e-8)


def test_classes_in_one_environment_each_are_not_enough_yet(binary):
    X, y, e = binary
    rows = np.where(y == 0, e == "north", e == "south")
    clf = ISRClassifier(head="lda").partial_fit(X[rows], y[rows], environments=e[rows])
    message = "the rows seen so far are not enough to predict: no class has rows in two environ"
    for ask in (clf.predict, clf.predict_proba, clf.decision_function):
        with pytest.raises(ValueError, match=message):
            ask(X)
    rest = ~rows
    clf.partial_fit(X[rest], y[rest], environments=e[rest])
    np.testing.assert_allclose(clf.coef_, fit(binary, head="lda").coef_, atol=1e-8)


def test_too_few_environments_for_n_spurious_yet(binary):
    X, y, e = binary
    clf = ISRClassifier(head="lda", n_spurious=2, variant="paper")
    rows = np.isin(e, ["north", "south"])
    clf.partial_fit(X[rows], y[rows], environments=e[rows])
    message = "not enough to predict: n_spurious=2 is more than the 1 possible"
    with pytest.raises(ValueError, match=message):
        clf.predict(X)
    clf.partial_fit(X[~rows], y[~rows], environments=e[~rows])
    assert clf.n_spurious_ == 2


@pytest.mark.parametrize("form", [{}, {"only": 1}], ids=str)
def test_parts_may_miss_cells(binary, form):
    (X, y, e), _ = only(binary, form)
    rows = (y == 1) | (binary[2] != "north")  # class 0 is never in the north
    whole = fit((X[rows], y[rows], e[rows]), head="lda")
    clf = ISRClassifier(head="lda")
    for part in np.array_split(np.flatnonzero(rows), 3):
        clf.partial_fit(X[part], y[part], environments=e[part])
    np.testing.assert_allclose(clf.coef_, whole.coef_, atol=1e-8)


def test_parts_take_classes_as_scikit_learn_passes_them(binary):
    X, y, e = binary
    clf = ISRClassifier(head="lda").partial_fit(X, y, e, classes=[0, 1])
    np.testing.assert_allclose(clf.coef_, fit(binary, head="lda").coef_, atol=1e-8)


def test_parts_go_on_after_a_fit(binary):
    X, y, e = binary
    half = np.arange(len(y)) % 2 == 0
    for parameters in ({"head": "lda"}, {"head": (np.ones((1, 5)), [0.0])}):
        clf = fit((X[half], y[half], e[half]), n_spurious=1, **parameters)
        clf.partial_fit(X[~half], y[~half], environments=e[~half])
        whole = fit(binary, n_spurious=1, **parameters)
        np.testing.assert_allclose(clf.coef_, whole.coef_, atol=1e-8)


# An adapted head


def test_adapted_head_with_everything_kept_predicts_as_before(binary, ternary):
    for X, y, e in (binary, ternary):
        trained = LogisticRegression().fit(X, y)
        clf = ISRClassifier(head=(trained.coef_, trained.intercept_), scale=1.0, n_spurious=2)
        clf.fit(X, y, environments=e)
        np.testing.assert_array_equal(clf.coef_, trained.coef_)
        np.testing.assert_array_equal(clf.intercept_, trained.intercept_)
        np.testing.assert_array_equal(clf.predict(X), trained.predict(X))
        np.testing.assert_array_equal(clf.decision_function(X), trained.decision_function(X))


@pytest.mark.parametrize("variant", ["pooled", "paper"])
def test_adapted_head_sees_nothing_of_the_spurious_basis(binary, ternary, variant):
    for X, y, e in (binary, ternary):
        trained = LogisticRegression().fit(X, y)
        clf = ISRClassifier(head=(trained.coef_, trained.intercept_), n_spurious=2, variant=variant)
        clf.fit(X, y, environments=e)
        assert np.abs(trained.coef_ @ clf.spurious_basis_).max() > 0.01
        assert np.abs(clf.coef_ @ clf.spurious_basis_).max() <= 1e-12
        steps = np.random.default_rng(0).normal(size=(len(X), 2))
        moved = X + steps @ clf.spurious_basis_.T
        np.testing.assert_allclose(
            clf.decision_function(moved), clf.decision_function(X), atol=1e-12
        )
        # An average sample keeps its logits, so the intercept keeps its meaning. As published, the
        # origin does.
        average = X.mean(axis=0, keepdims=True) * (variant == "pooled")
        np.testing.assert_allclose(
            clf.decision_function(average), trained.decision_function(average), atol=1e-12
        )


@pytest.mark.parametrize("head", ["logistic", "lda", LogisticRegression(C=0.1)], ids=str)
@pytest.mark.parametrize("n", [500, 50_000])
def test_a_fitted_head_keeps_the_share_however_many_rows_there_are(head, n):
    rng = np.random.default_rng(0)
    y, e = rng.integers(0, 2, n), rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += y
    X[:, 1] += y * (1 + e)
    found = {
        scale: ISRClassifier(n_spurious=1, scale=scale, head=head).fit(X, y, environments=e)
        for scale in (0.0, 0.25, 1.0)
    }
    for name in ("coef_", "intercept_"):
        without, some, whole = (getattr(clf, name) for clf in found.values())
        np.testing.assert_allclose(some, 0.75 * without + 0.25 * whole, atol=1e-12)
    kept = [(clf.coef_ @ clf.spurious_basis_).item() for clf in found.values()]
    assert kept[1] == pytest.approx(0.25 * kept[2], abs=1e-9)


@pytest.mark.parametrize("scale", [0.0, 0.25, 0.5])
def test_scale_is_what_is_kept(binary, scale):
    X, y, e = binary
    trained = LogisticRegression().fit(X, y)
    head = (trained.coef_, trained.intercept_)
    clf = ISRClassifier(head=head, scale=scale, n_spurious=2).fit(X, y, environments=e)
    np.testing.assert_allclose(
        clf.coef_ @ clf.spurious_basis_, scale * trained.coef_ @ clf.spurious_basis_, atol=1e-12
    )
    np.testing.assert_allclose(
        clf.decision_function(X), trained.decision_function(clf.eraser_(X)), atol=1e-10
    )


def test_heads_of_two_logits_are_their_difference(binary):
    X, y, e = binary
    rng = np.random.default_rng(0)
    coef, intercept = rng.normal(size=(2, 5)), rng.normal(size=2)
    two = ISRClassifier(head=(coef, intercept), n_spurious=2).fit(X, y, environments=e)
    one = ISRClassifier(head=(coef[1] - coef[0], intercept[1] - intercept[0]), n_spurious=2)
    one.fit(X, y, environments=e)
    np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-12)
    np.testing.assert_allclose(two.intercept_, one.intercept_, atol=1e-12)


@pytest.mark.parametrize("n_components", ["auto", None])
def test_adapted_head_in_parts_and_from_moments(binary, n_components):
    # With None a single small part would need means alone; the whole needs a scatter.
    X, y, e = binary
    head = (np.arange(5.0)[None], np.array([1.0]))
    clf = ISRClassifier(head=head, n_spurious=1, n_components=n_components)
    whole = clone(clf).fit(X, y, environments=e)
    parts = clone(clf)
    for rows in np.array_split(np.arange(len(y)), 12):
        parts.partial_fit(X[rows], y[rows], environments=e[rows])
    moments = cell_moments(X, y, e)
    for other in (parts, clone(clf).fit_moments(moments)):
        np.testing.assert_allclose(other.coef_, whole.coef_, atol=1e-10)
        np.testing.assert_allclose(other.intercept_, whole.intercept_, atol=1e-10)


# Principal components first


@pytest.mark.parametrize("head", ["logistic", "lda"])
def test_head_lives_in_the_span_of_the_components(binary, few, head):
    for data in (binary, few):
        clf = fit(data, n_components=3, n_spurious=1, head=head)
        components, _ = principal_components(clf.moments_, 3)
        outside = clf.coef_.T - components @ (components.T @ clf.coef_.T)
        assert np.abs(outside).max() < 1e-10 * np.abs(clf.coef_).max()
        basis = clf.spurious_basis_
        np.testing.assert_allclose(components @ (components.T @ basis), basis, atol=1e-12)
        assert np.abs(clf.coef_ @ basis).max() < 1e-8


@pytest.mark.parametrize("head", ["logistic", "lda"])
@pytest.mark.parametrize("form", [{}, {"method": "cov", "n_spurious": 2}], ids=str)
def test_all_components_are_no_reduction(ternary, head, form):
    X, _, _ = ternary
    a, b = fit(ternary, head=head, **form), fit(ternary, n_components=5, head=head, **form)
    assert a.n_spurious_ == b.n_spurious_
    np.testing.assert_allclose(b.decision_function(X), a.decision_function(X), atol=1e-6)


def test_components_by_variance(binary):
    share = 0.9
    clf = fit(binary, n_components=share, n_spurious=1, head="lda")
    components, variances = principal_components(cell_moments(*binary), share)
    assert variances.sum() / np.trace(np.cov(binary[0].T)) >= share
    fixed = fit(binary, n_components=components.shape[1], n_spurious=1, head="lda")
    np.testing.assert_allclose(clf.coef_, fixed.coef_, rtol=1e-9)


# Few rows, one environment, too many dimensions


@pytest.mark.parametrize("head", ["logistic", "lda"])
@pytest.mark.parametrize("form", [{}, {"variant": "paper"}, {"method": "joint"}], ids=str)
def test_few_rows_are_enough_to_fit(few, head, form):
    X, y, _ = few
    clf = fit(few, head=head, n_spurious=2, **form)
    assert clf.n_spurious_ == 2
    assert np.abs(clf.coef_ @ clf.spurious_basis_).max() < 1e-8
    assert clf.score(X, y) > 0.7


def test_one_environment_removes_nothing_on_request(binary):
    X, y, _ = binary
    clf = ISRClassifier(missing_environments="single", weights=None, C=1.0).fit(X, y)
    assert clf.n_spurious_ == 0
    assert clf.spurious_basis_.shape == (5, 0)
    assert clf.rank_test_ is None
    assert clf.environments_.tolist() == [0]
    Z = head_coordinates(clf.moments_, clf.eraser_)(X)
    reference = LogisticRegression(tol=1e-10, max_iter=10_000).fit(Z, y)
    np.testing.assert_allclose(clf.predict_proba(X), reference.predict_proba(Z), atol=1e-5)


def test_something_is_always_left():
    rng = np.random.default_rng(0)
    e = np.arange(600) % 3
    X = rng.normal(size=(600, 2)) + np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 5.0]])[e]
    y = (np.arange(600) // 3) % 2
    with pytest.warns(UserWarning, match="all 2 dimensions shift.*the one that shifts least"):
        clf = ISRClassifier().fit(X, y, environments=e)
    assert clf.n_spurious_ == 1
    assert np.abs(clf.coef_).max() > 0
    # The test that found it is kept.
    assert clf.rank_test_.rank == 2
    assert max(clf.rank_test_.p_values) < 0.01


def test_float32_rows_are_scored_in_float64(binary):
    X, y, e = binary
    clf = ISRClassifier().fit(X.astype(np.float32), y, environments=e)
    assert clf.coef_.dtype == np.float64
    assert clf.decision_function(X.astype(np.float32)).dtype == np.float64
    np.testing.assert_allclose(
        clf.decision_function(X), fit(binary).decision_function(X), atol=1e-3
    )


# The rank by permutations, and what is said when there is nothing to find


@pytest.mark.parametrize(
    "form",
    [
        {"method": "mean"},
        {"method": "mean", "variant": "paper"},
        {"method": "mean", "only": "ant"},
        {"method": "multiclass", "variant": "paper"},
        {"method": "cov", "only": "bee"},
        {"method": "joint"},
    ],
    ids=str,
)
def test_rank_by_permutations_is_the_function(ternary, form):
    X, y, e = ternary
    clf = fit(ternary, n_spurious="permutation", head="lda", **form)
    rows = np.full(len(y), True)
    if form == {"method": "mean", "variant": "paper"}:
        rows = y == "cat"  # the class whose means are compared
    elif "only" in form:
        rows = y == form["only"]
    sample = Sample(X[rows], Cells.of(y[rows], e[rows]))
    test = permutation_rank(sample, METHODS[form["method"]])
    assert clf.rank_test_.p_values == test.p_values
    assert clf.n_spurious_ == test.rank
    assert principal_angles(
        clf.spurious_basis_,
        fit(ternary, n_spurious=test.rank, head="lda", **form).spurious_basis_,
    )[0] < 1e-10  # fmt: skip


def test_something_is_always_left_by_permutations_too():
    rng = np.random.default_rng(0)
    e = np.arange(600) % 3
    X = rng.normal(size=(600, 2)) + np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 5.0]])[e]
    y = (np.arange(600) // 3) % 2
    with pytest.warns(UserWarning, match="all 2 dimensions shift"):
        clf = ISRClassifier(n_spurious="permutation").fit(X, y, environments=e)
    assert clf.n_spurious_ == 1


def test_equal_covariances_are_warned_about():
    rng = np.random.default_rng(0)
    X, e, y = rng.normal(size=(600, 3)), np.arange(600) % 3, np.arange(600) // 3 % 2
    with pytest.warns(UserWarning, match="covariances do not differ between environments"):
        ISRClassifier("cov", n_spurious=1).fit(X, y, environments=e)
    assert ISRClassifier("cov").fit(X, y, environments=e).n_spurious_ == 0


def test_class_that_is_compared_may_come_late(binary):
    (X, y, e), _ = only(binary, {"only": 0})
    order = np.argsort(y, kind="stable")[::-1]  # class 1 first, class 0 last
    clf = ISRClassifier(head="lda")
    for rows in np.array_split(order, 4):
        clf.partial_fit(X[rows], y[rows], environments=e[rows])
    np.testing.assert_allclose(clf.coef_, fit((X, y, e), head="lda").coef_, atol=1e-8)


def test_heads_that_only_predict_are_taken_at_their_word(binary):
    class Predictor(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            self.coef_, self.intercept_ = X[y == 1].mean(axis=0), 0.0
            return self

        def predict(self, X):
            return (X @ self.coef_ > 0).astype(int)

    X, y, _ = binary
    clf = fit(binary, head=Predictor())
    assert clf.coef_.shape == (1, 5)
    assert clf.score(X, y) > 0.7


@pytest.fixture(scope="module")
def wide():
    """Many features for the rows: by default the leading components are looked at."""
    rng = np.random.default_rng(0)
    n, d = 1240, 80
    y, e = rng.integers(2, size=n), np.arange(n) % 3
    X = rng.normal(size=(n, d)) * np.linspace(3.0, 0.3, d)
    X[:, 0] += 2.0 * y
    X[:, 1] += 3.0 * (e - 1) * (2 * y - 1)
    return X, y, e


def test_components_by_default_where_rows_are_few(wide):
    X, y, e = wide
    clf = fit(wide, head="lda")
    p = (len(y) - 6) // 20  # degrees of freedom within six cells, twenty a component
    fixed = fit(wide, head="lda", n_components=p)
    np.testing.assert_allclose(clf.coef_, fixed.coef_, atol=1e-10)
    assert clf.n_spurious_ == 1
    assert clf.score(X, y) > fit(wide, head="lda", n_spurious=0).score(X, y) - 0.1
    parts = ISRClassifier(head="lda")
    for rows in np.array_split(np.arange(len(y)), 5):
        parts.partial_fit(X[rows], y[rows], environments=e[rows])
    np.testing.assert_allclose(parts.coef_, clf.coef_, atol=1e-8)


def test_published_algorithm_on_all_features_where_rows_are_few(wide):
    form = {"method": "mean", "variant": "paper", "only": 1}
    clf = fit(wide, n_spurious=1, n_components=None, **form)
    assert principal_angles(clf.spurious_basis_, naive_span(form, wide, 1))[0] < 1e-7


def test_published_variant_looks_at_all_features_by_default():
    # 1,200 rows of 100 features: too few for all of them, were it ours.
    rng = np.random.default_rng(0)
    y, e = np.arange(1200) % 2, np.arange(1200) // 2 % 2
    X = rng.normal(size=(1200, 100)) * np.linspace(2.0, 0.1, 100)
    X[:, -1] += e
    settings = {"variant": "paper", "n_spurious": 1}
    default = ISRClassifier(**settings).fit(X, y, environments=e)
    every = ISRClassifier(**settings, n_components=None).fit(X, y, environments=e)
    np.testing.assert_array_equal(default.coef_, every.coef_)
    np.testing.assert_array_equal(default.spurious_basis_, every.spurious_basis_)
    ours = ISRClassifier(n_spurious=1).fit(X, y, environments=e)
    assert abs(ours.spurious_basis_[-1, 0]) < 0.1  # one of the components left out
    assert abs(every.spurious_basis_[-1, 0]) > 0.2


def few_rows(seed, n=200, d=300):
    """Few rows whose environment agrees with their class, and balanced test rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n + 2000)
    e = np.where(rng.random(len(y)) < 0.95, y, 1 - y)
    e[n:] = rng.integers(2, size=2000)
    direction, shift = rng.normal(size=(2, d))
    X = rng.normal(size=(len(y), d)) + np.outer(2 * y - 1, 1.5 * direction / np.sqrt(d))
    X += np.outer(2 * e - 1, 3.0 * shift / np.sqrt(d))
    return (X[:n], y[:n], e[:n]), (X[n:], y[n:], e[n:])


@pytest.mark.parametrize("d", [300, 600])
def test_few_rows_are_compared_among_their_principal_components(d):
    (X, y, e), _ = few_rows(0, d=d)
    moments = cell_moments(X, y, e)
    P = principal_components(moments, 20)[0]
    expected = mean_subspace(moments.map(P), 1).lift(P)
    estimators = (
        ISRClassifier(n_spurious=1),
        ISRClassifier(),
        ISRClassifier(head="lda", n_spurious=1),
        ISRTransformer(n_spurious=1),
    )
    for estimator in estimators:
        estimator.fit(X, y, environments=e)
        np.testing.assert_allclose(
            estimator.eraser_.dual @ estimator.spurious_basis_.T,
            expected.dual @ expected.basis.T,
            atol=1e-8,
        )
    of_moments = ISRClassifier(head="lda", n_spurious=1).fit_moments(moments)
    np.testing.assert_allclose(of_moments.coef_, estimators[2].coef_, atol=1e-8)
    streamed = ISRClassifier(n_spurious=1).fit(ArrayRows(X), y, environments=e)
    np.testing.assert_allclose(streamed.coef_, estimators[0].coef_, atol=1e-5)


def test_many_rows_are_compared_in_all_directions():
    # Ten rows per feature or more: also the direction with the least variance is compared.
    rng = np.random.default_rng(0)
    y, e = rng.integers(2, size=(2, 6000))
    X = rng.normal(size=(6000, 250)) * np.append(np.full(249, 10.0), 0.1)
    X[:, -1] += 0.3 * e
    clf = ISRClassifier().fit(X, y, environments=e)
    assert clf.n_spurious_ == 1
    assert abs(clf.spurious_basis_[-1, 0]) > 0.9 or abs(clf.eraser_.dual[-1, 0]) > 0.9


def test_few_rows_do_not_add_the_shift_to_the_head():
    worst = []
    for seed in range(4):
        (X, y, e), (X_test, y_test, e_test) = few_rows(seed)
        clf = ISRClassifier(n_spurious=1).fit(X, y, environments=e)
        worst.append(worst_group_accuracy(y_test, clf.predict(X_test), environments=e_test))
    assert np.mean(worst) > 0.55


def test_rows_cannot_be_added_to_a_fit_that_kept_means_only():
    rng = np.random.default_rng(0)
    head = (rng.normal(size=(1, 20)), [0.0])
    X, y, e = rng.normal(size=(300, 20)), np.arange(300) % 2, np.arange(300) // 2 % 3
    isr = ISRClassifier(head=head, variant="paper", n_spurious=1)
    half = clone(isr).fit(X[:150], y[:150], environments=e[:150])
    assert half.moments_.scatter is None
    before = half.coef_.copy()
    with pytest.raises(ValueError, match="start with partial_fit"):
        half.partial_fit(X[150:], y[150:], environments=e[150:])
    np.testing.assert_array_equal(half.coef_, before)  # the fit before is still there
    # The advice helps.
    parts = clone(isr)
    for rows in (slice(0, 150), slice(150, None)):
        parts.partial_fit(X[rows], y[rows], environments=e[rows])
    whole = clone(isr).fit(X, y, environments=e)
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-12)


@pytest.mark.parametrize("C", [1.0, 1e4, np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_separable_classes_are_separated(dtype, C):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(dtype)
    y, e = (X[:, 0] > 0).astype(int), np.arange(60) % 2
    found = ISRClassifier(C=C, n_spurious=0, weights=None).fit(X, y, environments=e)
    assert np.isfinite(found.coef_).all()
    assert found.score(X, y) == 1.0


def test_a_head_that_ran_out_of_passes_says_so(monkeypatch, binary):
    monkeypatch.setattr("isrlearn.engine.logistic._MOST_PASSES", 2)
    X, y, e = binary
    with pytest.warns(ConvergenceWarning, match=r"after \d+ passes .* smaller C than 2"):
        ISRClassifier(C=2.0).fit(X, y, environments=e)


def test_exact_covariances_are_compared_without_a_test():
    """A population has no sampling noise: nothing to warn of, however small the difference."""
    covariance = np.stack([np.eye(3), np.diag([1.0, 1.0, 1.001])])
    moments = Moments.population(np.zeros((2, 2, 3)) + np.arange(2)[:, None, None], covariance)
    model = ISRClassifier("cov", n_spurious=1, head="lda").fit_moments(moments)
    np.testing.assert_allclose(np.abs(model.spurious_basis_[:, 0]), [0.0, 0.0, 1.0], atol=1e-9)


@pytest.mark.parametrize(
    ("n", "d", "expected"),
    [
        (2000, 80, None),  # twenty rows per feature or more
        (1202, 80, 60),  # 1,200 degrees of freedom: one component per twenty
        (8002, 500, 200),  # never more than 200
        (10_002, 500, None),  # twenty rows per feature again, however many features
        (902, 80, None),  # 45 components would lose too much
    ],
)
def test_components_by_default(n, d, expected):
    X = np.random.default_rng(0).normal(size=(n, d))
    sample = Sample(X, Cells.of(np.arange(n) % 2, np.zeros(n)))
    components = Fitter(sample, [Settings()]).components
    assert (None if components is None else components.shape[1]) == expected


class TestSharedShifts:
    """Two environments whose shift differs between classes: they can share one direction only."""

    @pytest.fixture
    def data(self):
        rng = np.random.default_rng(0)
        y, e = np.arange(2000) // 2 % 2, np.arange(2000) % 2
        X = rng.standard_normal((2000, 4))
        X[:, 0] += 2.0 * y
        X[:, 1] += 3.0 * e  # in both classes
        X[:, 2] += 1.0 * e * y  # in one of them
        return X, y, e

    def test_mean_removes_what_classes_can_share(self, data):
        clf = ISRClassifier().fit(*data)
        assert (clf.n_spurious_, clf.rank_test_.rank) == (1, 2)
        assert np.abs(clf.spurious_basis_[1, 0]) > 0.9

    def test_multiclass_removes_all_that_shifts(self, data):
        clf = ISRClassifier("multiclass").fit(*data)
        assert (clf.n_spurious_, clf.rank_test_.rank) == (2, 2)

    def test_a_given_number_is_removed(self, data):
        assert ISRClassifier(n_spurious=2).fit(*data).n_spurious_ == 2

    def test_a_missing_cell_leaves_one_direction_to_compare(self, data):
        X, y, e = (part[(data[1] == 1) | (data[2] == 0)] for part in data)
        clf = ISRClassifier().fit(X, y, e)
        assert clf.n_spurious_ == clf.rank_test_.rank == 1
