"""Records summarised over seeds, for each data set, method and number of environments."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from isrlearn.paper.records import Record
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
    records = list(records)
    oracle = {_data(r): r.value for r in records if r.key.method == "oracle"}
    return {r.key.id: r.value - oracle[_data(r)] for r in records if _data(r) in oracle}


def summaries(records: Iterable[Record]) -> list[Summary]:
    """Summary of every data set, method and number of environments, in the records' order."""
    records = list(records)
    excess = excess_errors(records)
    cells: dict[tuple[str, str, int], list[Record]] = defaultdict(list)
    for record in records:
        key = record.key
        cells[key.dataset, key.method, key.n_environments].append(record)
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


def _data(record: Record) -> tuple[str, int, int]:
    """What determines the data of a record."""
    return record.key.dataset, record.key.n_environments, record.key.seed


def error_tables(
    found: Iterable[Summary],
    titles: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    value: str = "mean",
    spread: str | None = "half_width",
    exponent: bool = False,
) -> list[Table]:
    """One table per data set: one row per method, one column per number of environments."""

    def shown(summary: Summary | None) -> str:
        if summary is None:
            return ""
        found = [getattr(summary, name) for name in (value, spread) if name is not None]
        # One seed has no spread.
        known = found[:1] + [x for x in found[1:] if not math.isnan(x)]
        return " ± ".join(number(x, exponent) for x in known)

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
