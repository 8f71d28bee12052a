"""Runs of the experiments on real data: plan, cells, result and files."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from isrlearn.paper.plan import check_names
from isrlearn.paper.real.experiments import REAL
from isrlearn.paper.real.features import cached_features
from isrlearn.paper.real.methods import METHODS
from isrlearn.paper.real.tables import (
    HEADS,
    ORACLE,
    SCORES,
    CellScore,
    Experiment,
    cell_scores,
    score_tables,
    scored,
)
from isrlearn.paper.records import CellKey, Failure, Record, RecordFile, grouped
from isrlearn.paper.runner import each_fit, fitted, recorded
from isrlearn.paper.summary import csv_of_scores
from isrlearn.paper.tables import Table, csv_of, markdown, notes, result_dict, write_files


@dataclass(frozen=True)
class RealPlan:
    """Which part of an experiment is run, with which options; None stands for the default.

    Examples
    --------
    >>> plan = RealPlan("law-school", n_seeds=2, trained_with=("erm",), methods=("original",))
    >>> len(plan.keys())
    4
    """

    experiment: str  # name in REAL
    n_seeds: int | None = None
    trained_with: tuple[str, ...] | None = None  # rows
    methods: tuple[str, ...] | None = None  # columns
    options: Mapping[str, Any] = field(default_factory=dict)  # changes to the defaults
    full: bool = False  # use the paper's sizes instead of those for a small machine

    def __post_init__(self) -> None:
        check_names("experiment", [self.experiment], REAL)
        check_names("objective", self.trained_with or (), self.of.trained_with)
        check_names("method", self.methods or (), self.of.methods)
        if self.of.networks:
            check_names("network", [self.settled["network"]], self.of.networks)
        if self.n_seeds is not None and self.n_seeds < 1:
            raise ValueError(f"n_seeds={self.n_seeds}: it must be at least 1")
        fixed = self.of.frozen and "data" in self.of.options  # an encoder of given images
        most = len(self.files) or int(fixed)  # 0 if every seed trains a network
        if self.n_seeds is not None and 0 < most < self.n_seeds:
            raise ValueError(
                f"n_seeds={self.n_seeds}: heads on given features do not depend on the seed, and "
                f"there are {most} sets of features; give one file of features per network"
            )

    @property
    def of(self) -> Experiment:
        """The experiment."""
        return REAL[self.experiment]

    @property
    def settled(self) -> dict[str, Any]:
        """All options of the run."""
        return {**self.of.options, **(self.of.full if self.full else {}), **self.options}

    @property
    def files(self) -> tuple[str, ...]:
        """Files of features, one per network; empty if the networks are trained here."""
        return tuple(self.settled.get("features") or ())

    @property
    def rows(self) -> tuple[str, ...]:
        """Objectives; with files of features, only those with which heads can be trained."""
        if self.trained_with is not None:
            return self.trained_with
        return tuple(name for name in self.of.trained_with if name in HEADS or not self.files)

    def keys(self) -> list[CellKey]:
        """The cells, one for each score of a method on a network."""
        options = self.settled
        files = self.files[: self.n_seeds]
        # The same name may hold other features later.
        runs = [{**options, "features": file, "sha256": _sha256(file)} for file in files]
        runs = runs or [options] * (self.n_seeds or self.of.n_seeds)
        return [
            CellKey(self.experiment, m, 0, seed, t, {}, {**run, "score": score})
            for seed, run in enumerate(runs, start=self.of.first_seed)
            for t in self.rows
            for m in (self.methods or self.of.methods)[: 1 if t in ORACLE else None]
            for score in self.of.scores
        ]


@dataclass(frozen=True)
class RealResult:
    """The result of a run."""

    plan: RealPlan
    records: list[Record]  # errors, one for each score of a method on a network
    failures: list[Failure]

    @property
    def cells(self) -> list[CellScore]:
        """Means over seeds, in the order of the plan."""
        return cell_scores(self.records, self.plan.of.methods[0])

    def tables(self) -> list[Table]:
        """One table per score, in the layout of the paper."""
        return score_tables(self.plan.of, self.cells)

    def to_dict(self) -> dict[str, Any]:
        """The plan, the means and the failures, ready for JSON."""
        return result_dict(self.plan, self.failures, cells=self.cells)


def run_real(
    plan: RealPlan,
    out: Path | str,
    *,
    cache: Path | str | None = None,
    n_jobs: int = 1,
    command: str = "",
) -> RealResult:
    """Result of a plan; cells recorded in `out` and features in `cache` are not made again."""
    folder = Path(out) / "features" if cache is None else Path(cache)
    records, work = RecordFile(out, plan.experiment, command), partial(_evaluated, folder)
    how: dict[str, Any] = {"group": lambda key: (key.seed, key.optimizer), "n_jobs": n_jobs}
    return RealResult(plan, *recorded(records, plan.keys(), work, label=plan.experiment, **how))


def page(plan: RealPlan, cells: Sequence[CellScore], *, command: str = "") -> str:
    """What the run was, and its tables; the network is described that was trained in it."""
    experiment, files = plan.of, plan.files
    n, run = max((cell.n_seeds for cell in cells), default=0), "file" if files else "seed"
    over = f"Mean ± standard deviation over {n} {run}s" if n > 1 else f"One {run}, so no spread"
    settled = {"features": " ".join(files)} if files else plan.settled
    settings = ", ".join(f"{k} = {v}" for k, v in settled.items() if v is not None)
    paragraphs = [
        f"{over}; {'*paper* is the number in the paper; ' if experiment.table else ''}"
        f"*better by* is the mean difference from the first column, computed {run} by {run}"
        f"{', with its standard error' * (n > 1)}.",
        *notes(f"{experiment.name}-{settled.get('network')}"),
        *notes(experiment.name),
        *(notes("as-published") if any(c.method.endswith("-published") for c in cells) else ()),
        *([f"Run with {settings}."] if settings else []),
    ]
    return markdown(experiment.title, paragraphs, score_tables(experiment, cells), command=command)


def write_real(result: RealResult, out: Path | str, *, command: str = "") -> list[Path]:
    """Paths of the files written: table.md, summary.csv, results.csv, result.json."""
    labels = result.plan.of.trained_with
    cells = [replace(cell, trained_with=labels[cell.trained_with]) for cell in result.cells]
    contents = {
        "table.md": page(result.plan, result.cells, command=command),
        "summary.csv": csv_of(CellScore, cells),
        "results.csv": csv_of_scores(result.records, ("score",)),
        "result.json": json.dumps(result.to_dict(), indent=1),
    }
    return write_files(out, contents)


def _sha256(path: str) -> str:
    """What identifies the content of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _evaluated(folder: Path, cells: list[CellKey]) -> Iterator[Record | Failure]:
    """Outcomes of all methods on one network, which is trained unless its features are cached."""
    first = cells[0]
    experiment = REAL[first.dataset]
    options = {name: value for name, value in first.options.items() if name != "score"}
    name = f"{first.dataset}-{'encoder' if experiment.frozen else first.optimizer}-{first.seed}"
    make = partial(experiment.features, first.optimizer, first.seed, options)

    def on_network(cells: list[CellKey]) -> Iterator[Record | Failure]:
        found = cached_features(make, folder, name, options)
        rule = experiment.rule_for(first.optimizer, first.options)

        def on_features(keys: list[CellKey]) -> list[Record]:
            fit = METHODS[keys[0].method].fit
            model, seconds, warned = fitted(fit, found, rule, first.seed)
            how = model.chosen, seconds, warned
            return scored(keys, SCORES, found.splits, model.predict, *how)

        return each_fit(grouped(cells, lambda key: key.method).values(), on_features)

    return each_fit([cells], on_network)
