"""Moments are what NumPy says they are, they add up, and they keep their digits."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.core import Moments
from isrlearn.engine import cell_moments

K, E, D = 3, 4, 3


def sample(seed, n=200, *, unlabelled=0.2, names=True):
    """Rows with classes, environments (some unknown), and weights (some zero)."""
    rng = np.random.default_rng(seed)
    y, e = rng.integers(K, size=n), rng.integers(E, size=n)
    X = rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) + y[:, None] + 2.0 * e[:, None]
    environments = np.array(["a", "b", "c", "d"], dtype=object)[e] if names else e.astype(object)
    environments[rng.random(n) < unlabelled] = None
    return X, y, environments, rng.integers(0, 4, size=n).astype(float)


def naive(X, y, environments, weight=None):
    """Count, mean and scatter of every cell, and the same of unlabelled rows, the slow way."""
    w = np.ones(len(X)) if weight is None else weight
    known = np.array([v is not None for v in environments])
    names = np.unique(environments[known].astype(str))
    cells = {}
    for k in np.unique(y):
        for e in [*names, None]:
            rows = (y == k) & (environments == e)
            n = w[rows].sum()
            mean = (w[rows, None] * X[rows]).sum(axis=0) / n if n else np.zeros(X.shape[1])
            Z = X[rows] - mean
            cells[k, e] = n, mean, (w[rows, None] * Z).T @ Z
    return names, cells


def assert_same(a, b, tol):
    """The two moments agree to an absolute tolerance, field by field."""
    assert a.classes.tolist() == b.classes.tolist()
    assert a.environments.tolist() == b.environments.tolist()
    np.testing.assert_allclose(a.count, b.count, rtol=0, atol=tol)
    np.testing.assert_allclose(a.mean, b.mean, rtol=0, atol=tol)
    assert (a.scatter is None) == (b.scatter is None)
    if a.scatter is not None:
        assert a.scatter.shape == b.scatter.shape
        size = np.abs(b.scatter).max(initial=1.0)
        np.testing.assert_allclose(a.scatter, b.scatter, rtol=0, atol=tol * size)
    assert (a.unlabelled is None) == (b.unlabelled is None)
    if a.unlabelled is not None:
        assert_same(a.unlabelled, b.unlabelled, tol)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("chunk_size", [None, 1, 7])
def test_cells_are_what_numpy_says(weighted, chunk_size):
    X, y, environments, w = sample(0)
    w = w if weighted else None
    moments = cell_moments(X, y, environments, sample_weight=w, chunk_size=chunk_size)
    pooled = cell_moments(X, y, environments, pooled=True, sample_weight=w, chunk_size=chunk_size)
    names, cells = naive(X, y, environments, w)
    assert moments.environments.tolist() == names.tolist()
    assert moments.classes.tolist() == [0, 1, 2]
    within, rest = np.zeros((D, D)), np.zeros((D, D))
    for k in range(K):
        for e, name in enumerate(names):
            n, mean, scatter = cells[k, name]
            assert moments.count[k, e] == n
            np.testing.assert_allclose(moments.mean[k, e], mean, atol=1e-12)
            np.testing.assert_allclose(moments.scatter[k, e], scatter, atol=1e-11)
            np.testing.assert_allclose(moments.covariance[k, e], scatter / (n - 1), atol=1e-11)
            within += scatter
        n, mean, scatter = cells[k, None]
        assert moments.unlabelled.count[k, 0] == n
        np.testing.assert_allclose(moments.unlabelled.mean[k, 0], mean, atol=1e-12)
        np.testing.assert_allclose(moments.unlabelled.scatter[k, 0], scatter, atol=1e-11)
        rest += scatter
    np.testing.assert_allclose(moments.within(), within, atol=1e-10)
    np.testing.assert_allclose(pooled.scatter, within, atol=1e-10)
    np.testing.assert_allclose(pooled.unlabelled.scatter, rest, atol=1e-10)
    assert pooled.pooled
    assert not moments.pooled
    assert moments.dof == moments.count.sum() - K * E


@pytest.mark.parametrize("pooled", [False, True])
def test_totals_count_unlabelled_rows_and_cells_do_not(pooled):
    X, y, environments, _ = sample(1)
    moments = cell_moments(X, y, environments, pooled=pooled)
    count, mean, scatter = moments.by_class
    within = np.zeros((D, D))
    for k in range(K):
        rows = X[y == k]
        assert count[k] == len(rows)
        np.testing.assert_allclose(mean[k], rows.mean(axis=0), atol=1e-12)
        within += np.cov(rows.T, bias=True) * len(rows)
    np.testing.assert_allclose(scatter, within, rtol=1e-12, atol=1e-10)
    n, centre, total = moments.total
    assert n == len(X) > moments.count.sum()
    np.testing.assert_allclose(centre, X.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(total, np.cov(X.T) * (len(X) - 1), rtol=1e-12)
    np.testing.assert_allclose(moments.total_scatter(), total, rtol=0, atol=0)


MODES = [{"order": 1}, {"pooled": True}, {"pooled": False}]


@pytest.mark.parametrize("mode", MODES, ids=["means", "pooled", "cells"])
@pytest.mark.parametrize("weighted", [False, True])
def test_any_chunking_is_the_batch(mode, weighted):
    # 170 chunkings in each of six modes: 1,020 together. Small chunks miss cells, classes and
    # environments; some are empty, some hold one row, some only unlabelled rows.
    seen = {"empty": 0, "one row": 0, "no environment": 0}
    for seed in range(170):
        X, y, environments, w = sample(seed, n=60)
        weight = w if weighted else None
        whole = cell_moments(X, y, environments, sample_weight=weight, **mode)
        rng = np.random.default_rng([seed, 1])
        cuts = np.sort(rng.integers(0, len(X) + 1, size=rng.integers(1, 12)))
        parts = []
        for rows in np.split(np.arange(len(X)), cuts):
            seen["empty"] += len(rows) == 0
            seen["one row"] += len(rows) == 1
            seen["no environment"] += len(rows) > 0 and all(v is None for v in environments[rows])
            parts.append(
                cell_moments(
                    X[rows],
                    y[rows],
                    environments[rows],
                    sample_weight=None if weight is None else weight[rows],
                    chunk_size=int(rng.integers(1, 20)),
                    **mode,
                )
            )
        while len(parts) > 1:  # in any order, any two at a time
            i, j = rng.choice(len(parts), 2, replace=False)
            merged = parts[i] + parts[j]
            parts = [m for n, m in enumerate(parts) if n not in (i, j)] + [merged]
        assert_same(parts[0], whole, 1e-12)
    assert min(seen.values()) > 10


def test_sum_of_parts():
    X, y, environments, _ = sample(2)
    whole = cell_moments(X, y, environments)
    parts = [cell_moments(X[i::5], y[i::5], environments[i::5]) for i in range(5)]
    assert_same(sum(parts), whole, 1e-12)
    assert sum(parts[:1]) is parts[0]


def test_rows_that_weigh_nothing_are_not_there():
    X, y, environments, w = sample(3)
    some = w > 0
    assert_same(
        cell_moments(X, y, environments, sample_weight=w),
        cell_moments(X[some], y[some], environments[some], sample_weight=w[some]),
        1e-12,
    )


def test_integer_weights_are_repeated_rows():
    X, y, environments, w = sample(4)
    rows = np.repeat(np.arange(len(X)), w.astype(int))
    assert_same(
        cell_moments(X, y, environments, sample_weight=w),
        cell_moments(X[rows], y[rows], environments[rows]),
        1e-11,
    )


@pytest.mark.parametrize("pooled", [False, True])
def test_far_from_the_origin_no_digits_are_lost(pooled):
    rng = np.random.default_rng(5)
    n = 4000
    X = rng.normal(size=(n, D)) @ rng.normal(size=(D, D)) + 1e6
    environments = np.arange(n) % 2
    near = X - 1e6  # exact: the two are within a factor of two
    want = np.array([np.cov(near[environments == e].T) for e in (0, 1)])
    parts = [
        cell_moments(X[i : i + 371], None, environments[i : i + 371], pooled=pooled)
        for i in range(0, n, 371)
    ]
    found = sum(parts)
    if pooled:
        got, want = found.within() / found.dof, want.mean(axis=0)
        raw = naive_covariance(X, environments).mean(axis=0)
    else:
        got, raw = found.covariance[0], naive_covariance(X, environments)
    scale = np.abs(want).max()
    assert np.abs(got - want).max() / scale <= 1e-10
    # Negative control: sums of squares lose what the centred merge keeps.
    assert np.abs(raw - want).max() / scale > 1e-6
    np.testing.assert_allclose(found.total[2] / (n - 1), np.cov(near.T), rtol=0, atol=1e-10 * scale)


def naive_covariance(X, environments):
    """Covariances by the formula that should not be used: squares less the squared mean."""
    out = []
    for e in (0, 1):
        rows = X[environments == e]
        n, s = len(rows), rows.sum(axis=0)
        out.append((rows.T @ rows - np.outer(s, s) / n) / (n - 1))
    return np.array(out)


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e3])
@pytest.mark.parametrize("weighted", [False, True])
def test_float32_rows_have_float64_moments(shift, weighted):
    rng = np.random.default_rng(6)
    n = 100_000
    X = (rng.normal(size=(n, D)) + shift).astype(np.float32)
    w = rng.uniform(0.5, 2.0, n) if weighted else None
    environments = rng.integers(2, size=n)
    single = cell_moments(X, None, environments, sample_weight=w)
    double = cell_moments(X.astype(np.float64), None, environments, sample_weight=w)
    assert single.mean.dtype == single.scatter.dtype == np.float64
    assert np.abs(single.mean - double.mean).max() <= 1e-6
    assert np.abs(single.covariance - double.covariance).max() <= 1e-6


def test_float32_mean_keeps_its_digits():
    # A float32 accumulator would be off by 1e-3 here, as large as the standard error.
    X = (np.random.default_rng(7).normal(size=(50_000, 2)) + 1e4).astype(np.float32)
    found = cell_moments(X, None, np.zeros(len(X), dtype=int), order=1)
    np.testing.assert_allclose(found.mean[0, 0], X.astype(float).mean(axis=0), rtol=0, atol=1e-8)


@pytest.mark.parametrize("dtype", [np.int16, np.uint8, bool, np.float16])
def test_other_types_are_read_as_float64(dtype):
    X = np.random.default_rng(8).integers(0, 2, size=(50, D)).astype(dtype)
    e = np.arange(50) % 2
    assert_same(cell_moments(X, None, e), cell_moments(X.astype(float), None, e), 1e-15)


def test_inputs_do_not_change():
    X, y, environments, w = sample(9)
    for dtype in (np.float64, np.float32):
        data = X.astype(dtype)
        before = data.copy(), y.copy(), environments.copy(), w.copy()
        for array in (data, y, environments, w):
            array.flags.writeable = False
        cell_moments(data, y, environments, sample_weight=w, chunk_size=13)
        cell_moments(data, y, environments, chunk_size=13)
        for array, copy in zip((data, y, environments, w), before, strict=True):
            np.testing.assert_array_equal(array, copy)
            array.flags.writeable = True


def test_sorted_rows_in_one_block_do_not_change_either():
    # Rows of one cell in order are the case in which a copy could be saved by mistake.
    X = np.random.default_rng(10).normal(size=(20, 2))
    before = X.copy()
    cell_moments(X, None, np.zeros(20, dtype=int), sample_weight=np.full(20, 2.0))
    np.testing.assert_array_equal(X, before)


def test_reads_slices_of_rows_once(tmp_path):
    X, y, environments, _ = sample(11)
    np.save(tmp_path / "X.npy", X)
    reads = []

    class Rows:
        shape = X.shape

        def __getitem__(self, rows):
            reads.append((rows.start, rows.stop))
            return np.load(tmp_path / "X.npy", mmap_mode="r")[rows]

    found = cell_moments(Rows(), y, environments, chunk_size=64)
    assert reads == [(0, 64), (64, 128), (128, 192), (192, 200)]
    assert_same(found, cell_moments(X, y, environments), 1e-12)


def test_lists_are_taken():
    found = cell_moments([[0.0, 1.0], [2.0, 3.0]], ["u", "u"], ["a", "a"])
    assert found.mean[0, 0].tolist() == [1.0, 2.0]
    assert found.scatter[0, 0].tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_targets_are_last_columns():
    X, _, environments, w = sample(12)
    T = np.random.default_rng(12).normal(size=(len(X), 2))
    joint = cell_moments(X, None, environments, targets=T, sample_weight=w)
    assert_same(joint, cell_moments(np.hstack([X, T]), None, environments, sample_weight=w), 1e-12)
    assert_same(joint.columns(D), cell_moments(X, None, environments, sample_weight=w), 1e-12)
    one = cell_moments(X, None, environments, targets=T[:, 0])
    assert one.n_features == D + 1


@pytest.mark.parametrize("mode", MODES, ids=["means", "pooled", "cells"])
def test_linear_maps_of_moments_are_moments_of_mapped_rows(mode):
    X, y, environments, _ = sample(13)
    V = np.random.default_rng(13).normal(size=(D, 2))
    assert_same(
        cell_moments(X, y, environments, **mode).map(V),
        cell_moments(X @ V, y, environments, **mode),
        1e-12,
    )


def test_reweighted_cells_are_weighted_rows():
    X, y, environments, _ = sample(14)
    moments = cell_moments(X, y, environments)
    rng = np.random.default_rng(14)
    inside, outside = rng.uniform(0.5, 2.0, (K, E)), rng.uniform(0.5, 2.0, K)
    codes = {name: e for e, name in enumerate("abcd")}
    w = np.array(
        [
            outside[k] if e is None else inside[k, codes[e]]
            for k, e in zip(y, environments, strict=True)
        ]
    )
    assert_same(
        moments.reweighted(inside, outside),
        cell_moments(X, y, environments, sample_weight=w),
        1e-12,
    )
    kept = moments.reweighted(inside)
    assert_same(kept.unlabelled, moments.unlabelled, 0.0)


def test_pooled_cells_can_only_be_reweighted_together():
    X, y, environments, _ = sample(15)
    pooled = cell_moments(X, y, environments, pooled=True)
    with pytest.raises(ValueError, match="only with a scatter per cell"):
        pooled.reweighted(np.arange(1.0, K * E + 1).reshape(K, E))
    twice = pooled.reweighted(np.full((K, E), 2.0))
    np.testing.assert_allclose(twice.scatter, 2 * pooled.scatter)
    means = cell_moments(X, y, environments, order=1).reweighted(np.full((K, E), 2.0))
    assert means.scatter is None


def test_population_moments_are_taken_as_they_are():
    mean = np.arange(12.0).reshape(2, 3, 2)
    moments = Moments.population(mean, np.eye(2), [[1], [3]])
    assert moments.count.tolist() == [[1, 1, 1], [3, 3, 3]]
    assert moments.classes.tolist() == [0, 1]
    np.testing.assert_array_equal(moments.covariance, np.broadcast_to(np.eye(2), (2, 3, 2, 2)))
    np.testing.assert_array_equal(moments.mean, mean)
    assert moments.ddof == 0
    bare = Moments.population(mean)
    assert bare.scatter is None
    assert bare.classes.tolist() == [0, 1]
    assert bare.environments.tolist() == [0, 1, 2]


def test_names_of_chunks_are_united():
    a = cell_moments([[1.0], [2.0]], ["cat", "dog"], ["x", "y"])
    b = cell_moments([[3.0], [4.0]], ["ant", "dog"], ["y", "z"])
    both = a + b
    assert both.classes.tolist() == ["ant", "cat", "dog"]
    assert both.environments.tolist() == ["x", "y", "z"]
    assert both.count.tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 1]]
    assert both.mean[..., 0].tolist() == [[0, 3, 0], [1, 0, 0], [0, 2, 4]]


def test_names_of_different_types_are_not_united():
    a = cell_moments([[1.0], [2.0]], [0, 1], ["x", "y"])
    b = cell_moments([[1.0], [2.0]], ["0", "1"], ["x", "y"])
    with pytest.raises(ValueError, match="mix types"):
        a + b


def test_integer_names_survive_a_chunk_without_environments():
    a = cell_moments([[1.0], [2.0]], [0, 1], [5, 7])
    for nothing in ([None, None], [np.nan, np.nan]):
        both = a + cell_moments([[3.0], [4.0]], [0, 1], nothing)
        assert both.environments.tolist() == [5, 7]
        assert all(isinstance(name, int) for name in both.environments.tolist())
        assert both.total[0] == 4


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"X": np.ones((2, 3))}, "moments of 2 and of 3 features do not add up"),
        ({"order": 1}, "with cell scatters and with no scatter do not add up"),
        ({"pooled": True}, "with cell scatters and with a pooled scatter do not add up"),
    ],
)
def test_what_does_not_add_up_is_refused(other, message):
    data = {"X": np.ones((2, 2)), "y": None, "environments": [0, 1]}
    with pytest.raises(ValueError, match=message):
        cell_moments(**data) + cell_moments(**(data | other))


def test_samples_and_populations_do_not_add_up():
    a = cell_moments(np.ones((2, 2)), None, [0, 1])
    with pytest.raises(ValueError, match="a sample and of a population"):
        a + Moments.population(np.ones((1, 2, 2)), np.eye(2))


@pytest.mark.parametrize("other", [1, "x", None])
def test_only_moments_are_added(other):
    a = cell_moments(np.ones((2, 2)), None, [0, 1])
    with pytest.raises(TypeError):
        a + other
    with pytest.raises(TypeError):
        other + a


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"order": 3}, "order must be 1 or 2, got 3"),
        ({"y": [0, 1]}, r"y has shape \(2,\), but X has 3 rows"),
        ({"environments": [0, 1]}, r"environments has shape \(2,\), but X has 3 rows"),
        ({"environments": [[0, 1, 2]]}, r"environments has shape \(1, 3\)"),
        ({"y": np.array(["u", None, "v"], dtype=object)}, "class of row 1 is missing"),
        ({"X": [[1.0], [np.nan], [1.0]]}, "feature 0 holds NaN .* class 1, environment 'b'"),
        ({"X": [[1.0], [1.0], [np.inf]]}, "feature 0 holds NaN or infinity"),
        ({"targets": [0.0, 1.0, np.nan]}, "the target holds NaN"),
        ({"sample_weight": [1.0, 1.0]}, r"sample_weight has shape \(2,\), but X has 3 rows"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "sample_weight .* not negative.* row 1"),
        ({"sample_weight": [1.0, 1.0, np.nan]}, "sample_weight .* finite.* row 2"),
        ({"chunk_size": 0}, "chunk_size must be an integer of at least 1; got 0"),
        ({"chunk_size": -5}, "chunk_size must be an integer of at least 1; got -5"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_bad_samples_are_refused(change, message):
    data = {"X": [[1.0], [2.0], [3.0]], "y": [0, 1, 1], "environments": ["a", "b", "a"]}
    with pytest.raises(ValueError, match=message):
        cell_moments(**(data | change))


def test_nan_in_an_unlabelled_row_is_refused():
    environments = np.array(["a", None, "b"], dtype=object)
    with pytest.raises(ValueError, match=r"feature 0 holds NaN .* class .v., environment unknown"):
        cell_moments([[1.0], [np.nan], [2.0]], ["u", "v", "u"], environments)


def test_what_was_not_kept_is_not_made_up():
    X, y, environments, _ = sample(16)
    means = cell_moments(X, y, environments, order=1)
    pooled = cell_moments(X, y, environments, pooled=True)
    for ask in (means.within, means.total_scatter):
        with pytest.raises(ValueError, match="keep means only; compute them with order=2"):
            ask()
    for moments in (means, pooled):
        with pytest.raises(ValueError, match="no scatter per cell"):
            _ = moments.covariance
    assert means.by_class[2] is None
    assert means.total[2] is None


def test_constant_columns_have_no_scatter_however_they_are_merged():
    # Averages of equal means must be that mean to the last digit, or rounding becomes variance.
    X = np.full((60, 2), [1e6 + 0.1, 1.0 / 3.0])
    environments = np.arange(60) % 3
    parts = [cell_moments(X[i : i + 7], None, environments[i : i + 7]) for i in range(0, 60, 7)]
    found = sum(parts)
    np.testing.assert_array_equal(found.scatter, 0.0)
    np.testing.assert_array_equal(found.total_scatter(), 0.0)
    np.testing.assert_array_equal(found.mean, np.broadcast_to(X[0], (1, 3, 2)))


def spread_error(found, exact, X):
    """Largest error of a covariance, in units of the features' own standard deviations."""
    deviation = X.astype(float).std(axis=0)
    return np.max(np.abs(found - exact) / np.outer(deviation, deviation))


@pytest.mark.parametrize("d", [3, 40, 600])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_float32_products_keep_six_digits(d, pooled, shift):
    # What the docstring of Running promises, for one part of the product and for several.
    rng = np.random.default_rng(17)
    n = 6000
    scale = np.logspace(0, 3, d)
    X = ((rng.normal(size=(n, d)) + shift) * scale).astype(np.float32)
    y, e = rng.integers(2, size=n), rng.integers(3, size=n)
    single = cell_moments(X, y, e, pooled=pooled)
    double = cell_moments(X.astype(float), y, e, pooled=pooled)
    assert np.abs((single.mean - double.mean) / scale).max() < 1e-7
    within = [m.within() / m.dof for m in (single, double)]
    assert spread_error(*within, X) < 2e-6
    means = cell_moments(X, y, e, order=1)
    assert np.abs((means.mean - double.mean) / scale).max() < 1e-6


@pytest.mark.parametrize("pooled", [False, True])
def test_float32_products_of_very_different_features_do_not_overflow(pooled):
    # The small one's squares have room in float32; its products with the large one have none.
    rng = np.random.default_rng(17)
    X = np.ones((500, 400), dtype=np.float32) * rng.normal(size=(500, 1)).astype(np.float32)
    X[:, 0] *= 1e16
    X[:, -1] *= 1e25
    e = np.arange(500) % 2
    found, exact = (cell_moments(x, None, e, pooled=pooled) for x in (X, X.astype(float)))
    assert spread_error(found.within() / found.dof, exact.within() / exact.dof, X) < 2e-6


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_that_wander_lose_no_digits(dtype):
    # Blocks whose mean is near the one so far, and blocks whose mean is far from it.
    rng = np.random.default_rng(18)
    n = 4000
    path = np.repeat([0.0, 0.0, 0.01, 500.0, 500.0, -3e4, 0.0, 0.0], n // 8)
    X = (rng.normal(size=(n, 4)) + path[:, None]).astype(dtype)
    e = np.arange(n) % 2
    found = cell_moments(X, None, e, chunk_size=100)
    exact = X.astype(float)
    want = np.array([np.cov(exact[e == i].T) for i in (0, 1)])
    assert spread_error(found.covariance[0], want, X) < (1e-6 if dtype == np.float32 else 1e-13)
    # Inside the blocks nothing was lost either: the same rows, each piece an environment.
    pieces = cell_moments(X, None, np.repeat(np.arange(8), n // 8), chunk_size=100)
    assert spread_error(pieces.covariance[0, 5], np.cov(exact[2500:3000].T), X[:500]) < 1e-5


@pytest.mark.parametrize("dtype", [np.int8, np.int64, bool])
def test_integer_labels_are_counted_not_sorted(dtype):
    labels = np.array([1, 0, 1, 1, 0]).astype(dtype)
    far = np.array([5, -3, 10**9, 5, -3])
    X = np.arange(5.0)[:, None]
    found = cell_moments(X, labels, far)
    assert found.classes.dtype == dtype
    assert found.classes.tolist() == [0, 1]
    assert found.environments.tolist() == [-3, 5, 10**9]
    assert found.count.tolist() == [[2, 0, 0], [0, 2, 1]]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
def test_means_of_very_many_cells(dtype, weighted):
    """With more cells than a product can take at once rows are gathered first."""
    rng = np.random.default_rng(0)
    X, e = rng.normal(size=(3000, 3)).astype(dtype) + 100, rng.integers(50, size=3000)
    weight = rng.integers(4, size=3000).astype(float) if weighted else None
    found = cell_moments(X, None, e, order=1, sample_weight=weight)
    for i in range(50):
        rows = e == i
        w = None if weight is None else weight[rows]
        np.testing.assert_allclose(
            found.mean[0, i], np.average(X[rows].astype(float), axis=0, weights=w), rtol=1e-6
        )
    nothing = cell_moments(X[:0], None, e[:0], order=1)
    assert nothing.count.size == 0
    np.testing.assert_array_equal((found + nothing).mean, found.mean)
