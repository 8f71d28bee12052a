"""Dask fits equal fits in memory: arrays, frames and files, uneven parts and empty cells."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import RidgeClassifier

from isrlearn import ISRClassifier, ISRRegressor, ISRTransformer
from isrlearn.core.labels import Cells
from isrlearn.engine import cell_moments
from isrlearn.estimators.heads import Sample

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

from isrlearn import dask as isr_dask  # noqa: E402
from isrlearn.dask import parts as dask_parts  # noqa: E402

N, D = 1200, 8
CUTS = (0, 1, 130, 131, 500, 1100, 1200)


@pytest.fixture(scope="module")
def data():
    """Rows of three classes; some have no environment, and the first parts lack cells."""
    rng = np.random.default_rng(0)
    y, e = rng.integers(3, size=N), rng.integers(3, size=N)
    e[:300] %= 2
    X = rng.normal(size=(N, D)) @ rng.normal(size=(D, D))
    X += np.outer(e, rng.normal(size=D)) + np.outer(y, rng.normal(size=D)) + 5.0
    names = np.array(["bog", "fen", "moor"], dtype=object)[e]
    names[rng.random(N) < 0.1] = None
    return X, np.array(["ant", "bee", "cat"])[y], names, rng.uniform(0.5, 2.0, N)


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch):
    # Several parts per task and several tasks, as with large data.
    monkeypatch.setattr(dask_parts, "LEAST_BYTES", 8 * D * 450)


@pytest.fixture(params=["synchronous", "threads"])
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield request.param


@pytest.fixture(params=["array", "frame", "parquet", "npy"])
def collection(request, data, tmp_path):
    """X, y, environments and weights as `fit` expects them."""
    X, y, e, w = data
    kind = request.param
    if kind == "array":
        chunks = (tuple(np.diff(CUTS)), (3, D - 3))
        return da.from_array(X, chunks=chunks), da.from_array(y, chunks=100), e, w
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(D)])
    frame["label"], frame["place"], frame["w"] = y, pd.Series(e, dtype=object), w
    pieces = [frame.iloc[a:b] for a, b in pairwise(CUTS)]
    if kind == "frame":
        delayed = [dask.delayed(piece) for piece in [*pieces[:2], frame.iloc[:0], *pieces[2:]]]
        return dd.from_delayed(delayed, meta=frame), "label", "place", "w"
    paths = []
    for i, piece in enumerate(pieces):
        labels = piece[["label", "place"]]
        path = tmp_path / f"part{i}.{kind}"
        if kind == "parquet":
            piece.drop(columns="w").to_parquet(path, row_group_size=200)
        else:
            np.save(path, piece.iloc[:, :D].to_numpy())
            labels.to_parquet(path.with_suffix(".labels.parquet"))
        paths.append(path)
    return paths, "label", "place", None


@pytest.mark.parametrize("keep", ["pooled", "cell"])
def test_moments_are_those_in_memory(collection, data, scheduler, keep):
    X, y, e, w = data
    *source, weight = collection
    roles = dict(zip(("y", "environments", "sample_weight"), [*source[1:], weight], strict=True))
    rows, labels = dask_parts.rows_of(source[0], roles, None, "classification")
    assert rows.shape == (N, D)
    assert len(rows.groups(moments=True)) > 2
    assert max(group.stop - group.start for group in rows.groups(moments=True)) > 1
    cells = Cells.of(labels["y"], labels["environments"])
    sample = Sample(rows, cells, weight=labels.get("sample_weight"))
    found = rows.in_parts(sample).moments(keep)
    w = None if weight is None else w
    expected = cell_moments(X, y, e, pooled=keep == "pooled", sample_weight=w)
    assert found.classes.tolist() == expected.classes.tolist()
    assert found.environments.tolist() == expected.environments.tolist()
    size = np.abs(expected.scatter).max()
    for a, b, scale in [
        (found.count, expected.count, N),
        (found.mean, expected.mean, 10.0),
        (found.scatter, expected.scatter, size),
        (found.unlabelled.scatter, expected.unlabelled.scatter, size),
    ]:
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize(
    "settings",
    [
        {"weights": "group"},
        {"n_components": 4, "n_spurious": 1, "weights": "class"},
        {"head": "lda", "method": "joint", "n_spurious": 2},
        {"weights": "group", "C": 0.01},
        {"weights": "class", "variant": "paper", "n_spurious": 1, "head": "lda"},
        {
            "head": (np.arange(3.0 * D).reshape(3, D), np.zeros(3)),
            "n_spurious": 1,
            "n_components": None,
        },
    ],
    ids=lambda settings: "-".join(settings) or "default",
)
def test_classifiers_are_those_in_memory(collection, data, settings):
    X, y, e, w = data
    *source, weight = collection
    with dask.config.set(scheduler="synchronous"):
        found = isr_dask.fit(
            ISRClassifier(**settings),
            source[0],
            source[1],
            environments=source[2],
            sample_weight=weight,
        )
    w = None if weight is None else w
    expected = ISRClassifier(**settings).fit(X, y, environments=e, sample_weight=w)
    assert found.n_spurious_ == expected.n_spurious_
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("empty", [(), ("ant", "fen"), ("cat", "moor")], ids=str)
def test_the_default_is_that_in_memory_if_environments_are_known(data, weighted, empty):
    X, y, e, w = data
    kept = e != None  # noqa: E711
    if empty:
        kept &= ~((y == empty[0]) & (e == empty[1]))
    X, y, e, w = X[kept], y[kept], e[kept].astype(str), w[kept] if weighted else None
    expected = ISRClassifier().fit(X, y, e, sample_weight=w)
    with dask.config.set(scheduler="synchronous"):
        chunks = da.from_array(X, chunks=(250, -1))
        found = isr_dask.fit(ISRClassifier(), chunks, y, environments=e, sample_weight=w)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-7)


def test_a_wide_head_is_that_in_memory(data):
    # Many features, none of which is reduced away before the head.
    rng = np.random.default_rng(1)
    X, y, e = rng.normal(size=(900, 160)), np.arange(900) % 2, np.arange(900) // 2 % 2
    X[:, 0] += y + e
    chunks = da.from_array(X, chunks=(250, -1))
    found = isr_dask.fit(ISRClassifier(n_components=None), chunks, y, environments=e)
    expected = ISRClassifier(n_components=None).fit(X, y, environments=e)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)


def test_regressors_and_transformers_too(collection, data):
    X, y, e, _ = data
    z = (y == "bee") + X[:, 0]
    chunks = da.from_array(X, chunks=(500, -1))
    found = isr_dask.fit(ISRRegressor(), chunks, da.from_array(z), environments=e)
    np.testing.assert_allclose(found.coef_, ISRRegressor().fit(X, z, environments=e).coef_)
    names = None if isinstance(collection[0], da.Array) else [f"f{i}" for i in range(D)]
    isr = isr_dask.fit(
        ISRTransformer(), *collection[:2], environments=collection[2], features=names
    )
    expected = ISRTransformer().fit(X, y, environments=e)
    np.testing.assert_allclose(isr.eraser_(X), expected.transform(X), atol=1e-8)
    plain = isr_dask.fit(ISRTransformer(method="regression"), chunks, environments=e)
    assert plain.n_spurious_ >= 1


def test_predictions_are_lazy(data, scheduler):
    X, y, e, _ = data
    clf = ISRClassifier(head="lda").fit(pd.DataFrame(X).add_prefix("f"), y, environments=e)
    chunks = da.from_array(X, chunks=(500, 3))
    labels, shares = isr_dask.predict(clf, chunks), isr_dask.predict_proba(clf, chunks)
    assert isinstance(labels, da.Array)
    assert labels.shape == (N,)
    assert shares.shape == (N, 3)
    frame = pd.DataFrame(X).add_prefix("f")
    expected = clf.predict(frame)
    np.testing.assert_array_equal(labels.compute(), expected)
    np.testing.assert_allclose(shares.compute(), clf.predict_proba(frame), atol=1e-12)
    shuffled = dd.from_pandas(frame[frame.columns[::-1]], npartitions=3)
    np.testing.assert_array_equal(isr_dask.predict(clf, shuffled).compute(), expected)
    with pytest.raises(TypeError, match="must be a Dask array or a Dask frame; got ndarray"):
        isr_dask.predict(clf, X)


def test_models_of_different_rows_are_not_mistaken_for_each_other(data):
    X, y, e, _ = data
    one, other = (ISRClassifier(head="lda").fit(X, labels, e) for labels in (y, y[::-1]))
    chunks = da.from_array(X, chunks=(500, -1))
    both = dask.compute(isr_dask.predict(one, chunks), isr_dask.predict(other, chunks))
    np.testing.assert_array_equal(both[0], one.predict(X))
    np.testing.assert_array_equal(both[1], other.predict(X))


def test_the_same_bits_on_every_scheduler(data):
    X, y, e, _ = data
    chunks = da.from_array(X, chunks=(100, -1))
    fits = []
    for scheduler in ("synchronous", "threads"):
        with dask.config.set(scheduler=scheduler):
            fits.append(isr_dask.fit(ISRClassifier(), chunks, y, environments=e))
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)


def test_labels_of_different_types_are_not_mixed(tmp_path):
    # Concatenated, NumPy would turn the numbers into text without a warning.
    for name, y in {"a": np.arange(8) % 2, "b": np.array(["0", "1"] * 4)}.items():
        np.savez(tmp_path / f"{name}.npz", X=np.ones((8, 2)), y=y, e=np.arange(8) // 4)
    paths = [tmp_path / "a.npz", tmp_path / "b.npz"]
    with pytest.raises(ValueError, match="labels mix types"):
        isr_dask.fit(ISRClassifier(), paths, "y", environments="e")


def test_missing_environments_can_be_one(data):
    X, y, *_ = data
    chunks = da.from_array(X, chunks=(400, -1))
    single = ISRClassifier(missing_environments="single")
    found = isr_dask.fit(single, chunks, y)
    np.testing.assert_allclose(
        found.coef_, ISRClassifier(missing_environments="single").fit(X, y).coef_, atol=1e-8
    )


BAD = {
    "memory": (lambda X, y, e: (X, y, e), TypeError, "Data in memory do not need Dask"),
    "lengths": (
        lambda X, y, e: (da.from_array(X), y[:5], e),
        ValueError,
        r"y has shape \(5,\), but X has 1200 rows",
    ),
    "unknown": (
        lambda X, y, e: (dd.from_pandas(pd.DataFrame(X)).values, y, e),
        ValueError,
        "unknown lengths",
    ),
    "columns": (
        lambda X, y, e: (dd.from_pandas(pd.DataFrame(X).add_prefix("f")), y, e),
        ValueError,
        "must be the name of a column",
    ),
    "no environments": (
        lambda X, y, e: (da.from_array(X), y, None),
        ValueError,
        "environments are needed",
    ),
    "one environment": (
        lambda X, y, e: (da.from_array(X), y, np.zeros(N)),
        ValueError,
        "needs at least two",
    ),
    "no labels": (lambda X, y, e: (da.from_array(X), None, e), ValueError, "y is needed"),
    "numbers": (lambda X, y, e: (da.from_array(X), X[:, 0], e), ValueError, "continuous"),
    "complex": (lambda X, y, e: (da.from_array(X + 1j), y, e), ValueError, "got complex128"),
    "no files": (lambda X, y, e: ([], "y", "e"), ValueError, "no files"),
    "no rows": (
        lambda X, y, e: (da.from_array(X[:0].reshape(0, D)), y[:0], e[:0]),
        ValueError,
        "X has no rows",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_are_named(case, data):
    source, error, message = BAD[case]
    X, y, e = source(*data[:3])
    with pytest.raises(error, match=message):
        isr_dask.fit(ISRClassifier(), X, y, environments=e)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (ISRClassifier(head=RidgeClassifier()), "needs rows in memory"),
        (ISRClassifier(n_spurious="permutation"), "needs rows in memory"),
        (ISRClassifier(weights="subsample"), "needs rows in memory"),
    ],
)
def test_what_needs_memory_says_so(estimator, message, data):
    X, y, e, _ = data
    with pytest.raises(ValueError, match=message):
        isr_dask.fit(estimator, da.from_array(X), y, environments=e)


def test_features_are_chosen_from_columns(data):
    X, y, e, _ = data
    frame = pd.DataFrame(X).add_prefix("f").assign(label=y == "ant", place=e)
    with pytest.raises(ValueError, match=r"X\[:, features\]"):
        isr_dask.fit(ISRClassifier(), da.from_array(X), y, environments=e, features=[0, 1])
    with pytest.raises(ValueError, match="'label' cannot be a feature"):
        isr_dask.fit(
            ISRClassifier(),
            dd.from_pandas(frame, npartitions=2),
            "label",
            environments="place",
            features=["f0", "label"],
        )


def test_predictions_of_a_filtered_frame(data):
    X, y, e, _ = data
    frame = pd.DataFrame(X).add_prefix("f")
    found = ISRClassifier(n_spurious=1).fit(frame, y, environments=e)
    kept = dd.from_pandas(frame.assign(f0=np.arange(N)), npartitions=4)
    kept = kept[kept.f0 < 10]  # only the first of four partitions has rows
    expected = kept.compute()
    with dask.config.set(scheduler="synchronous"):
        labels = isr_dask.predict(found, kept).compute()
        shares = isr_dask.predict_proba(found, kept).compute()
    np.testing.assert_array_equal(labels, found.predict(expected))
    np.testing.assert_allclose(shares, found.predict_proba(expected))


def test_masked_environments_are_unknown(data):
    X, y, e, _ = data
    masked = np.ma.masked_array(e, np.arange(N) % 5 == 0)
    for given in (masked, da.from_array(masked, chunks=100, asarray=False)):
        found = isr_dask.fit(ISRClassifier(), da.from_array(X), y, environments=given)
        expected = ISRClassifier().fit(X, y, environments=masked)
        np.testing.assert_array_equal(found.moments_.count, expected.moments_.count)


def test_masked_features_are_missing(data):
    X, y, e, _ = data
    masked = np.ma.masked_array(X, np.arange(N * D).reshape(N, D) % 900 == 0)
    lazy = da.from_array(masked, chunks=(100, -1), asarray=False)
    with pytest.raises(ValueError, match="NaN"):
        isr_dask.fit(ISRClassifier(), lazy, y, environments=e)
    with pytest.raises(ValueError, match="NaN"):
        isr_dask.predict(ISRClassifier().fit(X, y, environments=e), lazy).compute()


def test_nan_is_found(data):
    X, y, e, _ = data
    X = X.copy()
    X[600, 2] = np.nan
    fitted = ISRClassifier().fit(data[0], y, e)
    with pytest.raises(ValueError, match="feature 2 holds NaN"):
        isr_dask.fit(fitted, da.from_array(X, chunks=(300, -1)), y, environments=e)
    assert not [name for name in vars(fitted) if name.endswith("_")]  # no half of a fit is left


COLUMNS = {
    "a date": (lambda n: pd.date_range("2020", periods=n), "column 'f3' has the type datetime64"),
    "a category": (lambda n: pd.Categorical(["a"] * n), "column 'f3' has the type category"),
    "text": (lambda n: ["a"] * n, "column 'f3' has the type (object|str|string)"),
    "NA": (lambda n: pd.array([1.5, None] * (n // 2), dtype="Float64"), "column 'f3' holds NaN"),
    "NaN": (lambda n: np.resize([1.5, np.nan], n), "column 'f3' holds NaN"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_columns_that_cannot_be_features_are_named(data, case):
    X, y, e, _ = data
    values, message = COLUMNS[case]
    frame = pd.DataFrame(X).add_prefix("f").assign(y=y, e=e)
    frame["f3"] = values(N)
    collection = dd.from_pandas(frame, npartitions=3)
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=message):
        isr_dask.fit(ISRClassifier(), collection, "y", environments="e")


def test_numbers_of_pandas_are_numbers(data):
    X, y, e, _ = data
    frame = pd.DataFrame(X).add_prefix("f").assign(y=y, e=e)
    frame["f3"] = pd.array(np.arange(N) % 7, dtype="Int64")
    expected = ISRClassifier(weights="group").fit(frame.iloc[:, :D].astype(float), y, e)
    with dask.config.set(scheduler="synchronous"):
        found = isr_dask.fit(
            ISRClassifier(weights="group"),
            dd.from_pandas(frame, npartitions=3),
            "y",
            environments="e",
        )
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)


def test_a_frame_of_small_parquet_files(data, scheduler, tmp_path):
    X, y, e, _ = data
    frame = pd.DataFrame(X).add_prefix("f").assign(y=y, e=e)
    for i, (start, stop) in enumerate(pairwise(CUTS)):
        frame.iloc[start:stop].to_parquet(tmp_path / f"{i}.parquet")
    source = dd.read_parquet(tmp_path)
    expected = ISRClassifier(weights="group").fit(frame.iloc[:, :D], y, environments=e)
    found = isr_dask.fit(ISRClassifier(weights="group"), source, "y", environments="e")
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    labels = isr_dask.predict(found, source).compute()
    np.testing.assert_array_equal(labels, expected.predict(frame.iloc[:, :D]))


def test_sparse_chunks_are_refused(data):
    X, y, e, _ = data
    chunks = da.from_array(X, chunks=(300, -1)).map_blocks(sparse.csr_matrix, meta=np.empty((0, 0)))
    with dask.config.set(scheduler="synchronous"), pytest.raises(ValueError, match=r"toarray\(\)"):
        isr_dask.fit(ISRClassifier(), chunks, y, environments=e)


@pytest.mark.parametrize("size", [0.5, 1.0, 7.0])
@pytest.mark.parametrize(
    "settings",
    [
        {"weights": "class"},
        {"n_spurious": 1, "n_components": None, "weights": "group"},
        {"method": "joint", "n_spurious": 2, "weights": "group"},
        {
            "head": (np.arange(3.0 * D).reshape(3, D), np.zeros(3)),
            "n_spurious": 1,
            "n_components": None,
        },
    ],
    ids=lambda settings: "-".join(settings) or "default",
)
def test_sample_weights_decide_as_in_memory(data, settings, size):
    # Features are whitened from 20 rows per feature on. There are fewer rows, and the sum of the
    # weights, which decides in memory, is below or above that number.
    n = 20 * D - 10
    X, y, e, _ = (a[-n:] for a in data)
    rng = np.random.default_rng(3)
    weight = size * rng.uniform(size=n) * (rng.random(n) > 0.3)
    assert (weight.sum() > 20 * D) == (size > 1)
    expected = ISRClassifier(**settings).fit(X, y, e, sample_weight=weight)
    with dask.config.set(scheduler="synchronous"):
        found = isr_dask.fit(
            ISRClassifier(**settings),
            da.from_array(X, chunks=(40, -1)),
            y,
            environments=e,
            sample_weight=weight,
        )
    assert found.n_spurious_ == expected.n_spurious_
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-8)
    np.testing.assert_allclose(found.intercept_, expected.intercept_, atol=1e-8)
