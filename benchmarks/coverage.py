"""How often the intervals of `isrlearn.metrics` contain the truth.

    python benchmarks/coverage.py --trials 2000 --jobs 2 --out docs/benchmarks/coverage

Predictions that are correct with a known probability in each of G groups of n rows. The interval of
the group that scores worst must contain the true accuracy of that group, although it was picked for
its low score, and `worst_interval` the lowest true accuracy of any group.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import binomtest

from isrlearn.metrics import group_report
from isrlearn.metrics.groups import accuracy
from isrlearn.paper.tables import Table, csv_text, markdown, write_files

GROUPS, ROWS = (2, 4, 10, 100), (10, 30, 100, 1000)
#: True accuracies of the groups.
TRUTHS = {
    "all 0.8": lambda G: np.full(G, 0.8),
    "all 0.98": lambda G: np.full(G, 0.98),
    "0.5 to 0.95": lambda G: np.linspace(0.5, 0.95, G),
    "one 0.6, others 0.9": lambda G: np.where(np.arange(G) == 0, 0.6, 0.9),
}
NAMED, PLAIN = "worst group", "worst group, interval of that group alone"
LOWEST = "lowest true accuracy"
COLUMNS = ["interval", "truth", "groups", "rows", "trials", "covered", "width"]


def one_model(truth: str, G: int, n: int, trials: int) -> list[dict[str, Any]]:
    """Share of trials in which each interval contains its truth, and the mean width."""
    rng = np.random.default_rng([G, n])
    p = TRUTHS[truth](G)
    right = rng.binomial(n, p, size=(trials, G))
    # An interval depends on the number of correct rows only: each is computed once.
    y, counts = np.ones(n, dtype=int), np.arange(n + 1)
    hits = [(np.arange(n) < x).astype(int) for x in counts]
    together, alone = (
        np.array([accuracy(y, hit, 1 - 0.05 / m, None)[1:] for hit in hits]) for m in (G, 1)
    )
    wilson = [binomtest(int(x), n).proportion_ci(0.95, "wilson") for x in counts]
    named = right.argmin(axis=1)
    here, x = p[named], right.min(axis=1)
    lowest = np.column_stack([alone[right, 0].min(axis=1), together[right, 1].min(axis=1)])
    check(right[0], n, together[x[0]], lowest[0])
    return [
        record(NAMED, truth, G, n, together[x], here),
        record(PLAIN, truth, G, n, np.array([(w.low, w.high) for w in wilson])[x], here),
        record(LOWEST, truth, G, n, lowest, np.full(trials, p.min())),
    ]


def check(right: NDArray, n: int, named: NDArray, lowest: NDArray) -> None:
    """Raise unless a report has these intervals of the worst group and the lowest accuracy."""
    hit = (np.arange(n) < right[:, None]).astype(int).ravel()
    report = group_report(np.ones_like(hit), hit, np.repeat(np.arange(len(right)), n))
    worst = report.by_rank[0]
    np.testing.assert_allclose((worst.low, worst.high), named)
    np.testing.assert_allclose(report.worst_interval, lowest)


def record(
    name: str, truth: str, G: int, n: int, intervals: NDArray, true: NDArray
) -> dict[str, Any]:
    """One line of the results, from intervals (trials, 2) and what they should contain."""
    low, high = intervals.T
    # Shares of n rows are equal up to rounding.
    covered = np.mean((low - 1e-9 <= true) & (true <= high + 1e-9)).round(4)
    width = np.mean(high - low).round(4)
    values = (name, truth, G, n, len(true), float(covered), float(width))
    return dict(zip(COLUMNS, values, strict=True))


def table(rows: list[dict[str, Any]]) -> Table:
    """The lowest coverage over the truths, by interval, rows and number of groups."""
    lines = []
    for name in dict.fromkeys(row["interval"] for row in rows):
        for n in ROWS:
            line = [name, str(n)]
            for G in GROUPS:
                wanted = (name, n, G)
                here = [r for r in rows if (r["interval"], r["rows"], r["groups"]) == wanted]
                line.append(f"{min(r['covered'] for r in here):.3f}" if here else "–")
            lines.append(line)
    columns = ["95 % interval of", "rows per group", *(f"{G} groups" for G in GROUPS)]
    return Table("Share of intervals that contain the truth", columns, lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/coverage"))
    options = parser.parse_args()
    jobs = [
        delayed(one_model)(t, G, n, options.trials) for t in TRUTHS for G in GROUPS for n in ROWS
    ]
    rows = [row for found in Parallel(n_jobs=options.jobs)(jobs) for row in found]
    notes = [
        f"Made by `python benchmarks/coverage.py --trials {options.trials}`.",
        f"The lowest share over four sets of true accuracies, {options.trials:,} draws each.",
    ]
    page = markdown("Coverage of the intervals", notes, [table(rows)])
    write_files(options.out, {"results.csv": csv_text(COLUMNS, rows), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
