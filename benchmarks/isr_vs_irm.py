"""Time an ISR fit against 10,000 steps of IRMv1 on the same data, side by side.

    python benchmarks/isr_vs_irm.py --out docs/benchmarks/isr-vs-irm

Every repetition draws new data and fits each method on it in turn, so that other load on the
machine slows down all of them. The table shows medians over the repetitions, and the ratio of the
times of IRMv1 and of ISR in the same repetition.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from isrlearn import ISRClassifier
from isrlearn.datasets import Splits
from isrlearn.paper.baselines import IRMv1Classifier
from isrlearn.paper.datasets import make_linear_unit_test
from isrlearn.paper.isr import PublishedISR
from isrlearn.paper.tables import Table, csv_text, markdown, write_files

N_SPURIOUS = 5
REFERENCE = "IRMv1, 10,000 steps of Adam"

METHODS: dict[str, Callable[[int], Any]] = {
    "ISR-Mean": lambda E: PublishedISR("mean", n_spurious=min(N_SPURIOUS, E - 1)),
    "ISR-Mean, pooled": lambda E: ISRClassifier(
        "mean", n_spurious=min(N_SPURIOUS, E - 1), C=1.0, weights=None
    ),
    "ISR-Cov, pooled": lambda E: ISRClassifier("cov", n_spurious=N_SPURIOUS, C=1.0, weights=None),
    "IRMv1, converged": lambda E: IRMv1Classifier(),
    REFERENCE: lambda E: IRMv1Classifier(optimizer="published", random_state=0),
}


def measured(environments: list[int], n_repeats: int, n_samples: int) -> list[dict[str, Any]]:
    """Seconds and test error of every method, number of environments and repetition."""
    rows = []
    for E in environments:
        for seed in range(n_repeats):
            splits = make_linear_unit_test(
                "3s'", n_environments=E, n_samples=n_samples, random_state=seed
            )
            for method, build in METHODS.items():
                seconds, error = fitted(build(E), splits)
                rows.append(
                    {
                        "n_environments": E,
                        "seed": seed,
                        "method": method,
                        "seconds": seconds,
                        "error": error,
                    }
                )
    return rows


def fitted(estimator: Any, splits: Splits) -> tuple[float, float]:
    """Seconds of a fit, and its test error."""
    train, test = splits.train, splits.test
    start = time.perf_counter()
    estimator.fit(train.X, train.y, environments=train.environments)
    seconds = time.perf_counter() - start
    return seconds, float(np.mean(estimator.predict(test.X) != test.y))


def table(rows: list[dict[str, Any]]) -> Table:
    """Medians of time, ratio and error."""
    seconds = {(r["n_environments"], r["seed"], r["method"]): r["seconds"] for r in rows}
    lines = []
    for E in sorted({r["n_environments"] for r in rows}):
        for method in METHODS:
            of = [r for r in rows if (r["n_environments"], r["method"]) == (E, method)]
            ratio = statistics.median(seconds[E, r["seed"], REFERENCE] / r["seconds"] for r in of)
            times = [r["seconds"] for r in of]
            taken = f"{statistics.median(times):.3f} ({min(times):.3f} to {max(times):.3f})"
            error = statistics.median(r["error"] for r in of)
            lines.append([str(E), method, taken, f"{ratio:.0f} ×", f"{error:.4f}"])
    columns = ["E", "method", "seconds (range)", "times faster than 10,000 steps", "test error"]
    return Table("Example-3s', medians", columns, lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=int, nargs="+", default=[2, 6, 10])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/isr-vs-irm"))
    options = parser.parse_args()
    with threadpool_limits(limits=1):
        rows = measured(options.environments, options.repeats, options.samples)
    notes = [
        "Made by `python benchmarks/isr_vs_irm.py`.",
        f"Medians of {options.repeats} repetitions, {options.samples:,} samples per environment, "
        f"one thread, Python {platform.python_version()} on {platform.machine()}. All methods are "
        "this package's own, in NumPy; the published IRMv1 is in PyTorch. Both forms of IRMv1 have "
        "the default penalty, 0.9, which was not chosen for these data: errors are shown to say "
        "what was fitted, and are compared with chosen penalties in the linear unit tests.",
    ]
    page = markdown("A fit of ISR against 10,000 steps of IRMv1", notes, [table(rows)])
    write_files(options.out, {"results.csv": csv_text(list(rows[0]), rows), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
