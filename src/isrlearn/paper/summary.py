"""Records summarised over seeds, and the published results of the linear unit tests beside them."""

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
from scipy import stats

from isrlearn.paper.records import Record, grouped
from isrlearn.paper.tables import Table, csv_text, number


@dataclass(frozen=True)
class Summary:
    """Test error of one method on one data set at one number of environments, over seeds."""

    dataset: str
    method: str
    n_environments: int
    n_seeds: int
    mean: float
    median: float
    std: float  # with n_seeds - 1 in the denominator
    half_width: float  # half the 95 % interval of the mean by Student's t; NaN for one seed
    std_environment: float  # over seeds in one environment, averaged over environments
    excess_mean: float  # over the oracle's error on the same data; NaN without an oracle
    excess_median: float
    warned: int  # number of seeds whose fit warned
    seconds: float  # median duration of a fit


def excess_errors(records: Iterable[Record]) -> dict[str, float]:
    """Error of each record above the oracle's on the same data, if there is one, by record id."""
    excess: dict[str, float] = {}
    by_data = grouped(records, lambda r: (r.key.dataset, r.key.n_environments, r.key.seed))
    for same in by_data.values():
        oracle = next((r.value for r in same if r.key.method == "oracle"), None)
        if oracle is not None:
            excess |= {r.key.id: r.value - oracle for r in same}
    return excess


def summaries(records: Iterable[Record]) -> list[Summary]:
    """Summary of every data set, method and number of environments, in the records' order."""
    records = list(records)
    excess = excess_errors(records)
    cells = grouped(records, lambda r: (r.key.dataset, r.key.method, r.key.n_environments))
    return [
        _summary(*cell, found, [excess.get(r.key.id, np.nan) for r in found])
        for cell, found in sorted(cells.items(), key=lambda item: item[0][2])
    ]


def _summary(
    dataset: str, method: str, n_environments: int, records: list[Record], excess: list[float]
) -> Summary:
    """One summary from the records of its seeds."""
    value = [r.value for r in records]
    each = np.array([r.per_environment for r in records])  # (n_seeds, E)
    mean, std, half_width = mean_interval(value)
    return Summary(
        dataset=dataset,
        method=method,
        n_environments=n_environments,
        n_seeds=len(records),
        mean=mean,
        median=float(np.median(value)),
        std=std,
        half_width=half_width,
        std_environment=float(each.std(axis=0, ddof=1).mean()) if len(value) > 1 else math.nan,
        excess_mean=float(np.mean(excess)),
        excess_median=float(np.median(excess)),
        warned=sum(bool(r.warnings) for r in records),
        seconds=float(np.median([r.seconds for r in records])),
    )


def mean_interval(values: Iterable[float]) -> tuple[float, float, float]:
    """Mean, standard deviation and half the 95 % interval of the mean; NaN where undefined."""
    values = list(values)
    n = len(values)
    mean = float(np.mean(values)) if n else math.nan
    if n < 2:
        return mean, math.nan, math.nan
    std = float(np.std(values, ddof=1))
    return mean, std, float(stats.t.ppf(0.975, n - 1)) * std / n**0.5


def error_tables(
    found: Iterable[Summary],
    titles: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    value: str = "mean",
    exponent: bool = False,
) -> list[Table]:
    """One table per data set: one row per method, one column per number of environments."""

    def shown(summary: Summary | None) -> str:
        if summary is None:
            return ""
        text, around = number(getattr(summary, value), exponent), summary.half_width
        # The half width is that of the mean; one seed has none.
        known = value == "mean" and not math.isnan(around)
        return f"{text} ± {number(around, exponent)}" if known else text

    at = {(s.dataset, s.method, s.n_environments): s for s in found}
    tables = []
    for dataset, title in titles.items():
        counts = sorted({E for name, _, E in at if name == dataset})
        rows = []
        for method, label in labels.items():
            cells = [at.get((dataset, method, E)) for E in counts]
            if any(cells):
                rows.append([label, *map(shown, cells)])
        if rows:
            tables.append(Table(title, ["method", *(f"E = {E}" for E in counts)], rows))
    return tables


def csv_of_records(records: Iterable[Record]) -> str:
    """CSV with one line per cell: its key, error, excess over the oracle and time."""
    records = list(records)
    excess = excess_errors(records)
    of_key = ("dataset", "method", "n_environments", "seed", "optimizer")
    columns = [*of_key, "parameters", "error", "excess", "validation", "seconds", "warned"]
    rows = (
        {
            **{name: getattr(record.key, name) for name in of_key},
            "parameters": " ".join(f"{k}={v:.6g}" for k, v in record.key.parameters.items()),
            "error": record.value,
            "excess": excess.get(record.key.id, math.nan),
            "validation": record.validation,
            "seconds": record.seconds,
            "warned": int(bool(record.warnings)),
        }
        for record in records
    )
    return csv_text(columns, rows)


def csv_of_scores(records: Iterable[Record], options: Sequence[str]) -> str:
    """CSV with one line per score of a fit: its key with some options, errors and settings."""
    of_key = ("dataset", "optimizer", "method")
    rows = (
        {name: getattr(r.key, name) for name in (*of_key, "seed")}
        | {name: r.key.options[name] for name in options}
        | {"validation": r.validation, "test": r.value, "seconds": r.seconds}
        | {"chosen": " ".join(f"{name}={value}" for name, value in r.chosen.items())}
        for r in records
    )
    return csv_text([*of_key, *options, "seed", "validation", "test", "seconds", "chosen"], rows)


N_SEEDS = 50  # of the published results
WITHIN = 3.0  # standard errors of the difference


@dataclass(frozen=True)
class Published:
    """A published test error and its hyper-parameters."""

    mean: float  # over 50 seeds and the environments
    std: float  # over seeds in one environment, averaged over environments
    parameters: Mapping[str, float]  # by their published names


PublishedResults: TypeAlias = Mapping[tuple[str, str, int], Published]


@cache
def published_results() -> PublishedResults:
    """Published results by data set, method and number of environments.

    The sweep over 2 to 10 environments at five invariant and five spurious dimensions of Aubin
    et al., "Linear unit-tests for invariance discovery" (2021).

    Examples
    --------
    >>> found = published_results()
    >>> len(found), round(found["3", "erm", 10].mean, 3)
    (270, 0.146)
    """
    text = (files(__package__) / "data" / "linear_unit_tests.csv").read_text()
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {
        (row["dataset"], row["method"], int(row["n_environments"])): Published(
            float(row["error_mean"]), float(row["error_std"]), json.loads(row["hyperparameters"])
        )
        for row in rows
    }


@dataclass(frozen=True)
class Comparison:
    """Our mean and the published one."""

    dataset: str
    method: str
    n_environments: int
    ours: float
    published: float
    standard_error: float  # of the difference

    @property
    def z(self) -> float:
        """Difference in standard errors; 0 when the means are equal, whatever the errors."""
        difference = self.ours - self.published
        if difference == 0:
            return 0.0
        if self.standard_error == 0:
            return math.copysign(math.inf, difference)
        # Rounded, so that a number in a table and the verdict on it never disagree.
        return round(difference / self.standard_error, 6)

    @property
    def agrees(self) -> bool:
        """Whether the means are within three standard errors of the difference."""
        return abs(self.z) <= WITHIN

    def to_dict(self) -> dict[str, Any]:
        """Fields, z and verdict, ready for JSON."""
        return {**asdict(self), "z": self.z, "agrees": self.agrees}


def compared(found: Iterable[Summary], published: PublishedResults) -> list[Comparison]:
    """Comparison of every summary of at least two seeds for which a result is published.

    The standard error is that of a two-sample t test, with one variance estimated from both sides:
    a handful of seeds of a method whose errors take two values may show no spread of their own.
    """
    comparisons = []
    for s in found:
        cell = (s.dataset, s.method, s.n_environments)
        p = published.get(cell)
        if p is not None and s.n_seeds > 1:
            squares = (s.n_seeds - 1) * s.std_environment**2 + (N_SEEDS - 1) * p.std**2
            variance = squares / (s.n_seeds + N_SEEDS - 2)
            error = math.sqrt(variance * (1 / s.n_seeds + 1 / N_SEEDS))
            comparisons.append(Comparison(*cell, s.mean, p.mean, error))
    return comparisons


def comparison_tables(
    comparisons: Iterable[Comparison], titles: Mapping[str, str], labels: Mapping[str, str]
) -> list[Table]:
    """A table of verdicts, then one table of differences per data set."""
    lines: dict[tuple[str, str], dict[int, Comparison]] = defaultdict(dict)
    for c in comparisons:
        lines[c.dataset, c.method][c.n_environments] = c
    verdicts, tables = [], []
    for dataset, title in titles.items():
        rows = {method: lines[dataset, method] for method in labels if (dataset, method) in lines}
        counts = sorted({E for row in rows.values() for E in row})
        for method, row in rows.items():
            verdicts.append([title, labels[method], *_verdict(list(row.values()))])
        if rows:
            tables.append(
                Table(
                    f"{title}: ours / published (difference in standard errors)",
                    ["method", *(f"E = {E}" for E in counts)],
                    [[labels[m], *(_shown(row.get(E)) for E in counts)] for m, row in rows.items()],
                )
            )
    columns = ["data set", "method", "E within 3 standard errors", "largest difference"]
    return [Table("Agreement with the published means", columns, verdicts), *tables]


def _verdict(row: list[Comparison]) -> tuple[str, str]:
    """For how many numbers of environments the means agree, and the largest difference."""
    worst = max(row, key=lambda c: abs(c.z))
    within = f"{sum(c.agrees for c in row)} of {len(row)}"
    return within, f"{abs(worst.z):.1f} (E = {worst.n_environments})"


def _shown(c: Comparison | None) -> str:
    """A cell of a table of differences."""
    return "" if c is None else f"{number(c.ours)} / {number(c.published)} ({c.z:+.1f})"
