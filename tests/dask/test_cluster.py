"""Workers that die cost time, not results; what cannot be done is said, not waited for."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

from isrlearn import ISRClassifier  # noqa: E402
from isrlearn import dask as isr_dask  # noqa: E402
from isrlearn.dask import _parts, _run  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    # What a killed process leaves open is not ours to close.
    pytest.mark.filterwarnings("ignore"),
]

CHUNKS, ROWS, D = 20, 200, 6


@pytest.fixture(scope="module")
def client():
    with (
        isr_dask.local_cluster(2) as cluster,
        cluster.get_client() as client,
    ):
        yield client


@pytest.fixture(scope="module", autouse=True)
def small_tasks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_parts, "TASK_BYTES", 8 * D * ROWS * 2)
        yield


def labels():
    codes = np.arange(CHUNKS * ROWS)
    return codes % 2, codes // 2 % 3


def rows(folder: Path, *, seconds: float, deadly: int | None = None):
    """A Dask array whose chunks are made slowly, each leaving a file for every time."""

    def chunk(i):
        (folder / f"{i}-{time.time_ns()}").touch()
        if i == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(seconds)
        rng = np.random.default_rng(i)
        codes = np.arange(i * ROWS, (i + 1) * ROWS)
        X = rng.normal(size=(ROWS, D))
        X[:, 0] += codes // 2 % 3
        X[:, 1] += codes % 2
        return X

    make = dask.delayed(chunk)
    parts = [da.from_delayed(make(i), shape=(ROWS, D), dtype=float) for i in range(CHUNKS)]
    return da.concatenate(parts)


def killed_when(client, folder: Path, made: int, victims: int):
    """A thread that ends workers as soon as so many chunks have been begun."""

    def watch():
        deadline = time.monotonic() + 60
        while len(list(folder.iterdir())) < made and time.monotonic() < deadline:
            time.sleep(0.01)
        for pid in list(client.run(os.getpid).values())[:victims]:
            os.kill(pid, signal.SIGKILL)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.fixture(scope="module")
def calm(client, tmp_path_factory):
    """The fit that nothing disturbed, and how many chunks it made."""
    folder = tmp_path_factory.mktemp("calm")
    y, e = labels()
    fitted = isr_dask.fit(ISRClassifier(), rows(folder, seconds=0.0), y, environments=e)
    return fitted, len(list(folder.iterdir()))


# Chunks begun: 8 of 20 are two fifths of the moments' pass, 40 lie in the head's fit.
@pytest.mark.parametrize(("made", "victims"), [(8, 1), (40, 1), (8, 2)])
def test_killed_workers_change_no_bit(client, calm, tmp_path, made, victims):
    expected, begun = calm
    y, e = labels()
    assert begun >= 60  # the moments' pass and two of the head's at least
    thread = killed_when(client, tmp_path, made, victims)
    found = isr_dask.fit(ISRClassifier(), rows(tmp_path, seconds=0.03), y, environments=e)
    thread.join()
    assert len(list(tmp_path.iterdir())) > begun  # some had to be made again
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)


def test_a_part_that_always_kills_is_an_error_soon(client, tmp_path):
    y, e = labels()
    deadly = rows(tmp_path, seconds=0.0, deadly=3)
    with pytest.raises(RuntimeError, match="ended every worker that tried it"):
        isr_dask.fit(ISRClassifier(), deadly, y, environments=e)


def test_workers_have_one_thread_each_and_keep_their_memory(client):
    found = client.run(lambda: {name: os.environ.get(name) for name in os.environ})
    for environment in found.values():
        assert environment["OMP_NUM_THREADS"] == "1"
        assert int(environment["MALLOC_TRIM_THRESHOLD_"]) == 1 << 30


def test_no_workers_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(_run, "PATIENCE", 2.0)
    y, e = labels()
    chunks = rows(tmp_path, seconds=0.0)
    with (
        isr_dask.local_cluster(0) as cluster,
        cluster.get_client(),
        pytest.raises(RuntimeError, match="has had no workers for 2 seconds"),
    ):
        isr_dask.fit(ISRClassifier(), chunks, y, environments=e)
