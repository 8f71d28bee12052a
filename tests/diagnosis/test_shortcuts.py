"""The scan finds planted shortcuts, and nothing where a column only looks like one."""

from __future__ import annotations

import json

import numpy as np
import pytest

from isrlearn import scan
from isrlearn.diagnosis.columns import table_columns

N = 1200


def table(seed: int = 0, *, classes: int = 2, planted: bool = True) -> tuple[dict, np.ndarray]:
    """Two causes of the label, a brightness that depends on the hospital, and decoys."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, N)
    hospital = np.where(rng.random(N) < 0.9, y, rng.integers(0, classes, N))
    site = rng.integers(0, 3, N)
    columns = {
        "dose": y + rng.normal(size=N),
        "age": 50 + 10 * (y + rng.normal(size=N)),
        "brightness": 2.5 * (hospital if planted else 0) + rng.normal(size=N),
        "hospital": np.array(list("abcdef"))[hospital],
        "weekday": rng.integers(0, 7, N),
        "ward": np.where(rng.random(N) < 0.5, y, rng.integers(0, classes, N)),
        "site": np.array(["x", "y", "z"])[site],
        "offset": 2.0 * site + rng.normal(size=N),
    }
    return columns, y


@pytest.fixture(scope="module")
def found():
    columns, y = table()
    columns["age group"] = np.digitize(columns["age"], [40, 50, 60])
    columns["id"] = np.random.default_rng(0).permutation(N)
    columns["outcome"] = np.array(["well", "ill"])[y]
    return scan(columns, y)


def test_planted_shortcut_comes_first_and_decoys_are_not_found(found):
    assert [each.name for each in found.shortcuts] == ["hospital"]
    first = found.table[0]
    assert first.gain.difference > 0.05
    assert first.gap > 0.05
    assert max(first.p_values) <= first.p_value <= found.level
    assert {each.name for each in found.table[1:]} == {"weekday", "ward", "site", "age group"}


def test_each_decoy_fails_the_test_that_it_should(found):
    p_values = {each.name: each.p_values for each in found.table}
    features, scores, errors = range(3)
    assert p_values["ward"][features] > 0.01  # goes with the label, shifts nothing
    assert p_values["site"][features] < 1e-6  # shifts what the model does not use
    assert p_values["site"][scores] > 0.01
    assert p_values["site"][errors] > 0.01


def test_columns_of_no_use_are_left_out_and_named(found):
    assert found.left_out["outcome"] == "separates the classes perfectly"
    assert "id" in found.left_out["id"]
    age = next(each for each in found.table if each.name == "age group")
    assert age.left_out == ("age",)


def test_result_reads_as_text_html_json_and_page(found, tmp_path):
    text, html = str(found), found._repr_html_()
    assert "hospital is a shortcut" in text
    assert "hospital is a shortcut" in html
    assert "<script" not in html
    assert len(html) < 20_000
    record = json.loads(json.dumps(found.to_dict()))
    assert record["table"][0]["name"] == "hospital"
    assert record["table"][0]["gain"]["low"] < 1
    found.save(tmp_path / "scan.html")
    assert (tmp_path / "scan.html").read_text("utf-8").startswith("<!doctype html>")


def test_words_follow_their_number():
    columns, y = table(planted=False)
    alone = {name: columns[name] for name in ("dose", "age", "weekday")}
    assert scan(alone, y).headline == "No shortcut was found among 1 column."
    del alone["weekday"]
    assert scan(alone, y).headline == "No shortcut was found among 0 columns."


def test_names_are_escaped():
    columns, y = table()
    columns["<b>x</b>"] = columns.pop("hospital")
    html = scan(columns, y)._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;" in html


@pytest.mark.parametrize("seed", range(5))
def test_finds_none_where_there_is_none(seed):
    columns, y = table(seed, planted=False)
    found = scan(columns, y)
    assert not found.shortcuts
    assert found.headline.startswith("No shortcut was found")


def test_three_classes():
    columns, y = table(classes=3)
    assert scan(columns, np.array(["low", "mid", "top"])[y]).shortcuts[0].name == "hospital"


def test_data_frames_and_mappings_agree():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns, y = table()
    columns["disease"] = np.array(["no", "yes"])[y]
    wanted = [each.name for each in scan(columns, "disease").table]
    for kind in (pd.DataFrame, pl.DataFrame):
        assert [each.name for each in scan(kind(columns), "disease").table] == wanted


def test_missing_values_and_dates_are_no_obstacle():
    pd = pytest.importorskip("pandas")
    frame, y = pd.DataFrame(table()[0]), table()[1]
    frame.loc[::7, "dose"] = np.nan
    frame.loc[::9, "hospital"] = None
    frame["visit"] = pd.date_range("2020-01-01", periods=N)
    found = scan(frame, y)
    assert found.shortcuts[0].name == "hospital"
    assert found.shortcuts[0].n == N - len(frame[::9])
    assert found.left_out["visit"] == "dates"


def test_candidates_can_be_named():
    columns, y = table()
    assert [each.name for each in scan(columns, y, candidates=["site"]).table] == ["site"]
    with pytest.raises(ValueError, match="candidate 'dose' has fewer than two frequent values"):
        scan(columns, y, candidates=["dose"])
    with pytest.raises(ValueError, match="candidate 'nothing' does not exist"):
        scan(columns, y, candidates=["nothing"])


def test_a_column_that_is_a_class_of_its_own_is_not_tested():
    columns, y = table(classes=3)
    unknown = (y == 2) | (np.arange(N) % 3 == 0)
    columns["type"] = np.where(unknown, None, np.array(["a", "b", "c"])[y])
    found = scan(columns, y)
    each = next(each for each in found.table if each.name == "type")
    assert not each.p_values
    assert "no class has rows in two" in each.note


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.random.default_rng(0).normal(size=N), "look continuous"),
        (np.zeros(N, dtype=int), "needs two classes"),
        (
            np.array([None, *["a", "b"] * (N // 2)], dtype=object)[:N],
            "the label is missing in row 1 of y",
        ),
        ("nothing", "there is no column 'nothing'"),
        (np.arange(10) % 2, "has 1200 rows; y has 10"),
    ],
)
def test_bad_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        scan(table()[0], y)


def test_classes_of_few_rows_are_left_out():
    columns, y = table()
    named = np.where(y == 1, "ill", "well").astype(object)
    named[:4] = "NA"
    found = scan(columns, named)
    assert found.left_out["class 'NA'"] == "fewer than 5 rows"
    assert (found.n_samples, found.n_examined) == (N, N - 4)
    rest = {name: values[4:] for name, values in columns.items()}
    assert [each.p_values for each in found.table] == [
        each.p_values for each in scan(rest, named[4:]).table
    ]
    named[4:] = "ill"
    with pytest.raises(ValueError, match="needs two classes with at least 5 rows each; got 4 of"):
        scan(columns, named)


def test_bad_frames_are_refused():
    with pytest.raises(ValueError, match="Expected 2D array"):
        scan(np.zeros(4), [0, 1, 0, 1])


def test_same_column_more_finely_or_more_coarsely():
    rng = np.random.default_rng(0)
    age, city = rng.normal(size=200), rng.choice(["Rome", "Turin", "Bonn"], 200)
    group = np.digitize(age, [0.0])
    country = np.where(city == "Bonn", 1, 0)
    table = {"age": age, "city": city, "country": country}
    columns = {column.name: column for column in table_columns(table)[0]}
    assert columns["age"].same_as(group)
    assert not columns["age"].same_as(country)
    assert columns["city"].same_as(country)
    assert columns["country"].same_as(np.unique(city, return_inverse=True)[1])
    assert not columns["city"].same_as(group)


def test_more_features_than_rows_are_scanned():
    rng = np.random.default_rng(0)
    y, site = rng.integers(2, size=200), rng.integers(3, size=200)
    X = rng.normal(size=(200, 600)) + 0.5 * site[:, None]
    columns = {f"x{i}": x for i, x in enumerate(X.T)} | {"site": np.array(["a", "b", "c"])[site]}
    (column,) = scan(columns, y).table
    assert column.name == "site"
    assert column.p_values[0] < 1e-6
