"""Real tables: their sizes, their features, and what is said if a file is missing."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.paper.datasets import load_table, tables
from isrlearn.paper.datasets.files import DataError, Resource, located
from isrlearn.paper.datasets.law_school import LAW_SCHOOL_FILE

SHAPES = {
    "adult": (30_000, 71, 2, 2),
    "compas": (7164, 36, 2, 4),
    "employment-ma": (30_000, 84, 2, 5),
    "bladderbatch": (57, 22_283, 3, 5),
    "watch": (1833, 36, 7, 10),
    "law-school": (1823, 16, 2, 2),
}


def _needs(name):
    sums = (line.split()[1] for line in tables._SUMS.splitlines() if f" {name}/" in line)
    path = next(sums, LAW_SCHOOL_FILE.path)
    if located(Resource(path, "", "")) is None:
        pytest.skip(f"{path} is not on this machine")


@pytest.mark.parametrize("name", SHAPES)
def test_sizes(name):
    _needs(name)
    data = load_table(name)
    n, d, n_classes, n_environments = SHAPES[name]
    assert data.X.shape == (n, d)
    assert len(data.truth.names) == d
    assert np.isfinite(data.X).all()
    assert (len(np.unique(data.y)), len(np.unique(data.environments))) == (
        n_classes,
        n_environments,
    )


@pytest.mark.parametrize(("name", "environment"), [("adult", "race"), ("compas", "sex")])
def test_the_environment_is_not_a_feature(name, environment):
    _needs(name)
    data = load_table(name, environment=environment)
    assert not any(feature.startswith(environment) for feature in data.truth.names)


def test_the_future_is_not_a_feature():
    _needs("compas")
    names = " ".join(load_table("compas").truth.names)
    assert not any(part in names for part in ("recid", "r_charge", "custody", "decile", "name"))
    assert "missingindicator_days_b_screening_arrest" in names


def test_eight_cells_of_bladderbatch_are_empty():
    _needs("bladderbatch")
    data = load_table("bladderbatch")
    assert len(set(zip(data.y.tolist(), data.environments.tolist(), strict=True))) == 15 - 8


def test_what_to_do_about_a_missing_file(tmp_path, monkeypatch):
    monkeypatch.setenv("ISRLEARN_DATA", str(tmp_path))
    monkeypatch.setattr("isrlearn.paper.datasets.files.cache_folder", lambda: tmp_path)
    load_table.cache_clear()  # of the files that other tests have read
    with pytest.raises(DataError, match=r"seglearn 1\.2\.5.*ISRLEARN_DATA"):
        load_table("watch")


def test_names_and_environments_are_checked():
    with pytest.raises(ValueError, match="adult, compas"):
        load_table("iris")
    with pytest.raises(ValueError, match="must be one of subject"):
        load_table("watch", environment="side")


def test_values_are_encoded():
    columns = {"n": np.array(["1", "", "3"]), "c": np.array(["x", "?", "x"])}
    X, names = tables._encoded(columns, ["n"], ["c"])
    np.testing.assert_array_equal(X[:, :2], [[1, 0], [2, 1], [3, 0]])
    assert names[:2] == ("n", "missingindicator_n")
