"""What the benchmarks of speed share: fair medians, data and pages."""

from __future__ import annotations

import argparse
import csv
import io
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

from isrlearn.paper.tables import Table, markdown, write_files

#: Seconds between contestants, after which busy-waiting BLAS threads have gone to sleep.
_REST = 0.05


def medians(
    contestants: Mapping[str, Callable[[], Any]],
    repeats: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Median seconds of each, run in turn, so that a slow minute affects all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for run in contestants.values():
        run()
    for _ in range(repeats):
        for name, run in contestants.items():
            time.sleep(_REST)
            start = clock()
            run()
            seconds[name].append(clock() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def embeddings(
    n: int, d: int, n_classes: int = 2, n_environments: int = 2, *, decay: float = 0.75
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows like a network's, float32, with a spurious and an invariant direction."""
    rng = np.random.default_rng(0)
    y, e = rng.integers(n_classes, size=n), rng.integers(n_environments, size=n)
    e = np.where(rng.random(n) < 0.5, y % n_environments, e)
    scale = (np.arange(1, d + 1) ** -decay).astype(np.float32)
    Q = np.linalg.qr(rng.standard_normal((d, min(d, 64))))[0].astype(np.float32)
    X = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 20_000):
        rows = slice(start, min(start + 20_000, n))
        block = rng.standard_normal((rows.stop - start, d), dtype=np.float32) * scale
        block[:, 2] += 0.6 * e[rows]
        block[:, 5] += 0.5 * y[rows]
        # A reflection of the leading directions: no feature is a direction by itself.
        X[rows] = block - 2 * (block[:, : Q.shape[1]] @ Q.T) @ Q @ Q.T / 2
    return X, y, e


def parser(doc: str, name: str) -> argparse.ArgumentParser:
    """Options that every benchmark of speed has."""
    options = argparse.ArgumentParser(description=doc.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="small shapes, two repetitions")
    options.add_argument("--out", type=Path, default=Path("isr-bench") / name)
    return options


def written(title: str, command: str, tables: list[Table], out: Path, notes: list[str]) -> None:
    """Print and write a page of tables, with the command and the machine that made it."""
    machine = (
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, {os.cpu_count()} cores, {platform.machine()}."
    )
    page = markdown(title, [f"Made by `{command}`.", machine, *notes], tables)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["table", "line", "column", "value"])
    for table in tables:
        for i, line in enumerate(table.rows):
            pairs = zip(table.columns, line, strict=True)
            writer.writerows([table.title, i, column, value] for column, value in pairs)
    write_files(out, {"results.csv": text.getvalue(), "table.md": page})
    print(page)
