"""Workers on this machine that do not stand in each other's way."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import dask

#: One BLAS thread a worker, known before NumPy is imported there; and freed memory kept for the
#: next block instead of returned to the system at once, as the nanny's own settings have it: that
#: costs a third of the processor's time.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
}

#: How long Dask waits for a worker that died before it ends its nanny too, which would have started
#: it again: with Dask's own 15 seconds a busy machine loses its workers one by one.
LOST = {"distributed.deploy.lost-worker-timeout": "1h"}


def local_cluster(n_workers: int | None = None, **settings: Any) -> Any:
    """A `distributed.LocalCluster` of processes with one thread each, set up for numerical work.

    Workers that die are started again, however long that takes: Dask's configuration
    ``distributed.deploy.lost-worker-timeout`` is set to an hour in this process.

    Parameters
    ----------
    n_workers : int, optional
        One a core when not given.
    **settings
        Passed on to `distributed.LocalCluster`.

    Examples
    --------
    >>> from isrlearn.dask import local_cluster
    >>> with local_cluster(2) as cluster, cluster.get_client() as client:  # doctest: +SKIP
    ...     fit(ISRClassifier(), X, y, environments=e)
    """
    from distributed import LocalCluster

    dask.config.set(LOST)  # read whenever a worker is lost
    settings = {"threads_per_worker": 1, "dashboard_address": None} | settings
    # Dask looks at what every worker does a hundred times a second, for a page nobody opens here.
    watched = settings["dashboard_address"] is not None
    with dask.config.set(
        {
            "distributed.nanny.pre-spawn-environ": ENVIRONMENT,
            "distributed.worker.profile.enabled": watched,
        }
    ):
        return LocalCluster(n_workers=n_workers, **settings)


def client_of(scheduler: str | None) -> AbstractContextManager[Any]:
    """A client of the scheduler at an address, for a with block; without one, of none.

    Examples
    --------
    >>> from isrlearn.dask import client_of
    >>> with client_of(None):
    ...     pass
    """
    if scheduler is None:
        return nullcontext()
    from distributed import Client

    try:
        return Client(scheduler, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(
            f"there is no Dask scheduler at {scheduler!r}: {error}. Addresses look like "
            "tcp://host:8786"
        ) from error
