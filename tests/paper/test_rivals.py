"""Each rival has the property its paper proves."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import check_estimator

from isrlearn.paper import projections, rivals
from isrlearn.paper.projections import DAREClassifier, LEACEClassifier, SPLINCEClassifier
from isrlearn.paper.rivals import (
    AnchorClassifier,
    CRMClassifier,
    EnvironmentMeansClassifier,
    SubsampledLogistic,
    WeightedLogistic,
)

ALL = [
    kind()
    for module in (rivals, projections)
    for kind in vars(module).values()
    if getattr(kind, "__module__", "") == module.__name__
    and isinstance(kind, type)
    and kind is not rivals.Rival
]


def test_every_rival_is_tested():
    assert len(ALL) == 8


def _cells(count, seed=0, d=6):
    """Rows of an additive Gaussian model: features 0 and 1 have the class, 2 and 3 the place."""
    rng = np.random.default_rng(seed)
    y, e = (np.repeat(np.indices(count.shape)[i].ravel(), count.ravel()) for i in (0, 1))
    X = rng.standard_normal((len(y), d))
    X[:, :2] += 1.5 * (y[:, None] == 1)
    X[:, 2:4] += 2.0 * (e[:, None] == 1)
    return X, np.array(["no", "yes"])[y], np.array(["sea", "land"])[e]


SKEWED = np.array([[400, 40], [40, 400]])


@pytest.mark.parametrize("rival", ALL, ids=lambda rival: type(rival).__name__)
def test_follows_scikit_learn(rival):
    check_estimator(rival, on_skip=None)


@pytest.mark.parametrize("rival", ALL, ids=lambda rival: type(rival).__name__)
def test_fits_with_unknown_environments_and_an_empty_cell(rival):
    X, y, environments = _cells(np.array([[200, 0], [60, 200]]))
    known = environments.astype(object)
    known[::3] = None
    rival.fit(X, y, known)
    given = {"environments": environments} if "Means" in type(rival).__name__ else {}
    assert (rival.predict(X, **given) == y).mean() > 0.5


@pytest.mark.parametrize("condition", [None, "class", "complete"])
def test_leace_leaves_no_linear_information(condition):
    X, y, environments = _cells(SKEWED)
    clf = LEACEClassifier(condition=condition)
    cells = rivals.Cells.of(y, environments)
    used = np.ones(len(y), bool) if condition != "complete" else cells.k == 1
    Z = projections._centred(X, cells.k if condition == "class" else np.zeros_like(cells.k))
    P = clf._kept(X, cells)
    place = (cells.e[used] == 0).astype(float)
    if condition == "class":
        place = projections._centred(place[:, None], cells.k)[:, 0]
    covariance = (Z[used] @ P.T).T @ (place - place.mean())
    np.testing.assert_allclose(covariance / used.sum(), 0, atol=1e-12)
    r2 = LinearRegression().fit(Z[used] @ P.T, place).score(Z[used] @ P.T, place)
    assert r2 == pytest.approx(0, abs=1e-10)


def test_leace_is_that_of_concept_erasure():
    torch = pytest.importorskip("torch")
    concept_erasure = pytest.importorskip("concept_erasure")
    X, y, environments = _cells(SKEWED)
    cells = rivals.Cells.of(y, environments)
    fitter = concept_erasure.LeaceFitter.fit(
        torch.as_tensor(X), torch.as_tensor(cells.e), shrinkage=False
    )
    theirs = fitter.eraser(torch.as_tensor(X)).numpy()
    ours = (X - X.mean(axis=0)) @ LEACEClassifier()._kept(X, cells).T + X.mean(axis=0)
    np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_splince_keeps_the_covariance_with_the_label():
    X, y, environments = _cells(SKEWED)
    cells = rivals.Cells.of(y, environments)
    P, one = SPLINCEClassifier()._kept(X, cells), np.zeros(len(y), dtype=int)
    label, place = (projections._cross(X, np.eye(2)[codes], one) for codes in (cells.k, cells.e))
    np.testing.assert_allclose(P @ label, label, atol=1e-12)
    np.testing.assert_allclose(P @ place, 0, atol=1e-12)
    np.testing.assert_allclose(P @ P, P, atol=1e-12)


def test_crm_recovers_a_missing_cell():
    X, y, environments = _cells(np.array([[2000, 0], [2000, 2000]]))
    new, label, _ = _cells(np.array([[0, 4000], [0, 0]]), seed=1)
    crm, weighted = CRMClassifier().fit(X, y, environments), WeightedLogistic(weights="group")
    assert (weighted.fit(X, y, environments).predict(new) == label).mean() < 0.7
    # The best possible accuracy of this cell is Φ(1.5 · √2 / 2) = 0.856.
    assert (crm.predict(new) == label).mean() > 0.83


def test_dare_ignores_the_means_of_environments():
    X, y, environments = _cells(np.full((2, 2), 1000))
    coef = DAREClassifier().fit(X, y, environments).coef_[0]
    # The environments have the same covariance and differ along the sum of these features.
    assert abs(coef[2] + coef[3]) < 0.1 < np.abs(coef[:2]).min()


def test_anchor_regression_is_ridge_at_one_and_protects_when_large():
    X, y, environments = _cells(SKEWED)
    coefs = [AnchorClassifier(gamma=g).fit(X, y, environments).coef_[0] for g in (1.0, 1e4)]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    t = np.where(y == "yes", 1.0, -1.0)
    ridge = np.linalg.solve(Z.T @ Z + np.eye(6), Z.T @ (t - t.mean())) / X.std(axis=0)
    np.testing.assert_allclose(coefs[0], ridge, rtol=1e-6, atol=1e-8)
    assert not np.allclose(coefs[0], coefs[1])


def test_environment_means_are_those_of_the_correlation_remover():
    preprocessing = pytest.importorskip("fairlearn.preprocessing")
    X, y, environments = _cells(SKEWED)
    place = (environments == "sea").astype(float)
    remover = preprocessing.CorrelationRemover(sensitive_feature_ids=[6])
    theirs = remover.fit_transform(np.column_stack([X, place]))
    clf = EnvironmentMeansClassifier(C=100.0).fit(X, y, environments)
    head = WeightedLogistic(C=100.0).fit(theirs, y)
    scores = clf.decision_function(X, environments)
    np.testing.assert_allclose(scores, head.decision_function(theirs), atol=0.02)
    with pytest.raises(ValueError, match="environment of every row"):
        clf.predict(X)


def test_subsamples_are_balanced():
    X, y, environments = _cells(SKEWED)
    coef = SubsampledLogistic().fit(X, y, environments).coef_[0]
    plain = WeightedLogistic().fit(X, y, environments).coef_[0]
    assert np.abs(coef[2:4]).max() < 0.5 < np.abs(plain[2:4]).min()


def test_classes_weigh_alike_whatever_cells_are_missing():
    _, y, environments = _cells(np.array([[400, 0], [40, 100]]))
    cells = rivals.Cells.of(y, environments)
    weight = rivals.row_weights(cells, "group")
    total = [[weight[(cells.k == k) & (cells.e == e)].sum() for e in (0, 1)] for k in (0, 1)]
    np.testing.assert_allclose(total, [[0, 270], [135, 135]])


def test_unknown_environments_are_inferred():
    X, y = np.array([[0.0], [5.0], [0.1], [5.1]]), np.array([0, 1, 0, 1])
    found = rivals.known_or_inferred(X, y, ["sea", "land", None, None])
    assert found.tolist() == ["sea", "land", "sea", "land"]
