"""How often the intervals of `isrlearn.metrics` contain the truth.

    python benchmarks/coverage.py --trials 2000 --jobs 2 --out docs/benchmarks/coverage

Predictions that are correct with a known probability in each of G groups of n rows. The interval of
the group that scores worst must contain the true accuracy of that group, although it was picked for
its low score; `worst_interval` the lowest true accuracy of any group; and the interval of a paired
comparison the true difference of the lowest accuracies of two models.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import binomtest

from isrlearn.metrics import group_report, paired_report
from isrlearn.paper.tables import Table, csv_text, markdown, write_files

GROUPS, ROWS = (2, 4, 10, 100), (10, 30, 100, 1000)
#: Groups of the comparison of two models.
COMPARED = (2, 4, 10)
#: True accuracies of the groups.
TRUTHS = {
    "all 0.8": lambda G: np.full(G, 0.8),
    "all 0.98": lambda G: np.full(G, 0.98),
    "0.5 to 0.95": lambda G: np.linspace(0.5, 0.95, G),
    "one 0.6, others 0.9": lambda G: np.where(np.arange(G) == 0, 0.6, 0.9),
}
#: Per group, the probability that both models, only the second, only the first are correct.
CHANGES = {
    "no difference": lambda G: np.tile([0.70, 0.10, 0.10], (G, 1)),
    "few errors": lambda G: np.tile([0.95, 0.02, 0.01], (G, 1)),
    "one group gains": lambda G: np.array([[0.45, 0.30, 0.02], *[[0.90, 0.02, 0.02]] * (G - 1)]),
    "some gain, some lose": lambda G: np.array(
        [[0.9 * p, 0.5 * (1 - p), 0.1 * p] for p in np.linspace(0.5, 0.95, G)]
    ),
}
NAMED, PLAIN = "worst group", "worst group, interval of that group alone"
LOWEST, DIFFERENCE = "lowest true accuracy", "difference of two models"
COLUMNS = ["interval", "truth", "groups", "rows", "trials", "covered", "width"]


def one_model(truth: str, G: int, n: int, trials: int) -> list[dict[str, Any]]:
    """Share of trials in which each interval contains its truth, and the mean width."""
    rng = np.random.default_rng([G, n])
    p, place, y = TRUTHS[truth](G), np.repeat(np.arange(G), n), np.ones(G * n, dtype=int)
    sums = {name: np.zeros(2) for name in (NAMED, PLAIN, LOWEST)}
    for _ in range(trials):
        report = group_report(y, (rng.random(G * n) < p[place]).astype(int), place)
        worst = report.by_rank[0]
        here = p[worst.environment]
        alone = binomtest(round(worst.value * n), n).proportion_ci(0.95, "wilson")
        sums[NAMED] += contains(worst.low, worst.high, here)
        sums[PLAIN] += contains(alone.low, alone.high, here)
        sums[LOWEST] += contains(*report.worst_interval, p.min())
    return [record(name, truth, G, n, trials, found) for name, found in sums.items()]


def two_models(truth: str, G: int, n: int, trials: int) -> list[dict[str, Any]]:
    """The same for the difference of the lowest accuracies of two models."""
    rng = np.random.default_rng([G, n])
    p, place, y = CHANGES[truth](G), np.repeat(np.arange(G), n), np.ones(G * n, dtype=int)
    difference = (p[:, 0] + p[:, 1]).min() - (p[:, 0] + p[:, 2]).min()
    edges, found = np.cumsum(p, axis=1)[place], np.zeros(2)
    for _ in range(trials):
        kind = (rng.random((G * n, 1)) > edges).sum(axis=1)  # both, second, first, neither
        before, after = np.isin(kind, [0, 2]).astype(int), np.isin(kind, [0, 1]).astype(int)
        worst = paired_report(y, before, after, place).worst
        # Shares of n rows, up to rounding.
        found += contains(worst.low - 1e-9, worst.high + 1e-9, difference)
    return [record(DIFFERENCE, truth, G, n, trials, found)]


def contains(low: float, high: float, truth: float) -> tuple[bool, float]:
    """Whether an interval contains the truth, and its width."""
    return low <= truth <= high, high - low


def record(name: str, truth: str, G: int, n: int, trials: int, found: Any) -> dict[str, Any]:
    """One line of the results."""
    covered, width = (found / trials).round(4).tolist()
    return dict(zip(COLUMNS, (name, truth, G, n, trials, covered, width), strict=True))


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
    jobs += [
        delayed(two_models)(t, G, n, options.trials // 2)
        for t in CHANGES
        for G in COMPARED
        for n in ROWS
    ]
    rows = [row for found in Parallel(n_jobs=options.jobs)(jobs) for row in found]
    notes = [
        f"Made by `python benchmarks/coverage.py --trials {options.trials}`.",
        f"The lowest share over four sets of true accuracies, {options.trials:,} simulations each "
        f"({options.trials // 2:,} of two models).",
    ]
    page = markdown("Coverage of the intervals", notes, [table(rows)])
    write_files(options.out, {"results.csv": csv_text(COLUMNS, rows), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
