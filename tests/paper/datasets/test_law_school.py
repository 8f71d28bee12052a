"""Law School: who is in which split, and what is true of them."""

from __future__ import annotations

import os

import numpy as np
import pytest

from isrlearn.paper.datasets import load_law_school

pytestmark = pytest.mark.skipif(
    "ISRLEARN_DATA" not in os.environ, reason="ISRLEARN_DATA is not set"
)


def shares(part) -> list[float]:
    """Share of grades above 3 among men and women."""
    return [float((part.y[part.environments == g] > 3).mean()) for g in ("male", "female")]


@pytest.mark.parametrize("strength", [0.0, 0.3, 0.6])
def test_training_is_skewed_by_the_strength_and_test_is_not(strength):
    splits = load_law_school(strength=strength, random_state=5)
    for part in (splits.train, splits.validation):
        np.testing.assert_allclose(
            shares(part), [0.5 - strength / 2, 0.5 + strength / 2], atol=0.01
        )
    np.testing.assert_allclose(shares(splits.test), [0.5, 0.5], atol=0.01)


def test_no_student_is_in_two_splits_or_twice():
    splits = load_law_school(random_state=1)
    rows = [
        tuple(row)
        for p in (splits.train, splits.validation, splits.test)
        for row in np.column_stack([p.X, p.y])
    ]
    # The file itself has a few equal rows.
    assert len(set(rows)) > 0.99 * len(rows)


def test_the_target_is_no_feature_and_gender_is():
    splits = load_law_school()
    names = splits.train.truth.names
    assert len(names) == 17
    assert "ugpa" not in names
    gender = splits.train.X[:, names.index("gender")]
    np.testing.assert_array_equal(gender == 1, splits.train.environments == "female")
    assert 0 < splits.train.y.min() <= splits.train.y.max() <= 4
