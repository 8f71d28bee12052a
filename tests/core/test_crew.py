"""Work shared out among threads: the same bits, and the BLAS as it was afterwards."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from isrlearn.core._threads import _blas_threads, crew, one_by_one
from threadpoolctl import threadpool_limits

from isrlearn.core import moments
from isrlearn.engine import cell_moments


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2):
        if set(_blas_threads()) != {2}:
            pytest.skip("needs a BLAS whose threads can be set, and two cores for it")
        yield
        # Whatever happened: as it was.
        assert set(_blas_threads()) == {2}


def test_pieces_are_done_at_once_and_answered_in_order():
    meet = Barrier(2, timeout=60)

    def work(i):
        meet.wait()  # nobody gets further alone
        return i, _blas_threads()

    with crew() as share:
        answers = share(work, range(6))
    assert [i for i, _ in answers] == list(range(6))
    assert all(set(threads) == {1} for _, threads in answers)


def test_one_thread_needs_no_other():
    with threadpool_limits(1), crew() as share:
        meet = Barrier(1)
        assert share(lambda i: meet.wait() + i, [1, 2]) == [1, 2]


def test_an_error_ends_the_work_and_the_limit():
    with pytest.raises(ZeroDivisionError), crew() as share:
        share(lambda i: 1 // i, [1, 0])


def test_a_second_crew_is_one_thread():
    with crew(), crew() as share:
        assert share is one_by_one
        assert set(_blas_threads()) == {1}


def test_threads_that_somebody_else_holds_are_left_to_the_blas():
    # Since threadpoolctl 3.8 only the thread that limited the BLAS may change that.
    def inner():
        with crew() as share:
            return share is one_by_one, set(_blas_threads())

    with ThreadPoolExecutor(1) as pool:
        alone, threads = pool.submit(inner).result()
    assert alone == (threads == {2})


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    n, d = 9_000, 420
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) / np.sqrt(d) + rng.normal(size=d)
    return X, rng.integers(3, size=n), rng.integers(2, size=n)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_do_not_depend_on_threads(data, dtype, pooled, weighted):
    X, y, e = data[0].astype(dtype), *data[1:]
    assert X.size * X.shape[1] >= moments._MUCH
    weight = np.arange(len(X)) % 3.0 if weighted else None
    # In several blocks, and some of the environments unknown.
    e = np.where(np.arange(len(X)) % 10 == 0, np.nan, e)
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            options = {"pooled": pooled, "sample_weight": weight, "chunk_size": 4000}
            found.append(cell_moments(X, y, e, **options))
    one, two = found
    np.testing.assert_array_equal(two.mean, one.mean)
    np.testing.assert_array_equal(two.scatter, one.scatter)
    np.testing.assert_array_equal(two.unlabelled.scatter, one.unlabelled.scatter)
    np.testing.assert_array_equal(one.scatter, np.swapaxes(one.scatter, -1, -2))


def test_nothing_is_said_about_overflow_by_any_thread(data, recwarn):
    X = data[0].astype(np.float32) * np.float32(1e22)
    found = cell_moments(X, *data[1:])
    assert np.isfinite(found.scatter).all()
    assert not recwarn.list
