"""Killed workers cost time but change no result; what cannot work fails with an error."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

from isrlearn import ISRClassifier  # noqa: E402
from isrlearn import dask as isr_dask  # noqa: E402
from isrlearn.dask import cluster as dask_cluster  # noqa: E402
from isrlearn.dask import parts as dask_parts  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    # Killed processes leave resources open.
    pytest.mark.filterwarnings("ignore"),
]

CHUNKS, ROWS, D = 20, 200, 6
NEVER = 10**6


@pytest.fixture(scope="module")
def cluster():
    with isr_dask.local_cluster(2) as cluster, cluster.get_client() as client:
        yield client


@pytest.fixture
def client(cluster):
    """A client of two workers, whatever the previous test did to them."""
    cluster.wait_for_workers(2, timeout=300)
    return cluster


@pytest.fixture(scope="module", autouse=True)
def small_tasks():
    with pytest.MonkeyPatch.context() as patch:
        # On a busy machine, starting Python can take more than a minute.
        patch.setattr(dask_cluster, "PATIENCE", 600.0)
        patch.setattr(dask_parts, "LEAST_BYTES", 8 * D * ROWS * 2)
        yield


def labels():
    codes = np.arange(CHUNKS * ROWS)
    return codes % 2, codes // 2 % 3


def rows(folder: Path, *, before: int = NEVER, times: int = 1, others: tuple[int, ...] = ()):
    """A Dask array whose chunks create a file each time they are started.

    The chunk that starts after `before` others kills the processes `others`, then its own worker;
    it does so up to `times` times. Nothing depends on timing.
    """

    def chunk(i):
        begun = len(list(folder.glob("*-*")))
        (folder / f"{i}-{os.getpid()}-{time.time_ns()}").touch()
        killed = sorted(folder.glob("killed*"))
        first = not killed and begun >= before
        again = 0 < len(killed) < times and killed[0].name.endswith(f".{i}")
        if first or again:
            try:
                (folder / f"turn{len(killed)}").touch(exist_ok=False)
                (folder / f"killed{len(killed)}.{i}").touch()
                # Its own process last, or the others would survive.
                for pid in sorted({*others, os.getpid()}, key=os.getpid().__eq__):
                    os.kill(pid, signal.SIGKILL)
            except FileExistsError:
                pass  # the other worker was first
        rng = np.random.default_rng(i)
        codes = np.arange(i * ROWS, (i + 1) * ROWS)
        X = rng.normal(size=(ROWS, D))
        X[:, 0] += codes // 2 % 3
        X[:, 1] += codes % 2
        return X

    make = dask.delayed(chunk)
    parts = [da.from_delayed(make(i), shape=(ROWS, D), dtype=float) for i in range(CHUNKS)]
    return da.concatenate(parts)


def begun(folder: Path) -> int:
    return len(list(folder.glob("*-*")))


@pytest.fixture(scope="module")
def calm(cluster, tmp_path_factory):
    """A fit without killed workers, and how many chunks it computed."""
    folder = tmp_path_factory.mktemp("calm")
    y, e = labels()
    fitted = isr_dask.fit(ISRClassifier(), rows(folder), y, environments=e)
    return fitted, begun(folder)


def test_chunks_in_the_memory_of_workers_are_fitted(client, calm, tmp_path):
    y, e = labels()
    there = rows(tmp_path).persist()
    found = isr_dask.fit(ISRClassifier(), there, y, environments=e)
    assert begun(tmp_path) == CHUNKS  # each once
    np.testing.assert_array_equal(found.coef_, calm[0].coef_)


@pytest.mark.parametrize("victims", [1, 2])
@pytest.mark.parametrize("where", ["moments", "head"])
def test_killed_workers_change_no_bit(client, calm, tmp_path, where, victims):
    expected, made = calm
    assert made >= 3 * CHUNKS  # the pass for the moments and at least two for the head
    # Two fifths of the pass for the moments, or of the passes for the head.
    before = 2 * CHUNKS // 5 if where == "moments" else CHUNKS + 2 * (made - CHUNKS) // 5
    pids = tuple(client.run(os.getpid).values())
    y, e = labels()
    others = pids if victims == 2 else ()
    found = isr_dask.fit(
        ISRClassifier(), rows(tmp_path, before=before, others=others), y, environments=e
    )
    client.wait_for_workers(2, timeout=300)
    alive = set(client.run(os.getpid).values())
    assert len(set(pids) - alive) == victims
    assert begun(tmp_path) > made  # some chunks were computed again
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    np.testing.assert_array_equal(found.intercept_, expected.intercept_)


def test_a_part_that_always_kills_is_an_error_soon(client, tmp_path):
    y, e = labels()
    deadly = rows(tmp_path, before=3, times=NEVER)
    with pytest.raises(RuntimeError, match="killed every worker that read it"):
        isr_dask.fit(ISRClassifier(), deadly, y, environments=e)


def test_an_error_of_a_task_is_raised_and_not_waited_for(client):
    def late():
        raise TimeoutError("the disk did not answer")

    with pytest.raises(TimeoutError, match="the disk did not answer"):
        dask_cluster.computed([dask.delayed(late)()])


def test_workers_have_one_thread_each_and_keep_their_memory(client):
    found = client.run(lambda: {name: os.environ.get(name) for name in os.environ})
    for environment in found.values():
        assert environment["OMP_NUM_THREADS"] == "1"
        assert int(environment["MALLOC_TRIM_THRESHOLD_"]) == 1 << 30


def test_no_workers_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_cluster, "PATIENCE", 2.0)
    y, e = labels()
    with (
        isr_dask.local_cluster(0) as cluster,
        cluster.get_client(),
        pytest.raises(RuntimeError, match="has had no workers for 2 seconds"),
    ):
        isr_dask.fit(ISRClassifier(), rows(tmp_path), y, environments=e)


CLOSED = """
import threading, time
from pathlib import Path
import dask.array as da
import numpy as np
from isrlearn import ISRClassifier
from isrlearn import dask as isr_dask

started, closing = Path("started"), Path("closing")

def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)

def chunk(block):
    started.touch()
    wait_for(closing)
    return block

y, e = np.arange(400) % 2, np.arange(400) // 2 % 2
X = da.from_array(np.random.default_rng(0).normal(size=(400, 3)), chunks=(100, 3))
with isr_dask.local_cluster(1, processes=False) as cluster:
    client = cluster.get_client()

    def close():
        wait_for(started)
        client.close()
        closing.touch()

    threading.Thread(target=close).start()
    with client.as_current():
        try:
            isr_dask.fit(ISRClassifier(), X.map_blocks(chunk, meta=X._meta), y, environments=e)
        except RuntimeError as error:
            print("caught:", error)
"""


def test_a_cluster_that_is_closed_in_mid_fit_is_named(tmp_path):
    # In a process of its own: a closed client leaves Dask configured for it.
    command = [sys.executable, "-c", CLOSED]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert "was closed during the fit: nothing was fitted" in run.stdout, run.stderr


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("tls://127.0.0.1:8786", "tls://127.0.0.1:8786.*certificates in Dask's configuration"),
        ("carrier-pigeon://coop:1", "unknown address scheme.*look like tcp://host:8786"),
    ],
)
def test_schedulers_that_cannot_be_reached_are_named(address, message):
    # In a process of its own: Dask must not stay configured for a client that could not connect.
    code = f"""
import dask
from isrlearn.dask import client_of
try:
    client_of({address!r})
except ValueError as error:
    print(error)
print("scheduler:", dask.config.get("scheduler", None))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert re.search(f"(?s){message}.*scheduler: None", run.stdout), run.stdout + run.stderr
