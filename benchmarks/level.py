"""How often the rank tests find a shift where there is none, and where there is one.

    python benchmarks/level.py --draws 500 --jobs 2 --out docs/benchmarks/level

Every null design breaks one assumption of a textbook test: equal covariances of the classes or the
environments, Gaussian features, large cells, many more rows than features.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from isrlearn.core import METHODS
from isrlearn.core.labels import Cells
from isrlearn.core.laws import RowSample
from isrlearn.engine import sum_cells
from isrlearn.paper.tables import Table, csv_text, markdown, write_files

Draw = Callable[[np.random.Generator, NDArray, NDArray, int], NDArray]
LEVELS = (0.01, 0.05)


@dataclass(frozen=True)
class Design:
    """Rows per class and environment, features, and their distribution."""

    counts: list[list[int]]
    d: int
    draw: Draw
    #: Methods for which nothing shifts.
    null: tuple[str, ...] = ("mean", "cov", "joint")


def spread(by_class: tuple[float, ...] = (1.0, 1.0, 1.0), by_environment=None) -> Draw:
    """Gaussian features with standard deviations per class and environment."""

    def draw(rng, k, e, d):
        sd = np.take(by_class, k)
        if by_environment is not None:
            sd = sd * np.take(by_environment, e)
        return sd[:, None] * rng.standard_normal((len(k), d))

    return draw


def independent(sample: Callable) -> Draw:
    """Independent features with one distribution."""
    return lambda rng, k, e, d: sample(rng, (len(k), d)).astype(float)


def shapes(rng, k, e, d):
    """Three classes with covariances of different shape and size."""
    mixing = np.random.default_rng(7).standard_normal((3, d, d)) / np.sqrt(d)
    scale = np.array([0.5, 1.0, 2.0])[k, None]
    return scale * np.einsum("ni,nij->nj", rng.standard_normal((len(k), d)), mixing[k])


def autoregressive(rng, k, e, d):
    """Correlations of 0.9 between neighbouring features."""
    order = np.arange(d)
    root = np.linalg.cholesky(0.9 ** np.abs(order[:, None] - order))
    return rng.standard_normal((len(k), d)) @ root.T


def sign(p: float) -> Draw:
    """Features of plus and minus one, plus one with probability p."""
    return independent(lambda rng, size: 2.0 * (rng.random(size) < p) - 1.0)


TWO = [[100, 100]] * 2
NULLS = {
    "one covariance": Design([[100] * 3] * 2, 10, spread()),
    "class sd 3:1, rows 10:1": Design([[500] * 2, [50] * 2], 10, spread((3, 1))),
    "class sd 1:3, rows 10:1": Design([[500] * 2, [50] * 2], 10, spread((1, 3))),
    "class sd 1:2, balanced": Design([[200] * 2] * 2, 10, spread((1, 2))),
    "environment sd 1:2, cells of 1,000 and 60": Design(
        [[1000, 60]] * 2, 10, spread(by_environment=(1, 2)), ("mean",)
    ),
    "three classes, unequal covariances": Design([[100] * 3] * 3, 10, shapes),
    "correlated features (AR 0.9)": Design([[100] * 3] * 2, 10, autoregressive),
    "exponential": Design(TWO, 10, independent(lambda rng, size: rng.exponential(size=size))),
    "log-normal": Design(TWO, 10, independent(lambda rng, size: rng.lognormal(size=size))),
    "t₅": Design(TWO, 10, independent(lambda rng, size: rng.standard_t(5, size=size))),
    "±1, p = 0.5": Design(TWO, 10, sign(0.5)),
    "±1, p = 0.05": Design(TWO, 10, sign(0.05)),
    "counts (Poisson, mean 1)": Design(
        TWO, 10, independent(lambda rng, size: rng.poisson(1.0, size=size))
    ),
    "E = 20, 4 rows per cell": Design([[4] * 20] * 2, 10, spread()),
    "E = 20, 12 rows per cell, d = 40": Design([[12] * 20] * 2, 40, spread()),
    "cells of 1,000 and 20": Design([[1000, 20]] * 2, 10, spread()),
    "d = 200, 100 rows per cell": Design(TWO, 200, spread()),
}
#: A shift of 0.8 standard deviations of one class of 200 rows, beside another class.
POWER = {
    f"0.8 sd shift, other class sd {sd:g}": Design([[1000] * 2, [100] * 2], 10, spread((sd, 1)))
    for sd in (0.3, 1.0, 3.0)
}


def p_values(name: str, seed: int) -> list[dict]:
    """P-value of "nothing shifts" by each test, and whether the test abstained."""
    design = (NULLS | POWER)[name]
    K, E = len(design.counts), len(design.counts[0])
    k, e = (np.repeat(axis.ravel(), np.ravel(design.counts)) for axis in np.indices((K, E)))
    X = design.draw(np.random.default_rng([seed, K, E, design.d]), k, e, design.d)
    if name in POWER:
        X[:, 0] += 0.8 * ((k == 1) & (e == 1))
    cells = Cells(np.arange(K), np.arange(E), k, e)
    moments, found = sum_cells(X, cells), []
    for method in design.null if name in NULLS else ("mean", "joint"):
        # At level 0 the sequence ends with its first step.
        test = METHODS[method].rank(moments, level=0.0, rows=RowSample(X, k, e))
        row = {"design": name, "method": method, "seed": seed}
        found.append(row | {"p_value": test.p_values[0], "abstained": bool(test.note)})
    return found


def counted(rows: list[dict]) -> list[dict]:
    """Draws of each design and test in which a shift is found at each level."""
    found: dict[tuple[str, str], list[dict]] = {}
    for row in rows:
        found.setdefault((row["design"], row["method"]), []).append(row)
    return [
        {"design": design, "method": method, "draws": len(of)}
        | {f"found at {level}": sum(r["p_value"] <= level for r in of) for level in LEVELS}
        | {"abstained": sum(r["abstained"] for r in of)}
        for (design, method), of in found.items()
    ]


def table(title: str, names, counts: list[dict], level: float) -> Table:
    """Share of draws in which each test finds a shift; in brackets, how often it abstained."""
    by_test = {(c["design"], c["method"]): c for c in counts}
    lines = []
    for name in names:
        lines.append([name])
        for method in ("mean", "cov", "joint"):
            of = by_test.get((name, method))
            cell = "–" if of is None else f"{of[f'found at {level}'] / of['draws']:.3f}"
            idle = 0.0 if of is None else of["abstained"] / of["draws"]
            lines[-1].append(cell + (f" (abstained {idle:.2f})" if idle else ""))
    return Table(title, ["design", "mean", "cov", "joint"], lines)


def tables(counts: list[dict]) -> list[Table]:
    """False alarms at each level, and power."""
    null = [table(f"Nothing shifts, level {level:g}", NULLS, counts, level) for level in LEVELS]
    return [*null, table("Something shifts, level 0.01", POWER, counts, LEVELS[0])]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/level"))
    options = parser.parse_args()
    tasks = [(name, seed) for name in (*NULLS, *POWER) for seed in range(options.draws)]
    run = Parallel(n_jobs=options.jobs, batch_size=25)
    found = run(delayed(p_values)(*task) for task in tasks)
    counts = counted([row for rows in found for row in rows])
    error = [100 * (level * (1 - level) / options.draws) ** 0.5 for level in LEVELS]
    notes = [
        f"Made by `python benchmarks/level.py --draws {options.draws}`.",
        f"Shares of {options.draws} draws in which a test finds a shift. Where nothing shifts, a "
        f"share of 0.01 has a standard error of {error[0] / 100:.4f}, one of 0.05 of "
        f"{error[1] / 100:.4f}. A test that abstains finds no shift; the joint test then compares "
        "means only.",
    ]
    page = markdown("Level of the rank tests", notes, tables(counts))
    write_files(options.out, {"results.csv": csv_text(list(counts[0]), counts), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
