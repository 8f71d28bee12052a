"""Every setting on every split, on several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import joblib
from threadpoolctl import threadpool_limits

from isrlearn._progress import progress
from isrlearn.estimators.search._jobs import Job
from isrlearn.estimators.search._scores import Score
from isrlearn.estimators.search._splits import Split


class Prepared(Protocol):
    """A split made ready: jobs, and what comes of each."""

    def jobs(self) -> list[Job]:
        """What can be done independently."""

    def __call__(self, job: Job) -> list[tuple[int, Score]]:
        """Scores of the members of a job."""


def score_all(
    prepare: Callable[[Split], Prepared],
    splits: Sequence[Split],
    n_points: int,
    *,
    n_jobs: int | None,
    verbose: int,
) -> list[list[Score]]:
    """Scores of every setting on every split, ``scores[point][split]``.

    A split is prepared with all the threads that linear algebra has by itself; its jobs then run
    side by side with one each. So what is computed does not depend on `n_jobs`, to the last bit.
    """
    table: list[list[Any]] = [[None] * len(splits) for _ in range(n_points)]
    total = n_points * len(splits)
    with progress(total, "settings × splits", shown=verbose > 0) as advance:
        for column, split in enumerate(splits):
            prepared = prepare(split)
            jobs = prepared.jobs()
            with threadpool_limits(limits=1):
                for scores in _side_by_side(prepared, jobs, n_jobs):
                    for point, score in scores:
                        table[point][column] = score
                    advance(len(scores))
    return table


def _side_by_side(
    prepared: Prepared, jobs: list[Job], n_jobs: int | None
) -> Iterable[list[tuple[int, Score]]]:
    """What comes of the jobs, as they are done."""
    # Threads: the rows are shared and NumPy lets go of the interpreter while it works on them.
    parallel = joblib.Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator_unordered")
    return parallel(joblib.delayed(prepared)(job) for job in jobs)
