"""A messy table becomes numbers, the same way for every later table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import isrlearn
from isrlearn import ISRClassifier, TablePreparer, diagnose
from isrlearn.io import ModelFileError, export_model, read_model, read_table
from isrlearn.report import make_report

N = 240


@pytest.fixture(scope="module")
def frame():
    """Ids, dates, categories, missing values and constants."""
    rng = np.random.default_rng(0)
    age = rng.normal(50, 10, N).round(1)
    age[::17] = np.nan
    city = rng.choice(["Bonn", "Rome", "Turin"], N).astype(object)
    city[::29] = None
    return pd.DataFrame(
        {
            "patient_id": rng.permutation(N) + 5000,
            "record": np.arange(N) * 3,
            "mrn": rng.choice(np.arange(10_000, 99_999), N, replace=False),
            "visit": [f"2023-0{1 + i % 9}-{10 + i % 18}" for i in range(N)],
            "note": [f"text number {i}" for i in range(N)],
            "dose": rng.normal(size=N),
            "age": age,
            "city": city,
            "smoker": rng.choice([True, False], N),
            "flag": np.where(np.arange(N) % 5, np.nan, 1.0),
            "unit": "mg",
            "empty": np.nan,
        }
    )


@pytest.fixture(scope="module")
def labels(frame):
    y = np.where(frame["dose"] > 0, "ill", "well")
    return y, np.arange(N) % 2


@pytest.fixture
def pipeline(frame, labels):
    y, environments = labels
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(TablePreparer(), ISRClassifier(n_spurious=1))
        return model.fit(frame, y, environments=environments)


def uses(preparer):
    return {column.name: column.use for column in preparer.columns_}


def test_each_column_gets_the_use_it_has(frame):
    preparer = TablePreparer().fit(frame)
    found = uses(preparer)
    left_out = {"patient_id", "record", "mrn", "visit", "note", "unit", "empty"}
    assert {name for name, use in found.items() if use == "left out"} == left_out
    assert {name for name, use in found.items() if use == "number"} == {"dose", "age"}
    described = {name: why for names, _, why in preparer.describe() for name in names.split(", ")}
    assert described["visit"] == "dates"
    assert described["patient_id"] == "its name is that of an id"
    assert "row numbers" in described["record"]
    assert "all different" in described["mrn"]
    assert described["unit"] == "one value"
    assert described["empty"] == "no values"
    assert described["note"].startswith("names, ids or free text: 240")
    assert described["age"].startswith("15 missing values, replaced by the median")
    assert described["flag"] == "a missing value is 0, '1' is 1"


def test_numbers_categories_and_marks(frame):
    preparer = TablePreparer().fit(frame)
    X = dict(zip(preparer.get_feature_names_out(), preparer.transform(frame).T, strict=True))
    age, city = frame["age"], frame["city"]
    assert np.array_equal(X["age"], age.fillna(age.median()))
    assert np.array_equal(X["age is missing"], age.isna())
    for name in ("Bonn", "Rome", "Turin"):
        assert np.array_equal(X[f"city={name}"], city == name)
    assert np.array_equal(X["city is missing"], city.isna())
    assert np.array_equal(X["smoker=True"], frame["smoker"])
    assert np.array_equal(X["flag=1"], frame["flag"] == 1)
    assert "smoker=False" not in X
    assert preparer.origins_[-1] == "flag"


def test_frames_of_any_kind_give_the_same(frame):
    expected = TablePreparer().fit_transform(frame)
    columns = {name: frame[name].to_numpy() for name in frame}
    for other in (columns, pl.from_pandas(frame), frame.convert_dtypes()):
        assert np.array_equal(TablePreparer().fit_transform(other), expected)


def test_an_array_of_numbers_stays_as_it_is():
    X = np.random.default_rng(0).normal(size=(30, 3))
    preparer = TablePreparer().fit(X)
    assert preparer.plain_
    assert np.array_equal(preparer.transform(X), X)
    assert not hasattr(preparer, "feature_names_in_")
    with pytest.raises(ValueError, match="has 2 features, but TablePreparer is expecting 3"):
        preparer.transform(X[:, :2])


def test_names_that_are_numbers_are_read_as_text(frame):
    numbered = frame.set_axis(range(frame.shape[1]), axis=1)
    found = TablePreparer().fit(numbered)
    assert found.feature_names_in_.tolist() == [str(name) for name in numbered]
    by_name = found.fit(numbered.rename(columns=str)).transform(numbered)
    np.testing.assert_array_equal(found.fit_transform(numbered), by_name)
    with pytest.raises(ValueError, match="must have different names"):
        found.fit(numbered.rename(columns={1: "0"}))


def test_later_tables(frame):
    preparer = TablePreparer().fit(frame)
    later = frame[["city", "smoker", "flag", "age", "dose"]].iloc[:3].assign(extra="x")
    later["city"] = ["Oslo", None, "Rome"]  # an unknown category, a missing one, a known one
    later["dose"] = [np.nan, "0.5", 1]  # never missing before; a text of a number
    X = dict(zip(preparer.get_feature_names_out(), preparer.transform(later).T, strict=True))
    assert [X[f"city={name}"].tolist() for name in ("Bonn", "Rome")] == [[0, 0, 0], [0, 0, 1]]
    assert X["dose"].tolist() == [np.median(frame["dose"]), 0.5, 1]
    with pytest.raises(ValueError, match="no column 'age', 'flag', with which the model"):
        preparer.transform(later.drop(columns=["age", "flag"]))
    with pytest.raises(ValueError, match="'age' holds 'old' in row 2, not a number"):
        preparer.transform(later.assign(age=["70", "old", "3"]))
    with pytest.raises(ValueError, match="'age' is inf in row 3"):
        preparer.transform(later.assign(age=[1, 2, np.inf]))


def test_parameters_override_what_was_found(frame):
    preparer = TablePreparer(
        include=["patient_id", "unit"], exclude=["age"], categorical=["flag"], impute="mean"
    ).fit(frame)
    found = uses(preparer)
    assert found["patient_id"] == "number"
    assert found["age"] == "left out"
    assert found["unit"] == "categories"
    codes = frame.assign(code=np.arange(N) % 3)
    names = TablePreparer(categorical=["code"]).fit(codes).get_feature_names_out()
    assert {"code=0", "code=1", "code=2"} <= set(names)
    for parameter in ("include", "exclude", "categorical"):
        with pytest.raises(ValueError, match=f"{parameter} must be a list of columns.*'nope'"):
            TablePreparer(**{parameter: ["nope"]}).fit(frame)
    with pytest.raises(ValueError, match="impute must be one of"):
        TablePreparer(impute="zero").fit(frame)


def test_strict_names_every_bad_column_at_once(frame):
    with pytest.raises(ValueError, match="'visit' holds '2023-01-10', not numbers, 'note' holds"):
        TablePreparer(strict=True).fit(frame)
    with pytest.raises(ValueError, match="'age' has 15 missing values, the first in row 1"):
        TablePreparer(strict=True, impute=None).fit(frame[["dose", "age"]])
    X = TablePreparer(strict=True).fit_transform(frame[["patient_id", "age"]])
    assert X.shape == (N, 3)  # an id is a number, and imputing was asked for


def test_rare_categories_are_zero_everywhere():
    values = ["a"] * 600 + ["b"] * 590 + ["c"] * 9 + ["d"]
    preparer = TablePreparer().fit({"x": np.array(values), "z": np.arange(1200) % 7})
    assert list(preparer.get_feature_names_out()) == ["x=a", "x=b", "z"]
    assert preparer.columns_[0].why == "the 2 most frequent of 4 categories"


@pytest.mark.parametrize("form", ["{} mmHg", "{}.5%", "1,{}", "$ {},25"])
def test_numbers_written_as_text_are_pointed_out(form):
    texts = np.array([form.format(100 + i % 60) for i in range(200)])
    codes = np.array([f"P{i % 60:04}" for i in range(200)])
    found = TablePreparer().fit({"x": texts, "code": codes, "z": np.arange(200) % 7}).columns_
    assert found[0].why.endswith(
        f"; to use them as numbers, write {str(texts[0])!r} as a plain number"
    )
    assert "numbers" not in found[1].why


@pytest.mark.parametrize("mark", ["-", "n.a.", "<0.1", "1_0"])
def test_a_text_among_numbers_is_pointed_out(mark):
    texts = [f"{i / 7:.4f}" for i in range(300)] + ["1e-05", mark]
    for order in (1, -1):
        table = {"x": np.array(texts[::order]), "z": np.arange(302) % 7}
        why = TablePreparer().fit(table).columns_[0].why
        assert why.endswith(f"; to use them as numbers, replace or empty cells such as {mark!r}")


def test_numbers_that_are_categories_by_request_need_no_advice():
    ages = np.arange(2000.0) % 77
    table = {"age": ages, "text": ages.astype(str), "z": np.arange(2000) % 7}
    number, text, _ = TablePreparer(categorical=["age"]).fit(table).columns_
    assert number.why == "the 50 most frequent of 77 categories"
    assert text.why.endswith("; to use them as numbers, convert the column")


def test_an_infinite_number_is_named_and_nothing_is_computed_with_it():
    table = {
        "x": np.array(["1", "inf", "inf"] * 40),
        "y": np.arange(120.0),
        "z": np.arange(120) % 7,
    }
    table["x"] = table["x"].astype(float)
    with pytest.raises(ValueError, match="'x' is infinite in row 2; empty the cell or exclude"):
        TablePreparer().fit(table)


def test_durations_are_numbers_of_seconds(tmp_path):
    stay = pd.to_timedelta(np.arange(120) % 50 * 90.5, unit="s").to_series(index=range(120))
    stay[3] = pd.NaT
    frame = pd.DataFrame({"stay": stay, "age": np.arange(120) % 7})
    preparer = TablePreparer().fit(frame)
    seconds = preparer.transform(frame)[:, 0]
    assert uses(preparer)["stay"] == "number"
    assert np.array_equal(np.delete(seconds, 3), np.delete(stay.dt.total_seconds(), 3))
    frame.to_parquet(tmp_path / "t.parquet")
    assert np.array_equal(read_table(tmp_path / "t.parquet", prepare=preparer).X[:, 0], seconds)


def test_many_columns_of_different_counts_are_measurements():
    rng = np.random.default_rng(0)
    X = {f"gene{i}": rng.choice(np.arange(10_000, 99_999), 150, replace=False) for i in range(5)}
    assert TablePreparer().fit(X).plain_


def test_a_table_of_which_nothing_is_left_is_an_error(frame):
    with pytest.raises(ValueError, match="every column is left out"):
        TablePreparer().fit(frame[["patient_id", "unit"]])
    with pytest.raises(ValueError, match="the table has no rows"):
        TablePreparer().fit(frame[:0])
    twice = pd.DataFrame({"a": ["x", "y", "z"] * 20, "a=x": np.arange(60) % 7})
    with pytest.raises(ValueError, match="two columns would be named 'a=x'"):
        TablePreparer().fit(twice)


def test_a_pipeline_is_saved_and_predicts_the_same(pipeline, frame, tmp_path):
    path = tmp_path / "model.isr"
    isrlearn.save(pipeline, path, metadata={"note": 1})
    same = isrlearn.load(path)
    assert np.array_equal(same.predict_proba(frame), pipeline.predict_proba(frame))
    assert same[0].describe() == pipeline[0].describe()
    assert same[0].get_params() == pipeline[0].get_params() | {"include": ()}
    model = read_model(path)
    assert model.feature_names == tuple(pipeline[0].get_feature_names_out())
    assert model.to_dict()["preparation"][0]["use"] == "left out"


def test_a_scaler_is_saved_and_folded(frame, labels, tmp_path):
    y, environments = labels
    numbers = frame[["dose"]].assign(other=frame["mrn"] / 1000 + frame["dose"])
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(TablePreparer(), StandardScaler(), ISRClassifier(n_spurious=1))
        model.fit(numbers, y, environments=environments)
    isrlearn.save(model, tmp_path / "model.isr")
    same = isrlearn.load(tmp_path / "model.isr")
    assert np.array_equal(same.predict_proba(numbers), model.predict_proba(numbers))
    export_model(same, "numpy", tmp_path / "m.npz")
    arrays = np.load(tmp_path / "m.npz")
    X = numbers.to_numpy()
    found = X @ arrays["coef"].T + arrays["intercept"]
    assert np.allclose(found[:, 0], model.decision_function(numbers))
    assert arrays["feature_names"].tolist() == ["dose", "other"]
    Z = X - (X - arrays["center"]) @ arrays["dual"] @ arrays["spurious_basis"].T
    erased = Z @ arrays["coef"].T + arrays["intercept"]
    assert np.allclose(erased, found)  # the head does not see what the eraser removes


def test_what_is_not_affine_is_not_exported(pipeline, tmp_path):
    text = "encodes the categories of 'city', 'smoker', 'flag' and imputes missing values of 'age'"
    with pytest.raises(ValueError, match=text):
        export_model(pipeline, "onnx", tmp_path / "m.onnx")


def test_a_pipeline_with_other_steps_is_not_saved(frame, labels, tmp_path):
    from sklearn.decomposition import PCA

    X = frame[["dose"]].assign(b=frame["mrn"] / 1000)
    clf = ISRClassifier(n_spurious=1)
    with sklearn.config_context(enable_metadata_routing=True):
        model = make_pipeline(PCA(), clf).fit(X, labels[0], environments=labels[1])
    with pytest.raises(ModelFileError, match=r"TablePreparer, StandardScaler; got PCA"):
        isrlearn.save(model, tmp_path / "model.isr")


def test_report_and_diagnosis_of_a_pipeline(pipeline, frame, labels):
    report = make_report(pipeline, (frame, *labels))
    assert report.to_dict()["scored_on"] == "folds"
    assert report.html().startswith("<!doctype html>")
    found = diagnose(frame, *labels, prepare=pipeline, compare=False)
    assert found.n_features == len(pipeline[0].get_feature_names_out())
    assert {share.name for share in found.columns} <= set(frame)
    again = diagnose(frame, *labels, prepare=TablePreparer(), compare=False)
    assert again.to_dict() == found.to_dict()


@pytest.mark.parametrize("values", [[1.0, 1.0], [np.nan, 1.0], [np.inf, 1.0]])
def test_a_long_name_does_not_lengthen_a_message(values):
    with pytest.raises(ValueError, match="'xxx") as caught:
        TablePreparer(impute=None).fit({"x" * 5000: np.array(values)})
    assert len(str(caught.value)) < 300


def test_categories_equal_as_decimals_are_one_unless_the_table_had_both():
    preparer = TablePreparer().fit({"x": np.array(["1.0", "2.50", "a", "007"] * 20)})
    found = preparer.transform({"x": np.array(["1", "2.5", "1.00", "7", "3"], dtype=object)})
    names = preparer.get_feature_names_out().tolist()
    assert names == ["x=007", "x=1.0", "x=2.50", "x=a"]
    assert found.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0], [0, 1, 0, 0], [0] * 4, [0] * 4]
    both = TablePreparer().fit({"x": np.array(["3.1", "3.10", "a"] * 20)})
    assert both.transform({"x": np.array(["3.10"])}).tolist() == [[0, 1, 0]]


@pytest.mark.parametrize("written", ["True", "TRUE", "true"])
def test_truth_values_are_found_however_a_table_writes_them(written):
    preparer = TablePreparer().fit({"x": np.array([written, "False"] * 20)})
    for value in ("True", "TRUE", "true"):
        assert preparer.transform({"x": np.array([value])}).tolist() == [[1]]
    both = TablePreparer().fit({"x": np.array(["TRUE", "true", "a"] * 20)})
    assert both.transform({"x": np.array(["TRUE"])}).tolist() == [[1, 0, 0]]


def test_truth_values_are_numbers_where_they_were(tmp_path):
    preparer = TablePreparer().fit({"x": np.arange(20) % 2})
    values = np.array(["TRUE", "False", "0", None], dtype=object)
    assert preparer.transform({"x": values}).ravel().tolist() == [1, 0, 0, 0.5]


@pytest.mark.parametrize(
    ("before", "after"),
    [(["m", "f"], ["male", "female"]), (["True", "False"], [1, 0]), (["a", "b", "c"], ["d", "e"])],
)
def test_a_column_without_a_known_category_is_warned_of(before, after, recwarn):
    preparer = TablePreparer().fit({"x": np.array(before * 20)})
    for known in before:  # also that of two which has no column of its own
        preparer.transform({"x": np.array([known] * 20)})
    preparer.transform({"x": np.array(after)})
    assert not recwarn
    with pytest.warns(UserWarning, match="'x' holds none of the categories that it had"):
        preparer.transform({"x": np.array(after * 20)})
