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

import numpy as np

from isrlearn import ISRClassifier
from isrlearn.benchmarks.files import write_beside
from isrlearn.benchmarks.tables import Table, markdown
from isrlearn.datasets import make_linear_unit_test

METHODS = {
    "ISR-Cov, flag mean as published": ("cov", "paper"),
    "ISR-Cov, pooled": ("cov", "pooled"),
    "joint": ("joint", "pooled"),
}
FACTORS = (1.0, 0.3)


def errors(seed: int) -> list[list[float]]:
    """Test error of each method (rows) with each factor (columns), told all five dimensions."""
    splits = make_linear_unit_test("3'", n_environments=2, random_state=seed)
    train, test = splits.train, splits.test
    rows = []
    for method, variant in METHODS.values():
        rows.append([])
        for factor in FACTORS:
            units = np.repeat([1.0, factor], 5)
            model = ISRClassifier(method, variant=variant, n_spurious=5)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of covariances that hardly differ
                model.fit(train.X * units, train.y, environments=train.environments)
            rows[-1].append(1 - model.score(test.X * units, test.y))
    return rows


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path("isr-bench/units"))
    options = parser.parse_args()
    found = np.array([errors(seed) for seed in range(options.seeds)])  # (seed, method, factor)
    mean, error = found.mean(0), found.std(0, ddof=1) / np.sqrt(len(found))
    lines = [
        [name, *(f"{m:.3f} ± {s:.3f}" for m, s in zip(mean[i], error[i], strict=True))]
        for i, name in enumerate(METHODS)
    ]
    columns = ["method, told five dimensions", *(f"spurious × {f:g}" for f in FACTORS)]
    notes = [
        f"Made by `python benchmarks/units.py --seeds {options.seeds}`; mean test error ± standard "
        "error. Example-3', two environments."
    ]
    page = markdown("Units of the features", notes, [Table("Test error", columns, lines)])
    write_beside(options.out / "table.md", page.encode())
    print(page)


if __name__ == "__main__":
    main()
