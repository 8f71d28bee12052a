"""The values the generators return."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from isrlearn.datasets import EnvironmentData


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="'X': 3, 'y': 2, 'environments': 3"):
        EnvironmentData(np.zeros((3, 2)), np.zeros(2), np.zeros(3))


def test_features_must_be_a_matrix():
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        EnvironmentData(np.zeros(3), np.zeros(3), np.zeros(3))


def test_fields_cannot_be_replaced():
    data = EnvironmentData(np.zeros((3, 2)), np.zeros(3), np.zeros(3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = np.ones(3)
