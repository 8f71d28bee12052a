"""Labels of any type become sorted names and codes; the unknown stays unknown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from isrlearn.core.labels import as_array, encode, is_missing, union

LABELS = {
    "int": [3, 1, 3, 2],
    "negative int": [-1, 5, 0, -1],
    "str": ["land", "air", "land", "water"],
    "bool": [True, False, True, False],
    "float": [0.5, -1.0, 0.5, 2.0],
    "bytes": [b"u", b"v", b"u", b"w"],
    "dates": np.array(["2021-05", "2020-01", "2021-05", "2022-01"], dtype="M8[M]"),
    "object str": np.array(["b", "a", "b", "c"], dtype=object),
    "object int": np.array([7, 5, 7, 9], dtype=object),
    "pandas categorical": pd.Categorical(["x", "y", "x", "z"], categories=["z", "y", "x", "w"]),
    "pandas string": pd.array(["x", "y", "x", "z"], dtype="string"),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_names_and_codes_are_the_labels(labels):
    names, codes = encode(labels)
    assert names[codes].tolist() == np.asarray(labels).tolist()
    assert names.tolist() == sorted(set(np.asarray(labels).tolist()))


MISSING = {
    "None": np.array(["a", None, "b", "a"], dtype=object),
    "NaN": np.array([1.0, np.nan, 2.0, 1.0]),
    "NaN among strings": np.array(["a", np.nan, "b", "a"], dtype=object),
    "NaT": np.array(["2020", "NaT", "2021", "2020"], dtype="M8[Y]"),
    "NaT timedelta": np.array([1, "NaT", 2, 1], dtype="m8[D]"),
    "pandas NA": pd.array([1, pd.NA, 2, 1], dtype="Int64"),
    "pandas boolean": pd.array([True, pd.NA, False, True], dtype="boolean"),
    "pandas categorical": pd.Categorical(["u", None, "v", "u"]),
    "ints and None": np.array([4, None, 5, 4], dtype=object),
}


@pytest.mark.parametrize("labels", MISSING.values(), ids=MISSING)
def test_missing_labels_have_the_code_for_unknown(labels):
    assert is_missing(labels).tolist() == [False, True, False, False]
    names, codes = encode(labels)
    assert len(names) == 2
    assert codes[1] == -1
    assert codes[0] == codes[3] != codes[2]


@pytest.mark.parametrize("labels", [[None, None], [np.nan, np.nan]])
def test_all_missing(labels):
    names, codes = encode(labels)
    assert len(names) == 0
    assert codes.tolist() == [-1, -1]


def test_strings_in_object_arrays_become_strings():
    assert encode(np.array(["b", None, "a"], dtype=object))[0].dtype.kind == "U"
    assert encode(np.array([1, None, 2], dtype=object))[0].tolist() == [1, 2]


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series])
def test_nan_among_texts_is_not_a_text(kind):
    texts = ["a", "b", "a"] if kind is np.array else ["a", np.nan, "b"]
    assert as_array(kind(texts)).tolist() == texts


@pytest.mark.parametrize("labels", [["a", "b", "a"], [4, 5, 4]], ids=str)
def test_masked_labels_are_missing(labels):
    masked = np.ma.array(labels, mask=[False, True, False])
    assert as_array(masked).tolist() == [labels[0], None, labels[2]]


def test_types_that_do_not_sort_are_refused():
    with pytest.raises(ValueError, match="mix types that cannot be sorted: int, str; convert"):
        encode(np.array([1, "a"], dtype=object))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1, 3], [2, 3], [1, 2, 3]),
        (["b"], ["longer", "a"], ["a", "b", "longer"]),
        ([1, 2], [1, 2], [1, 2]),
        ([], ["a"], ["a"]),
        ([1, 2], [], [1, 2]),
        ([False], [True], [False, True]),
        ([1, 2], [2.0, 2.5], [1.0, 2.0, 2.5]),
        (np.array([1], dtype=object), [2], [1, 2]),
    ],
)
def test_union_of_names(a, b, expected):
    found = union(np.asarray(a), np.asarray(b))
    assert found.tolist() == expected
    assert [type(v) for v in found.tolist()] == [type(v) for v in expected]


def test_union_of_dates():
    a, b = np.array(["2021"], dtype="M8[Y]"), np.array(["2020"], dtype="M8[Y]")
    assert union(a, b).tolist() == np.array(["2020", "2021"], dtype="M8[Y]").tolist()


def test_union_of_different_types_is_refused():
    with pytest.raises(ValueError, match="mix types"):
        union(np.array([1, 2]), np.array(["1", "2"]))
