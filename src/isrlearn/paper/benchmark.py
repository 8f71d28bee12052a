"""A run, from its plan to its tables and figures."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from isrlearn.paper.experiments import EXPERIMENTS, METHODS
from isrlearn.paper.figures import error_figure
from isrlearn.paper.plan import Plan
from isrlearn.paper.records import Failure, Record, RecordFile
from isrlearn.paper.runner import complete, evaluate
from isrlearn.paper.summary import (
    Summary,
    compared,
    comparison_tables,
    csv_of_records,
    error_tables,
    published_results,
    summaries,
)
from isrlearn.paper.tables import Table, csv_of, markdown, result_dict, write_files
from isrlearn.progress import terminated_as_interrupted


@dataclass(frozen=True)
class Result:
    """The result of a run.

    Examples
    --------
    >>> import tempfile
    >>> plan = Plan("linear-unit-tests", ("3s",), ("oracle",), (2,), 2, n_samples=100)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     result = run(plan, directory)
    >>> [summary.n_seeds for summary in result.summaries]
    [2]
    """

    plan: Plan
    records: list[Record]  # cells in the order of the plan, without the trials that lost
    failures: list[Failure]  # cells that raised an error
    compare: bool = False  # whether published results are shown beside ours

    @property
    def summaries(self) -> list[Summary]:
        """Mean, spread and excess error of every point of the curves."""
        return summaries(self.records)

    @property
    def titles(self) -> dict[str, str]:
        """Titles of the data sets, in the order of the plan."""
        panels = EXPERIMENTS[self.plan.experiment].panels
        return {name: panels[name].title for name in self.plan.datasets}

    @property
    def labels(self) -> dict[str, str]:
        """Labels of the methods, in the order of the plan."""
        return {name: METHODS[name].label for name in self.plan.methods}

    def tables(self) -> list[Table]:
        """Errors on each data set and, on request, the comparison with the published ones."""
        found = self.summaries
        log = EXPERIMENTS[self.plan.experiment].log
        tables = error_tables(found, self.titles, self.labels, exponent=log)
        if self.compare:
            comparisons = compared(found, published_results())
            tables += comparison_tables(comparisons, self.titles, self.labels)
        return tables

    def excess_tables(self) -> list[Table]:
        """Mean and median error above the oracle's; empty without an oracle."""
        if "oracle" not in self.plan.methods:
            return []
        labels = {name: label for name, label in self.labels.items() if name != "oracle"}
        tables, log = [], EXPERIMENTS[self.plan.experiment].log
        for word in ("mean", "median"):
            titles = {k: f"{own}: {word} excess over the oracle" for k, own in self.titles.items()}
            found, value = self.summaries, f"excess_{word}"
            tables += error_tables(found, titles, labels, value=value, exponent=log)
        return tables

    def to_dict(self) -> dict[str, Any]:
        """The plan, summaries and failures, and the comparison on request, ready for JSON."""
        found = self.summaries
        content = result_dict(self.plan, self.failures, summaries=found)
        if self.compare:
            content["comparison"] = [c.to_dict() for c in compared(found, published_results())]
        return content


def run(
    plan: Plan, out: Path | str, *, n_jobs: int = 1, compare: bool = False, command: str = ""
) -> Result:
    """Result of a plan; cells already recorded in `out` are not run again.

    Parameters
    ----------
    plan : Plan
        What to run.
    out : path-like
        Directory of the records, ``results.jsonl``.
    n_jobs : int, default=1
        Number of processes. The result does not depend on it.
    compare : bool, default=False
        Show published results beside ours.
    command : str
        The command of the run, for the header of a new record file.

    Examples
    --------
    >>> import tempfile
    >>> plan = Plan("linear-unit-tests", ("2",), ("erm",), (2,), 1, n_samples=100)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     first, again = run(plan, directory), run(plan, directory)
    >>> first.records == again.records
    True
    """
    with terminated_as_interrupted(), RecordFile(out, plan.experiment, command) as records:
        run_cells = partial(
            complete,
            records,
            work=partial(evaluate, plan.experiment),
            # Seed by seed, so that an interrupted run has something to show; large data first, so
            # that no process is left alone with them at the end.
            group=lambda key: (key.seed, -key.n_environments, key.dataset),
            n_jobs=n_jobs,
        )
        failures = run_cells(plan.first_keys(), label="searching and running")
        chosen = plan.final_keys(records.by_id)
        failed = {failure.key.id for failure in failures}
        keys = [key for _, key in chosen if key.id not in failed]
        failures += run_cells(keys, label="running what was chosen")
        # A method that shows the cells of another one shows them under its own name.
        found = [
            replace(records.by_id[key.id], key=replace(key, method=method))
            for method, key in chosen
            if key.id in records.by_id
        ]
    return Result(plan, found, failures, compare)


def write_result(
    result: Result, out: Path | str, *, figures: bool = True, command: str = ""
) -> list[Path]:
    """Paths of the files written: results.csv, summary.csv, table.md, figure.png, figure.svg.

    Each file is replaced atomically.

    Parameters
    ----------
    result : Result
        What to write.
    out : path-like
        Directory of the files.
    figures : bool, default=True
        Draw the figures, which needs matplotlib.
    command : str
        The command of the run, for the page of tables.

    Examples
    --------
    >>> import tempfile
    >>> plan = Plan("linear-unit-tests", ("2",), ("oracle",), (2,), 1, n_samples=100)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     [path.name for path in write_result(run(plan, directory), directory)]
    ['results.csv', 'summary.csv', 'table.md', 'figure.png', 'figure.svg']
    """
    experiment = EXPERIMENTS[result.plan.experiment]
    found = result.summaries
    tables = [*result.tables(), *result.excess_tables()]
    title = experiment.title + ", as published" * (result.plan.optimizer == "published")
    contents: dict[str, str | bytes] = {
        "results.csv": csv_of_records(result.records),
        "summary.csv": csv_of(Summary, found),
        "table.md": markdown(title, _notes(result), tables, command=command),
    }
    if figures:
        contents |= error_figure(
            found,
            result.titles,
            result.labels,
            quantity=experiment.quantity,
            log=experiment.log,
            published=published_results() if result.compare else None,
        )
    return write_files(out, contents)


def _notes(result: Result) -> list[str]:
    """Notes for readers of the tables."""
    plan = result.plan
    quantity = EXPERIMENTS[plan.experiment].quantity
    notes = [
        f"{quantity}, averaged over the test environments and over {plan.n_seeds} seeds, ± half "
        f"the width of the 95 % interval of the mean over seeds. {plan.n_samples:,} samples per "
        f"environment; optimiser: {plan.optimizer}."
    ]
    if result.compare:
        notes.append(
            "Differences from the published means are in standard errors of a two-sample t test, "
            "from the spread over seeds in one environment."
        )
    return notes
