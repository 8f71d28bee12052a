"""How often ``n_spurious="auto"`` is right, and how often it finds a shift where there is none.

    python benchmarks/rank_accuracy.py --seeds 200 --jobs 2 --out docs/benchmarks/rank

For every synthetic data set, E = 2 to 10 and 10,000 samples per environment: the share of seeds in
which the rank found is the identifiable one. For data without any shift: the rate of false
positives, with Gaussian features, with more features than a cell has rows, and with t₅ tails.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from isrlearn.core import METHODS, Moments, covariance_rank, joint_rank, mean_rank
from isrlearn.core.labels import Cells
from isrlearn.engine import cell_moments
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.permutation import permutation_rank
from isrlearn.paper.datasets import (
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
)
from isrlearn.paper.tables import Table, markdown, write_files

Picker = Callable[[dict], bool]
TESTS = {"mean": mean_rank, "cov": covariance_rank, "joint": joint_rank}
BINARY = ("2", "2s", "3", "3s", "3'", "3s'")
ENVIRONMENTS = range(2, 11)
#: Smallest ratio between the σ of two environments at which their covariances should be found to
#: differ.
LEAST_RATIO = 1.2


def first(moments: Moments, E: int) -> Moments:
    """Moments of the first E environments."""
    return replace(
        moments,
        environments=moments.environments[:E],
        count=moments.count[:, :E],
        mean=moments.mean[:, :E],
        scatter=moments.scatter[:, :E],
    )


def expected(name: str, method: str, truth, E: int) -> int | None:
    """The identifiable rank with E environments; None where it is not determined."""
    if name.startswith("2"):
        return 1
    shown = {"multiclass": 3 * (E - 1)}.get(name, E - 1)
    means = min(truth.n_spurious, shown)
    if method == "mean":
        return means
    if name not in ("3'", "3s'"):
        return 0 if method == "cov" else means
    sigma = truth.sigma_spurious[:E]
    return truth.n_spurious if sigma.max() / sigma.min() >= LEAST_RATIO else None


def sample(name: str, seed: int, n: int):
    """The training rows of a data set, all ten environments."""
    options = {"n_environments": max(ENVIRONMENTS), "n_samples": n, "random_state": seed}
    if name == "multiclass":
        return make_multiclass_unit_test(3, **options).train
    if name in ("regression", "anti-causal"):
        return make_regression_unit_test(anticausal=name == "anti-causal", **options).train
    return make_linear_unit_test(name, **options).train


def ranks(name: str, seed: int, n: int) -> list[dict]:
    """Rank found and expected by each test, for each number of environments."""
    data = sample(name, seed, n)
    regression = name in ("regression", "anti-causal")
    moments = cell_moments(data.X, None if regression else data.y, data.environments)
    rows = []
    for E in ENVIRONMENTS:
        for method in ("mean",) if regression else TESTS:
            wanted = expected(name, method, data.truth, E)
            if wanted is not None:
                found = TESTS[method](first(moments, E)).rank
                row = {"data": name, "n_environments": E, "method": method}
                rows.append(row | {"found": found, "expected": wanted})
    return rows


#: By name: features, rows per cell, whether tails are heavy (t₅), kind of test.
NULLS = {
    "d = 10, 1,000 rows per cell": (10, 1000, False, "moments"),
    "d = 200, 100 rows per cell": (200, 100, False, "moments"),
    "d = 10, 1,000 rows per cell, t₅": (10, 1000, True, "permutation"),
    "d = 10, 1,000 rows per cell, t₅, Gaussian test": (10, 1000, True, "moments"),
}


def false_positives(name: str, seed: int) -> list[dict]:
    """Ranks found where nothing shifts: two classes, four environments."""
    d, n, heavy, kind = NULLS[name]
    rng = np.random.default_rng([seed, d, n])
    size = (n * 8, d)
    X = rng.standard_t(5, size=size) if heavy else rng.normal(size=size)
    y, e = np.arange(n * 8) % 2, np.arange(n * 8) // 2 % 4
    moments, sample = cell_moments(X, y, e), Sample(X, Cells.of(y, e))
    rows = []
    for method, test in TESTS.items():
        if kind == "permutation":
            found = permutation_rank(sample, METHODS[method], random_state=seed).rank
        else:
            found = test(moments).rank
        row = {"data": name, "n_environments": 4, "method": method}
        rows.append(row | {"found": found, "expected": 0})
    return rows


def counted(rows: list[dict]) -> list[dict]:
    """The number of seeds of each answer."""
    columns = ("data", "n_environments", "method", "expected", "found")
    seeds = Counter(tuple(row[name] for name in columns) for row in rows)
    return [dict(zip(columns, key, strict=True)) | {"seeds": n} for key, n in seeds.items()]


def table(title: str, names: Iterable[str], counts: list[dict], picked: Picker) -> Table:
    """Share of seeds whose answer is picked: data down, tests across."""
    lines = []
    for name in names:
        lines.append([name])
        for method in TESTS:
            of = [c for c in counts if c["method"] == method and name in (c["data"], "all")]
            n, right = (sum(c["seeds"] for c in part) for part in (of, filter(picked, of)))
            lines[-1].append(f"{100 * right / n:.1f} %" if n else "–")
    return Table(title, ["data", "means", "covariances", "joint"], lines)


def tables(counts: list[dict]) -> list[Table]:
    """How often the rank is right, and how often a shift is found where there is none."""
    found = [c for c in counts if c["data"] not in NULLS]
    null = [c for c in counts if c["data"] in NULLS]
    names = [*dict.fromkeys(c["data"] for c in found), "all"]
    return [
        table(
            "The identifiable rank is found", names, found, lambda c: c["found"] == c["expected"]
        ),
        table("A shift is found where there is none", NULLS, null, lambda c: c["found"] > 0),
    ]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/rank"))
    options = parser.parse_args()
    run = Parallel(n_jobs=options.jobs)
    names = (*BINARY, "multiclass", "regression", "anti-causal")
    tasks = [(name, seed, options.samples) for name in names for seed in range(options.seeds)]
    found = [row for rows in run(delayed(ranks)(*task) for task in tasks) for row in rows]
    blanks = [(name, seed) for name in NULLS for seed in range(options.seeds)]
    null = [row for rows in run(delayed(false_positives)(*task) for task in blanks) for row in rows]
    counts = counted([*found, *null])
    notes = [
        f"Made by `python benchmarks/rank_accuracy.py --seeds {options.seeds}`.",
        f"Shares of {options.seeds} seeds, for each data set at each E from 2 to 10, and for each "
        "data set without a shift (tests at level 0.01; a share of 1 % then has a standard error "
        f"of {100 * (0.01 * 0.99 / options.seeds) ** 0.5:.1f} points).",
    ]
    page = markdown("How many dimensions", notes, tables(counts))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(counts[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(counts)
    write_files(options.out, {"results.csv": text.getvalue(), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
