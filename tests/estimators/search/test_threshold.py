"""What a search compares, when another setting is chosen, and where the threshold is moved."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn import ISRClassifier, ISRClassifierCV
from isrlearn.core.labels import Cells
from isrlearn.estimators.folds import empty_cells
from isrlearn.estimators.selection import best_of, reference, shrunk_worst
from isrlearn.estimators.threshold import worst_group_shift
from isrlearn.metrics import worst_group_accuracy


def unequal(seed, n, spread=(1.0, 3.0)):
    """Classes of different spread: the threshold with equal class means errs in the wide one."""
    rng = np.random.default_rng(seed)
    y, e = rng.integers(0, 2, n), rng.integers(0, 2, n)
    X = rng.normal(size=(n, 3)) * np.array(spread)[y][:, None] + np.outer(y, [2.0, 0.0, 0.0])
    X[:, 2] += 2 * e
    return X, y, e


def worst(model, X, y, e):
    return worst_group_accuracy(y, model.predict(X), e)


@pytest.mark.parametrize("seed", range(3))
def test_a_threshold_that_the_worst_group_gains_by_is_folded_into_the_intercept(seed):
    train, test = unequal(seed, 1500), unequal(100 + seed, 6000)
    still = ISRClassifierCV(C=1.0, scale=0.0, threshold=None).fit(*train)
    moved = ISRClassifierCV(C=1.0, scale=0.0).fit(*train)
    assert moved.best_params_ == still.best_params_
    assert still.threshold_.tolist() == [0.0]
    np.testing.assert_array_equal(moved.coef_, still.coef_)
    np.testing.assert_allclose(moved.intercept_, still.intercept_ + moved.threshold_)
    plain = ISRClassifier(C=1.0, weights="class").fit(*train)
    assert worst(moved, *test) > worst(plain, *test) + 0.02


def test_a_threshold_that_is_right_stays():
    rng = np.random.default_rng(0)
    moved = 0
    for _ in range(20):
        y, e = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
        scores = rng.normal(size=(400, 1)) + (2 * y - 1)[:, None]
        moved += bool(worst_group_shift(scores, Cells.of(y, e)).any())
    assert moved <= 6


def test_every_class_has_its_own_shift():
    rng = np.random.default_rng(0)
    y, e = rng.integers(0, 3, 3000), rng.integers(0, 2, 3000)
    scores = rng.normal(size=(3000, 3)) + 2.5 * np.eye(3)[y]
    scores[:, 1] += 2.0
    cells = Cells.of(y, e)
    shift = worst_group_shift(scores, cells)
    before, after = scores.argmax(axis=1), (scores + shift).argmax(axis=1)
    assert worst_group_accuracy(y, after, e) > worst_group_accuracy(y, before, e) + 0.2
    assert shift[1] - shift[[0, 2]].mean() == pytest.approx(-2.0, abs=0.5)


@pytest.mark.parametrize(
    ("options", "moves"),
    [({}, True), ({"selection": "average"}, False), ({"threshold": None}, False)],
    ids=str,
)
def test_when_the_threshold_is_moved(options, moves):
    search = ISRClassifierCV(C=1.0, scale=0.0, n_spurious=1, **options).fit(*unequal(0, 1500))
    assert bool(search.threshold_.any()) == moves


def test_nothing_is_moved_where_a_group_is_small_unless_asked_for():
    X, y, e = unequal(0, 1500)
    few = np.flatnonzero((y == 1) & (e == 1))[:15]
    kept = (y == 0) | (e == 0)
    kept[few] = True
    X, y, e = X[kept], y[kept], e[kept]
    settings = {"C": 1.0, "scale": 0.0, "weights": "class"}
    assert not ISRClassifierCV(**settings).fit(X, y, e).threshold_.any()
    asked = ISRClassifierCV(**settings, threshold="worst-group").fit(X, y, e)
    assert asked.threshold_.any()


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_stand_in_for_a_missing_cell_move_the_threshold(seed):
    def shifted(seed, n):
        rng = np.random.default_rng(seed)
        y, e = rng.integers(0, 2, (2, n))
        return rng.normal(size=(n, 3)) + np.outer(2 * y + e, [1.0, 0.0, 0.0]), y, e

    X, y, e = shifted(seed, 2000)
    seen = (y == 0) | (e == 1)
    assert empty_cells(Cells.of(y[seen], e[seen])).tolist() == [[False, False], [True, False]]
    settings = {"C": 1.0, "n_spurious": 0, "weights": "class"}
    moved = ISRClassifierCV(**settings).fit(X[seen], y[seen], e[seen])
    still = ISRClassifierCV(**settings, threshold=None).fit(X[seen], y[seen], e[seen])
    test = shifted(100 + seed, 6000)
    assert worst(moved, *test) > worst(still, *test) + 0.03


def test_unknown_environments_are_no_missing_cells():
    cells = Cells.of([0, 0, 1, 1], np.array(["a", "b", None, "b"], dtype=object))
    assert not empty_cells(cells).any()


def test_threshold_must_be_one_of_three():
    with pytest.raises(ValueError, match="threshold must be one of 'auto', 'worst-group', None"):
        ISRClassifierCV(threshold="best").fit(*unequal(0, 100))


def test_groups_of_a_few_rows_are_shrunk_to_their_class():
    # Class 0: 90 of 100 right in one environment, 0 of 2 in the other; class 1: 75 of 100, once.
    size = np.array([100.0, 2.0, 100.0, 0.0, 0.0, 0.0, 202.0])
    sums = np.array([[90.0, 0.0, 75.0, 0.0, 0.0, 0.0, 165.0]])
    found, error = shrunk_worst(sums, size, 2)
    assert found[0] == pytest.approx(5 * (90 / 102) / 7)
    assert error[0] == pytest.approx(np.sqrt(found[0] * (1 - found[0]) / 7))
    sums[0, 1] = 2.0
    assert shrunk_worst(sums, size, 2)[0][0] == pytest.approx((75 + 5 * 0.75) / 105)


def test_another_setting_must_be_better_by_a_margin():
    scores, efforts = np.array([0.70, 0.72, 0.74]), [(2,), (1,), (0,)]
    assert best_of(scores, efforts, margin=0.05, first=0) == 0
    assert best_of(scores, efforts, margin=0.03, first=0) == 2
    assert best_of(np.array([0.7, 0.7, 0.6]), efforts) == 1


def test_the_setting_to_beat_removes_half_of_what_is_found():
    X, y, e = unequal(0, 300)
    search = ISRClassifierCV().fit(X, y, e)
    first = search.cv_results_["params"][reference(search.cv_results_["params"], "C")]
    assert (first["n_spurious"], first["scale"]) == ("auto", 0.5)
    assert (first["weights"], first["C"]) == ("auto", 0.1)
