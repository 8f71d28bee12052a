"""Searches on data in which a class was never seen in an environment."""

import numpy as np
import pytest

from isrlearn import ISRClassifierCV
from isrlearn.core.labels import Cells
from isrlearn.estimators.folds import unseen_cell_folds
from isrlearn.estimators.selection import cell_sums


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
    assert search.best_params_["scale"] == 0.0
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
    assert unseen_cell_folds(Cells.of(y[agrees], e[agrees])) == []


def test_environments_known_for_one_class_only():
    X, y, e = shortcut(0, 1000)
    known = np.where(y == 0, e.astype(object), None)
    search = ISRClassifierCV().fit(X, y, known)
    assert search.best_estimator_.n_spurious_ == 1
    assert worst(search, *shortcut(100, 4000)) > 0.65


def test_where_cells_can_be_spared_they_are_left_out_whole():
    X, y, e = shortcut(0, 1200, n_environments=4)
    seen = (y != 1) | (e != 3)
    search = ISRClassifierCV(C=1.0).fit(X[seen], y[seen], e[seen])
    results = search.cv_results_
    assert np.all(results["selection_score"] <= results["unseen_cells"] + 1e-12)
    assert np.any(results["selection_score"] < results["unseen_cells"] - 1e-12)
    assert worst(search, *shortcut(100, 4000, n_environments=4)) > 0.65


def test_no_cell_is_missing_no_cell_is_left_out():
    _, y, e = shortcut(0)
    assert unseen_cell_folds(Cells.of(y, e)) is None


@pytest.mark.parametrize("seed", range(20))
def test_each_cell_is_left_out_once_and_the_rest_connects(seed):
    rng = np.random.default_rng(seed)
    K, E = rng.integers(2, 5), rng.integers(2, 6)
    k, e = map(np.ravel, np.meshgrid(np.arange(K), np.arange(E)))
    kept = rng.random(len(k)) < 0.8
    kept[0] = False  # at least one cell is missing
    k, e = np.repeat(k[kept], 2), np.repeat(e[kept], 2)
    if len(np.unique(k)) < 2:
        pytest.skip("one class is left")
    cells = Cells.of(k, e)
    folds = unseen_cell_folds(cells)
    if folds is None:  # a class or an environment is missing altogether, and the rest is full
        assert (cells.count() > 0).all()
        return
    held = np.concatenate([test for _, test in folds]) if folds else np.zeros(0, dtype=int)
    assert len(set(held)) == len(held)
    for train, test in folds:
        rest = cells.rows(train)
        assert len(rest.classes) == len(cells.classes)
        assert len(rest.environments) == len(cells.environments)
        # Walk from the first class over shared environments until nothing new is reached.
        reached = {0}
        for _ in range(len(cells.classes)):
            places = set(rest.e[np.isin(rest.k, list(reached))])
            reached |= set(rest.k[np.isin(rest.e, list(places))])
        assert len(reached) == len(cells.classes)
        assert len(train) + len(test) == len(k)


def test_rows_of_unknown_environment_are_scored_by_class():
    cells = Cells.of([0, 0, 1, 1], np.array(["a", "b", None, None], dtype=object))
    values = np.array([1.0, 2.0, 4.0, 8.0])
    assert cell_sums(values, cells).tolist() == [1.0, 2.0, 0.0, 0.0, 0.0, 12.0, 15.0]
