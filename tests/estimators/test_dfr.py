"""Deep feature reweighting."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from isrlearn.datasets import EnvironmentData, make_waterbirds_like
from isrlearn.estimators import DFRClassifier
from isrlearn.metrics import worst_group_accuracy


@parametrize_with_checks(
    [DFRClassifier(C=(1.0, 0.1), n_subsamples=2, missing_environments="single", random_state=0)]
)
def test_common_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def splits():
    return make_waterbirds_like(n_features=60, random_state=1)


def grouped(data, sizes):
    """The first rows of every group, so many of each."""
    pairs = [(k, e) for k in np.unique(data.y) for e in np.unique(data.environments)]
    rows = [
        np.flatnonzero((data.y == k) & (data.environments == e))[:n]
        for (k, e), n in zip(pairs, sizes, strict=True)
    ]
    rows = np.concatenate(rows)
    return EnvironmentData(data.X[rows], data.y[rows], data.environments[rows])


def worst(model, data):
    return worst_group_accuracy(data.y, model.predict(data.X), data.environments)


def fit(model, data):
    return model.fit(data.X, data.y, environments=data.environments)


def test_it_does_not_take_the_shortcut(splits):
    erm = LogisticRegression(max_iter=1000).fit(splits.train.X, splits.train.y)
    dfr = fit(DFRClassifier(random_state=0), splits.validation)
    assert worst(erm, splits.test) < 0.8
    assert worst(dfr, splits.test) > 0.9


def test_in_equal_groups_it_is_logistic_regression(splits):
    """Nothing to subsample: every one of the averaged heads is the same."""
    data = grouped(splits.test, (80, 80, 80, 80))
    dfr = fit(DFRClassifier("l2", C=0.1, n_subsamples=3, random_state=0), data)
    # liblinear penalises the intercept, which is near zero here, so lbfgs comes close, not equal.
    direct = LogisticRegression(C=0.1, tol=1e-8).fit(StandardScaler().fit_transform(data.X), data.y)
    scale = data.X.std(axis=0)
    np.testing.assert_allclose(dfr.coef_[0] * scale, direct.coef_[0], atol=1e-2)
    correlation = np.corrcoef(dfr.coef_[0] * scale, direct.coef_[0])[0, 1]
    assert correlation > 0.9999


def test_l1_leaves_features_out(splits):
    sparse = fit(DFRClassifier("l1", C=0.05, n_subsamples=1, random_state=0), splits.validation)
    dense = fit(DFRClassifier("l2", C=0.05, n_subsamples=1, random_state=0), splits.validation)
    assert (sparse.coef_ == 0).mean() > 0.2
    assert not (dense.coef_ == 0).any()


def test_group_sizes_do_not_move_the_boundary(splits):
    """More rows of a group change which are drawn, not how many count."""
    shares = []
    for sizes in ((300, 300, 300, 300), (2000, 300, 300, 300)):
        model = DFRClassifier("l2", C=0.1, n_subsamples=10, random_state=0)
        fitted = fit(model, grouped(splits.test, sizes))
        shares.append(np.mean(fitted.predict(splits.validation.X) == "waterbird"))
    assert abs(shares[0] - shares[1]) < 0.02


def test_the_penalty_is_chosen_among_the_candidates(splits):
    model = fit(DFRClassifier(C=[1e-4, 0.3], n_subsamples=1, random_state=0), splits.validation)
    assert model.C_ == 0.3  # at 1e-4 every coefficient is zero
    given = fit(DFRClassifier(C=1e-4, n_subsamples=1, random_state=0), splits.validation)
    assert given.C_ == 1e-4
    assert not given.coef_.any()


def test_a_seed_gives_one_answer(splits):
    one, same, other = (
        fit(DFRClassifier(C=0.1, n_subsamples=2, random_state=s), splits.validation).coef_
        for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


def test_three_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 100)
    X = 3.0 * np.eye(3)[np.repeat([0, 1, 2], 100)] + rng.normal(size=(300, 3))
    model = DFRClassifier(random_state=0).fit(X, y, environments=np.arange(300) % 2)
    assert model.coef_.shape == (3, 3)
    assert model.score(X, y) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    np.testing.assert_array_equal(
        model.classes_[model.predict_proba(X).argmax(1)], model.predict(X)
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l3"}, "penalty must be one of 'l1', 'l2'; got 'l3'"),
        ({"C": []}, "C is empty"),
        ({"C": [1.0, -1.0]}, "C must be a number"),
        ({"n_subsamples": 0}, "n_subsamples must be a number at least 1; got 0"),
    ],
)
def test_mistakes_in_parameters_are_named(splits, parameters, message):
    with pytest.raises(ValueError, match=message):
        fit(DFRClassifier(**parameters), splits.validation)


def test_mistakes_in_environments_are_named():
    X, y = np.arange(12.0).reshape(6, 2), np.array([0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="environments are needed"):
        DFRClassifier().fit(X, y)
    with pytest.raises(ValueError, match="1 of 6 are missing"):
        DFRClassifier().fit(X, y, environments=[0, 0, 1, 1, 0, None])
    with pytest.raises(ValueError, match="has one row, too few to fit"):
        DFRClassifier().fit(X, y, environments=[0, 0, 1, 1, 0, 0])
