"""Missing, small and unlabelled cells are reported, and the advice can be followed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isrlearn import ISRClassifier
from isrlearn.diagnosis import Cell, diagnose
from isrlearn.diagnosis.shares import ColumnShare, said
from isrlearn.paper.datasets import make_linear_unit_test

FACTS = {"n_bootstrap": 0, "compare": False}


def example_3(E, keep, seed=0):
    """Example-3s in environments a, b, …, without the cells that are not kept."""
    data = make_linear_unit_test("3s", n_environments=E, n_samples=600, random_state=seed).train
    rows = keep(data.y, data.environments)
    names = np.array(list("abcdefgh"))
    return data.X[rows], data.y[rows], names[data.environments[rows]]


def test_missing_cells_are_named_and_their_environments_used():
    # Class 0 is missing in b and class 1 in c: four of six environments have both.
    X, y, e = example_3(6, lambda y, e: ~(((e == 1) & (y == 0)) | ((e == 2) & (y == 1))))
    found = diagnose(X, y, e, **FACTS)
    assert found.cells.empty == (Cell(0, "b", 0), Cell(1, "c", 0))
    assert found.findings[0].startswith("Cells without rows: class 0 in 'b', class 1 in 'c'.")
    # Each class is compared between the five environments it was seen in: together, all six.
    assert found.means.n_dimensions == 5


def test_cells_of_a_class_whose_environments_are_unknown_may_have_rows(cells):
    means = np.zeros((2, 2, 3))
    means[:, 1, 0] = 4.0
    X, y, e = cells(np.full((2, 2), 100), means)
    found = diagnose(X, y, np.where(y == 1, np.nan, e.astype(float)), **FACTS)
    assert found.means.shifted
    assert found.cells.empty == ()
    assert not found.has_gap


def test_only_the_class_seen_in_several_environments_is_compared():
    X, y, e = example_3(4, lambda y, e: (e == 0) | (y == 1))
    found = diagnose(X, y, e, n_bootstrap=0)
    assert found.cells.compared == (1,)
    assert found.means.n_dimensions == 3
    clf = ISRClassifier(**found.recommendation.parameters).fit(X, y, environments=e)
    assert clf.coef_.shape == (1, X.shape[1])


def test_nothing_to_compare():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    X = rng.normal(size=(100, 3))
    found = diagnose(X, y, y)
    assert found.means is found.comparison is None
    assert "No class has rows in two environments" in found.findings[0]
    assert "no class has rows in two environments" in str(found)
    assert found.recommendation.prediction == "no difference"
    ISRClassifier(**found.recommendation.parameters).fit(X, y)


def test_cells_too_small_for_covariances_are_not_compared(cells):
    means = np.zeros((2, 2, 10))
    means[:, 1, 0] = 4.0
    X, y, e = cells([[400, 12], [12, 350]], means)
    found = diagnose(X, y, e, **FACTS)
    assert found.covariances.p_value is None
    answer = dict(found.answers)["Do covariances differ?"]
    assert "no class has 30 rows in two environments" in answer


def test_a_direction_without_variance_has_no_ratio(cells):
    X, y, e = cells([[200, 200], [200, 200]], np.zeros((2, 2, 4)))
    X[e == e[0], 0] *= 1e-9  # as a category that one environment lacks
    answer = dict(diagnose(X, y, e, **FACTS).answers)["Do covariances differ?"]
    assert "a direction hardly varies in one place and does in another" in answer


def test_covariances_that_differ_are_found(cells):
    spread = np.array([[np.eye(5), np.diag([6.0, 1, 1, 1, 1])]] * 2)
    X, y, e = cells(np.full((2, 2), 900), np.zeros((2, 2, 5)), spread)
    found = diagnose(X, y, e, **FACTS).covariances
    assert found.n_dimensions == 1
    assert found.effect == pytest.approx(6.0, rel=0.2)


def test_small_cells_are_named(cells):
    means = np.zeros((2, 2, 3))
    means[:, 1, 0] = 4.0
    X, y, e = cells([[400, 300], [6, 350]], means)
    found = diagnose(X, y, e, **FACTS)
    assert found.cells.small == (Cell(1, 0, 6),)
    assert "Cells of fewer than ten rows: 6 rows of class 1 in environment 0." in found.findings


def test_few_labels_are_called_few(cells):
    # Of 2,400 rows 60 have an environment: too few to find one direction among 20.
    means = np.zeros((2, 2, 20))
    means[:, 1, 0] = 1.6
    means[1, :, 1] = 3.0
    X, y, e = cells(np.full((2, 2), 600), means)
    e = e.astype(float)
    e[np.random.default_rng(0).permutation(len(e))[60:]] = np.nan
    found = diagnose(X, y, e, compare=False)
    assert sum(map(sum, found.cells.count)) == 60
    assert sum(found.cells.unlabelled) == 2340
    assert found.means.shifted
    assert not found.stability.stable
    assert found.stability.more_rows > 1
    assert any("The subspace is uncertain" in text for text in found.findings)


def test_enough_labels_are_not_called_few(cells):
    means = np.zeros((2, 2, 20))
    means[:, 1, 0] = 3.0
    X, y, e = cells(np.full((2, 2), 600), means)
    e = e.astype(object)
    e[np.random.default_rng(0).permutation(len(e))[1200:]] = None
    assert diagnose(X, y, e, compare=False).stability.stable


@pytest.mark.parametrize("kind", ["strings", "floats", "bools"])
def test_labels_of_any_type(cells, kind):
    means = np.zeros((2, 2, 3))
    means[:, 1, 0] = 4.0
    means[1, :, 1] = 4.0
    X, y, e = cells(np.full((2, 2), 100), means)
    names = {"strings": ["a", "b"], "floats": [0.5, 1.5], "bools": [False, True]}[kind]
    found = diagnose(X, np.array(["no", "yes"])[y], np.array(names)[e], n_bootstrap=0)
    assert found.cells.environments == tuple(names)
    assert found.means.largest[1:] == tuple(names)
    assert found.to_dict()["cells"]["environments"] == names


def test_cells_in_words():
    assert str(Cell("a", "u", 1)) == "1 row of class 'a' in environment 'u'"
    assert str(Cell(None, 3, 1200)) == "1,200 rows of environment 3"


def test_columns_in_words():
    wide = [ColumnShare(f"f{i}", removed=1 / 300, before=0.5, after=0.25) for i in range(2)]
    assert said(wide).startswith("The removed directions lie in many columns, none with 0.5%. ")
    assert (
        said([replace(wide[0], removed=0.0)]) == "Nothing is removed. Predictions follow f0 (25%)."
    )
