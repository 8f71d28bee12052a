"""The measured environment complexities are the theorems'."""

from __future__ import annotations

import csv

import pytest

from isrlearn.paper.theory import (
    Complexity,
    complexity_table,
    environment_complexity,
    write_complexity,
)


@pytest.fixture(scope="module")
def found():
    return environment_complexity(range(1, 8), range(2, 8), n_repeats=5)


def test_every_algorithm_needs_exactly_as_many_environments_as_its_bound(found):
    assert len(found) == 7 * (3 + 6)
    for c in found:
        assert c.paper == c.pooled == c.bound, c


def test_the_bounds_are_those_of_the_paper(found):
    for c in found:
        expected = {
            "ISR-Mean": c.n_spurious + 1,
            "ISR-Cov": 2,
            "ISR-Multiclass": -(-c.n_spurious // c.n_classes) + 1,
            "ISR-Regression": c.n_spurious + 1,
        }
        assert c.bound == expected[c.algorithm]


def test_files_hold_every_line(tmp_path, found):
    paths = write_complexity(found, tmp_path, "isr bench theory")
    with open(paths[0]) as file:
        assert len(list(csv.DictReader(file))) == len(found)
    assert "Made by `isr bench theory`." in paths[1].read_text()


def test_what_was_not_recovered_is_none():
    table = complexity_table([Complexity("ISR-Mean", 3, 2, 4, 4, None)])
    assert table.rows == [["ISR-Mean", "3", "2", "4", "4", "none"]]


@pytest.mark.parametrize(("spurious", "classes"), [([0], [2]), ([1], [1])])
def test_impossible_numbers_are_refused(spurious, classes):
    with pytest.raises(ValueError, match="at least"):
        environment_complexity(spurious, classes)
