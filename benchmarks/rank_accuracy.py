"""How often ``n_spurious="auto"`` is right, and how often it sees what is not there.

    python benchmarks/rank_accuracy.py --seeds 200 --jobs 2 --out docs/benchmarks/rank

Every synthetic data set, E = 2 to 10, 10,000 samples an environment: the share of seeds whose
rank equals the identifiable one. Then data with no shift at all: the rate of false positives, with
Gaussian features, with more features than a cell has rows, and with t₅ tails.
"""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from isrlearn.core import Moments, covariance_rank, joint_rank, mean_rank, permutation_rank
from isrlearn.datasets import (
    make_linear_unit_test,
    make_multiclass_unit_test,
    make_regression_unit_test,
)

TESTS = {"mean": mean_rank, "cov": covariance_rank, "joint": joint_rank}
BINARY = ("2", "2s", "3", "3s", "3'", "3s'")
ENVIRONMENTS = range(2, 11)
#: Covariances of environments whose σ differ by less than this ratio are not asked to be told
#: apart.
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
    """The identifiable rank with E environments; None where nobody could tell."""
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
    moments = Moments.from_data(data.X, None if regression else data.y, data.environments)
    rows = []
    for E in ENVIRONMENTS:
        for method in ("mean",) if regression else TESTS:
            wanted = expected(name, method, data.truth, E)
            if wanted is not None:
                found = TESTS[method](first(moments, E)).rank
                rows.append(
                    {"data": name, "E": E, "method": method, "found": found, "expected": wanted}
                )
    return rows


#: Name: features, rows a cell, whether tails are heavy (t₅), tests.
NULLS = {
    "d = 10, 1,000 rows a cell": (10, 1000, False, "moments"),
    "d = 200, 100 rows a cell": (200, 100, False, "moments"),
    "d = 10, 1,000 rows a cell, t₅": (10, 1000, True, "permutation"),
    "d = 10, 1,000 rows a cell, t₅, Gaussian test": (10, 1000, True, "moments"),
}


def false_positives(name: str, seed: int) -> list[dict]:
    """Ranks found where nothing shifts: two classes, four environments."""
    d, n, heavy, kind = NULLS[name]
    rng = np.random.default_rng([seed, d, n])
    size = (n * 8, d)
    X = rng.standard_t(5, size=size) if heavy else rng.normal(size=size)
    y, e = np.arange(n * 8) % 2, np.arange(n * 8) // 2 % 4
    moments = Moments.from_data(X, y, e)
    rows = []
    for method, test in TESTS.items():
        if kind == "permutation":
            found = permutation_rank(X, y, e, method=method, random_state=seed).rank
        else:
            found = test(moments).rank
        rows.append({"data": name, "method": method, "found": found, "expected": 0})
    return rows


def share(rows: list[dict]) -> str:
    """Share of right ranks, and of how many."""
    if not rows:
        return "–"
    right = np.mean([row["found"] == row["expected"] for row in rows])
    return f"{100 * right:.1f} %"


def tables(found: list[dict], null: list[dict], seeds: int) -> str:
    """Both tables in Markdown."""
    names = list(dict.fromkeys(row["data"] for row in found))
    lines = [
        "# How many dimensions",
        "",
        f"Made by `python benchmarks/rank_accuracy.py --seeds {seeds}`.",
        "",
        f"Share of seeds with the identifiable rank, all E from 2 to 10 ({seeds} seeds each):",
        "",
        "| data | means | covariances | joint |",
        "| --- | --- | --- | --- |",
    ]
    for name in [*names, "all"]:
        picked = [row for row in found if name in (row["data"], "all")]
        cells = [share([row for row in picked if row["method"] == m]) for m in TESTS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", f"False positives where nothing shifts (level 0.01, {seeds} seeds):", ""]
    lines += ["| data | means | covariances | joint |", "| --- | --- | --- | --- |"]
    for name in NULLS:
        rates = []
        for method in TESTS:
            ranks = [r["found"] for r in null if (r["data"], r["method"]) == (name, method)]
            rates.append(f"{100 * np.mean(np.array(ranks) > 0):.1f} %")
        lines.append(f"| {name} | " + " | ".join(rates) + " |")
    return "\n".join(lines) + "\n"


def counted(rows: list[dict]) -> str:
    """CSV with the number of seeds of each answer."""
    seeds = Counter(
        (r["data"], r.get("E", 4), r["method"], r["expected"], r["found"]) for r in rows
    )
    lines = ["data,n_environments,method,expected,found,seeds"]
    lines += [
        ",".join(f'"{v}"' if "," in str(v) else str(v) for v in (*k, n)) for k, n in seeds.items()
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
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
    text = tables(found, null, options.seeds)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "table.md").write_text(text)
    (options.out / "results.csv").write_text(counted([*found, *null]))
    print(text)


if __name__ == "__main__":
    main()
