"""The published results of the linear unit tests, compared with ours."""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from isrlearn.paper.summary import Summary
from isrlearn.paper.tables import Table, number

N_SEEDS = 50
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


def published_cell(dataset: str, method: str, n_environments: int) -> Published:
    """The published result whose hyper-parameters a cell is run with."""
    try:
        return published_results()[dataset, method, n_environments]
    except KeyError:
        raise ValueError(
            f"nothing is published for {method!r} on {dataset!r} with {n_environments} "
            "environments; published are erm, irmv1, iga, andmask and oracle on the linear unit "
            "tests with 2 to 10 environments"
        ) from None


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
        p = published.get((s.dataset, s.method, s.n_environments))
        if p is not None and s.n_seeds > 1:
            error = _standard_error(s, p)
            comparisons.append(
                Comparison(s.dataset, s.method, s.n_environments, s.mean, p.mean, error)
            )
    return comparisons


def _standard_error(s: Summary, p: Published) -> float:
    """Standard error of the difference of the two means, with a common variance."""
    squares = (s.n_seeds - 1) * s.std_environment**2 + (N_SEEDS - 1) * p.std**2
    variance = squares / (s.n_seeds + N_SEEDS - 2)
    return math.sqrt(variance * (1 / s.n_seeds + 1 / N_SEEDS))


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
