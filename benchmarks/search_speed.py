"""Time ISRClassifierCV against scikit-learn's GridSearchCV over the same estimator and folds.

    python benchmarks/search_speed.py --out docs/benchmarks/search-speed
    python benchmarks/search_speed.py --quick

The features have the shape and the groups of Waterbirds', with planted spurious directions. Both
searches score every setting on the same folds by the worst group, and refit the best one. On an
idle core the full run takes 35 minutes, all but one of them for GridSearchCV; ``--quick`` takes
half a minute with fewer features, folds and settings, and shows a smaller ratio: the more settings
there are, the more ISRClassifierCV saves by sharing work between them. Seconds are processor time
of one process, so that other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import csv
import io
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV

from isrlearn import ISRClassifier
from isrlearn.core.labels import Cells
from isrlearn.datasets import Splits, make_waterbirds_like
from isrlearn.estimators import ISRClassifierCV
from isrlearn.estimators.folds import cell_folds
from isrlearn.metrics import WorstGroupScorer, worst_group_accuracy
from isrlearn.paper.tables import Table, markdown, write_files

# Two environments show two dimensions by means; the joint method is not bound by that.
METHOD = "joint"
GRID: dict[str, list[Any]] = {
    "n_spurious": [1, 2, 3, 4, 5],
    "scale": [0.0, 0.25, 0.5, 0.75, 1.0],
    "C": [0.001, 0.01, 0.1, 1.0, 10.0],
}


def features(n_features: int, seed: int) -> Splits:
    """Waterbirds-like features in float32, as networks give them."""
    splits = make_waterbirds_like(n_features=n_features, random_state=seed)
    parts = (splits.train, splits.validation, splits.test)
    return Splits(*(type(p)(p.X.astype(np.float32), p.y, p.environments) for p in parts))


def searches(grid: dict[str, list[Any]], folds: list) -> dict[str, Any]:
    """The two searches, not fitted."""
    return {
        "ISRClassifierCV": ISRClassifierCV(METHOD, **grid, weights="class", cv=folds, verbose=1),
        "GridSearchCV": GridSearchCV(
            ISRClassifier(METHOD, weights="class"),
            grid,
            scoring=WorstGroupScorer(),
            cv=folds,
            error_score="raise",
        ),
    }


def measured(splits: Splits, grid: dict[str, list[Any]], n_folds: int) -> list[dict]:
    """Seconds, choice and worst-group accuracies of both searches."""
    train, test = splits.train, splits.test
    cells = Cells.of(train.y, train.environments)
    folds = cell_folds(cells.k * len(cells.environments) + cells.e, n_folds)
    rows = []
    for name, search in searches(grid, folds).items():
        start = time.process_time()
        with sklearn.config_context(enable_metadata_routing=True):
            search.fit(train.X, train.y, environments=train.environments)
        seconds = time.process_time() - start
        worst = worst_group_accuracy(test.y, search.predict(test.X), test.environments)
        chosen = {key: search.best_params_[key] for key in grid}
        rows.append(
            {"search": name, "seconds": seconds, "folds": search.best_score_, "test": worst}
            | chosen
        )
    return rows


def table(rows: list[dict]) -> Table:
    """Times, ratio, and what was chosen."""
    slowest = max(row["seconds"] for row in rows)
    lines = [
        [
            row["search"],
            f"{row['seconds']:.1f}",
            f"{slowest / row['seconds']:.1f} ×",
            f"{row['folds']:.4f}",
            f"{row['test']:.4f}",
            ", ".join(f"{key}={row[key]:g}" for key in GRID),
        ]
        for row in rows
    ]
    columns = ["search", "seconds", "faster", "worst group, folds", "worst group, test", "choice"]
    return Table("Time to choose", columns, lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=2048)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--values", type=int, default=5, help="values of each setting, up to 5")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="256 features, 2 folds, 3 values")
    parser.add_argument("--out", type=Path, default=Path("isr-bench/search-speed"))
    options = parser.parse_args()
    if options.quick:
        options.features, options.folds, options.values = 256, 2, 3
    grid = {name: values[: options.values] for name, values in GRID.items()}
    splits = features(options.features, options.seed)
    rows = measured(splits, grid, options.folds)
    n, d = splits.train.X.shape
    n_points = int(np.prod([len(values) for values in grid.values()]))
    notes = [
        f"Made by `python benchmarks/search_speed.py{' --quick' * options.quick}`.",
        f"{n:,} × {d:,} float32 features in groups of 3,498, 184, 56 and 1,057 rows; {n_points} "
        f"settings of `ISRClassifier({METHOD!r})`, {options.folds} folds, "
        f"seed {options.seed}, one run each; processor time, Python {platform.python_version()} on "
        f"{platform.machine()}.",
    ]
    page = markdown("Choosing settings", notes, [table(rows)])
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_files(options.out, {"results.csv": text.getvalue(), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
