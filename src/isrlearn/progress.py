"""Long runs: a progress bar on a terminal, and an orderly end."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a run like Ctrl-C: files are closed, and no half file is left."""


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Raise `Terminated` at a SIGTERM, and no signal is lost in a finaliser.

    An exception cannot leave a ``__del__``: Python would print its traceback and go on. The signal
    is sent again when that function has ended.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set a handler
        return

    def interrupt(*_: Any) -> None:
        raise Terminated

    again: list[threading.Timer] = []

    def finaliser_failed(found: Any) -> None:
        if not issubclass(found.exc_type, KeyboardInterrupt):
            return unraisable(found)
        lost = signal.SIGTERM if issubclass(found.exc_type, Terminated) else signal.SIGINT
        main = threading.main_thread().ident
        # Late enough for this hook to have ended on a busy machine: it would lose the signal too.
        again.append(threading.Timer(0.1, signal.pthread_kill, (main, lost)))
        return again[-1].start()

    before, unraisable = signal.signal(signal.SIGTERM, interrupt), sys.unraisablehook
    sys.unraisablehook = finaliser_failed
    try:
        yield
        for timer in again:
            timer.join()
    finally:
        sys.unraisablehook = unraisable
        signal.signal(signal.SIGTERM, before)


def on_terminal() -> bool:
    """Whether standard error, which may be closed, is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def progress(
    total: int | None, what: str, *, shown: bool, done: int = 0
) -> Iterator[Callable[[int], None]]:
    """A function that counts what is done, drawn as a bar if `shown` and on a terminal.

    Rich draws it; without that package there is no bar. A total of None is not known; `done` was
    done before.
    """
    if not shown or not on_terminal():
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
