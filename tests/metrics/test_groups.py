"""Groups, their summaries, and a report as text, JSON and a data frame."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isrlearn.metrics import group_report, group_sizes, worst_group_accuracy

LABELLED_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["cat", "dog", "emu"]),
        st.sampled_from(["cat", "dog", "emu"]),
        st.sampled_from(["day", "night", None]),
    ),
    min_size=1,
    max_size=40,
).filter(lambda rows: any(e is not None for _, _, e in rows))


@given(LABELLED_ROWS)
def test_summaries_follow_from_their_definitions(rows):
    hits: dict[tuple, list[bool]] = {}
    for true, pred, environment in rows:
        if environment is not None:
            hits.setdefault((true, environment), []).append(true == pred)
    shares = {group: Fraction(sum(h), len(h)) for group, h in hits.items()}

    true, pred, environments = zip(*rows, strict=True)
    report = group_report(true, pred, environments=np.array(environments, dtype=object))
    assert {g.group: g.n for g in report.groups} == {k: len(v) for k, v in hits.items()}
    assert [g.group for g in report.groups] == sorted(hits)
    assert report.worst == float(min(shares.values()))
    assert shares[report.worst_group] == min(shares.values())
    assert report.balanced_average == pytest.approx(float(sum(shares.values()) / len(shares)))
    assert report.average == pytest.approx(np.mean([t == p for t, p, _ in rows]))
    assert report.n_without_environment == sum(e is None for e in environments)
    ordered = sorted(shares.values())
    for k in range(1, len(ordered) + 1):
        assert report.worst_k(k) == pytest.approx(float(sum(ordered[:k]) / k))


@given(LABELLED_ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    reports = []
    for version in (rows, shuffled):
        true, pred, environments = zip(*version, strict=True)
        reports.append(group_report(true, pred, environments=np.array(environments, object)))
    assert reports[0] == reports[1]


def test_training_sizes_weight_the_groups():
    y_true, y_pred, environments = [0, 0, 1, 1], [0, 1, 1, 1], ["a", "b", "a", "b"]
    sizes = group_sizes([0] * 8 + [1] * 2, ["a"] * 6 + ["b"] * 2 + ["a", "b"])
    assert sizes == {(0, "a"): 6, (0, "b"): 2, (1, "a"): 1, (1, "b"): 1}
    report = group_report(y_true, y_pred, environments=environments, train_groups=sizes)
    assert report.weighted_average == pytest.approx(0.8)
    assert report[0, "b"].n_train == 2


def test_a_group_without_training_rows_has_no_weight():
    report = group_report([0, 1], [0, 0], environments=["a", "a"], train_groups={(0, "a"): 3})
    assert report.weighted_average == 1.0
    assert report.worst == 0.0


def test_training_group_without_a_row_to_score_is_an_error():
    with pytest.raises(ValueError, match=r"\(1, 'b'\) \(5 rows\) has no row to score"):
        group_report([0], [0], environments=["a"], train_groups={(0, "a"): 3, (1, "b"): 5})


@pytest.mark.parametrize(
    ("sizes", "message"), [({}, "no row at all"), ({(0, "a"): -1}, "-1 for group")]
)
def test_training_sizes_must_be_counts(sizes, message):
    with pytest.raises(ValueError, match=message):
        group_report([0], [0], environments=["a"], train_groups=sizes)


def test_weighted_average_says_what_it_needs():
    report = group_report([0], [0], environments=["a"])
    with pytest.raises(ValueError, match="train_groups=group_sizes"):
        _ = report.weighted_average
    assert report.to_dict()["weighted_average"] is None


def test_worst_of_a_regression_is_the_largest_error_and_the_smallest_r2():
    y = np.array([0.0, 2.0, 0.0, 2.0])
    prediction = np.array([0.0, 2.0, 3.0, 5.0])
    environments = ["good", "good", "bad", "bad"]
    for metric, worst in (("rmse", 3.0), ("r2", -8.0)):
        report = group_report(y, prediction, environments, metric=metric)
        assert report.worst == worst
        assert report.worst_group == "bad"
        assert [g.group for g in report.by_rank] == ["bad", "good"]
    report = group_report(y, prediction, environments, metric="rmse")
    assert report.worst_k(2) == report.balanced_average == 1.5
    assert group_sizes(y, environments, metric="rmse") == {"bad": 2, "good": 2}


FORGETFUL = {
    "worst_group_accuracy": lambda e: worst_group_accuracy([0, 1], [0, 1], e),
    "group_report": lambda e: group_report([0, 1], [0, 1], e),
    "group_report of a regression": lambda e: group_report([0, 1], [0, 1], e, metric="rmse"),
    "group_sizes": lambda e: group_sizes([0, 1], e),
}


@pytest.mark.parametrize("function", FORGETFUL)
def test_forgotten_environments_are_an_error(function):
    with pytest.raises(ValueError, match="need environments"):
        FORGETFUL[function](None)


@pytest.mark.parametrize(
    ("environments", "message"),
    [(["a"], r"each of the 2 rows, got an array of shape \(1,\)"), ([None, None], "no row has")],
)
def test_environments_must_cover_the_rows(environments, message):
    with pytest.raises(ValueError, match=message):
        group_report([0, 1], [0, 1], environments=environments)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "metric", "message"),
    [
        ([0, 1], [0], "accuracy", "y_true has 2 rows and y_pred has 1"),
        ([[0], [1]], [0, 1], "accuracy", r"y_true must be one-dimensional.*\(2, 1\)"),
        ([], [], "accuracy", "not empty"),
        (["a", "b"], [0, 1], "accuracy", "can never be equal"),
        ([0.5, 1.5], [0.5, 1.0], "accuracy", "such as 0.5 in y_true look continuous"),
        ([0, 1], [0.25, 1.0], "accuracy", "such as 0.25 in y_pred look continuous.*rmse"),
        (np.array(["0", "1"], dtype=object), [0, 1], "accuracy", "can never be equal"),
        (["a", None], ["a", "b"], "accuracy", "y_true is missing or not finite in row 1"),
        ([0.0, 1.0], [0.0, np.nan], "rmse", "y_pred is missing or not finite in row 1"),
        ([0.0, np.inf], [0.0, 1.0], "r2", "y_true is missing or not finite in row 1"),
        (["a", "b"], [0.0, 1.0], "rmse", "y_true must hold numbers"),
        ([0, 1], [0, 1], "f1", "metric must be one of 'accuracy', 'rmse', 'r2', got 'f1'"),
    ],
)
def test_bad_targets_are_an_error(y_true, y_pred, metric, message):
    with pytest.raises(ValueError, match=message):
        group_report(y_true, y_pred, environments=["a"] * len(y_true), metric=metric)


@pytest.mark.parametrize("k", [0, 5])
def test_k_is_bounded_by_the_number_of_groups(k):
    with pytest.raises(ValueError, match=f"between 1 and the 4 groups, got {k}"):
        group_report([0, 0, 1, 1], [0, 1, 1, 1], ["a", "b", "a", "b"]).worst_k(k)


CONTAINERS = {
    "list": list,
    "object array": lambda v: np.array(v, dtype=object),
    "pandas": pd.Series,
    "pandas categorical": lambda v: pd.Series(v, dtype="category"),
    "pandas string": lambda v: pd.Series(v, dtype="string"),
    "polars": pl.Series,
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_any_container_gives_the_same_report(container):
    make = CONTAINERS[container]
    true, pred = ["x", "x", "y", "y", "y"], ["x", "y", "y", "y", "x"]
    environments = ["a", "b", "a", "b", None]
    expected = group_report(true, pred, environments=np.array(environments, dtype=object))
    assert group_report(make(true), make(pred), environments=make(environments)) == expected


def test_nan_is_a_missing_environment_too():
    report = group_report([0, 1, 1], [0, 1, 0], environments=[2.0, 2.0, np.nan])
    assert [g.n for g in report.groups] == [1, 1]
    assert report.average == pytest.approx(2 / 3)
    assert report.worst == 1.0


def test_a_group_is_looked_up_by_its_name():
    report = group_report([0, 1], [0, 1], environments=["a", "b"])
    assert report[1, "b"].n == 1
    with pytest.raises(KeyError, match=r"no group \(1, 'a'\)"):
        _ = report[1, "a"]


def test_report_turns_into_json_and_a_data_frame():
    report = group_report(
        np.array([True, False, True]), np.array([True, True, True]), environments=np.arange(3) // 2
    )
    assert json.loads(json.dumps(report.to_dict()))["groups"][0] == {
        "label": False,
        "environment": 0,
        "n": 1,
        "value": 0.0,
        "low": 0.0,
        "high": pytest.approx(1 - 0.05 / 6),
        "n_train": None,
    }


def test_table_shows_every_group_and_summary():
    report = group_report(
        ["odd", "odd", "even", "even"],
        ["odd", "even", "even", "even"],
        environments=np.array(["red", "blue", "red", None], dtype=object),
        train_groups={("odd", "red"): 1, ("odd", "blue"): 99},
        level=0.9,
    )
    assert str(report).splitlines() == [
        "class  environment  n  accuracy  90% interval      n in training",
        "even   red          1    1.0000  [0.0167, 1.0000]              0",
        "odd    blue         1    0.0000  [0.0000, 0.9833]             99",
        "odd    red          1    1.0000  [0.0167, 1.0000]              1",
        "",
        "worst group       0.0000  class odd, environment blue",
        "lowest true score [0.0000, 0.9833]  of any group",
        "average           0.7500  all 4 rows, 1 without an environment",
        "balanced average  0.6667  each group counts the same",
        "weighted average  0.0100  groups weighted by their size in training",
    ]


def test_table_of_a_regression_has_no_class_column():
    report = group_report([0.0, 1.0], [1.0, 1.0], environments=["a", "a"], metric="rmse")
    assert str(report).splitlines()[0].split() == ["environment", "n", "rmse", "95%", "interval"]
    assert "worst group       0.7071  environment a" in str(report)


def test_a_name_with_a_line_break_stays_in_its_line():
    report = group_report(["a\nb", "c"], ["c", "c"], environments=["day\x1b", "day\x1b"])
    text = str(report)
    assert "a?b" in text
    assert "\x1b" not in text
    assert len(text.splitlines()) == 3 + 1 + 4
