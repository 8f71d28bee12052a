"""Does the answer depend on the units of the features? Two environments of Example-3'.

    python benchmarks/units.py --seeds 50 --out docs/benchmarks/units

In Example-3' the spurious features vary more than the invariant ones. A method that compares
covariances in the features' own units, as published, prefers features of large variance when the
environments hardly differ; here these are the right ones to remove. With the spurious columns
multiplied by 0.3 they are the wrong ones. Methods that whiten first see no difference.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from isrlearn import ISRClassifier
from isrlearn.paper.datasets import make_linear_unit_test
from isrlearn.paper.isr import PublishedISR
from isrlearn.paper.tables import Table, csv_text, markdown, plus_minus, write_files

METHODS = {
    "ISR-Cov, flag mean as published": ("cov", "paper"),
    "ISR-Cov, pooled": ("cov", "pooled"),
    "joint": ("joint", "pooled"),
}
FACTORS = (1.0, 0.3)


def measured(seed: int) -> list[dict[str, Any]]:
    """Test error of each method with each factor, given the number of dimensions."""
    splits = make_linear_unit_test("3'", n_environments=2, random_state=seed)
    train, test = splits.train, splits.test
    rows = []
    for name, (method, variant) in METHODS.items():
        for factor in FACTORS:
            units = np.repeat([1.0, factor], 5)
            model: Any = ISRClassifier(method, n_spurious=5, C=1.0, weights=None)
            if variant == "paper":
                model = PublishedISR(method, n_spurious=5)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # covariances that hardly differ
                model.fit(train.X * units, train.y, environments=train.environments)
            error = float(np.mean(model.predict(test.X * units) != test.y))
            rows.append({"seed": seed, "method": name, "factor": factor, "error": round(error, 6)})
    return rows


def table(rows: list[dict[str, Any]]) -> Table:
    """Mean ± standard error over seeds."""
    lines = []
    for name in METHODS:
        lines.append([name])
        for factor in FACTORS:
            found = [r["error"] for r in rows if (r["method"], r["factor"]) == (name, factor)]
            error = np.std(found, ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan
            lines[-1].append(plus_minus(np.mean(found), error))
    columns = ["method, given five dimensions", *(f"spurious × {f:g}" for f in FACTORS)]
    return Table("Test error", columns, lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/units"))
    options = parser.parse_args()
    rows = [row for seed in range(options.seeds) for row in measured(seed)]
    notes = [
        f"Made by `python benchmarks/units.py --seeds {options.seeds}`.",
        f"Example-3', two environments; mean over {options.seeds} seeds ± standard error.",
    ]
    page = markdown("Units of the features", notes, [table(rows)])
    write_files(options.out, {"results.csv": csv_text(list(rows[0]), rows), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
