"""Work shared out among threads that each have a BLAS of one thread.

Products then need not wait for each other, and what lies between them, such as copies and sums, has
all the threads as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, Protocol, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

T = TypeVar("T")


class Share(Protocol):
    """Do the work for each piece; the answers in the order of the pieces."""

    def __call__(self, work: Callable[[Any], T], pieces: Iterable[Any]) -> list[T]: ...


@cache
def libraries() -> ThreadpoolController:
    """The libraries with threads of their own; to look for them takes milliseconds."""
    return ThreadpoolController()


def one_by_one(work: Callable[[Any], T], pieces: Iterable[Any]) -> list[T]:
    """`Share` by this thread alone."""
    return [work(piece) for piece in pieces]


#: Held while threads are at work: two crews at once would be in each other's way.
_at_work = Lock()


@contextmanager
def crew() -> Iterator[Share]:
    """As many threads as the BLAS may have, which has one as long as this lasts.

    This thread alone does the work, with the BLAS as it is, where that cannot be had: by a BLAS
    whose threads nobody can set, when somebody else holds them, or has a crew.
    """
    if not _at_work.acquire(blocking=False):
        yield one_by_one
        return
    try:
        threads = min(_blas_threads(), default=1)
        with libraries().limit(limits=1, user_api="blas"):
            if threads == 1 or max(_blas_threads()) > 1:
                yield one_by_one
                return
            with ThreadPoolExecutor(threads, "isrlearn", _begin) as pool:
                yield lambda work, pieces: list(pool.map(work, pieces))
    finally:
        _at_work.release()


def _blas_threads() -> list[int]:
    return [library["num_threads"] for library in libraries().select(user_api="blas").info()]


def _begin() -> None:
    """Set up a thread: some libraries count threads for each of those that call."""
    libraries().limit(limits=1)
    np.seterr(over="ignore", invalid="ignore")  # seen in the sums
