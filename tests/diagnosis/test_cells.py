"""Missing, small and unlabelled cells are reported, and the advice can be followed."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn import ISRClassifier
from isrlearn.diagnosis import Cell, diagnose
from isrlearn.paper.datasets import make_linear_unit_test


def example_3(E, keep, seed=0):
    """Example-3s in environments a, b, …, without the cells that are not kept."""
    data = make_linear_unit_test("3s", n_environments=E, n_samples=600, random_state=seed).train
    rows = keep(data.y, data.environments)
    names = np.array(list("abcdefgh"))
    return data.X[rows], data.y[rows], names[data.environments[rows]]


def followed(found, X, y, e):
    """The estimator that is recommended, fitted as it is recommended."""
    e = e.astype(object)
    e[np.isin(y, found.recommendation.unlabel)] = None
    return ISRClassifier(**found.recommendation.parameters).fit(X, y, environments=e)


def test_environments_with_a_single_class_are_named_and_used():
    # Class 0 is missing in b and class 1 in c: four of six environments have both.
    X, y, e = example_3(6, lambda y, e: ~(((e == 1) & (y == 0)) | ((e == 2) & (y == 1))))
    found = diagnose(X, y, e, n_bootstrap=0)
    assert found.cells.empty == (Cell(0, "b", 0), Cell(1, "c", 0))
    assert found.cells.single_class == (Cell(1, "b", 300), Cell(0, "c", 300))
    assert "single-class-environments" in found.recommendation.codes
    assert "'b' (only 1), 'c' (only 0)" in " ".join(found.recommendation.sentences)
    # Each class is compared between the five environments it was seen in: together, all six.
    assert found.recommendation.unlabel == ()
    assert found.recommendation.parameters == {"method": "mean", "n_spurious": 5}
    assert followed(found, X, y, e).n_spurious_ == 5


def test_only_the_class_seen_in_several_environments_is_compared():
    X, y, e = example_3(4, lambda y, e: (e == 0) | (y == 1))
    found = diagnose(X, y, e, n_bootstrap=0)
    assert found.cells.compared == (1,)
    assert found.recommendation.parameters == {"method": "mean", "n_spurious": 3}
    assert followed(found, X, y, e).n_spurious_ == 3


def test_a_class_with_one_environment_more_is_compared_in_all_of_its_own(cells):
    # Class 1 is seen in one environment more than class 0, but does not shift there.
    means = np.zeros((2, 3, 4))
    means[:, 1, 0] = 5.0
    means[1, :, 1] = 4.0
    X, y, e = cells([[300, 300, 0], [300, 300, 300]], means)
    found = diagnose(X, y, e, n_bootstrap=0)
    assert found.cells.compared == (0, 1)
    assert found.cells.empty == (Cell(0, 2, 0),)
    assert found.recommendation.parameters == {"method": "mean", "n_spurious": 1}
    assert followed(found, X, y, e).n_spurious_ == 1


def test_nothing_to_compare():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 2
    found = diagnose(rng.normal(size=(100, 3)), y, y)
    assert found.means is None
    assert found.recommendation.codes == ("nothing-to-compare", "single-class-environments")
    assert "cannot be used" in found.recommendation.summary
    assert "no class has rows in two environments" in str(found)


def test_a_cell_too_small_for_covariances_is_named(cells):
    means = np.zeros((2, 2, 10))
    means[:, 1, 0] = 4.0
    X, y, e = cells([[400, 300], [12, 350]], means)
    e = np.array(["land", "sea"])[e]
    found = diagnose(X, y, e, n_bootstrap=0)
    assert found.covariances.compared == (0,)
    assert found.recommendation.findings["covariances-not-compared"] == (
        "Too few rows to compare covariances: 12 rows of class 1 in environment 'land'; 31 are "
        "needed."
    )
    assert found.recommendation.parameters["method"] == "mean"
    assert found.recommendation.parameters["n_spurious"] == 1


def test_small_cells_are_named(cells):
    means = np.zeros((2, 2, 3))
    means[:, 1, 0] = 4.0
    X, y, e = cells([[400, 300], [6, 350]], means)
    found = diagnose(X, y, e, n_bootstrap=0)
    assert found.cells.small == (Cell(1, 0, 6),)
    assert "small-cells" in found.recommendation.codes


def test_few_labels_are_called_few(cells):
    # Of 2,400 rows 60 have an environment: too few to find one direction among 20.
    means = np.zeros((2, 2, 20))
    means[:, 1, 0] = 1.6
    means[1, :, 1] = 3.0
    X, y, e = cells(np.full((2, 2), 600), means)
    e = e.astype(float)
    rng = np.random.default_rng(0)
    e[rng.permutation(len(e))[60:]] = np.nan
    found = diagnose(X, y, e)
    assert sum(map(sum, found.cells.count)) == 60
    assert sum(found.cells.unlabelled) == 2340
    assert found.means.shifted
    assert not found.stability.stable
    assert {"unstable", "few-labels"} <= set(found.recommendation.codes)
    assert found.stability.more_rows > 1
    # The head is trained on all the rows, including those without an environment.
    plain = next(h for h in found.heads if not h.removed and h.weight is None)
    assert plain.average > 0.9


def test_enough_labels_are_not_called_few(cells):
    means = np.zeros((2, 2, 20))
    means[:, 1, 0] = 3.0
    X, y, e = cells(np.full((2, 2), 600), means)
    e = e.astype(object)
    e[np.random.default_rng(0).permutation(len(e))[1200:]] = None
    found = diagnose(X, y, e)
    assert found.stability.stable
    assert "few-labels" not in found.recommendation.codes


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
    assert found.recommendation.parameters == {"method": "mean", "n_spurious": 1}
