"""Cells are scored on their own data, whatever else is in the group."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.datasets import EnvironmentData
from isrlearn.paper.baselines import ERMClassifier
from isrlearn.paper.datasets import make_linear_unit_test, permute_spurious
from isrlearn.paper.isr import PublishedISR
from isrlearn.paper.records import CellKey, Failure
from isrlearn.paper.runner import environment_errors, evaluate

OPTIONS = {"n_samples": 400}


def key(method, dataset="3s", parameters=None):
    return CellKey(dataset, method, 3, 5, "converged", parameters or {}, OPTIONS)


def test_a_cell_is_what_a_reader_gets_from_the_same_seed():
    (record,) = evaluate("linear-unit-tests", (key("erm"),))
    splits = make_linear_unit_test("3s", n_environments=3, n_samples=400, random_state=5)
    model = ERMClassifier().fit(splits.train.X, splits.train.y)
    wrong = model.predict(splits.test.X) != splits.test.y
    assert record.value == pytest.approx(wrong.mean(), abs=1e-12)
    assert record.per_environment == [wrong[splits.test.environments == e].mean() for e in range(3)]
    assert record.validation == pytest.approx(
        1 - model.score(splits.validation.X, splits.validation.y), abs=1e-12
    )


def test_the_oracle_is_trained_on_permuted_data_and_no_other_method_is():
    erm, oracle = evaluate("linear-unit-tests", (key("erm"), key("oracle")))
    splits = make_linear_unit_test("3s", n_environments=3, n_samples=400, random_state=5)
    train = permute_spurious(splits.train, random_state=5)
    model = ERMClassifier().fit(train.X, train.y)
    assert oracle.value == pytest.approx(1 - model.score(splits.test.X, splits.test.y), abs=1e-12)
    assert oracle.value < 0.03 < 0.2 < erm.value


def test_a_cell_is_the_same_alone_and_in_a_group():
    names = ("isr-mean", "isr-cov", "irmv1", "oracle")
    group = evaluate("linear-unit-tests", tuple(key(name) for name in names))
    for record, name in zip(group, names, strict=True):
        (alone,) = evaluate("linear-unit-tests", (key(name),))
        assert record.per_environment == alone.per_environment
        assert record.validation == alone.validation


def test_a_failing_cell_does_not_stop_the_others():
    bad = key("irmv1", parameters={"penalty": 7.0})
    failure, record = evaluate("linear-unit-tests", (bad, key("erm")))
    assert isinstance(failure, Failure)
    assert "penalty" in failure.message
    assert record.key == key("erm")


def test_warnings_of_a_fit_are_kept_in_its_record():
    hurried = key("irmv1", parameters={"max_iter": 1})
    (record,) = evaluate("linear-unit-tests", (hurried,))
    assert any("ConvergenceWarning" in text for text in record.warnings)


def test_a_diverged_regression_has_an_infinite_error():
    class Diverged:
        def predict(self, X):
            return np.array([np.nan, 1e300, 2.0])

    data = EnvironmentData(np.zeros((3, 1)), np.array([0.0, 0.0, 1.0]), np.array([0, 1, 2]))
    assert environment_errors(Diverged(), data) == [np.inf, np.inf, 1.0]


def test_the_published_subspace_leaves_a_head_on_the_rest():
    train = make_linear_unit_test("3s", n_environments=6, random_state=0).train
    isr = PublishedISR("mean", 5).fit(train.X, train.y, train.environments)
    assert (isr.predict(train.X) == train.y).mean() > 0.98
