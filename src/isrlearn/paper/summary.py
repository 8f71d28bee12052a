"""Records of many seeds summarised: one line a data set, method and number of environments."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from isrlearn.paper.records import Record

__all__ = ["Summary", "excess_errors", "summaries"]


@dataclass(frozen=True)
class Summary:
    """Test error of one method on one data set at one number of environments, over seeds.

    Parameters
    ----------
    dataset, method : str
        Names of the panel and of the method.
    n_environments, n_seeds : int
        Number of environments and of seeds.
    mean, median, std : float
        Of the test error over seeds; `std` has ``n_seeds - 1`` in its denominator.
    half_width : float
        Half the 95 % interval of the mean by Student's t; NaN for one seed.
    std_environment : float
        Standard deviation over seeds of the error in one environment, averaged over the
        environments: the figure the published results give.
    excess_mean, excess_median : float
        Of the error minus the oracle's on the same data; NaN without an oracle.
    warned : int
        Number of seeds whose fit warned.
    seconds : float
        Median time of a fit.

    Examples
    --------
    >>> from isrlearn.paper.records import CellKey, Record
    >>> keys = [CellKey("3s", "erm", 2, seed, "converged") for seed in (0, 1)]
    >>> one, = summaries([Record(key, 0.25, 0.0, [0.25, 0.25], 0.1) for key in keys])
    >>> one.mean, one.std, one.n_seeds
    (0.25, 0.0, 2)
    """

    dataset: str
    method: str
    n_environments: int
    n_seeds: int
    mean: float
    median: float
    std: float
    half_width: float
    std_environment: float
    excess_mean: float
    excess_median: float
    warned: int
    seconds: float


def excess_errors(records: Iterable[Record]) -> dict[str, float]:
    """Error of each record above the oracle's on the same data, by record id.

    Records whose data no oracle was fitted on are left out.

    Examples
    --------
    >>> from isrlearn.paper.records import CellKey, Record
    >>> erm = Record(CellKey("3s", "erm", 2, 0, "converged"), 0.5, 0.0, [0.5, 0.5], 0.1)
    >>> oracle = Record(CellKey("3s", "oracle", 2, 0, "converged"), 0.25, 0.0, [0.3, 0.2], 0.1)
    >>> excess_errors([erm, oracle])[erm.key.id]
    0.25
    """
    records = list(records)
    oracle = {_data(r): r.value for r in records if r.key.method == "oracle"}
    return {r.key.id: r.value - oracle[_data(r)] for r in records if _data(r) in oracle}


def summaries(records: Iterable[Record]) -> list[Summary]:
    """Summary of every data set, method and number of environments, in the records' order.

    Examples
    --------
    >>> summaries([])
    []
    """
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
    n = len(records)
    value = np.array([r.value for r in records])
    each = np.array([r.per_environment for r in records])  # (n, E)
    std = float(value.std(ddof=1)) if n > 1 else float("nan")
    half_width = float(stats.t.ppf(0.975, n - 1)) * std / n**0.5 if n > 1 else float("nan")
    return Summary(
        dataset=dataset,
        method=method,
        n_environments=n_environments,
        n_seeds=n,
        mean=float(value.mean()),
        median=float(np.median(value)),
        std=std,
        half_width=half_width,
        std_environment=float(each.std(axis=0, ddof=1).mean()) if n > 1 else float("nan"),
        excess_mean=float(np.mean(excess)),
        excess_median=float(np.median(excess)),
        warned=sum(bool(r.warnings) for r in records),
        seconds=float(np.median([r.seconds for r in records])),
    )


def _data(record: Record) -> tuple[str, int, int]:
    """What decides the data of a record."""
    return record.key.dataset, record.key.n_environments, record.key.seed
