"""Which cells are run, and which hyper-parameters win."""

from __future__ import annotations

import pytest

from isrlearn.paper.baselines import published_trials
from isrlearn.paper.experiments import EXPERIMENTS, METHODS
from isrlearn.paper.plan import Plan
from isrlearn.paper.records import Record
from isrlearn.paper.summary import published_results

LINEAR = "linear-unit-tests"


def recorded(plan, errors):
    """Records of all first cells; `errors` maps a penalty to (validation, test)."""
    found = {}
    for key in plan.first_keys():
        validation, test = errors(key.parameters["penalty"])
        E = key.n_environments
        found[key.id] = Record(key, test, validation, [test] * E, 0.1)
    return found


def test_a_method_without_a_search_runs_once_a_seed_and_others_try_on_the_first_seeds():
    plan = Plan(LINEAR, ("3s",), ("erm", "irmv1"), (2, 3), 7, n_trials=4, n_search_seeds=3)
    keys = plan.first_keys()
    assert sum(key.method == "erm" for key in keys) == 2 * 7
    assert sum(key.method == "irmv1" for key in keys) == 2 * 4 * 3
    assert {key.seed for key in keys if key.method == "irmv1"} == {0, 1, 2}


def test_the_smallest_mean_validation_error_wins_and_the_first_of_equals():
    plan = Plan(LINEAR, ("3s",), ("irmv1",), (2,), 4, n_trials=5, n_search_seeds=2)
    tried = sorted({key.parameters["penalty"] for key in plan.first_keys()})
    records = recorded(plan, lambda p: (0.1 if p in (tried[1], tried[3]) else 0.2, p))
    chosen = plan.final_keys(records)
    assert [key.seed for _, key in chosen] == [0, 1, 2, 3]
    assert {key.parameters["penalty"] for _, key in chosen} == {tried[1]}


def test_choosing_on_test_shows_the_same_cells_under_another_name():
    plan = Plan(LINEAR, ("3s",), ("irmv1", "irmv1-best"), (2,), 2, n_trials=5)
    tried = sorted({key.parameters["penalty"] for key in plan.first_keys()})
    records = recorded(plan, lambda p: (p, 1 - p))
    chosen = {method: key.parameters["penalty"] for method, key in plan.final_keys(records)}
    assert chosen == {"irmv1": tried[0], "irmv1-best": tried[-1]}
    assert {key.method for key in plan.first_keys()} == {"irmv1"}


def test_a_trial_that_failed_on_one_seed_cannot_win():
    plan = Plan(LINEAR, ("3s",), ("iga",), (2,), 2, n_trials=3)
    records = recorded(plan, lambda p: (p, p))
    best = min(key.parameters["penalty"] for key in plan.first_keys())
    lost = next(k.id for k in plan.first_keys() if k.parameters["penalty"] == best)
    del records[lost]
    assert best not in {key.parameters["penalty"] for _, key in plan.final_keys(records)}


def test_published_cells_take_the_published_parameters_and_first_weights():
    datasets, methods = ("2", "3s"), ("erm", "irmv1", "iga", "andmask", "oracle")
    plan = Plan(LINEAR, datasets, methods, tuple(range(2, 11)), 1, optimizer="published")
    keys = plan.first_keys()
    assert len(keys) == 2 * 5 * 9
    for key in keys:
        cell = published_results()[key.dataset, key.method, key.n_environments]
        assert key.parameters["learning_rate"] == cell.parameters["lr"]
        assert 1000 <= key.parameters["random_state"] < 1020
        estimator = METHODS[key.method].estimator(
            EXPERIMENTS[LINEAR].panels[key.dataset], 2, key.optimizer, key.parameters
        )
        assert estimator.get_params().items() >= key.parameters.items()


@pytest.mark.parametrize(("experiment", "dataset"), [("regression", "d_s=3"), (LINEAR, "3s'")])
def test_where_nothing_is_published_the_published_trials_are_searched(experiment, dataset):
    plan = Plan(experiment, (dataset,), ("irmv1",), (2,), 1, optimizer="published", n_trials=3)
    assert [k.parameters for k in plan.first_keys()] == published_trials("IRMv1")[:3]


def test_pooled_isr_has_one_way_to_be_optimised_and_so_the_same_cells_either_way():
    plans = [
        Plan(LINEAR, ("3",), ("isr-mean-pooled",), (2,), 1, optimizer=optimizer)
        for optimizer in ("converged", "published")
    ]
    assert plans[0].first_keys() == plans[1].first_keys()


def test_the_head_of_published_isr_is_searched_for_as_in_the_paper():
    plan = Plan(LINEAR, ("3'",), ("isr-cov",), (2,), 1, optimizer="published")
    assert [key.parameters for key in plan.first_keys()] == published_trials("ERM")


@pytest.mark.parametrize(
    ("n_environments", "told"),
    [
        (2, {"isr-mean": 1, "isr-cov": 5, "isr-multiclass": 3, "isr-mean-auto": "auto"}),
        (2, {"isr-mean-authors": 5, "isr-multiclass-authors": 3}),
        (4, {"isr-mean": 3, "isr-cov": 5, "isr-multiclass": 5, "isr-mean-auto": "auto"}),
        (9, {"isr-mean": 5, "isr-cov": 5, "isr-multiclass": 5, "isr-mean-auto": "auto"}),
    ],
)
def test_methods_are_told_as_many_dimensions_as_environments_allow(n_environments, told):
    panel = EXPERIMENTS["multiclass"].panels["k=3"]
    for name, expected in told.items():
        estimator = METHODS[name].estimator(panel, n_environments, "converged", {})
        assert estimator.n_spurious == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"datasets": ("4",)}, "unknown data set '4'; there are: 1, 1s, 2"),
        ({"methods": ("isr",)}, "unknown method 'isr'; there are: isr-mean"),
        ({"environments": (1, 2)}, "at least 2"),
        ({"n_seeds": 0}, "n_seeds=0"),
        ({"n_trials": 0}, "n_trials=0"),
        ({"n_samples": 3}, "n_samples=3"),
        ({"datasets": ("1",)}, "'isr-mean' cannot do the regression of data set '1'"),
        (
            {"methods": ("erm",), "environments": (11,), "optimizer": "published"},
            "nothing is published for 'erm' on '3' with 11",
        ),
    ],
)
def test_a_plan_that_cannot_be_run_says_why(change, message):
    fields = {
        "datasets": ("3",),
        "methods": ("isr-mean",),
        "environments": (2,),
        "n_seeds": 1,
        **change,
    }
    with pytest.raises(ValueError, match=message):
        Plan(LINEAR, **fields)
