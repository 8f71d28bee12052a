"""Cells run by one process or several and recorded one by one, and those of synthetic data."""

import multiprocessing
import os
import platform
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from isrlearn.datasets import EnvironmentData
from isrlearn.paper.datasets import permute_spurious
from isrlearn.paper.experiments import EXPERIMENTS, METHODS
from isrlearn.paper.records import CellKey, Failure, Record, RecordFile, grouped
from isrlearn.progress import progress, terminated_as_interrupted

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")


def each_fit(
    groups: Iterable[list[CellKey]], fit: Callable[[list[CellKey]], Iterable[Record | Failure]]
) -> Iterator[Record | Failure]:
    """Records of the cells of each fit; a fit that raises an error fails all of its cells."""
    for cells in groups:
        try:
            yield from fit(cells)
        except Exception as error:
            yield from (Failure(key, f"{type(error).__name__}: {error}") for key in cells)


def complete(
    records: RecordFile,
    keys: Sequence[CellKey],
    work: Callable[[list[CellKey]], Iterable[Record | Failure]],
    *,
    group: Callable[[CellKey], Any],
    n_jobs: int = 1,
    label: str = "cells",
) -> list[Failure]:
    """Failures among the cells, after those not recorded yet have been run, group by group."""
    cells = {key.id: key for key in keys}
    groups = grouped([key for key in cells.values() if key.id not in records.by_id], group)
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

    BLAS runs on one thread, so that an outcome is bitwise the same for any number of jobs. With
    more than one, an interruption loses the outcomes of the tasks under way.
    """
    if n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs}: it must be at least 1")
    if min(n_jobs, len(tasks)) <= 1:
        with threadpool_limits(limits=1):
            for task in tasks:
                yield from work(task)
        return
    others = set(multiprocessing.active_children())
    # Spawned, not forked: BLAS threads do not survive a fork, and a forked worker would inherit
    # the lock on the record file and keep it if this process were killed.
    pool = ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn"), _serve_parent)
    try:
        for done in as_completed([pool.submit(_outcomes, work, task) for task in tasks]):
            yield from done.result()
    except BrokenProcessPool as error:
        raise RuntimeError(
            "a worker process died (killed, or out of memory): finished cells are kept, run the "
            "command again to continue"
        ) from error
    finally:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        pool.shutdown(cancel_futures=True)


def _serve_parent() -> None:
    """Leave Ctrl-C to the parent, which ends the workers, and end if it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def _outcomes(work: Callable[[Task], Iterable[Outcome]], task: Task) -> list[Outcome]:
    """All outcomes of a task, in a process of its own."""
    with threadpool_limits(limits=1):
        return list(work(task))


def evaluate(experiment: str, keys: Sequence[CellKey]) -> Iterator[Record | Failure]:
    """Outcome of each cell on the test split; the data, the same for all cells, are made once."""
    first = keys[0]
    panel = EXPERIMENTS[experiment].panels[first.dataset]
    splits = panel.make(
        n_environments=first.n_environments, random_state=first.seed, **first.options
    )

    @cache
    def permuted() -> tuple[EnvironmentData, EnvironmentData]:
        train = permute_spurious(splits.train, random_state=first.seed)
        return train, permute_spurious(splits.validation, random_state=first.seed)

    def records(cells: list[CellKey]) -> Iterator[Record]:
        method = METHODS[cells[0].method]
        train, validation = permuted() if method.oracle else (splits.train, splits.validation)
        models = [
            method.estimator(panel, key.n_environments, key.optimizer, key.parameters)
            for key in cells
        ]
        fits = _fits(models, (train.X, train.y, train.environments))
        for key, (model, seconds, warned) in zip(cells, fits, strict=True):
            errors = environment_errors(model, splits.test)
            held_out = float(np.mean(environment_errors(model, validation)))
            value = float(np.mean(errors))
            yield Record(key, value, held_out, errors, seconds, warned, _versions())

    return each_fit(grouped(keys, lambda key: key.method).values(), records)


def _fits(models: Sequence[Any], data: tuple[Any, ...]) -> Iterator[tuple[Any, float, list[str]]]:
    """Fitted models with seconds and warnings; trials of the published steps are fitted at once."""
    first, n = models[0], len(models)
    if n > 1 and getattr(first, "optimizer", "") == "published":
        _, seconds, warned = fitted(first.fit_together, models, *data)
        yield from ((model, seconds / n, warned) for model in models)
    else:
        yield from (fitted(model.fit, *data) for model in models)


def environment_errors(estimator: Any, data: EnvironmentData) -> list[float]:
    """Share of wrong labels or mean squared error, infinite on overflow, per environment."""
    predicted = estimator.predict(data.X)
    if hasattr(estimator, "classes_"):
        wrong = (predicted != data.y).astype(float)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            wrong = np.nan_to_num((predicted - data.y) ** 2, nan=np.inf, posinf=np.inf)
    return [float(wrong[data.environments == e].mean()) for e in np.unique(data.environments)]


def fitted(fit: Any, *arguments: Any, **keywords: Any) -> tuple[Any, float, list[str]]:
    """Result, seconds and distinct warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        result = fit(*arguments, **keywords)
        seconds = time.perf_counter() - start
    return result, seconds, sorted({f"{w.category.__name__}: {w.message}"[:200] for w in caught})


@cache
def _versions() -> dict[str, str]:
    """Versions of the packages that the result depends on."""
    import isrlearn

    found = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"isrlearn": isrlearn.__version__, "python": platform.python_version(), **found}
