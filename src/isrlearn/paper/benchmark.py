"""A run from its plan to its tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from isrlearn.paper.evaluate import Failure, evaluate
from isrlearn.paper.experiments import EXPERIMENTS
from isrlearn.paper.figures import error_figure
from isrlearn.paper.files import write_beside
from isrlearn.paper.methods import METHODS
from isrlearn.paper.plan import Plan, grouped
from isrlearn.paper.published import compared, comparison_tables, published_results
from isrlearn.paper.records import CellKey, Record, RecordFile
from isrlearn.paper.runner import outcomes, progress, terminated_as_interrupted
from isrlearn.paper.summary import Summary, summaries
from isrlearn.paper.tables import (
    Table,
    csv_of_records,
    csv_of_summaries,
    error_tables,
    markdown,
)

__all__ = ["Result", "run", "write_result"]


@dataclass(frozen=True)
class Result:
    """What a run found.

    Parameters
    ----------
    plan : Plan
        What was run.
    records : list of Record
        The cells of the result, in the plan's order; trials that lost are not among them.
    failures : list of Failure
        Cells that raised an error.
    compare : bool
        Whether published results are shown beside.

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
    records: list[Record]
    failures: list[Failure]
    compare: bool = False

    @property
    def summaries(self) -> list[Summary]:
        """Mean, spread and excess error of every curve's points."""
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
        """Errors of each data set, then, if asked for, the comparison with what is published."""
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
        tables = []
        for field, word in (("excess_mean", "mean"), ("excess_median", "median")):
            titles = {
                name: f"{title}: {word} excess over the oracle"
                for name, title in self.titles.items()
            }
            tables += error_tables(
                self.summaries,
                titles,
                labels,
                value=field,
                spread=None,
                exponent=EXPERIMENTS[self.plan.experiment].log,
            )
        return tables

    def to_dict(self) -> dict[str, Any]:
        """The summaries, and the comparison if asked for, ready for JSON."""
        found = self.summaries
        content: dict[str, Any] = {
            "plan": asdict(self.plan),
            "summaries": [_without_nan(asdict(summary)) for summary in found],
            "failures": [{**asdict(f.key), "message": f.message} for f in self.failures],
        }
        if self.compare:
            content["comparison"] = [
                {**asdict(c), "z": c.z, "agrees": c.agrees}
                for c in compared(found, published_results())
            ]
        return content


def run(
    plan: Plan,
    out: Path | str,
    *,
    n_jobs: int = 1,
    compare: bool = False,
    command: str = "",
) -> Result:
    """Result of a plan, of whose cells those already recorded in `out` are not run again.

    Parameters
    ----------
    plan : Plan
        What to run.
    out : path-like
        Directory of the records, ``results.jsonl``.
    n_jobs : int, default=1
        Number of processes. The result does not depend on it.
    compare : bool, default=False
        Show published results beside.
    command : str
        The command that made the run, kept in a new record file.

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
        failures = _complete(plan, plan.first_keys(), records, n_jobs, "searching and running")
        chosen = plan.final_keys(records.by_id)
        failed = {failure.key.id for failure in failures}
        keys = [key for _, key in chosen if key.id not in failed]
        failures += _complete(plan, keys, records, n_jobs, "running what was chosen")
        # A method that shows another's cells shows them under its own name.
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

    Each is written beside and renamed.

    Parameters
    ----------
    result : Result
        What to write.
    out : path-like
        Directory of the files.
    figures : bool, default=True
        Draw the figures, which needs matplotlib.
    command : str
        The command that made the result, for its tables.

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
    page = markdown(
        experiment.title, _notes(result, command), [*result.tables(), *result.excess_tables()]
    )
    texts = {
        "results.csv": csv_of_records(result.records),
        "summary.csv": csv_of_summaries(found),
        "table.md": page,
    }
    written = [write_beside(Path(out) / name, text.encode()) for name, text in texts.items()]
    if not figures:
        return written
    drawn = error_figure(
        found,
        result.titles,
        result.labels,
        quantity=experiment.quantity,
        log=experiment.log,
        published=published_results() if result.compare else None,
    )
    return written + [write_beside(Path(out) / name, data) for name, data in drawn.items()]


def _complete(
    plan: Plan, keys: Sequence[CellKey], records: RecordFile, n_jobs: int, label: str
) -> list[Failure]:
    """Run and record the cells that are not recorded yet; return those that failed."""
    missing = {key.id: key for key in keys if key.id not in records.by_id}
    failures = []
    groups = grouped(plan.experiment, missing.values())
    n_done = len({key.id for key in keys}) - len(missing)
    with progress(n_done + len(missing), label, n_done) as advance:
        for outcome in outcomes(evaluate, groups, n_jobs):
            if isinstance(outcome, Failure):
                failures.append(outcome)
            else:
                records.append(outcome)
            advance()
    return failures


def _notes(result: Result, command: str) -> list[str]:
    """What a reader of the tables has to know."""
    plan = result.plan
    quantity = EXPERIMENTS[plan.experiment].quantity.lower()
    notes = [
        f"Mean {quantity} over the test environments, averaged over {plan.n_seeds} seeds, ± half "
        f"the 95 % interval of that mean. {plan.n_samples:,} samples an environment; "
        f"optimiser: {plan.optimizer}."
    ]
    if command:
        notes.insert(0, f"Made by `{command}`.")
    if result.compare:
        notes.append(
            "Differences from the published means are in standard errors of a two-sample t test, "
            "from the spread over seeds in one environment."
        )
    return notes


def _without_nan(fields: dict[str, Any]) -> dict[str, Any]:
    """The same with None for NaN, which JSON does not have."""
    return {name: None if value != value else value for name, value in fields.items()}
