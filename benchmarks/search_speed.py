"""Time ISRClassifierCV against scikit-learn's GridSearchCV over the same settings and folds.

    python benchmarks/search_speed.py --out docs/benchmarks/search-speed
    python benchmarks/search_speed.py --quick

Two cases: the default settings on 20,000 rows of 200 features from four environments, and 125
settings on features of the shape and the groups of Waterbirds'. Both searches score every setting
on the same folds by the worst group, and refit the best one; ISRClassifierCV also moves the
threshold by default. On an idle core the full run takes 15 minutes, nearly all of them for
GridSearchCV; ``--quick`` takes half a minute with fewer rows, features, folds and settings, and
shows a smaller ratio: the more settings there are, the more ISRClassifierCV saves by sharing work
between them. Seconds are processor time of one process, so that other work on the machine does not
count.
"""

from __future__ import annotations

import argparse
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV

from isrlearn import ISRClassifier
from isrlearn.core.labels import Cells
from isrlearn.datasets import (
    EnvironmentData,
    make_gaussian_environments,
    make_waterbirds_like,
)
from isrlearn.estimators import ISRClassifierCV
from isrlearn.estimators.folds import folds_of
from isrlearn.metrics import WorstGroupScorer, worst_group_accuracy
from isrlearn.paper.tables import Table, csv_text, markdown, write_files

GRID: dict[str, list[Any]] = {
    "n_spurious": [1, 2, 3, 4, 5],
    "scale": [0.0, 0.25, 0.5, 0.75, 1.0],
    "C": [0.001, 0.01, 0.1, 1.0, 10.0],
}


def default_case(quick: bool) -> tuple[str, Any, Any, dict[str, Any]]:
    """Name, training and test rows, and parameters of the search: none."""
    data = make_gaussian_environments(
        1000 if quick else 10_000,
        4,
        n_invariant=37 if quick else 197,
        n_spurious=3,
        sigma_invariant=10.0,
        sigma_spurious=1.0,
        mixing="random",
        random_state=0,
    )
    train, test = ([a[i::2] for a in (data.X, data.y, data.environments)] for i in (0, 1))
    return "the defaults", EnvironmentData(*train), EnvironmentData(*test), {}


def waterbirds_case(quick: bool) -> tuple[str, Any, Any, dict[str, Any]]:
    """Waterbirds-like features in float32, as networks give them, and more settings."""
    splits = make_waterbirds_like(n_features=256 if quick else 2048, random_state=0)
    parts = [replace(p, X=p.X.astype(np.float32)) for p in (splits.train, splits.test)]
    grid = {name: values[: 3 if quick else 5] for name, values in GRID.items()}
    # Two environments show two dimensions by means; the joint method is not bound by that.
    return (
        "features like those of Waterbirds",
        *parts,
        grid | {"method": "joint", "weights": "class"},
    )


def measured(name: str, train: Any, test: Any, grid: dict[str, Any], n_folds: int) -> list[dict]:
    """Seconds, choice and worst-group accuracies of both searches."""
    cells = Cells.of(train.y, train.environments)
    folds = folds_of(train.X, cells, "worst-group", n_folds, None)
    search: Any = ISRClassifierCV(**grid, cv=folds)
    rows = []
    for kind in ("ISRClassifierCV", "GridSearchCV"):
        if kind == "GridSearchCV":
            same = [{key: [v] for key, v in p.items()} for p in search.cv_results_["params"]]
            how = {"scoring": WorstGroupScorer(), "cv": folds, "error_score": "raise"}
            search = GridSearchCV(ISRClassifier(), same, **how)
        start = time.process_time()
        with sklearn.config_context(enable_metadata_routing=True):
            search.fit(train.X, train.y, environments=train.environments)
        rows.append(
            {
                "case": name,
                "search": kind,
                "rows": len(train.X),
                "features": train.X.shape[1],
                "settings": len(search.cv_results_["params"]),
                "folds": n_folds,
                "seconds": time.process_time() - start,
                "held_out": search.best_score_,
                "test": worst_group_accuracy(test.y, search.predict(test.X), test.environments),
                **{key: search.best_params_[key] for key in GRID},
            }
        )
    return rows


def table(rows: list[dict]) -> Table:
    """Times, ratio, and what was chosen."""
    slowest = {row["case"]: row["seconds"] for row in rows if row["search"] == "GridSearchCV"}
    lines = [
        [
            f"{row['case']}: {row['rows']:,} × {row['features']:,}, {row['settings']} settings, "
            f"{row['folds']} folds",
            row["search"],
            f"{row['seconds']:.1f}",
            f"{slowest[row['case']] / row['seconds']:.1f} ×",
            f"{row['held_out']:.4f}",
            f"{row['test']:.4f}",
            ", ".join(f"{key}={row[key]}" for key in GRID),
        ]
        for row in rows
    ]
    columns = ["case", "search", "seconds", "faster", "worst group, folds", "test", "choice"]
    return Table("Time to choose", columns, lines)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows, features and settings")
    parser.add_argument("--out", type=Path, default=Path("isr-bench/search-speed"))
    options = parser.parse_args()
    rows = []
    for case in (default_case, waterbirds_case):
        rows += measured(*case(options.quick), n_folds=2 if options.quick else 5)
    notes = [
        f"Made by `python benchmarks/search_speed.py{' --quick' * options.quick}`.",
        "Seed 0, one run each; processor time of one process, Python "
        f"{platform.python_version()} on {platform.machine()}. ISRClassifierCV keeps its reference "
        "unless another setting is clearly better and moves the threshold, so that the two may "
        "choose differently.",
    ]
    page = markdown("Choosing settings", notes, [table(rows)])
    write_files(options.out, {"results.csv": csv_text(list(rows[0]), rows), "table.md": page})
    print(page)


if __name__ == "__main__":
    main()
