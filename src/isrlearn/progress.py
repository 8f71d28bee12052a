"""A progress bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    total: int | None, what: str, *, shown: bool, done: int = 0
) -> Iterator[Callable[[int], None]]:
    """A function that counts what is done, drawn as a bar if `shown` and on a terminal.

    Rich draws it; without that package there is no bar. A total of None is not known; `done` was
    done before.
    """
    if not shown or not sys.stderr.isatty():
        yield lambda done: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
    except ImportError:
        yield lambda done: None
        return
    columns = (what, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    # With the default period of 30 s the time left would jump with every slow step.
    with Progress(*columns, console=Console(stderr=True), speed_estimate_period=600) as bar:
        task = bar.add_task("", total=total, completed=done)
        yield lambda done: bar.advance(task, done)
