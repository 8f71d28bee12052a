"""The diagnosis as text and as a dict, its errors and its speed."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import isrlearn
from isrlearn import ISRClassifier
from isrlearn.diagnosis import diagnose


def test_text_fits_a_terminal_and_answers_every_question(diagnosis):
    text = str(diagnosis)
    assert max(map(len, text.splitlines())) <= 100
    for words in (
        "2,400 rows, 6 features, 2 classes, 3 environments",
        "Do means shift?             yes",
        "Do covariances differ?      no",
        "Is the subspace stable?     yes",
        "Are labels lost?",
        "Is the environment gone?",
        "In an unseen environment?",
        "Use ISRClassifier(method='mean', n_spurious=1).",
    ):
        assert words in text


def test_many_environments_are_summed_up():
    rng = np.random.default_rng(0)
    e = np.arange(1200) % 40
    X = rng.normal(size=(1200, 3))
    X[:, 0] += rng.normal(size=40)[e]
    text = str(diagnose(X, e // 20 * 0 + np.arange(1200) // 40 % 2, e, n_bootstrap=0))
    assert "Rows per cell: 15 to 15, median 15" in text
    assert max(map(len, text.splitlines())) <= 100


def test_dict_is_json_and_complete(diagnosis):
    plain = diagnosis.to_dict()
    again = json.loads(json.dumps(plain, allow_nan=False))
    assert again == plain
    assert plain["recommendation"]["parameters"] == {"method": "mean", "n_spurious": 1}
    assert plain["cells"]["environments"] == ["harbour", "meadow", "shore"]
    assert plain["means"]["n_dimensions"] == 1
    assert len(plain["recommendation"]["sentences"]) == len(diagnosis.recommendation.findings) + 1


def test_the_advice_is_what_auto_would_find(shortcut, diagnosis):
    X, y, e = shortcut
    clf = ISRClassifier(**diagnosis.recommendation.parameters).fit(X, y, environments=e)
    auto = ISRClassifier().fit(X, y, environments=e)
    assert clf.n_spurious_ == auto.n_spurious_ == diagnosis.n_spurious


def test_the_same_seed_gives_the_same_diagnosis(shortcut, diagnosis):
    assert diagnose(*shortcut).to_dict() == diagnosis.to_dict()
    other = diagnose(*shortcut, random_state=1)
    assert other.means == diagnosis.means  # tests of means draw nothing
    assert other.information != diagnosis.information


def test_single_precision_says_the_same(shortcut, diagnosis):
    X, y, e = shortcut
    other = diagnose(X.astype(np.float32), y, e)
    assert other.recommendation == diagnosis.recommendation
    assert other.means.effect == pytest.approx(diagnosis.means.effect, rel=1e-4)


def test_input_is_left_alone(shortcut):
    X, y, e = (a.copy() for a in shortcut)
    diagnose(X, y, e, n_bootstrap=0)
    for after, before in zip((X, y, e), shortcut, strict=True):
        np.testing.assert_array_equal(after, before)


def test_whole_numbers_are_a_regression_only_if_asked(cells):
    X, y, e = cells(np.full((2, 2), 50), np.zeros((2, 2, 3)))
    assert diagnose(X, y, e, n_bootstrap=0).task == "classification"
    assert diagnose(X, y, e, task="regression", n_bootstrap=0).task == "regression"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "clustering"}, "task must be one of 'auto', 'classification', 'regression'"),
        ({"level": 1.5}, r"level must be a number in .*got 1\.5"),
        ({"n_bootstrap": -1}, "n_bootstrap must be a number at least 0; got -1"),
        ({"environments": np.zeros(2400)}, "needs at least two"),
        ({"environments": None}, "environments are needed"),
        ({"y": np.zeros(2400, int)}, "only one class"),
        ({"y": np.zeros(7)}, "inconsistent numbers of samples"),
    ],
)
def test_mistakes_are_named(shortcut, change, message):
    X, y, e = shortcut
    arguments = {"X": X, "y": y, "environments": e} | change
    with pytest.raises(ValueError, match=message):
        diagnose(**arguments)


def test_it_is_a_public_name():
    assert isrlearn.diagnose is diagnose
    assert isrlearn.diagnose is diagnose  # the second time too, after the first has imported it


@pytest.mark.slow
def test_five_thousand_rows_of_512_features_take_seconds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 512)) * np.arange(1, 513) ** -0.5
    y, e = rng.integers(2, size=5000), rng.integers(2, size=5000)
    X[:, :3] += e[:, None]
    start = time.process_time()
    found = diagnose(X, y, e)
    assert time.process_time() - start < 8
    assert found.n_spurious == 1


def difficult(name):
    """Data that leave little to work with."""
    rng = np.random.default_rng(0)
    n = {"few rows": 24, "more features than rows": 100}.get(name, 400)
    y, e = np.arange(n) % 2, np.arange(n) // 2 % 2
    X = rng.normal(size=(n, 300 if name == "more features than rows" else 4))
    X[:, 0] += 3.0 * e
    if name == "redundant features":
        X = np.column_stack([X, X[:, 1], np.full(n, 7.0)])
    if name == "a feature that is the environment":
        X[:, 0] = e
    if name == "whole numbers":
        X = np.round(10 * X).astype(int)
    return X, y, e


@pytest.mark.parametrize(
    "name",
    [
        "few rows",
        "more features than rows",
        "redundant features",
        "a feature that is the environment",
        "whole numbers",
    ],
)
def test_difficult_data_get_advice_that_can_be_followed(name):
    X, y, e = difficult(name)
    found = diagnose(X, y, e, n_bootstrap=10)
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.means.shifted
    assert found.n_spurious == 1
    assert found.recommendation.parameters["method"] == "mean"
    clf = ISRClassifier(**found.recommendation.parameters).fit(X, y, environments=e)
    assert clf.n_spurious_ == 1
    # What is removed is the feature that shifts.
    assert abs(clf.spurious_basis_[0, 0]) > 0.5


def test_one_dimension_stays_when_all_move():
    rng = np.random.default_rng(0)
    e = np.arange(900) % 9
    X = rng.normal(size=(900, 3)) + 3 * rng.normal(size=(9, 3))[e]
    found = diagnose(X, np.arange(900) // 9 % 2, e, n_bootstrap=0)
    assert found.means.n_dimensions == 3
    assert found.recommendation.parameters["n_spurious"] == 2
    assert "everything-shifts" in found.recommendation.codes


def test_cells_of_one_row_are_refused():
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    with pytest.raises(ValueError, match="40 rows with an environment are in as many cells"):
        diagnose(X, y, np.arange(40) // 2)


def test_a_target_that_is_constant_in_an_environment():
    X, e = np.random.default_rng(0).normal(size=(60, 4)), np.repeat([0, 1], 30)
    found = diagnose(X, np.where(e, 2.5, 1.5), e, n_bootstrap=0)
    assert np.isnan(found.information.label_before)
    assert "labels do not vary inside environments" in str(found)
    assert found.target.shifted


@pytest.mark.parametrize("value", [0.0, 0.1, 1e30])
def test_constant_features_are_an_error_of_ours(value):
    y, e = np.arange(80) % 2, np.arange(80) // 2 % 2
    with pytest.raises(ValueError, match="all 3 features are constant: there is nothing"):
        diagnose(np.full((80, 3), value), y, e)
