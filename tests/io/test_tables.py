"""Tables: the same numbers from every format, and errors that say what is wrong."""

from __future__ import annotations

import gzip
import json
import os
import re
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import isrlearn
from isrlearn import ISRClassifier, TablePreparer
from isrlearn.io import ModelFileError, TableError, read_table


def test_every_format_gives_the_same_table(table_path, sample):
    table = read_table(table_path, label="y", environment="e")
    np.testing.assert_array_equal(table.X, sample.X)
    np.testing.assert_array_equal(table.y, sample.y)
    np.testing.assert_array_equal(table.environments, sample.environments)
    assert len(table.feature_names) == table.X.shape[1] == len(sample.names)
    # Text is read as float64; all other formats keep float32.
    assert table.X.dtype == (np.float64 if table_path.suffix == ".csv" else np.float32)


@pytest.mark.parametrize("name", ["t.csv.gz", "T.CSV.GZ", "t.tsv.gz"])
def test_compressed_text(tmp_path, sample, write, name):
    text = write("table.csv").read_text()
    text = text.replace(",", "\t") if "tsv" in name else text
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    table = read_table(tmp_path / name, label="y", environment="e")
    np.testing.assert_array_equal(table.X, sample.X)
    np.testing.assert_array_equal(table.y, sample.y)
    assert message(tmp_path / "t.csv.gx").endswith("this one ends in '.gx'")


def test_clusters_are_read_and_are_not_features(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,y,e,who\n1,0,p,007\n2,1,p,7\n3,0,q,7\n")
    table = read_table(path, label="y", environment="e", clusters="who")
    assert table.feature_names == ("a",)
    assert table.clusters.tolist() == ["007", "7", "7"]
    # A column may have two roles.
    table = read_table(path, label="y", environment="who", clusters="who", features="a")
    assert table.environments.tolist() == table.clusters.tolist()
    assert "there is no clusters column 'whom'" in message(path, label="y", clusters="whom")
    assert read_table(path, label="y", features="a").clusters is None


def test_an_array_is_mapped_not_read(write):
    table = read_table(write("table.npy"), label="y", environment="e")
    assert isinstance(table.X, np.memmap)


def test_labels_and_environments_are_not_needed(table_path):
    features = None if table_path.suffix in (".npy", ".npz") else "f*"
    table = read_table(table_path, features=features)
    assert table.y is None
    assert table.environments is None
    assert table.X.shape[1] == 4


@pytest.mark.parametrize("features", ["f1,f3", ["f1", "f3"], "f1,f[3]"])
def test_some_features(table_path, sample, features):
    if table_path.name == "lists.parquet":
        features = "f_1,f_3"
    table = read_table(table_path, label="y", environment="e", features=features)
    np.testing.assert_array_equal(table.X, sample.X[:, [1, 3]])


def test_names_are_matched_wherever_the_columns_stand(write, sample):
    order = [3, 1, 0, 2]
    shuffled = replace(sample, X=sample.X[:, order], names=tuple(f"f{i}" for i in order))
    path = write("table.csv", shuffled)
    exact = read_table(path, features=sample.names)
    np.testing.assert_array_equal(exact.X, sample.X)
    numbered = read_table(path, label="y", environment="e", features="f0:f3")
    np.testing.assert_array_equal(numbered.X, sample.X)


@pytest.mark.parametrize("kind", ["int8", "uint16", "int64", "float16", ">f4", ">f8", "bool"])
def test_numbers_of_any_type(tmp_path, kind):
    X = np.arange(12).reshape(4, 3).astype(kind)
    np.save(tmp_path / "a.npy", X)
    table = read_table(tmp_path / "a.npy")
    assert table.X.dtype in (np.float32, np.float64)
    assert table.X.dtype.isnative
    np.testing.assert_array_equal(table.X, X.astype(float))


def test_labels_in_arrays_of_their_own(tmp_path, sample, write):
    path = write("table.npy")
    for name, values in {"y.npy": np.arange(60) % 2, "e.npy": sample.environments}.items():
        np.save(tmp_path / name, values)
    table = read_table(path, label=str(tmp_path / "y.npy"), environment=str(tmp_path / "e.npy"))
    assert table.y.dtype.kind == "i"
    np.testing.assert_array_equal(table.environments, sample.environments)


def test_labels_in_another_table(tmp_path, sample, write):
    path = write("table.parquet")
    (tmp_path / "other.tsv").write_text("kind\twhere\n" + "1\t\n" * 59 + "2\tsea\n")
    table = read_table(
        path, label="kind", environment="where", labels=tmp_path / "other.tsv", features="f*"
    )
    assert table.y.tolist() == [1] * 59 + [2]
    assert table.environments.tolist() == [None] * 59 + ["sea"]


def test_labels_keep_their_type_in_parquet(tmp_path):
    columns = {
        "x": [0.5, 1.5, 2.5],
        "integer": [1, None, 3],
        "flag": [True, False, True],
        "category": pa.array(["a", "b", "a"]).dictionary_encode(),
        "day": pa.array([0, 1, None], pa.int32()).cast(pa.date32()),
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")

    def environments(name):
        table = read_table(tmp_path / "t.parquet", features="x", environment=name)
        return table.environments.tolist()

    assert environments("integer") == [1, None, 3]
    assert environments("flag") == [True, False, True]
    assert environments("category") == ["a", "b", "a"]
    assert environments("day") == ["1970-01-01", "1970-01-02", None]


def test_lists_of_no_fixed_length_must_have_one_length(tmp_path):
    pq.write_table(pa.table({"v": [[1.0, 2.0], [3.0, 4.0]]}), tmp_path / "good.parquet")
    assert read_table(tmp_path / "good.parquet").X.tolist() == [[1, 2], [3, 4]]
    pq.write_table(pa.table({"v": [[1.0, 2.0], [3.0]]}), tmp_path / "bad.parquet")
    with pytest.raises(TableError, match=r"must have 2 numbers.*row 2 has \[3.0\]"):
        read_table(tmp_path / "bad.parquet")


@pytest.mark.parametrize("value", [{"a": 1}, ["red", "blue"], [], b"\xff"])
def test_columns_that_hold_neither_numbers_nor_text_are_named(tmp_path, value):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"tags": [value] * 2, "x": [1.0, 2.0]}), path)
    with pytest.raises(TableError, match=r"column 'tags' holds .* not .*\(--exclude\)"):
        read_table(path, prepare=TablePreparer())
    assert read_table(path, features="x", prepare=TablePreparer()).X.tolist() == [[1], [2]]
    table = read_table(path, prepare=TablePreparer(exclude=["tags"]))
    assert table.X.tolist() == [[1], [2]]
    assert table.preparation.describe() == [
        ("tags", "left out", "as requested"),
        ("x", "number", ""),
    ]
    with pytest.raises(TableError, match=r"column 'tags' holds .* not"):
        read_table(path, features="x", label="tags")


def test_an_archive_names_its_columns(tmp_path):
    X = np.arange(6.0).reshape(2, 3)
    np.savez(tmp_path / "a.npz", X=X, feature_names=["age", "dose", "height"], Z=X[:, :2])
    assert read_table(tmp_path / "a.npz").feature_names == ("age", "dose", "height")
    assert read_table(tmp_path / "a.npz", features="dose").X.tolist() == [[1], [4]]
    assert read_table(tmp_path / "a.npz", features="Z").feature_names == ("Z_0", "Z_1")
    table = read_table(tmp_path / "a.npz", label="dose")
    assert table.feature_names == ("age", "height")
    assert table.y.tolist() == [1, 4]
    np.savez(tmp_path / "a.npz", X=X, y=np.array([[3], [5]]))
    assert read_table(tmp_path / "a.npz", label="y").y.tolist() == [3, 5]
    np.savez(tmp_path / "b.npz", A=X, B=X)
    with pytest.raises(
        TableError, match="choose the array of the features with --features: 'A', 'B'"
    ):
        read_table(tmp_path / "b.npz")


def message(path, **options):
    with pytest.raises(TableError) as caught:
        read_table(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


class TestErrors:
    def test_missing_file(self, tmp_path, write):
        write("table.csv")
        assert message(tmp_path / "tabel.csv").endswith("did you mean 'table.csv'?")
        assert "must end in .csv, .tsv, .csv.gz, .tsv.gz, .npy" in message(tmp_path / "table.xlsx")
        (tmp_path / "d.csv").mkdir()
        assert "this is a folder" in message(tmp_path / "d.csv")
        (tmp_path / "empty.npz").touch()
        assert "is empty" in message(tmp_path / "empty.npz")

    def test_missing_column(self, table_path):
        text = message(table_path, label="Y", environment="e")
        assert "there is no label column 'Y'; did you mean 'y'?" in text
        assert "no environment column 'q'; there are" in message(table_path, environment="q")
        assert "no feature column 'f9'" in message(table_path, features="f9")
        assert "no column matches 'g*'" in message(table_path, features="g*")

    @pytest.mark.parametrize(
        ("features", "text"),
        [
            ("f0:f9", "no feature column 'f9'"),
            ("f3:f1", "runs backwards"),
            ("y:f0", "runs backwards"),
            ("y", "is the label, environment or cluster"),
            (",", "no feature column is left"),
        ],
    )
    def test_ranges(self, write, features, text):
        assert text in message(write("table.csv"), label="y", features=features)

    def test_a_gap_in_a_range(self, tmp_path):
        (tmp_path / "t.csv").write_text("f0,f2\n1,2\n")
        assert "no feature column 'f1'" in message(tmp_path / "t.csv", features="f0:f2")
        (tmp_path / "t.csv").write_text("f00,f10,f2,f02,f01\n1,2,3,4,5\n")
        assert read_table(tmp_path / "t.csv", features="f00:f02").X.tolist() == [[1, 5, 4]]
        (tmp_path / "t.csv").write_text("f0,f999999999999\n1,2\n")
        text = message(tmp_path / "t.csv", features="f0:f999999999999")
        assert "no feature column 'f1' (and 1 more" in text

    def test_columns_a_model_needs(self, table_path):
        names = ["f0", "f1", "colour", "weight"]
        text = message(table_path, features=names)
        assert "there is no feature column" in text
        assert "more of the 4)" in text

    @pytest.mark.parametrize("cell", ["abc", "1_000", "1,5"])
    def test_not_a_number(self, tmp_path, cell):
        path = tmp_path / "t.csv"
        path.write_text(f'a,b\n1,2\n3,"{cell}"\n')
        assert f"column 'b' holds {cell!r} in row 2, not a number" in message(path)

    @pytest.mark.parametrize("cell", ["", " ", "NA", "nan"])
    def test_a_missing_number_in_text(self, tmp_path, cell):
        path = tmp_path / "t.csv"
        path.write_text(f'a,b\n1,2\n3,"{cell}"\n')
        text = message(path)
        assert "column 'b' is missing (NaN) in row 2; impute missing numbers first" in text
        assert "--impute" in text

    def test_not_a_number_in_parquet(self, tmp_path):
        pq.write_table(pa.table({"a": [1.0, 2.0], "b": [None, "x"]}), tmp_path / "t.parquet")
        text = message(tmp_path / "t.parquet")
        assert "column 'b' is of type string, not a number" in text
        assert read_table(tmp_path / "t.parquet", features="a").X.tolist() == [[1], [2]]

    def test_missing_numbers(self, write, sample):
        for value, text in {np.nan: "is missing (NaN)", np.inf: "is inf", 1e30: "is 1e+30"}.items():
            X = sample.X.copy()
            X[41, 2] = value
            for name in ("table.parquet", "lists.parquet", "table.npz", "table.npy"):
                found = message(write(name, replace(sample, X=X)), label="y", environment="e")
                column = "f_2" if name == "lists.parquet" else "f2"
                assert f"column '{column}' {text}" in found
                assert "in row 42" in found
                assert (".csv, .tsv and .parquet tables" in found) == bool(np.isnan(value))

    def test_no_array_of_features(self, tmp_path):
        np.savez(tmp_path / "a.npz", X=np.ones((2, 2, 2)), y=np.arange(2))
        assert "no array is two-dimensional (n, d); there are 'y'" in message(tmp_path / "a.npz")

    def test_the_label_is_not_a_feature(self, write):
        text = message(write("table.csv"), label="y", features=["f0", "y"])
        assert "the label 'y' cannot be a feature" in text

    def test_label_and_environment_are_two_columns(self, write):
        text = message(write("table.csv"), label="y", environment="y")
        assert "must be two columns; both are 'y'" in text

    def test_missing_labels(self, write, sample):
        y = sample.y.copy()
        y[3] = ""
        text = message(write("table.csv", replace(sample, y=y)), label="y", environment="e")
        assert "the label is missing in row 4; drop such rows" in text

    def test_lengths_that_differ(self, tmp_path, write):
        path = write("table.npy")
        path.with_suffix(".labels.csv").write_text("y,e\na,b\n")
        text = message(path, label="y", environment="e")
        assert f"{path}: there are 60 rows, but the label column has 1" in text
        path.with_suffix(".labels.csv").unlink()
        assert "none of table.labels.csv," in message(path, label="y")

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("a;b\n1;2\n", "must be separated by commas"),
            ("a,a\n1,2\n", "2 columns are named 'a'; give each a name"),
            ("a,b\n1\n", "row 1 has 1 value for 2 columns"),
            ("a,b\n", "has no rows"),
            ("\n1,2\n", "must name the columns"),
            ('a,b\n1,2\n1,"2\n3,4\n', "row 2 cannot be read: unexpected end"),
            ("a,b\n1," + "9" * 200_000 + "\n", "row 1 cannot be read: field larger"),
        ],
    )
    def test_bad_text(self, tmp_path, text, found):
        (tmp_path / "t.csv").write_text(text)
        assert found in message(tmp_path / "t.csv")

    def test_text_that_is_not_utf8(self, tmp_path):
        (tmp_path / "t.csv").write_bytes("größe,b\n1,2\n".encode("latin-1"))
        text = message(tmp_path / "t.csv")
        assert text.endswith("this is not text in UTF-8 (byte 3 is 0xf6); save it as UTF-8")
        (tmp_path / "t.csv").write_bytes("größe,b\n1,2\n".encode("utf-8-sig"))
        assert read_table(tmp_path / "t.csv").feature_names == ("größe", "b")

    def test_no_line_of_names(self, tmp_path):
        (tmp_path / "t.csv").write_text("1.5,2.5,yes\n3.5,1.5,no\n")
        text = message(tmp_path / "t.csv", label="ill")
        assert text.endswith("'yes'; is the line with the names of the columns missing?")

    def test_names_that_would_break_a_terminal(self, tmp_path):
        (tmp_path / "t.csv").write_text("\x1b[31mred,b\n1,\x1b[2J\n")
        assert "\x1b" not in message(tmp_path / "t.csv")
        assert "\x1b" not in message(tmp_path / "t.csv", features="q")

    def test_one_long_label_does_not_lengthen_all(self, tmp_path):
        rows = ["a" * 130_000] + ["b"] * 3000
        (tmp_path / "t.csv").write_text("x,y\n" + "".join(f"1,{y}\n" for y in rows))
        text = message(tmp_path / "t.csv", label="y")
        assert "longest of 130000 characters: too many or too long" in text
        assert len(text) < 400


class TestHostileParquet:
    def test_a_long_label_that_repeats_is_kept_once(self, tmp_path):
        text = "x" * 1_000_000
        names = pa.DictionaryArray.from_arrays(np.zeros(2000, dtype=np.int32), [text])
        pq.write_table(pa.table({"v": np.arange(2000.0), "y": names}), tmp_path / "t.parquet")
        assert (tmp_path / "t.parquet").stat().st_size < 1_000_000
        before = pa.total_allocated_bytes()
        assert "longest of 1000000 characters" in message(tmp_path / "t.parquet", label="y")
        # Decoded, they take 2 GB.
        assert pa.default_memory_pool().max_memory() - before < 200_000_000

    def test_more_rows_than_memory(self, tmp_path):
        writer = pq.ParquetWriter(tmp_path / "t.parquet", pa.schema({"v": pa.float64()}))
        with writer:
            writer.write_table(pa.table({"v": np.zeros(1 << 20)}))
        table = read_table(tmp_path / "t.parquet", features="v")
        assert len(table) == 1 << 20

        def empty(shape, **options):
            raise MemoryError("Unable to allocate 8.00 MiB")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(np, "empty", empty)
            text = message(tmp_path / "t.parquet", features="v")
        assert "Unable to allocate 8.00 MiB; choose fewer features, or" in text

    def test_lists_that_are_missing(self, tmp_path):
        vectors = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float64()))
        pq.write_table(pa.table({"v": vectors}), tmp_path / "t.parquet")
        assert "row 2 has None" in message(tmp_path / "t.parquet")

    @pytest.mark.skipif(
        int(pa.__version__.split(".")[0]) < 25,
        reason="pyarrow 25 is the first to write such a file",
    )
    def test_lists_of_one_length_that_are_missing(self, tmp_path):
        vectors = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float64(), 2))
        pq.write_table(pa.table({"v": vectors}), tmp_path / "t.parquet")
        assert "row 2 has None" in message(tmp_path / "t.parquet")


class TestHostileArrays:
    def test_python_objects_are_not_read(self, tmp_path):
        class Bomb:
            def __reduce__(self):
                return (open, (str(tmp_path / "exploded"), "w"))

        np.savez(tmp_path / "a.npz", X=np.ones((1, 2)), y=np.array([Bomb()], dtype=object))
        assert "could run code" in message(tmp_path / "a.npz", label="y")
        np.save(tmp_path / "a.npy", np.array([[Bomb()]], dtype=object), allow_pickle=True)
        assert "cannot be read" in message(tmp_path / "a.npy")
        assert not (tmp_path / "exploded").exists()

    @pytest.mark.parametrize("shape", [(10**7, 10**7), (0, 10**12), (10**12, 0)])
    @pytest.mark.parametrize("kind", ["<f8", "<U0"])
    def test_shapes_that_lie_allocate_nothing(self, tmp_path, shape, kind):
        header = str({"descr": kind, "fortran_order": False, "shape": shape}).encode()
        content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 80
        (tmp_path / "a.npy").write_bytes(content)
        message(tmp_path / "a.npy")
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("X.npy", content)
        message(tmp_path / "a.npz")

    def test_an_archive_that_lies_about_its_size(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
            archive.writestr("X.npy", b"\x93NUMPY")
            archive.filelist[0].file_size = 1 << 40
        message(tmp_path / "a.npz")

    def test_two_arrays_of_one_name(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, archive.open("X.npy", "w") as f:
            np.lib.format.write_array(f, np.ones((2, 2)))
        with (
            pytest.warns(UserWarning, match="Duplicate"),
            zipfile.ZipFile(tmp_path / "a.npz", "a") as archive,
        ):
            archive.writestr("X.npy", archive.read("X.npy"))
        assert "2 columns are named 'X'" in message(tmp_path / "a.npz")


class TestIndexColumns:
    """The row index is not a feature: on a table sorted by class it would predict the class."""

    @pytest.fixture
    def frame(self, sample):
        frame = pd.DataFrame(sample.X, columns=list(sample.names))
        return frame.assign(y=sample.y, e=sample.environments)

    def test_text(self, frame, sample, tmp_path):
        frame.to_csv(tmp_path / "t.csv")
        table = read_table(tmp_path / "t.csv", label="y", environment="e")
        assert table.feature_names == sample.names
        assert table.notes == ("left out as an index: ''",)
        pd.read_csv(tmp_path / "t.csv").to_csv(tmp_path / "t.csv", index=False)
        table = read_table(tmp_path / "t.csv", label="y", environment="e")
        assert table.feature_names == sample.names
        assert table.notes == ("left out as an index: 'Unnamed: 0'",)
        assert read_table(tmp_path / "t.csv", features="[fU]*").feature_names == sample.names
        chosen = read_table(tmp_path / "t.csv", features="Unnamed: 0,f0")
        assert chosen.feature_names == ("Unnamed: 0", "f0")

    @pytest.mark.parametrize("name", [None, "patient"])
    @pytest.mark.parametrize("stream", [False, True])
    def test_parquet(self, frame, sample, tmp_path, name, stream):
        frame.index = pd.Index(np.arange(60) * 7 % 60, name=name)
        frame.to_parquet(tmp_path / "t.parquet")
        options = {"label": "y", "stream": stream}
        table = read_table(tmp_path / "t.parquet", environment="e", **options)
        assert table.feature_names == sample.names
        column = name or "__index_level_0__"
        assert table.notes == (f"left out as an index: {column!r}",)
        by = read_table(tmp_path / "t.parquet", environment=column, features="f*", **options)
        assert by.environments.tolist() == frame.index.tolist()

    def test_a_range_index_is_no_column(self, frame, tmp_path):
        frame.to_parquet(tmp_path / "t.parquet")
        assert read_table(tmp_path / "t.parquet", label="y", environment="e").notes == ()

    def test_a_sorted_table_is_not_predicted_from_its_index(self, tmp_path):
        rng, y = np.random.default_rng(0), np.repeat(["a", "b"], 100)
        X, e = rng.standard_normal((200, 2)), np.arange(200) % 2
        pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "y": y, "e": e}).to_csv(tmp_path / "t.csv")
        table = read_table(tmp_path / "t.csv", label="y", environment="e")
        clf = ISRClassifier(n_spurious=0).fit(table.X, table.y, table.environments)
        assert clf.score(table.X, y) < 0.7


def test_an_archive_with_splits_is_read_whole(tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, X=np.eye(6, 4), y=[0, 1] * 3, place=[0, 0, 1] * 2, split=[0, 1, 2] * 2)
    table = read_table(path, label="y", environment="place")
    assert len(table) == 6
    assert table.notes == ("the array 'split' is not used: rows of all splits were read",)
    assert read_table(path, features=["f0"]).notes == ()


class TestSuspects:
    def test_labels_and_environments_that_look_missing(self, tmp_path):
        lines = [
            f"{i % 7},{i % 5},{'NA' if i == 3 else 'ab'[i % 2]},{'xy'[i // 2 % 2]}"
            for i in range(40)
        ]
        lines[5] = "5,0,b,null"
        path = tmp_path / "table.csv"
        path.write_text("f,g,y,e\n" + "\n".join(lines) + "\n")
        table = read_table(path, label="y", environment="e")
        assert set(table.y) == {"a", "b", "NA"}
        count = "which count as any other value; leave cells empty where there is none"
        assert table.notes == (
            f"1 of the labels are 'NA', {count}",
            f"1 of the environments are 'null', {count}",
        )

    def test_labels_and_environments_that_look_alike(self, tmp_path):
        cells = [("No", "caf\u00e9"), ("no ", "cafe\u0301"), ("yes", "bar")]
        rows = [",".join((f"{i % 7}", f"{i % 5}", *cells[i % 3])) for i in range(60)]
        (tmp_path / "table.csv").write_text("f,g,y,e\n" + "\n".join(rows), encoding="utf-8")
        table = read_table(tmp_path / "table.csv", label="y", environment="e")
        assert len(set(table.y)) == len(set(table.environments)) == 3
        labels, environments = table.notes
        assert labels.startswith("some labels differ only in spaces, case or")
        assert labels.endswith("'No', 'no '")
        assert environments.startswith("some environments differ only in")

    @pytest.mark.parametrize(
        "values",
        [
            np.arange(60),
            1000 - 3 * np.arange(60),
            20240101 + np.arange(60),
            np.random.default_rng(0).permutation(60) + 5,
            np.cumsum(np.random.default_rng(0).integers(1, 9, 60)),
        ],
        ids=["rows", "backwards", "dates", "shuffled", "ids"],
    )
    def test_row_numbers_ids_and_dates(self, write, sample, values):
        X = sample.X.astype(float)
        X[:, 1] = values
        (note,) = read_table(
            write("table.csv", replace(sample, X=X)), label="y", environment="e"
        ).notes
        assert note.startswith("these features look like row numbers, ids or dates: 'f1'")

    @pytest.mark.parametrize(
        "values",
        [
            np.sort(np.random.default_rng(0).standard_normal(60)),
            np.random.default_rng(0).integers(0, 1000, 60),
            np.arange(60) // 2,
            np.ones(60),
        ],
        ids=["sorted", "counts", "steps", "constant"],
    )
    def test_ordinary_features_are_not_suspected(self, write, sample, values):
        X = sample.X.astype(float)
        X[:, 1] = values
        path = write("table.csv", replace(sample, X=X))
        assert read_table(path, label="y", environment="e").notes == ()

    @pytest.mark.parametrize("name", ["table.csv", "table.npy", "lists.parquet"])
    def test_copies_of_labels(self, write, sample, name):
        X = sample.X.copy()
        X[:, 0] += 100 * (sample.y == "cow")
        X[:, 2] = sample.environments == "sand"
        path = write(name, replace(sample, X=X))
        notes = read_table(path, label="y", environment="e").notes
        names = ("f_0", "f_2") if name == "lists.parquet" else ("f0", "f2")
        assert [note.partition(";")[0] for note in notes] == [
            f"each of these features alone separates the labels: '{names[0]}'",
            f"each of these features alone separates the environments: '{names[1]}'",
        ]

    def test_one_overlap_is_no_separation(self, write, sample):
        X = sample.X.copy()
        X[:, 0] += 100 * (sample.y == "cow")
        X[0, 0] += 100  # a camel among the cows
        path = write("table.npy", replace(sample, X=X))
        assert read_table(path, label="y", environment="e").notes == ()

    def test_few_rows_are_separated_by_chance(self, tmp_path):
        rng = np.random.default_rng(0)
        np.savez(tmp_path / "t.npz", X=rng.standard_normal((8, 500)), y=np.arange(8) % 2)
        assert read_table(tmp_path / "t.npz", label="y").notes == ()


@pytest.mark.parametrize("other", ["v_0", "v_1"])
def test_columns_that_would_have_one_name(tmp_path, other):
    columns = {"v": [[1.0, 2.0], [3.0, 4.0]], other: [5.0, 6.0]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    text = message(tmp_path / "t.parquet")
    assert f"'v' and {other!r} both give a column {other!r}" in text
    np.savez(tmp_path / "t.npz", X=np.ones((2, 2)), f1=np.ones(2))
    assert "'X' and 'f1' both give a column 'f1'" in message(tmp_path / "t.npz")


class TestNotRegularFiles:
    @pytest.mark.parametrize("name", ["t.csv", "t.npy", "t.npz", "t.parquet", "t.zarr"])
    def test_pipes_are_refused_at_once(self, tmp_path, name, write):
        os.mkfifo(tmp_path / name)
        assert "this is not" in message(tmp_path / name)
        os.mkfifo(tmp_path / "y.npy")
        text = message(write("table.csv"), label=str(tmp_path / "y.npy"))
        assert "y.npy: this is not a regular file" in text

    def test_models(self, tmp_path):
        os.mkfifo(tmp_path / "m.isr")
        for path in (tmp_path / "m.isr", "/dev/zero"):
            with pytest.raises(ModelFileError, match="this is not a regular file"):
                isrlearn.load(path)


class TestZarr:
    @pytest.fixture
    def path(self, tmp_path):
        zarr = pytest.importorskip("zarr")
        array = zarr.open_array(
            str(tmp_path / "t.zarr"), mode="w", shape=(60, 4), chunks=(20, 4), dtype="f8"
        )
        array[:] = np.random.default_rng(0).standard_normal((60, 4))
        return tmp_path / "t.zarr"

    def change(self, path, **entries):
        about = json.loads((path / "zarr.json").read_text())
        for name, value in entries.items():
            if name == "chunks":
                about["chunk_grid"]["configuration"]["chunk_shape"] = value
            else:
                about[name] = value
        (path / "zarr.json").write_text(json.dumps(about))

    @pytest.mark.parametrize("stream", [False, True])
    @pytest.mark.parametrize(
        "entries",
        [
            {"chunks": [0, 0]},
            {"chunks": [20, 0]},
            {"chunks": [-1, 4]},
            {"shape": [1_000_000, 250_000]},
            {"shape": [4, 10**12]},
            {"shape": [10**15, 4]},
            {"chunks": [10**9, 10**9]},
        ],
        ids=str,
    )
    def test_claims(self, path, entries, stream):
        self.change(path, **entries)
        message(path, stream=stream)

    def test_a_damaged_chunk_names_the_file(self, path):
        (path / "c" / "1" / "0").write_bytes(b"damaged")
        rows = read_table(path, stream=True).X
        with pytest.raises(TableError, match=re.escape(str(path))):
            rows[20:40]

    def test_a_pipe_among_the_chunks(self, path):
        (path / "c" / "1" / "0").unlink()
        os.mkfifo(path / "c" / "1" / "0")
        assert "not a regular file" in message(path)


class TestExpansion:
    """Files of a few bytes that hold gigabytes are refused before they are read."""

    @pytest.mark.parametrize("kind", ["U1000", "S4000", "f8"])
    def test_archives(self, tmp_path, kind):
        rows = 500_000_000 // np.dtype(kind).itemsize
        with zipfile.ZipFile(tmp_path / "t.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open("X.npy", "w") as file:
                np.save(file, np.ones((rows, 1)))
            with archive.open("y.npy", "w", force_zip64=True) as file:
                header = {"descr": np.dtype(kind).str, "fortran_order": False, "shape": (rows,)}
                np.lib.format.write_array_header_1_0(file, header)
                for _ in range(500):
                    file.write(bytes(1_000_000))
        tracemalloc.start()
        text = message(tmp_path / "t.npz", label="y")
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
        tracemalloc.stop()
        assert "save it without compression" in text

    def test_parquet(self, tmp_path):
        n = 1 << 16
        schema = pa.schema({"v": pa.float64(), "y": pa.string()})
        with pq.ParquetWriter(tmp_path / "t.parquet", schema) as writer:
            part = pa.table({"v": np.zeros(n), "y": ["a"] * n})
            for _ in range(300):
                writer.write_table(part)
        assert "save it without compression" in message(tmp_path / "t.parquet", features="v")
        assert "save it without compression" in message(
            tmp_path / "t.parquet", label="y", stream=True
        )
        assert len(read_table(tmp_path / "t.parquet", features="v", stream=True)) == 300 * n
