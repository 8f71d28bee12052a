"""Rows read block by block give the fit and the predictions of rows in memory."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier

from isrlearn import ISRClassifier, ISRClassifierCV, ISRRegressor, ISRTransformer
from isrlearn.engine import ArrayRows, Rows, cell_moments
from isrlearn.io import TableError, read_table, write_predictions

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N, D = 1500, 6


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y, e = rng.integers(2, size=N), rng.integers(3, size=N)
    X = rng.normal(size=(N, D)) + np.outer(e, np.eye(D)[0]) + np.outer(y, np.eye(D)[1])
    return X, y, e


@pytest.fixture(params=["npy", "columns", "lists", "large lists", "zarr", "some columns"])
def streamed(request, data, tmp_path):
    """A table that is read block by block, and its features in memory."""
    X, y, e = data
    kind, names = request.param, [f"f{i}" for i in range(D)]
    labels = {"y": y, "e": e}
    features = None
    if kind == "npy":
        np.save(tmp_path / "t.npy", X)
        path = tmp_path / "t.npy"
    elif kind == "some columns":
        np.save(tmp_path / "t.npy", X)
        path, features, X = tmp_path / "t.npy", "f1:f4", X[:, 1:5]
    elif kind == "zarr":
        zarr = pytest.importorskip("zarr")
        path = tmp_path / "t.zarr"
        array = zarr.create_array(str(path), shape=X.shape, chunks=(400, D), dtype=X.dtype)
        array[:] = X
    else:
        path = tmp_path / "t.parquet"
        columns = dict(zip(names, X.T, strict=True))
        if kind != "columns":
            flat = pa.array(X.ravel())
            fixed = pa.FixedSizeListArray.from_arrays(flat, D)
            columns = {"v": fixed if kind == "lists" else fixed.cast(pa.list_(pa.float64()))}
        pq.write_table(pa.table(columns | labels), path, row_group_size=333)
    if path.suffix != ".parquet":
        np.savez(tmp_path / "t.labels.npz", **labels)
    read = read_table(path, label="y", environment="e", features=features, stream=True)
    return read, X


def test_every_slice_is_that_of_the_array(streamed):
    table, X = streamed
    assert table.X.shape == X.shape
    assert isinstance(table.X, Rows | np.memmap)
    for rows in (slice(0, 10), slice(10, 700), slice(700, 700), slice(600, 900), slice(-5, None)):
        np.testing.assert_array_equal(table.X[rows], X[rows])
    for start in range(0, N, 217):  # twice, like two passes
        np.testing.assert_array_equal(table.X[start : start + 217], X[start : start + 217])


def test_fits_and_predictions_are_those_in_memory(streamed, data):
    table, X = streamed
    _, y, e = data
    for estimator in (
        ISRClassifier(),
        ISRClassifier(head="lda", method="joint"),
        ISRClassifier(n_components=3, weights="group"),
    ):
        found = estimator.fit(table.X, table.y, environments=table.environments)
        there = found.decision_function(table.X)
        here = estimator.fit(X, y, environments=e).decision_function(X)
        np.testing.assert_allclose(there, here, atol=1e-8)
    z = X[:, 2] + 0.1 * y
    regressor = ISRRegressor().fit(table.X, z, environments=e)
    there, names = regressor.predict(table.X), getattr(regressor, "feature_names_in_", None)
    np.testing.assert_allclose(there, regressor.fit(X, z, environments=e).predict(X), atol=1e-8)
    assert names is None or tuple(names) == table.feature_names
    basis = ISRTransformer().fit(table.X, table.y, environments=e).spurious_basis_
    again = ISRTransformer().fit(X, y, environments=e).spurious_basis_
    np.testing.assert_allclose(np.abs(basis), np.abs(again), atol=1e-8)


def test_fits_of_some_of_the_rows_are_those_in_memory(streamed, data):
    table, X = streamed
    _, y, e = data
    for estimator, more in (
        (ISRClassifier(weights="subsample"), {}),
        (ISRClassifier(), {"clusters": np.arange(N) // 2}),
        (ISRClassifierCV(n_spurious=(0, 1), cv=2), {}),
    ):
        found = clone(estimator).fit(table.X, y, environments=e, **more)
        expected = estimator.fit(X, y, environments=e, **more)
        np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)


def test_rows_travel_to_other_processes(streamed):
    table, X = streamed
    copy = pickle.loads(pickle.dumps(table.X))
    np.testing.assert_array_equal(copy[100:200], X[100:200])


@pytest.mark.parametrize("streamed", ["npy", "columns", "lists", "zarr"], indirect=True)
def test_all_estimators_take_the_rows(streamed, data, tmp_path):
    table, X = streamed
    _, y, e = data
    rows, labels = (table.X, table.y), {"environments": table.environments}
    clf = ISRClassifier().fit(*rows, **labels)
    expected = ISRClassifier().fit(X, y, environments=e)
    np.testing.assert_allclose(clf.coef_, expected.coef_, atol=1e-8)
    np.testing.assert_array_equal(clf.predict(table.X), expected.predict(X))
    assert write_predictions(clf, table.X, tmp_path / "p.csv") == N
    read = read_table(tmp_path / "p.csv", label="prediction")
    np.testing.assert_array_equal(read.y, expected.predict(X))
    reg = ISRRegressor().fit(*rows, **labels)
    expected = ISRRegressor().fit(X, y.astype(float), environments=e)
    np.testing.assert_allclose(reg.predict(table.X), expected.predict(X), atol=1e-8)
    isr = ISRTransformer().fit(*rows, **labels)
    expected = ISRTransformer().fit(X, y, environments=e)
    np.testing.assert_allclose(isr.transform(table.X), expected.transform(X), atol=1e-8)


def test_labels_may_come_from_another_file(data, tmp_path):
    X, y, e = data
    columns = {f"f{i}": column for i, column in enumerate(X.T)}
    pq.write_table(pa.table(columns), tmp_path / "X.parquet")
    pq.write_table(pa.table(columns | {"e": e}), tmp_path / "Xe.parquet")
    np.save(tmp_path / "y.npy", y)
    expected = ISRClassifier().fit(X, y, environments=e).coef_
    for source, labels, environments in (
        ("X.parquet", None, None),
        ("Xe.parquet", None, "e"),
        ("Xe.parquet", str(tmp_path / "y.npy"), "e"),
    ):
        table = read_table(tmp_path / source, label=labels, environment=environments, stream=True)
        known = e if table.environments is None else table.environments
        clf = ISRClassifier().fit(table.X, y if labels is None else table.y, environments=known)
        np.testing.assert_allclose(clf.coef_, expected, atol=1e-8)
        assert list(clf.feature_names_in_) == list(columns)


@pytest.mark.parametrize("Estimator", [ISRClassifier, ISRRegressor, ISRTransformer])
def test_a_path_is_an_error_that_says_how_to_read_it(Estimator, data, tmp_path):
    X, y, e = data
    message = r"not a path; got '.*t\.npy'.*isrlearn\.io\.read_table\(path, label"
    fitted = Estimator().fit(X, y, environments=e)
    apply = fitted.transform if Estimator is ISRTransformer else fitted.predict
    np.save(tmp_path / "t.npy", X)
    for path in (tmp_path / "t.npy", str(tmp_path / "t.npy")):
        with pytest.raises(ValueError, match=message):
            Estimator().fit(path, y, environments=e)
        with pytest.raises(ValueError, match=message):
            apply(path)
    if Estimator is not ISRTransformer:
        with pytest.raises(ValueError, match=message):
            write_predictions(fitted, path, tmp_path / "p.csv")
    with pytest.raises(ValueError, match="sample_weight must be numbers, one per row; got 'w'"):
        Estimator().fit(X, y, environments=e, sample_weight="w")


def test_what_cannot_be_streamed_says_so(data):
    X, y, e = data
    rows = ArrayRows(X)
    with pytest.raises(ValueError, match="needs rows in memory"):
        ISRClassifier(head=RidgeClassifier()).fit(rows, y, environments=e)
    with pytest.raises(ValueError, match="needs rows in memory"):
        ISRClassifier(n_spurious="permutation").fit(rows, y, environments=e)
    with pytest.raises(ValueError, match=r"y has shape \(3,\), but X has 1500 rows"):
        ISRClassifier().fit(rows, y[:3], environments=e)
    clf = ISRClassifier().fit(rows, y, environments=e)
    with pytest.raises(ValueError, match="X has 2 features, but ISRClassifier is expecting 6"):
        clf.predict(ArrayRows(X, columns=[0, 1]))
    holes = X.copy()
    holes[700, 2] = np.nan
    with pytest.raises(ValueError, match="feature 2 holds NaN"):
        ISRClassifier().fit(ArrayRows(holes), y, environments=e)
    with pytest.raises(ValueError, match="NaN or infinity in row 700"):
        clf.predict(ArrayRows(holes))


def test_moments_read_each_row_once(data):
    X, y, e = data
    read = []

    class Watched(ArrayRows):
        def __getitem__(self, rows):
            read.append(rows.indices(len(self))[:2])
            return super().__getitem__(rows)

    cell_moments(Watched(X), y, e)
    assert [stop for _, stop in read[:-1]] == [start for start, _ in read[1:]]
    assert (read[0][0], read[-1][1]) == (0, N)


def test_a_mapped_array_is_not_read_before_it_is_used(data, tmp_path):
    # On a cluster each worker would also read the rows of all others.
    X, y, e = data
    bad = X.copy()
    bad[7, 2] = np.nan
    np.save(tmp_path / "t.npy", bad)
    table = read_table(tmp_path / "t.npy", stream=True)
    clf = ISRClassifier().fit(X, y, environments=e)
    with pytest.raises(ValueError, match="NaN"):
        write_predictions(clf, table.X, tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()
    # Reading all of it reports which number it is.
    with pytest.raises(TableError, match=r"'f2' is missing \(NaN\) in row 8"):
        read_table(tmp_path / "t.npy")


def test_a_shortened_file_is_an_error(data, tmp_path):
    X = data[0]
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1]}), tmp_path / "t.parquet")
    rows = read_table(tmp_path / "t.parquet", stream=True).X
    with pytest.raises(ValueError, match="step of 2"):
        rows[::2]
    pq.write_table(pa.table({"a": X[:100, 0], "b": X[:100, 1]}), tmp_path / "t.parquet")
    with pytest.raises(TableError, match="fewer rows than its metadata states"):
        rows[0:N]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_predictions_are_written_as_they_are_made(streamed, data, tmp_path, suffix):
    table, X = streamed
    _, y, e = data
    names = np.array(["no", "yes"])
    clf = ISRClassifier(head="lda").fit(X, names[y], environments=e)
    path = tmp_path / f"predictions{suffix}"
    assert write_predictions(clf, table.X, path) == N
    written = read_table(path, label="prediction")
    np.testing.assert_array_equal(written.y, clf.predict(X))
    np.testing.assert_allclose(written.X, clf.predict_proba(X), atol=1e-12)
    assert written.feature_names == ("probability_no", "probability_yes")


def test_predictions_go_to_known_formats(data, tmp_path):
    X, y, e = data
    reg = ISRRegressor().fit(X, y.astype(float), environments=e)
    assert write_predictions(reg, X, tmp_path / "p.csv") == N
    np.testing.assert_array_equal(read_table(tmp_path / "p.csv").X[:, 0], reg.predict(X))
    assert write_predictions(reg, X, tmp_path / "p.npz") == N
    with np.load(tmp_path / "p.npz") as columns:
        np.testing.assert_array_equal(columns["prediction"], reg.predict(X))
    with pytest.raises(ValueError, match=r"\.csv, .*\.npz; this one ends in '\.xlsx'"):
        write_predictions(reg, X, tmp_path / "p.xlsx")


def test_columns_must_be_those_of_the_fit(data, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y, e = data
    frame = pd.DataFrame(X).add_prefix("f")
    clf = ISRClassifier().fit(frame, y, environments=e)
    assert write_predictions(clf, frame, tmp_path / "p.csv") == N
    np.testing.assert_array_equal(
        read_table(tmp_path / "p.csv", label="prediction").y, clf.predict(frame)
    )
    turned = frame[frame.columns[::-1]]
    turned.to_parquet(tmp_path / "t.parquet")
    rows = read_table(tmp_path / "t.parquet", stream=True).X
    for call in (
        lambda: clf.predict(rows),
        lambda: write_predictions(clf, rows, tmp_path / "q.csv"),
    ):
        with pytest.raises(ValueError, match=r"column 0 of X is 'f5', but .* fitted with 'f0'"):
            call()
    with pytest.raises(ValueError, match="feature names should match"):
        write_predictions(clf, turned, tmp_path / "q.csv")
    assert not (tmp_path / "q.csv").exists()
    known = read_table(tmp_path / "t.parquet", features=list(clf.feature_names_in_), stream=True)
    np.testing.assert_array_equal(clf.predict(known.X), clf.predict(frame))
