"""How often ``n_spurious="auto"`` is right.

    python benchmarks/rank_accuracy.py --seeds 200 --jobs 2 --out docs/benchmarks/rank

For every synthetic data set, E = 2 to 10 and 10,000 samples per environment: the share of seeds in
which the rank found is the identifiable one. Where no rank is determined (covariances that differ
by less than LEAST_RATIO) the case is left out, and the page says how many were. How often a shift
is found where there is none: benchmarks/level.py.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from isrlearn.core import METHODS, covariance_rank, mean_rank
from isrlearn.engine import cell_moments
from isrlearn.paper.datasets import (
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
)
from isrlearn.paper.tables import Table, csv_text, markdown, write_files

TESTS = {"mean": mean_rank, "cov": covariance_rank, "joint": METHODS["joint"].rank}
BINARY = ("2", "2s", "3", "3s", "3'", "3s'")
ENVIRONMENTS = range(2, 11)
#: Smallest ratio between the σ of two environments at which their covariances should be found to
#: differ.
LEAST_RATIO = 1.2


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
                found = TESTS[method](moments.of_environments(np.arange(E))).rank
                row = {"data": name, "n_environments": E, "method": method}
                rows.append(row | {"found": found, "expected": wanted})
    return rows


def counted(rows: list[dict]) -> list[dict]:
    """The number of seeds of each answer."""
    columns = ("data", "n_environments", "method", "expected", "found")
    seeds = Counter(tuple(row[name] for name in columns) for row in rows)
    return [dict(zip(columns, key, strict=True)) | {"seeds": n} for key, n in seeds.items()]


def tables(counts: list[dict]) -> list[Table]:
    """Share of seeds whose rank is right: data down, tests across."""
    lines = []
    for name in [*dict.fromkeys(c["data"] for c in counts), "all"]:
        lines.append([name])
        for method in TESTS:
            of = [c for c in counts if c["method"] == method and name in (c["data"], "all")]
            n = sum(c["seeds"] for c in of)
            right = sum(c["seeds"] for c in of if c["found"] == c["expected"])
            lines[-1].append(f"{100 * right / n:.1f} %" if n else "–")
    columns = ["data", "means", "covariances", "joint"]
    return [Table("The identifiable rank is found", columns, lines)]


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
    counts = counted(found)
    left_out = options.seeds * len(ENVIRONMENTS) * (3 * (len(BINARY) + 1) + 2) - len(found)
    notes = [
        f"Made by `python benchmarks/rank_accuracy.py --seeds {options.seeds}`.",
        f"Shares of {options.seeds} seeds, for each data set at each E from 2 to 10 (level "
        f"0.01). Left out, because the covariances differ by a factor below {LEAST_RATIO} and no "
        f"rank is determined: {left_out:,} of {left_out + len(found):,} cases.",
    ]
    page = markdown("How many dimensions", notes, tables(counts))
    write_files(options.out, {"results.csv": csv_text(list(counts[0]), counts), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
