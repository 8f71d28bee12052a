"""Searches on data in which a class was never seen in an environment."""

import numpy as np
import pytest

from isrlearn import ISRClassifierCV
from isrlearn.core.labels import Cells
from isrlearn.estimators.selection import cell_sums
from isrlearn.estimators.threshold import replaceable, stand_ins


def shortcut(seed: int, n: int = 400, n_environments: int = 2):
    """A feature that depends on the class, and a stronger one on environment and class alike."""
    rng = np.random.default_rng(seed)
    y, e = rng.integers(0, 2, n), rng.integers(0, n_environments, n)
    X = rng.standard_normal((n, 4))
    X[:, 0] += 1.5 * y
    X[:, 1] += 4.0 * e
    return X, y, e


def worst(model, X, y, e):
    hit = model.predict(X) == y
    return min(hit[(y == k) & (e == j)].mean() for k in np.unique(y) for j in np.unique(e))


@pytest.mark.parametrize("seed", range(3))
def test_a_group_that_was_never_collected_is_predicted(seed):
    X, y, e = shortcut(seed, 1000)
    seen = (y != 1) | (e != 1)
    test = shortcut(100 + seed, 4000)
    search = ISRClassifierCV().fit(X[seen], y[seen], e[seen])
    plain = ISRClassifierCV(n_spurious=0, scale=1.0, weights="group")
    plain.fit(X[seen], y[seen], e[seen])
    assert search.best_params_["scale"] < 1.0
    assert search.best_params_["weights"] is not None
    assert worst(search, *test) > worst(plain, *test) + 0.2


@pytest.mark.parametrize("seed", range(3))
def test_cells_of_one_row_are_not_taken_for_groups_without_errors(seed):
    # The only row of a cell is never held out: the scores are those of the other groups.
    X, y, e = shortcut(seed, 1000)
    agrees = y == e
    agrees[[np.flatnonzero((y == k) & (e != k))[0] for k in (0, 1)]] = True
    search = ISRClassifierCV().fit(X[agrees], y[agrees], e[agrees])
    assert search.best_params_["scale"] == 0.0
    assert not search.threshold_.any()


def test_environments_known_for_one_class_only():
    X, y, e = shortcut(0, 1000)
    known = np.where(y == 0, e.astype(object), None)
    search = ISRClassifierCV().fit(X, y, known)
    assert search.best_estimator_.n_spurious_ == 1
    assert worst(search, *shortcut(100, 4000)) > 0.65


def test_the_chosen_setting_does_well_where_a_class_is_missing():
    X, y, e = shortcut(0, 1200, n_environments=4)
    seen = (y != 1) | (e != 3)
    search = ISRClassifierCV(C=1.0).fit(X[seen], y[seen], e[seen])
    assert worst(search, *shortcut(100, 4000, n_environments=4)) > 0.65


def test_a_setting_that_uses_the_shortcut_is_scored_by_what_it_would_do_in_the_missing_cell():
    X, y, e = shortcut(0, 1000)
    seen = (y != 1) | (e != 1)
    search = ISRClassifierCV().fit(X[seen], y[seen], e[seen])
    points, scores = search.cv_results_["params"], search.cv_results_["selection_score"]
    plain = [s for p, s in zip(points, scores, strict=True) if p["weights"] == "group"]
    removed = [s for p, s in zip(points, scores, strict=True) if p["scale"] == 0.0]
    assert max(plain) < max(removed) - 0.2
    assert max(plain) < search.cv_results_["pooled_worst_group"].max() - 0.1


@pytest.mark.parametrize("K", [2, 3])
def test_shifts_that_classes_share_put_stand_ins_where_the_missing_rows_are(K):
    rng = np.random.default_rng(0)
    E, C = 3, 1 if K == 2 else K
    k, e = rng.integers(0, K, 6000), rng.integers(0, E, 6000)
    scores = rng.normal(size=(6000, C)) + rng.normal(size=(K, C))[k] + rng.normal(size=(E, C))[e]
    hidden = (k == 1) & (e == 2)
    cells = Cells.of(k[~hidden], e[~hidden])
    found, more = stand_ins(scores[~hidden], cells, cells.count() == 0)
    added = slice(len(cells.k), None)
    assert set(zip(more.k[added], more.e[added], strict=True)) == {(1, 2)}
    means = np.array([scores[~hidden][cells.k == j].mean(axis=0) for j in range(K)])
    towards = np.delete(means, 1, axis=0).mean(axis=0) - means[1]
    expected = scores[hidden].mean(axis=0) + 0.1 * towards
    np.testing.assert_allclose(found[added].mean(axis=0), expected, atol=0.15)


def test_a_class_without_a_link_has_no_stand_in():
    assert not replaceable(np.diag([5, 5]))[0, 1]
    cells = Cells.of([0, 0, 1, 1], ["a", "a", "b", "b"])
    found, more = stand_ins(np.zeros((4, 1)), cells, cells.count() == 0)
    assert len(found) == len(more.k) == 4


def test_rows_of_unknown_environment_are_scored_by_class():
    cells = Cells.of([0, 0, 1, 1], np.array(["a", "b", None, None], dtype=object))
    values = np.array([1.0, 2.0, 4.0, 8.0])
    assert cell_sums(values, cells).tolist() == [1.0, 2.0, 0.0, 0.0, 0.0, 12.0, 15.0]
