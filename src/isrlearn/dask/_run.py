"""Running tasks on whatever scheduler is there, with errors that say what happened."""

from __future__ import annotations

import time
from typing import Any

import dask

#: Seconds without any worker after which a run is given up.
PATIENCE = 60.0


def computed(tasks: list[Any]) -> list[Any]:
    """Results of delayed tasks, in their order.

    On a cluster a task whose worker dies is run again elsewhere; one that kills every worker it
    meets, or a cluster that has no workers left, is an error.
    """
    client = _client()
    if client is None:
        return list(dask.compute(*tasks))
    from distributed import KilledWorker

    futures = client.compute(tasks)
    try:
        _wait(client, futures)
        return [_result(client, future) for future in futures]
    except KilledWorker as error:
        client.cancel(futures)
        raise RuntimeError(
            "a part of the data ended every worker that tried it, most likely for want of memory: "
            f"make its chunks smaller or the workers larger ({error})"
        ) from error
    except BaseException:
        client.cancel(futures)
        raise
    finally:
        # Now, not when Python gets to it: a worker that dies would be made to do them again.
        for future in futures:
            future.release()


def _wait(client: Any, futures: list[Any]) -> None:
    """Return when all are done, well or not."""
    from distributed import wait

    alone = None
    while True:
        try:
            wait(futures, timeout=2)
            return
        except TimeoutError:
            alone = _checked(client, alone)


def _result(client: Any, future: Any) -> Any:
    """What a task that is done returned, or raised."""
    while future.status == "finished":
        try:
            return future.result(timeout=PATIENCE)
        except TimeoutError:
            # Its worker died since, and nobody else has it: it is made again.
            _wait(client, [future])
    return future.result()


def _client() -> Any:
    """The client of the cluster in use, if there is one and nothing else was asked for."""
    if dask.config.get("scheduler", None) not in (None, "dask.distributed", "distributed"):
        return None
    try:
        from distributed import get_client

        return get_client()
    except (ImportError, ValueError):
        return None


def _checked(client: Any, alone: float | None) -> float | None:
    """Since when the cluster has had no workers; raises if that is too long."""
    if client.scheduler_info(n_workers=-1)["workers"]:
        return None
    now = time.monotonic()
    if alone is not None and now - alone > PATIENCE:
        raise RuntimeError(
            f"the cluster at {client.scheduler.address} has had no workers for {PATIENCE:g} "
            "seconds: nothing was fitted. Start workers and fit again"
        )
    return now if alone is None else alone
