"""Local clusters and clients, and running tasks with errors that say what happened."""

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import dask

#: Seconds without any worker after which a run is given up.
PATIENCE = 60.0

#: One BLAS thread per worker, set before NumPy is imported there. Freed memory is kept for the next
#: block: returning it to the system at once, the default, costs a third of the processor time.
_ENVIRONMENT = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_ENVIRONMENT |= dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(1 << 30))


def local_cluster(n_workers: int | None = None, **settings: Any) -> Any:
    """A `distributed.LocalCluster` of processes with one thread each, set up for numerical work.

    Workers that die are restarted, however long that takes: Dask's configuration
    ``distributed.deploy.lost-worker-timeout`` is set to an hour in this process.

    Parameters
    ----------
    n_workers : int, optional
        Number of workers; default: one per core.
    **settings
        Passed on to `distributed.LocalCluster`.

    Examples
    --------
    >>> from isrlearn.dask import local_cluster
    >>> with local_cluster(2) as cluster, cluster.get_client() as client:  # doctest: +SKIP
    ...     fit(ISRClassifier(), X, y, environments=e)
    """
    from distributed import LocalCluster

    # After the default of 15 seconds Dask gives up a worker that is being restarted, so a busy
    # machine would lose its workers one by one. The value is read whenever a worker is lost.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"})
    settings = {"threads_per_worker": 1, "dashboard_address": None} | settings
    # Dask samples the stack of every worker a hundred times per second, for the dashboard only.
    profile = settings["dashboard_address"] is not None
    with dask.config.set(
        {
            "distributed.nanny.pre-spawn-environ": _ENVIRONMENT,
            "distributed.worker.profile.enabled": profile,
        }
    ):
        return LocalCluster(n_workers=n_workers, **settings)


def client_of(scheduler: str | None) -> AbstractContextManager[Any]:
    """A client of the scheduler at an address, for a with block; for None, an empty context.

    Examples
    --------
    >>> from isrlearn.dask import client_of
    >>> with client_of(None):
    ...     pass
    """
    if scheduler is None:
        return nullcontext()
    from distributed import Client

    before = dask.config.get("scheduler", None)
    try:
        return Client(scheduler, timeout="10s")
    except Exception as error:  # each transport raises errors of its own
        dask.config.set(scheduler=before)  # a client that could not connect stays configured
        hint = "Addresses look like tcp://host:8786"
        if scheduler.startswith(("tls:", "wss:")):
            hint = "Set its certificates in Dask's configuration, distributed.comm.tls"
        raise ValueError(f"there is no Dask scheduler at {scheduler!r}: {error}. {hint}") from error


def client_in_use() -> Any:
    """The client of the cluster in use, or None if tasks run in this process."""
    # The scheduler in use is then a method of the client.
    return getattr(dask.base.get_scheduler(), "__self__", None)


def computed(tasks: list[Any], client: Any = None) -> list[Any]:
    """Results of delayed tasks, in their order, from a client or the scheduler in use.

    On a cluster, a task whose worker dies is run again on another one. A task that kills every
    worker it runs on, a cluster without workers and one that is closed are errors.
    """
    client = client or client_in_use()
    if client is None:
        return list(dask.compute(*tasks))
    from distributed import KilledWorker

    futures: list[Any] = []
    try:
        futures = client.compute(tasks)
        return _results(client, futures)
    except BaseException as error:
        if client.status == "running":
            client.cancel(futures)
        elif isinstance(error, Exception):
            raise RuntimeError(
                "the connection to the Dask cluster was closed during the fit: nothing was fitted. "
                "Connect to a cluster and fit again"
            ) from error
        if not isinstance(error, KilledWorker):
            raise
        raise RuntimeError(
            "a part of the data killed every worker that read it, probably because it ran out of "
            f"memory: make the chunks smaller or the workers larger ({error})"
        ) from error
    finally:
        # Now, not when they are garbage-collected: if a worker died, Dask would run them again.
        for future in futures:
            future.release()


def _results(client: Any, futures: list[Any]) -> list[Any]:
    """What the tasks returned, or the first error; raise if no workers are left."""
    from distributed import wait

    seen = time.monotonic()  # when there last were workers
    while time.monotonic() - seen <= PATIENCE:
        failed: list[Any] = []
        try:
            wait(futures, timeout=2)
            failed = [future for future in futures if future.status == "error"]
            if not failed:
                return [future.result(timeout=PATIENCE) for future in futures]
        except TimeoutError:
            # Not done yet, or a worker that held a result has died since: its task runs again.
            if client.scheduler_info(n_workers=-1)["workers"]:
                seen = time.monotonic()
        if failed:
            failed[0].result()  # raises what the task raised
    raise RuntimeError(
        f"the cluster at {client.scheduler.address} has had no workers for {PATIENCE:g} seconds: "
        "nothing was fitted. Start workers and fit again"
    )
