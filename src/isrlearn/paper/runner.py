"""Cells run by one process or several, and recorded one by one."""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar, cast

from threadpoolctl import threadpool_limits

from isrlearn.paper.records import CellKey, Failure, Record, RecordFile
from isrlearn.progress import progress, terminated_as_interrupted

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def complete(
    records: RecordFile,
    keys: Sequence[CellKey],
    work: Callable[[list[CellKey]], Iterable[Record | Failure]],
    *,
    group: Callable[[CellKey], Any],
    n_jobs: int = 1,
    label: str = "cells",
) -> list[Failure]:
    """Failures among the cells, after all that were not recorded yet have been run and recorded.

    Parameters
    ----------
    records : RecordFile
        The open file of records.
    keys : sequence of CellKey
        The cells.
    work : callable
        Yields the outcome of each of the cells that it is given.
    group : callable
        Sort key of a cell; cells with the same one, which share their data, are run together.
    n_jobs : int, default=1
        Number of processes.
    label : str
        Text beside the progress bar.

    Examples
    --------
    >>> import tempfile
    >>> keys = [CellKey("3s", "erm", 2, seed, "converged") for seed in (0, 1)]
    >>> def work(cells):
    ...     print("running", [key.seed for key in cells])
    ...     return [Record(key, 0.5, 0.0, [0.5, 0.5], 0.1) for key in cells]
    >>> with tempfile.TemporaryDirectory() as folder, RecordFile(folder, "example") as records:
    ...     complete(records, keys[:1], work, group=lambda key: key.seed)
    ...     complete(records, keys, work, group=lambda key: key.seed)
    running [0]
    []
    running [1]
    []
    """
    cells = {key.id: key for key in keys}
    groups: dict[Any, list[CellKey]] = {}
    for key in cells.values():
        if key.id not in records.by_id:
            groups.setdefault(group(key), []).append(key)
    tasks = [groups[name] for name in sorted(groups)]
    failures = []
    n_done = len(cells) - sum(map(len, tasks))
    with progress(len(cells), label, shown=True, done=n_done) as advance:
        for outcome in outcomes(work, tasks, n_jobs):
            if isinstance(outcome, Failure):
                failures.append(outcome)
            else:
                records.append(outcome)
            advance(1)
    return failures


def recorded(
    records: RecordFile,
    keys: Sequence[CellKey],
    work: Callable[[list[CellKey]], Iterable[Record | Failure]],
    **how: Any,
) -> tuple[list[Record], list[Failure]]:
    """Records of the cells, in order, and failures; `how` are further arguments of `complete`."""
    with terminated_as_interrupted(), records:
        failures = complete(records, keys, work, **how)
    return [records.by_id[key.id] for key in keys if key.id in records.by_id], failures


def outcomes(
    work: Callable[[Task], Iterable[Outcome]], tasks: Sequence[Task], n_jobs: int = 1
) -> Iterator[Outcome]:
    """Each outcome of ``work(task)`` for all tasks, as soon as it is available.

    With one job everything runs in this process, in order. With more jobs, each of as many fresh
    processes gets one task at a time and returns outcome by outcome, so that an interruption
    loses only what had not yet been yielded. BLAS runs on one thread in either case: an outcome
    is bitwise the same for any number of jobs.

    Parameters
    ----------
    work : callable
        Yields the outcomes of a task. With several jobs it must be importable by its name.
    tasks : sequence
        The tasks.
    n_jobs : int, default=1
        Number of processes.

    Raises
    ------
    RuntimeError
        If a process dies without having finished its task.

    Examples
    --------
    >>> list(outcomes(range, [2, 3]))
    [0, 1, 0, 1, 2]
    """
    if n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs}: it must be at least 1")
    n_jobs = min(n_jobs, len(tasks))
    if n_jobs <= 1:
        with threadpool_limits(limits=1):
            for task in tasks:
                yield from work(task)
        return
    workers = [_started(work) for _ in range(n_jobs)]
    try:
        yield from _distributed(workers, list(tasks))
    finally:
        for process, connection in workers:
            connection.close()
            process.terminate()
            process.join()


def _started(work: Callable[[Any], Iterable[Any]]) -> tuple[BaseProcess, Connection]:
    """A new worker and our end of the pipe to it."""
    # Spawned, not forked: BLAS threads do not survive a fork, and a forked worker would inherit
    # the lock on the record file and keep it if this process were killed.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(work, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def _serve(work: Callable[[Any], Iterable[Any]], connection: Connection) -> None:
    """Work on the tasks that arrive, until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends the workers
    try:
        with threadpool_limits(limits=1):
            while True:
                for outcome in work(connection.recv()):
                    connection.send(("outcome", outcome))
                connection.send(("done", None))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
    except Exception:
        connection.send(("error", traceback.format_exc()))


def _distributed(workers: list[tuple[BaseProcess, Connection]], tasks: list[Any]) -> Iterator[Any]:
    """Outcomes in the order they arrive; each worker gets its next task when it is done."""
    waiting = iter(tasks)
    process_of = {connection: process for process, connection in workers}
    for _, connection in workers:
        connection.send(next(waiting))
    busy = set(process_of)
    while busy:
        for ready in wait(list(busy)):
            connection = cast(Connection, ready)
            try:
                kind, content = connection.recv()
            except (EOFError, ConnectionResetError):
                process = process_of[connection]
                process.join()
                raise RuntimeError(
                    f"a worker process died with exit code {process.exitcode} (killed, or out of "
                    "memory): finished cells are kept, run the command again to continue"
                ) from None
            if kind == "outcome":
                yield content
            elif kind == "error":
                raise RuntimeError(f"a worker process failed:\n{content}")
            elif (task := next(waiting, None)) is not None:
                connection.send(task)
            else:
                busy.discard(connection)
