"""Groups of cells worked through by one process or several, results handed back one by one."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import Any, TypeVar, cast

from threadpoolctl import threadpool_limits

__all__ = ["outcomes", "progress", "terminated_as_interrupted"]

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def outcomes(
    work: Callable[[Task], Iterable[Outcome]], tasks: Sequence[Task], n_jobs: int = 1
) -> Iterator[Outcome]:
    """Each outcome of ``work(task)`` for all tasks, as soon as it is there.

    With one job everything runs in this process, in order. With more, tasks go to as many
    fresh processes, one at a time; what a process finds comes back outcome by outcome, so that a
    long task that is interrupted loses only what it had not yet yielded. BLAS runs on one thread
    in either case: an outcome depends on its task alone, to the last bit.

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
        yield from _shared_out(workers, list(tasks))
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
    """Work through the tasks that come in, until the other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, who ends us
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


def _shared_out(workers: list[tuple[BaseProcess, Connection]], tasks: list[Any]) -> Iterator[Any]:
    """Outcomes in the order they arrive; each worker gets its next task when it is done."""
    waiting = iter(tasks)
    process_of = {connection: process for process, connection in workers}
    busy = set()
    for _, connection in workers:
        connection.send(next(waiting))
        busy.add(connection)
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
                    "memory): what was finished is kept, run the command again to go on"
                ) from None
            if kind == "outcome":
                yield content
            elif kind == "error":
                raise RuntimeError(f"a worker process failed:\n{content}")
            else:
                busy.discard(connection)
                for task in waiting:
                    connection.send(task)
                    busy.add(connection)
                    break


@contextmanager
def progress(total: int, label: str, done: int = 0) -> Iterator[Callable[[], None]]:
    """A function to call once a finished cell: a bar with the time left, on a terminal only.

    Examples
    --------
    >>> with progress(2, "cells") as advance:
    ...     advance()
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    # The default window of 30 s would let the time left jump with every slow cell.
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=600) as bar:
        task = bar.add_task(label, total=total, completed=done)
        yield lambda: bar.advance(task)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does: end the run in order, with the records closed.

    Examples
    --------
    >>> import os, signal
    >>> with terminated_as_interrupted():
    ...     try:
    ...         signal.raise_signal(signal.SIGTERM)
    ...     except KeyboardInterrupt:
    ...         print("in order")
    in order
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set a handler
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
