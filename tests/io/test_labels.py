"""What is read is what is written back: labels that look like numbers, formulas, odd characters."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isrlearn
from isrlearn import ISRClassifier, ISRRegressor
from isrlearn.io import ModelFileError, TableError, read_table, write_columns, write_predictions
from isrlearn.io.labels import labels_like

N = 40

PAIRS = {
    "zeros": ("007", "7"),
    "fractions": ("1.1", "1.10"),
    "exponents": ("12e3", "120e2"),
    "long": ("1000000000000000001", "1000000000000000002"),
    "too long": ("9999999999999999991", "9999999999999999992"),
    "padded": ("00501", "00502"),
    "signs": ("-0", "0"),
    "plus": ("+1", "1"),
    "digits": ("١", "1"),
    "underscores": ("1_0", "10"),
    "spaces": (" a", "a"),
    "words": ("nan", "inf"),
    "booleans": ("True", "true"),
    "formulas": ("=1+1", "'=1+1"),
    "commands": ("@SUM(A1)", "+cmd|' /C calc'!A0"),
    "tabs": ("\t=1", "\r=1"),
    "breaks": ("a\rb", "a\nb"),
    "minus": ("-1.50", "-1.5"),
    "quotes": ("'", "''"),
    "negative": ("-1", "1"),
}


def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((N, 3)), np.arange(N) % 2, np.arange(N) // 2 % 2


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npz"])
@pytest.mark.parametrize("kind", PAIRS)
def test_classes_that_look_alike_stay_apart(tmp_path, kind, suffix):
    """From a table to a model file, its predictions, and back."""
    X, k, e = rows()
    names = np.array(PAIRS[kind], dtype=object)
    data = pd.DataFrame(X, columns=list("abc")).assign(y=names[k], e=names[e])
    data.to_csv(tmp_path / "t.csv", index=False, quoting=2)
    table = read_table(tmp_path / "t.csv", label="y", environment="e")
    assert [str(value) for value in table.y] == list(names[k])
    assert [str(value) for value in table.environments] == list(names[e])
    clf = ISRClassifier(n_spurious=1).fit(table.X, table.y, table.environments)
    isrlearn.save(clf, tmp_path / "m.isr")
    loaded = isrlearn.load(tmp_path / "m.isr")
    assert {str(name) for name in loaded.classes_} == set(names)
    assert {str(name) for name in loaded.environments_} == set(names)
    write_predictions(loaded, table.X, tmp_path / f"p{suffix}")
    if suffix == ".npz":
        with np.load(tmp_path / "p.npz") as archive:
            written = archive["prediction"]
    else:
        written = read_table(tmp_path / f"p{suffix}", label="prediction").y
    assert written.tolist() == clf.predict(table.X).tolist()


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_no_cell_is_a_formula_for_a_spreadsheet(tmp_path, suffix):
    names = np.array([*PAIRS["commands"], *PAIRS["tabs"], "=x", "-x"])
    write_columns(tmp_path / f"p{suffix}", {"prediction": names, "x": -np.ones(len(names))})
    data = pd.read_csv(tmp_path / f"p{suffix}", sep=None, engine="python", dtype=str)
    assert all(text[0] == "'" for text in data["prediction"])
    assert set(data["x"]) == {"-1.0"}  # a negative number is not a formula
    assert read_table(tmp_path / f"p{suffix}", label="prediction").y.tolist() == names.tolist()
    # A table of the user is read as it is.
    (tmp_path / "t.csv").write_text("x,y\n1,'=x\n2,=x\n")
    assert read_table(tmp_path / "t.csv", label="y").y.tolist() == ["'=x", "=x"]


def test_integers_are_integers_and_long_ones_exact(tmp_path):
    (tmp_path / "t.csv").write_text("x,y,e\n1,9223372036854775807,\n2,-9223372036854775808,5\n")
    table = read_table(tmp_path / "t.csv", label="y", environment="e")
    assert table.y.dtype == np.int64
    assert table.y.tolist() == [2**63 - 1, -(2**63)]
    assert table.environments.tolist() == [None, 5]
    ids = [2**63 - 1, 2**63 - 2, None]
    pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "e": ids}), tmp_path / "t.parquet")
    found = read_table(tmp_path / "t.parquet", environment="e")
    assert found.environments.tolist() == ids


def test_the_target_of_a_regression_is_a_number(tmp_path):
    X, _, e = rows()
    y = X[:, 0] + 0.001
    write_columns(tmp_path / "t.csv", {"a": X[:, 0], "b": X[:, 1], "y": y, "e": e})
    table = read_table(tmp_path / "t.csv", label="y", environment="e", task="regression")
    np.testing.assert_array_equal(table.y, y)
    assert read_table(tmp_path / "t.csv", label="y").y.dtype.kind == "U"
    assert read_table(tmp_path / "t.csv", label="y", task="auto").y.dtype.kind == "f"
    ISRRegressor().fit(table.X, table.y, table.environments)
    (tmp_path / "t.csv").write_text("a,y\n1,1.1\n2,1.10\n3,old\n")
    with pytest.raises(TableError, match="a regression needs numbers as labels; got 'old'"):
        read_table(tmp_path / "t.csv", label="y", task="regression")
    (tmp_path / "t.csv").write_text("a,y\n1,1.1\n2,1.10\n")
    assert read_table(tmp_path / "t.csv", label="y", task="auto").y.tolist() == ["1.1", "1.10"]


def test_dask_reads_the_same_labels(tmp_path):
    dask = pytest.importorskip("isrlearn.dask")
    X, k, e = rows()
    for i in range(2):
        part = slice(i * N // 2, (i + 1) * N // 2)
        frame = pd.DataFrame(X[part], columns=list("abc"))
        frame = frame.assign(y=np.array(["007", "7"])[k[part]], e=e[part], t=X[part, 0] + 0.5)
        frame.to_csv(tmp_path / f"{i}.csv", index=False)
    paths = [tmp_path / "0.csv", tmp_path / "1.csv"]
    clf = dask.fit(ISRClassifier(n_spurious=1), paths, "y", environments="e", features=list("abc"))
    assert clf.classes_.tolist() == ["007", "7"]
    reg = dask.fit(ISRRegressor(1), paths, "t", environments="e", features=list("abc"))
    plain = ISRRegressor(1).fit(X, X[:, 0] + 0.5, e)
    np.testing.assert_allclose(reg.coef_, plain.coef_, atol=1e-9)


def test_one_table_does_not_show_the_type_of_another(tmp_path, isr):
    """Classes 007 and 7 are text; the 7 of a table that has no 007 is the same class."""
    X, k, e = rows()
    data = pd.DataFrame(X, columns=list("abc")).assign(y=np.array(["007", "7"])[k], e=e)
    data.to_csv(tmp_path / "train.csv", index=False)
    data[k == 1].assign(e=["01", "1"] * (N // 4)).to_csv(tmp_path / "test.csv", index=False)
    columns = ("--label", "y", "--environment", "e")
    out = tmp_path / "m.isr"
    fit = ("fit", tmp_path / "train.csv", *columns, "--n-spurious", "1", "--out", out)
    assert isr(*fit)[0] == 0
    status, text, _ = isr("evaluate", out, tmp_path / "test.csv", "--json")
    assert status == 0
    groups = json.loads(text)["model"]["groups"]
    assert {(group["label"], group["environment"]) for group in groups} == {
        ("7", "01"),
        ("7", "1"),
    }
    clf = isrlearn.load(out)
    vars(clf).pop("feature_names_in_")
    accuracy = np.mean(clf.predict(X[k == 1]) == "7")
    assert np.isclose(np.mean([group["value"] for group in groups]), accuracy)


@pytest.mark.parametrize("kind", [bool, float])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_labels_are_the_same(tmp_path, isr, kind, ending):
    X, k, e = rows()
    columns = dict(zip("abc", X.T, strict=True)) | {"y": k.astype(kind), "e": e.astype(kind)}
    for each in ("csv", "parquet"):
        write_columns(tmp_path / f"t.{each}", columns)
    given = ("--label", "y", "--environment", "e", "--no-search", "--out", tmp_path / "m.isr")
    assert isr("fit", tmp_path / f"t.{ending}", *given)[0] == 0
    for each in ("csv", "parquet"):
        status, text, _ = isr("evaluate", tmp_path / "m.isr", tmp_path / f"t.{each}", "--json")
        assert status == 0
        assert json.loads(text)["model"]["weighted_average"] is not None  # all groups are known


def test_whole_numbers_of_a_column_with_gaps(tmp_path, isr):
    """pandas writes the integers of a column with a missing value as 0.0 and 1.0."""
    X, k, e = rows()
    whole = pd.DataFrame(X, columns=list("abc")).assign(y=k, e=e)
    gaps = whole.assign(y=k.astype(float), e=np.where(np.arange(N) == 5, np.nan, e))
    tables = {"whole": whole, "gaps": gaps}
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    for name in tables:
        given = ("--label", "y", "--environment", "e", "--no-search", "--out", tmp_path / "m.isr")
        assert isr("fit", tmp_path / f"{name}.csv", *given)[0] == 0
        for other in tables:
            status, text, _ = isr(
                "evaluate", tmp_path / "m.isr", tmp_path / f"{other}.csv", "--json"
            )
            assert status == 0
            assert json.loads(text)["model"]["weighted_average"] is not None  # all groups are known
    # Classes that the other table does not have stay, and different ones stay different.
    like = labels_like(np.array([0, 1, 2]), np.array(["0.0", "1.0"]))
    assert like.tolist() == ["0.0", "1.0", "2"]
    assert labels_like(np.array(["1", "1.0"]), np.array([1, 2])).tolist() == ["1", "1.0"]
    assert labels_like(np.array(["1.0", "3.0"]), np.array([1, 2])).tolist() == [1, 3]
    assert labels_like(np.array(["v1.0", "1.1.0"]), np.array([1.0, 1.1])).tolist() == [
        "v1.0",
        "1.1.0",
    ]


def test_dask_joins_files_that_show_different_types(tmp_path):
    dask = pytest.importorskip("isrlearn.dask")
    X, k, e = rows()
    frame = pd.DataFrame(X, columns=list("abc"))
    frame = frame.assign(y=np.array(["007", "7"])[k], e=np.where(e, "2", None))
    frame[k == 0].to_csv(tmp_path / "0.csv", index=False)
    frame[k == 1].assign(e=["1", "01"] * (N // 4)).to_csv(tmp_path / "1.csv", index=False)
    paths = [tmp_path / "1.csv", tmp_path / "0.csv"]
    clf = ISRClassifier(n_spurious=1)
    dask.fit(clf, paths, "y", environments="e", features=list("abc"))
    assert clf.classes_.tolist() == ["007", "7"]
    assert clf.environments_.tolist() == ["01", "1", "2"]


def test_labels_that_numpy_cannot_keep_apart_are_refused(tmp_path):
    X, k, e = rows()
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,y\n1,a\n2,a\0\n")
    with pytest.raises(TableError, match=r"column 'y' holds a NUL character in 'a\\x00'"):
        read_table(path, label="y")
    for kind in ("U", "S"):
        np.savez(tmp_path / "t.npz", X=X, y=np.array(["a\0b", "b"])[k].astype(kind))
        with pytest.raises(TableError, match="'y' holds text with a NUL character"):
            read_table(tmp_path / "t.npz", label="y")
    clf = ISRClassifier(n_spurious=1).fit(X, k, e)
    clf.classes_ = np.array(["a", "a"])
    with pytest.raises(ModelFileError, match="the same text twice, 'a', 'a'"):
        isrlearn.save(clf, tmp_path / "m.isr")
    assert not (tmp_path / "m.isr").exists()
    names = np.array(["a", "a\0"], dtype=object)
    with pytest.raises(ValueError, match="NUL"):
        isrlearn.save(ISRClassifier(n_spurious=1).fit(X, names[k], e), tmp_path / "m.isr")
    names = np.array(["a\0b", "b"], dtype=object)
    with pytest.raises(ModelFileError, match="NUL character"):
        isrlearn.save(ISRClassifier(n_spurious=1).fit(X, names[k], e), tmp_path / "m.isr")
    names = np.array(["a" * 3_000_000, "b"], dtype=object)
    with pytest.raises(ModelFileError, match="too many or too long"):
        isrlearn.save(ISRClassifier(n_spurious=1).fit(X, k, names[e]), tmp_path / "m.isr")
