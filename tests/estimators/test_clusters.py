"""Rows that belong together: tests count clusters, folds split none, and repeated rows are seen."""

import warnings

import numpy as np
import pytest

from isrlearn import (
    ISRClassifier,
    ISRClassifierCV,
    ISRRegressor,
    ISRTransformer,
    diagnose,
)
from isrlearn.core.labels import Cells
from isrlearn.estimators.folds import folds_of
from isrlearn.estimators.heads import n_repeated


def clustered(seed: int, shift: float = 0.0, n: int = 240, d: int = 6):
    """Five rows per cluster that share most of their features, a class and an environment."""
    rng = np.random.default_rng(seed)
    cluster, y, e = np.arange(n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    X = rng.standard_normal((n, d))
    X[:, 0] += shift * e
    rows = np.repeat(X, 5, axis=0) + 0.5 * rng.standard_normal((5 * n, d))
    return rows, np.repeat(y, 5), np.repeat(e, 5), np.repeat(cluster, 5)


@pytest.mark.parametrize("method", ["mean", "cov", "joint"])
def test_the_test_counts_clusters_not_rows(method):
    found = np.zeros(2)
    for seed in range(20):
        X, y, e, clusters = clustered(seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "all 6 dimensions shift")
            for i, names in enumerate((clusters, None)):
                model = ISRClassifier(method, level=0.01).fit(X, y, e, clusters=names)
                found[i] += model.n_spurious_ > 0
    assert found[0] <= 1  # more than 1 of 20 happens in 2 % of such runs
    assert found[1] >= 10


@pytest.mark.parametrize("n_spurious", ["auto", "permutation"])
def test_a_real_shift_of_clusters_is_found(n_spurious):
    X, y, e, clusters = clustered(0, shift=2.0)
    model = ISRClassifier(n_spurious=n_spurious).fit(X, y, e, clusters=clusters)
    assert model.n_spurious_ == 1
    assert np.abs(model.spurious_basis_[0, 0]) > 0.95


def test_clusters_change_the_test_only():
    X, y, e, clusters = clustered(1, shift=2.0)
    a = ISRClassifier(n_spurious=1).fit(X, y, e, clusters=clusters)
    b = ISRClassifier(n_spurious=1).fit(X, y, e)
    assert np.array_equal(a.coef_, b.coef_)


def test_every_estimator_takes_clusters():
    X, y, e, clusters = clustered(2, shift=2.0)
    target = X[:, 1] + 0.1 * y
    assert ISRTransformer().fit(X, y, e, clusters=clusters).n_spurious_ == 1
    means = ISRRegressor(compare="means")
    assert means.fit(X, target, e, clusters=clusters).n_spurious_ == 1


def test_folds_split_no_cluster():
    X, y, e, clusters = clustered(3)
    folds = folds_of(X, Cells.of(y, e, clusters), "worst-group", 5, None)
    assert len(folds) == 5
    for train, test in folds:
        assert not set(clusters[train]) & set(clusters[test])
    assert np.array_equal(np.sort(np.concatenate([t for _, t in folds])), np.arange(len(y)))


def test_a_search_scores_rows_of_other_clusters():
    # Labels are noise that all rows of a cluster share: only a split cluster predicts itself.
    rng = np.random.default_rng(0)
    X, _, e, clusters = clustered(4, n=60, d=40)
    y = np.repeat(rng.integers(0, 2, 60), 5)
    fixed = {"n_spurious": 0, "scale": 1.0, "weights": None, "C": 1.0}
    whole = ISRClassifierCV(**fixed).fit(X, y, e, clusters=clusters)
    split = ISRClassifierCV(**fixed).fit(X, y, e)
    i = whole.best_index_
    gain = split.cv_results_["pooled_average"][i] - whole.cv_results_["pooled_average"][i]
    assert gain > 0.1


def test_one_cluster_is_too_few_to_split():
    X, y, e, clusters = clustered(0)
    with pytest.raises(ValueError, match="1200 rows to split are of one: name smaller clusters"):
        ISRClassifierCV().fit(X, y, e, clusters=np.zeros_like(clusters))
    with pytest.raises(ValueError, match="rows to split are of one: name smaller clusters"):
        diagnose(X, y, e, clusters=clusters % 2)


def test_repeated_rows_are_seen():
    rng = np.random.default_rng(0)
    X, y, e = (
        np.repeat(rng.standard_normal((100, 3)), 5, axis=0),
        np.arange(500) % 2,
        np.arange(500) // 2 % 2,
    )
    assert n_repeated(X) == 400
    with pytest.warns(UserWarning, match=r"400 of 500 rows repeat another one.*clusters="):
        ISRClassifier().fit(X, y, e)


def test_discrete_rows_may_be_equal_by_chance():
    rng = np.random.default_rng(0)
    assert n_repeated(rng.integers(0, 2, (500, 3)).astype(float)) == 0
    assert n_repeated(rng.poisson(3.0, (500, 2)).astype(float)) == 0
    assert n_repeated(rng.standard_normal((500, 3))) == 0


@pytest.mark.parametrize(
    ("clusters", "message"),
    [(np.arange(7), r"clusters has shape \(7,\)"), ([None, *range(1199)], "cluster of row 0")],
)
def test_bad_clusters(clusters, message):
    X, y, e, _ = clustered(0)
    with pytest.raises(ValueError, match=message):
        ISRClassifier().fit(X, y, e, clusters=clusters)
