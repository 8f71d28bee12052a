"""Folds: every row held out once, every cell spread, none left without a row to train on."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneGroupOut

from isrlearn.core.labels import Cells
from isrlearn.estimators.folds import folds_of

CELLS = np.repeat([0, 1, 2, 3, 4], [40, 17, 6, 2, 1])


def cell_folds(environments, n_folds, random_state=None):
    return folds_of(None, Cells.of(None, environments), "worst-group", n_folds, random_state)


@pytest.mark.parametrize("seed", [None, 0])
@pytest.mark.parametrize("n_folds", [2, 3, 5])
def test_cells_are_spread_evenly(n_folds, seed):
    state = None if seed is None else np.random.RandomState(seed)
    folds = cell_folds(CELLS, n_folds, state)
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(len(CELLS)))
        assert set(CELLS[train]) == set(CELLS)
    held = np.concatenate([test for _, test in folds])
    assert sorted(held) == [i for i, cell in enumerate(CELLS) if cell != 4]
    for cell in range(4):
        sizes = [np.count_nonzero(CELLS[test] == cell) for _, test in folds]
        assert max(sizes) - min(sizes) <= 1
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1


def test_without_a_seed_rows_are_dealt_in_order():
    assert [test.tolist() for _, test in cell_folds(np.zeros(5, dtype=int), 2)] == [
        [0, 2, 4],
        [1, 3],
    ]
    one, two = (cell_folds(CELLS, 3, np.random.RandomState(s)) for s in (0, 1))
    assert not np.array_equal(one[0][1], two[0][1])


def pairs(cv, selection="worst-group", environments=(0, 0, 1, 1, 2, 2)):
    cells = Cells.of(np.arange(6) % 2, np.array(environments, dtype=float))
    found = folds_of(np.zeros((6, 1)), cells, selection, cv, None)
    return [(train.tolist(), test.tolist()) for train, test in found]


def test_each_environment_is_left_out_once_and_unknown_ones_never():
    environments = (0, 0, 1, 1, 2, np.nan)
    found = pairs(5, "leave-one-environment-out", environments)
    assert [test for _, test in found] == [[0, 1], [2, 3], [4]]
    assert all(5 in train for train, _ in found)


def test_cv_may_be_pairs_of_rows_or_a_splitter():
    assert pairs([([0, 1], [2]), ([3], [4, 5])]) == [([0, 1], [2]), ([3], [4, 5])]
    assert [test for _, test in pairs(KFold(3))] == [[0, 1], [2, 3], [4, 5]]
    by_environment = pairs(LeaveOneGroupOut(), environments=(0, 1, 0, 1, 0, 1))
    assert [test for _, test in by_environment] == [[0, 2, 4], [1, 3, 5]]


@pytest.mark.parametrize(
    ("cv", "selection", "environments", "message"),
    [
        (1, "worst-group", (0, 0, 1, 1, 2, 2), "at least 2 folds; got 1"),
        ("five", "worst-group", (0, 0, 1, 1, 2, 2), "Got five"),
        ([], "worst-group", (0, 0, 1, 1, 2, 2), "no .train, test. pair"),
        (2, "worst-group", (0, 0, 1, 1, 2, 2), "no row can be held out"),
        (5, "leave-one-environment-out", (0, 0, 1, 1, 1, 1), "needs three environments"),
    ],
)
def test_errors_say_what_to_do(cv, selection, environments, message):
    with pytest.raises(ValueError, match=message):
        pairs(cv, selection, environments)
