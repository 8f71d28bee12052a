"""A plan of networks and methods worked through, cell by cell, and what it found written down."""

from __future__ import annotations

import json
import math
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from isrlearn.metrics import group_report
from isrlearn.paper.evaluate import Failure
from isrlearn.paper.files import write_beside
from isrlearn.paper.real.catalogue import REAL
from isrlearn.paper.real.experiment import Experiment
from isrlearn.paper.real.features import TrainedFeatures, cached_features
from isrlearn.paper.real.methods import METHODS
from isrlearn.paper.real.pretrained import HEADS
from isrlearn.paper.real.scores import SCORES
from isrlearn.paper.real.tables import CellScore, as_rows, cell_scores, score_tables
from isrlearn.paper.records import CellKey, Record, RecordFile
from isrlearn.paper.runner import outcomes, progress, terminated_as_interrupted
from isrlearn.paper.tables import Table, markdown

__all__ = ["RealPlan", "RealResult", "run_real", "write_real"]


@dataclass(frozen=True)
class RealPlan:
    """What is run of an experiment.

    Parameters
    ----------
    experiment : str
        A name in `REAL`.
    n_seeds : int, optional
        Default: the experiment's.
    trained_with, methods : tuple of str, optional
        Rows and columns; default: all.
    options : mapping
        Changes to the options by which a run is decided.
    full : bool, default=False
        Start from the paper's sizes instead of those for a small machine.

    Examples
    --------
    >>> plan = RealPlan("law-school", n_seeds=2, trained_with=("erm",), methods=("original",))
    >>> len(plan.keys())
    4
    """

    experiment: str
    n_seeds: int | None = None
    trained_with: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    full: bool = False

    def __post_init__(self) -> None:
        if self.experiment not in REAL:
            raise ValueError(
                f"unknown experiment {self.experiment!r}; there are: {', '.join(REAL)}"
            )
        known = self.of
        for kind, names, legal in (
            ("objective", self.trained_with, known.trained_with),
            ("method", self.methods, known.methods),
        ):
            for name in names or ():
                if name not in legal:
                    raise ValueError(f"unknown {kind} {name!r}; there are: {', '.join(legal)}")
        if self.n_seeds is not None and self.n_seeds < 1:
            raise ValueError(f"n_seeds={self.n_seeds}: it must be at least 1")

    @property
    def of(self) -> Experiment:
        """The experiment."""
        return REAL[self.experiment]

    @property
    def settled(self) -> dict[str, Any]:
        """Options as they are used."""
        return {**self.of.options, **(self.of.full if self.full else {}), **self.options}

    @property
    def rows(self) -> tuple[str, ...]:
        """Ways of training; of heads on a file of features, those that heads can be trained in."""
        if self.trained_with is not None:
            return self.trained_with
        names = tuple(self.of.trained_with)
        heads_only = self.settled.get("features") is not None
        return tuple(name for name in names if name in HEADS) if heads_only else names

    def keys(self) -> list[CellKey]:
        """The cells, one for each score of a method on a network."""
        options = self.settled
        seeds = range(self.of.n_seeds if self.n_seeds is None else self.n_seeds)
        return [
            CellKey(self.experiment, m, 0, seed, t, {}, {**options, "score": score})
            for seed in seeds
            for t in self.rows
            for m in (self.methods or self.of.methods)
            for score in self.of.scores
        ]


@dataclass(frozen=True)
class RealResult:
    """What a run found.

    Parameters
    ----------
    plan : RealPlan
    records : list of Record
        Errors, one for each score of a method on a network.
    failures : list of Failure
    """

    plan: RealPlan
    records: list[Record]
    failures: list[Failure]

    @property
    def cells(self) -> list[CellScore]:
        """Means over seeds, in the order of the plan."""
        return cell_scores(self.records, self.plan.of.methods[0])

    def tables(self) -> list[Table]:
        """One table a score, in the layout of the paper."""
        return score_tables(self.plan.of, self.cells)

    def to_dict(self) -> dict[str, Any]:
        """The plan, the means and the failures, ready for JSON."""
        cells = [
            {k: None if isinstance(v, float) and math.isnan(v) else v for k, v in asdict(c).items()}
            for c in self.cells
        ]
        failures = [{**asdict(f.key), "message": f.message} for f in self.failures]
        return {"plan": asdict(self.plan), "cells": cells, "failures": failures}


@dataclass(frozen=True)
class _Task:
    """Cells that share a network."""

    keys: tuple[CellKey, ...]
    cache: Path


def run_real(
    plan: RealPlan,
    out: Path | str,
    *,
    cache: Path | str | None = None,
    n_jobs: int = 1,
    command: str = "",
) -> RealResult:
    """Result of a plan, of whose cells those already recorded in `out` are not run again.

    Parameters
    ----------
    plan : RealPlan
    out : path
        Directory of the records.
    cache : path, optional
        Directory of the networks' features; default: ``features`` in `out`. Methods that are
        added later find them there.
    n_jobs : int, default=1
        Networks trained at a time, each by a process of one thread.
    command : str
        What made the run.
    """
    cache = Path(out) / "features" if cache is None else Path(cache)
    with terminated_as_interrupted(), RecordFile(out, plan.experiment, command) as records:
        keys = plan.keys()
        missing = [key for key in keys if key.id not in records.by_id]
        tasks: dict[tuple[int, str], list[CellKey]] = {}
        for key in missing:
            tasks.setdefault((key.seed, key.optimizer), []).append(key)
        failures = []
        work = [_Task(tuple(cells), cache) for cells in tasks.values()]
        with progress(len(keys), plan.experiment, len(keys) - len(missing)) as advance:
            for outcome in outcomes(_evaluated, work, n_jobs):
                if isinstance(outcome, Failure):
                    failures.append(outcome)
                else:
                    records.append(outcome)
                advance()
        found = [records.by_id[key.id] for key in keys if key.id in records.by_id]
    return RealResult(plan, found, failures)


def write_real(result: RealResult, out: Path | str, *, command: str = "") -> list[Path]:
    """Paths of the files written: table.md, summary.csv, result.json."""
    experiment = result.plan.of
    n = len({record.key.seed for record in result.records})
    settings = ", ".join(f"{k} = {v}" for k, v in result.plan.settled.items() if v is not None)
    notes = [
        f"Mean ± standard deviation over {n} seed{'s' * (n != 1)}; "
        f"{'*paper* is what the paper prints for it; ' if experiment.table else ''}"
        "*better by* is the mean difference from the first column, seed by seed, with its standard "
        "error.",
        *experiment.notes,
        f"Run with {settings}." if settings else "",
    ]
    if command:
        notes.insert(0, f"Made by `{command}`.")
    rows = as_rows(result.cells, experiment.trained_with)
    files = {
        "table.md": markdown(experiment.title, [note for note in notes if note], result.tables()),
        "summary.csv": "".join(",".join(row) + "\n" for row in rows),
        "result.json": json.dumps(result.to_dict(), indent=1),
    }
    return [write_beside(Path(out) / name, text.encode()) for name, text in files.items()]


def _evaluated(task: _Task) -> Iterator[Record | Failure]:
    """Outcomes of all methods on one network, which is trained unless its features are kept."""
    first = task.keys[0]
    experiment = REAL[first.dataset]
    options = {name: value for name, value in first.options.items() if name != "score"}
    methods: dict[str, list[CellKey]] = {}
    for key in task.keys:
        methods.setdefault(key.method, []).append(key)
    try:
        found = cached_features(
            lambda: experiment.features(first.optimizer, first.seed, options),
            task.cache,
            f"{first.dataset}-{'encoder' if experiment.frozen else first.optimizer}-{first.seed}",
            options,
        )
    except Exception as error:
        yield from (Failure(key, f"{type(error).__name__}: {error}") for key in task.keys)
        return
    for name, keys in methods.items():
        try:
            yield from _scored(experiment, found, name, keys)
        except Exception as error:
            yield from (Failure(key, f"{type(error).__name__}: {error}") for key in keys)


def _scored(
    experiment: Experiment, found: TrainedFeatures, name: str, keys: list[CellKey]
) -> list[Record]:
    """Records of one method, fitted once for all its scores."""
    rule = experiment.rule(keys[0].optimizer, keys[0].options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        predict = METHODS[name].fit(found, rule, keys[0].seed)
        seconds = time.perf_counter() - start
    notes = sorted({f"{w.category.__name__}: {w.message}"[:200] for w in caught})
    metric = SCORES[experiment.scores[0]].kind
    test, validation = (
        group_report(data.y, predict(data), environments=data.environments, metric=metric)
        for data in (found.splits.test, found.splits.validation)
    )
    out = []
    for key in keys:
        score = SCORES[key.options["score"]]
        errors = [score.error(group.value) for group in test.groups]
        value, held_out = (score.error(score.of(report)) for report in (test, validation))
        out.append(Record(key, value, held_out, errors, seconds, notes))
    return out
