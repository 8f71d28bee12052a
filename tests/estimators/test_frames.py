"""Data frames in, labels of any type, names kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRTransformer
from isrlearn.engine import cell_moments
from isrlearn.estimators.compare import LabelledRows
from isrlearn.metrics import group_report


@pytest.fixture(scope="module")
def reference(binary):
    X, y, e = binary
    return ISRClassifier().fit(X, y, environments=e)


def test_pandas(binary, reference):
    X, y, e = binary
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(len(X))[::-1])
    clf = ISRClassifier().fit(
        frame, pd.Series(y, index=frame.index), environments=pd.Series(e, index=frame.index)
    )
    np.testing.assert_array_equal(clf.coef_, reference.coef_)
    assert clf.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_array_equal(clf.predict(frame), reference.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame[list("bacde")])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        clf.predict(X)


def test_polars(binary, reference):
    X, y, e = binary
    frame = pl.DataFrame(X, schema=list("abcde"))
    clf = ISRClassifier().fit(frame, pl.Series(y), environments=pl.Series(e.tolist()))
    np.testing.assert_allclose(clf.coef_, reference.coef_, atol=1e-10)
    assert clf.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_array_equal(clf.predict(frame), reference.predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        clf.predict(frame.select(list("bacde")))


def test_a_column_of_a_frame_as_environments(binary, reference):
    X, y, e = binary
    for table in (pd.DataFrame({"y": y, "site": e}), pl.DataFrame({"y": y, "site": e})):
        clf = ISRClassifier().fit(X, table["y"], environments=table["site"])
        np.testing.assert_array_equal(clf.coef_, reference.coef_)
        assert clf.environments_.tolist() == sorted(set(e))


def test_unknown_environments_in_a_list_of_texts(binary):
    X, y, e = binary
    known = np.where(np.arange(len(e)) % 4 > 0, e, None)
    expected = ISRClassifier().fit(X, y, environments=known)
    listed = [np.nan if name is None else name for name in known]
    clf = ISRClassifier().fit(X, y, environments=listed)
    assert clf.environments_.tolist() == sorted(set(e))
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    masked = ISRClassifier().fit(X, y, np.ma.array(e, mask=np.arange(len(e)) % 4 == 0))
    np.testing.assert_array_equal(masked.coef_, expected.coef_)
    found = clf.predict(X, environments=listed)
    np.testing.assert_array_equal(found, expected.predict(X, environments=known))
    report = group_report(y, found, listed)
    assert report.n_without_environment == listed.count(np.nan)
    rows = LabelledRows.of((X, y, listed))
    assert (rows.cells("accuracy").e < 0).sum() == report.n_without_environment
    assert cell_moments(X, y, listed).environments.tolist() == clf.environments_.tolist()
    with pytest.raises(ValueError, match="mix types that cannot be sorted: int, str"):
        ISRClassifier().fit(X, y, environments=[1 if name is None else name for name in known])


def test_frames_of_regression(continuous):
    X, y, e = continuous
    expected = ISRRegressor().fit(X, y, environments=e)
    frame = pd.DataFrame(X, columns=list("abcde"))
    reg = ISRRegressor().fit(frame, pd.Series(y), environments=pd.Series(e))
    np.testing.assert_array_equal(reg.coef_, expected.coef_)
    assert reg.feature_names_in_.tolist() == list("abcde")
    parts = ISRRegressor()
    for i in range(3):
        parts.partial_fit(frame[i::3], y[i::3], environments=e[i::3])
    assert parts.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        parts.partial_fit(frame[list("edcba")], y, environments=e)


CLASSES = {
    "int": [0, 1],
    "other int": [-5, 12],
    "str": ["dry", "wet"],
    "bool": [False, True],
    "float": [0.0, 1.0],
    "object str": np.array(["dry", "wet"], dtype=object),
}


@pytest.mark.parametrize("names", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize("head", ["logistic", "lda"])
def test_classes_of_any_type(binary, names, head):
    X, y, e = binary
    expected = ISRClassifier(head=head).fit(X, y, environments=e)
    names = np.asarray(names)
    labels = names[y]
    clf = ISRClassifier(head=head).fit(X, labels, environments=e)
    assert clf.classes_.tolist() == names.tolist()
    np.testing.assert_allclose(clf.coef_, expected.coef_, atol=1e-10)
    np.testing.assert_array_equal(clf.predict(X), names[expected.predict(X)])
    assert clf.score(X, labels) == expected.score(X, y)


@pytest.mark.parametrize("kind", ["category", "string", "boolean", "Int64"])
def test_pandas_classes(binary, kind):
    X, y, e = binary
    values = {"category": y, "string": y.astype(str), "boolean": y == 1, "Int64": y}[kind]
    clf = ISRClassifier().fit(X, pd.Series(values).astype(kind), environments=e)
    expected = ISRClassifier().fit(X, y, environments=e)
    np.testing.assert_allclose(clf.coef_, expected.coef_, atol=1e-10)


@pytest.mark.parametrize("weights", [{0: 3.0, 1: 0.5}, {1: 2.0}], ids=str)
def test_weights_of_classes_of_any_type(binary, weights):
    X, y, e = binary
    expected = ISRClassifier(weights=weights).fit(X, y, environments=e)
    for names in CLASSES.values():
        names = np.asarray(names)
        clf = ISRClassifier(weights={names.tolist()[k]: w for k, w in weights.items()})
        clf.fit(X, names[y], environments=e)
        np.testing.assert_allclose(clf.coef_, expected.coef_, atol=1e-10)


def environments_of_every_type(e, some):
    """The same environments as many types, unknown where `some`."""
    names, codes = np.unique(e, return_inverse=True)
    known = np.where(some, -1, codes)
    text = np.where(some, None, e)
    number = np.where(some, np.nan, codes)
    dates = np.arange("2020", "2024", dtype="M8[Y]")
    return {
        "None among strings": text,
        "list with None": text.tolist(),
        "NaN among numbers": number,
        "NaN among strings": np.where(some, np.nan, e.astype(object)),
        "dates": np.where(some, np.datetime64("NaT", "Y"), dates[codes]),
        "pandas object": pd.Series(text, dtype=object),
        "pandas string": pd.Series(text, dtype="string"),
        "pandas Int64": pd.Series(number).astype("Int64"),
        "pandas category": pd.Series(pd.Categorical.from_codes(known, names)),
        "pandas category of ints": pd.Series(pd.Categorical.from_codes(known, [10, 20, 30, 40])),
        "polars string": pl.Series(text.tolist()),
        "polars int": pl.Series([None if k < 0 else int(k) for k in known]),
        "polars categorical": pl.Series(text.tolist(), dtype=pl.Categorical),
    }


TYPES = list(environments_of_every_type(np.array(["a"]), np.array([False])))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("unknown", [False, True], ids=["all known", "some unknown"])
def test_environments_of_any_type(binary, kind, unknown):
    X, y, e = binary
    some = (np.arange(len(y)) % 4 == 0) & unknown
    expected = ISRClassifier().fit(X, y, environments=np.where(some, None, e))
    given = environments_of_every_type(e, some)[kind]
    clf = ISRClassifier().fit(X, y, environments=given)
    assert len(clf.environments_) == 4
    assert clf.moments_.count.sum() == np.sum(~some)
    np.testing.assert_allclose(clf.coef_, expected.coef_, atol=1e-8)


def test_two_environments_by_truth_value(binary):
    X, y, e = binary
    two = np.isin(e, ["north", "south"])
    expected = ISRClassifier().fit(X, y, environments=two.astype(int))
    clf = ISRClassifier().fit(X, y, environments=two)
    assert clf.environments_.tolist() == [False, True]
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    missing = pd.Series(two).astype("boolean")
    missing[:10] = pd.NA
    assert ISRClassifier().fit(X, y, environments=missing).moments_.count.sum() == len(y) - 10


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_columns_of_other_types(dtype):
    rng = np.random.default_rng(0)
    e, y = np.arange(400) % 4, np.arange(400) // 4 % 2
    X = rng.integers(0, 2, size=(400, 4)) * (1 if dtype == "bool" else 3)
    frame = pd.DataFrame(X, columns=list("abcd")).astype(dtype)
    expected = ISRTransformer(n_spurious=1).fit(X.astype(float), y, environments=e)
    found = ISRTransformer(n_spurious=1).fit(frame, y, environments=e)
    np.testing.assert_allclose(
        np.abs(found.spurious_basis_), np.abs(expected.spurious_basis_), atol=1e-5
    )


BAD_COLUMNS = {
    "text": (lambda n: ["low"] * n, "'low' in row 0"),
    "one text": (lambda n: [1.5] * (n - 1) + ["?"], "'[?]' in row 719"),
    "dates": (lambda n: pd.Timestamp("2020-01-02"), "2020-01-02T00:00:00.* in row 0"),
    "categories": (lambda n: pd.Categorical(["u", "v"] * (n // 2)), "'u' in row 0"),
    "NaN": (lambda n: np.r_[1.0, np.nan, np.ones(n - 2)], "no value in row 1"),
    "NA": (lambda n: pd.array([1, None] * (n // 2), dtype="Int64"), "no value in row 1"),
    "infinity": (lambda n: np.r_[np.ones(n - 1), -np.inf], "-inf in row 719"),
    "complex": (lambda n: 1j, "1j in row 0"),
}


@pytest.mark.parametrize("kind", BAD_COLUMNS)
def test_errors_name_the_column(binary, kind):
    X, y, e = binary
    make, message = BAD_COLUMNS[kind]
    good = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])])
    bad = good.assign(f1=make(len(X)))
    message = f"column 'f1' holds {message}: leave the column out, or let isrlearn.TablePreparer"
    for estimator in (ISRClassifier(), ISRTransformer(), ISRClassifierCV(cv=2)):
        with pytest.raises(ValueError, match=message):
            estimator.fit(bad, y, environments=e)
    with pytest.raises(ValueError, match=message):
        ISRClassifier().fit(good, y, e).predict(bad)


def test_a_frame_of_one_column_gives_environments(binary):
    X, y, e = binary
    found, expected = (ISRClassifier().fit(X, y, given) for given in (pd.DataFrame({"e": e}), e))
    np.testing.assert_array_equal(found.coef_, expected.coef_)
