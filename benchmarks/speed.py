"""Time moments, fits and the logistic head against peers and against what the hardware allows.

    python benchmarks/speed.py moments --out docs/benchmarks/speed/moments
    python benchmarks/speed.py fit --quick
    python benchmarks/speed.py head
    python benchmarks/speed.py growth
    python benchmarks/speed.py cases

Seconds are medians on the clock of five runs, peers in turn in one process with a short rest
between, until the threads of the last have gone to sleep: run it on a machine that does nothing
else. The full shapes need 6 GB of memory. ``cases`` measures processor time with one BLAS thread,
so that other work on the machine counts little, and the peak memory of a process of its own.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _clock import embeddings, medians, parser, written
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from isrlearn import ISRClassifier, ISRClassifierCV
from isrlearn.engine import cell_moments, fit_logistic
from isrlearn.paper.tables import Table

#: Rows, features, classes, environments: Waterbirds, CelebA, MultiNLI, and a wide table's.
SHAPES = [
    (4_795, 2_048, 2, 2),
    (162_770, 2_048, 2, 2),
    (206_175, 768, 3, 2),
    (1_000_000, 256, 2, 4),
]
QUICK = [(4_795, 512, 2, 2), (20_000, 256, 3, 2)]
C = 0.01


def moments(quick: bool, repeats: int) -> list[Table]:
    """Moments against one product, one read, and two other erasers' fits."""
    lines = []
    for n, d, K, E in QUICK if quick else SHAPES:
        X, y, e = embeddings(n, d, K, E)
        found = medians(
            {
                "product": lambda X=X: X.T @ X,
                "read": lambda X=X: X.sum(0),
                "cells": lambda X=X, y=y, e=e: cell_moments(X, y, e),
                "pooled": lambda X=X, y=y, e=e: cell_moments(X, y, e, pooled=True),
                "means": lambda X=X, y=y, e=e: cell_moments(X, y, e, order=1),
            },
            repeats,
        )
        # A round of their own: they have threads of another kind, and want much memory.
        peers = medians({"product": lambda X=X: X.T @ X, **_erasers(X, e)}, repeats)
        lines.append(
            [
                f"{n:,} × {d:,}, {K * E} cells",
                f"{found['product']:.3f}",
                f"{found['cells'] / found['product']:.2f}",
                f"{found['pooled'] / found['product']:.2f}",
                f"{found['means'] / found['read']:.2f}",
                *(f"{peers[name] / peers['product']:.2f}" for name in ("LEACE", "fairlearn")),
            ]
        )
    columns = ["shape", "X.T @ X, s", "cells ÷ product", "pooled ÷ product"]
    columns += ["means ÷ X.sum(0)", "LeaceFitter ÷ product", "CorrelationRemover ÷ product"]
    return [Table("Moments", columns, lines)]


def _erasers(X: np.ndarray, e: np.ndarray) -> dict[str, Any]:
    import pandas as pd
    import torch
    from concept_erasure import LeaceFitter
    from fairlearn.preprocessing import CorrelationRemover

    rows, labels = torch.from_numpy(X), torch.from_numpy(np.eye(e.max() + 1)[e])
    # It wants the environment as a column of the table.
    table = pd.DataFrame(np.column_stack([X, e.astype(np.float32)]))
    return {
        "LEACE": lambda: LeaceFitter.fit(rows, labels.to(rows.dtype)),
        "fairlearn": lambda: CorrelationRemover(sensitive_feature_ids=[X.shape[1]]).fit(table),
    }


def straightforward(X: np.ndarray, y: np.ndarray, e: np.ndarray, p: int | None) -> np.ndarray:
    """Predictions of the published procedure, written down as it is described."""
    pca = None if p is None else PCA(p, random_state=0)
    Z = X if pca is None else pca.fit_transform(X)
    mean = np.stack([Z[(y == 1) & (e == i)].mean(axis=0) for i in range(e.max() + 1)])
    for k in range(y.max() + 1):
        for i in range(e.max() + 1):
            np.cov(Z[(y == k) & (e == i)].T)
    if pca is None:
        shift = (mean[1:] - mean[:1]).T
        Q = np.linalg.qr(shift, mode="complete")[0][:, shift.shape[1] :]
        Z = StandardScaler().fit_transform(Z @ (Q @ Q.T))
    else:
        vectors = np.linalg.eigh(np.cov(mean.T))[1][:, -1:]
        Z = (Z - Z @ vectors @ vectors.T) / np.sqrt(pca.explained_variance_)
    return LogisticRegression(C=C, max_iter=5000, tol=1e-5).fit(Z, y).predict(Z)


def fit(quick: bool, repeats: int) -> list[Table]:
    """Whole fits against the straightforward ones, and the price of the removal."""
    cases = [(4_795, 2_048, None), (80_000, 1_024, 100), (162_770, 2_048, 100), (4_795, 2_048, 100)]
    if quick:
        cases = [(4_795, 512, None), (10_000, 512, 50)]
    lines = []
    for n, d, p in cases:
        X, y, e = embeddings(n, d)
        # The published variant itself has scikit-learn's solver: this is the pipeline users run.
        ours = ISRClassifier(n_spurious=1, n_components=p, C=C, weights=None)
        found = medians(
            {
                "plain": lambda X=X, y=y, e=e, p=p: straightforward(X, y, e, p),
                "ours": lambda X=X, y=y, e=e, ours=ours: ours.fit(X, y, environments=e),
            },
            repeats,
        )
        same = np.mean(ours.predict(X) == straightforward(X, y, e, p))
        seconds = [f"{found['plain']:.2f}", f"{found['ours']:.2f}"]
        ratio = f"{found['plain'] / found['ours']:.1f}"
        lines.append([f"{n:,} × {d:,}, PCA {p}", *seconds, ratio, f"{100 * same:.2f} %"])
    columns = ["case", "straightforward, s", "ISRClassifier, s", "times faster", "same predictions"]
    return [Table("Whole fits", columns, lines), _price(quick, repeats)]


def _price(quick: bool, repeats: int) -> Table:
    lines = []
    for n, d, K, E in QUICK if quick else SHAPES[:3]:
        X, y, e = embeddings(n, d, K, E)
        ours = ISRClassifier(n_spurious=1, n_components=None, C=C)
        # Rows of one environment: nothing to compare, the head alone is fitted.
        alone = ISRClassifier(missing_environments="single", n_spurious=1, n_components=None, C=C)
        found = medians(
            {
                "head": lambda X=X, y=y, alone=alone: alone.fit(X, y),
                "ours": lambda X=X, y=y, e=e, ours=ours: ours.fit(X, y, environments=e),
            },
            repeats,
        )
        more = 100 * (found["ours"] / found["head"] - 1)
        seconds = [f"{found['head']:.2f}", f"{found['ours']:.2f}"]
        lines.append([f"{n:,} × {d:,}", *seconds, f"{more:+.0f} %"])
    columns = ["shape", "same head on all features, s", "ISRClassifier, s", "more"]
    return Table("The price of the removal, without PCA", columns, lines)


def head(quick: bool, repeats: int) -> list[Table]:
    """The logistic head: digits, passes, and time at the same gradient norm."""
    lines = []
    cases = [(20_000, 100, 2), (20_000, 300, 2), (20_000, 100, 3)]
    # More BLAS threads than one make all solvers slower here, lbfgs most.
    with threadpool_limits(limits=1):
        for n, d, K in [(3_000, 60, 2), (1_000, 20, 3)] if quick else cases:
            for condition in (1.0, 1e6):
                lines.append(_head_line(n, d, K, condition, repeats))
    columns = ["problem", "condition", "passes", "relative error", "ours, s", "newton-cholesky, s"]
    columns += ["lbfgs at the same gradient, s", "its passes", "times faster than lbfgs"]
    return [Table("Logistic head", columns, lines)]


def _head_line(n: int, d: int, K: int, condition: float, repeats: int) -> list[str]:
    rng = np.random.default_rng(0)
    G = rng.normal(size=(n, d))
    y = (2 / np.sqrt(d) * G @ rng.normal(size=(d, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    U = np.linalg.qr(rng.normal(size=(d, d)))[0]
    Z = (G * np.logspace(0, -np.log10(condition), d)) @ U + 0.5
    penalty = 1e-4
    exact = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-12, max_iter=500)
    reached = fit_logistic(Z, y, n_classes=K, penalty=penalty)
    tol = max(_gradient(Z, y, reached, penalty), 1e-12)
    slow = LogisticRegression(C=1 / penalty, solver="lbfgs", tol=tol, max_iter=3_000)
    found = medians(
        {
            "ours": lambda: fit_logistic(Z, y, n_classes=K, penalty=penalty),
            "exact": lambda: exact.fit(Z, y),
            "lbfgs": lambda: slow.fit(Z, y),
        },
        repeats,
    )
    error = np.linalg.norm(reached.coef - exact.coef_) / np.linalg.norm(exact.coef_)
    passes = f"{slow.n_iter_.max()}{'+' if slow.n_iter_.max() >= slow.max_iter else ''}"
    seconds = [f"{found[name]:.2f}" for name in ("ours", "exact", "lbfgs")]
    problem = [f"{n:,} × {d}, {K} classes", f"{condition:g}", str(reached.n_passes), f"{error:.0e}"]
    return [*problem, *seconds, passes, f"{found['lbfgs'] / found['ours']:.1f}"]


def _gradient(Z: np.ndarray, y: np.ndarray, fit: Any, penalty: float) -> float:
    """Largest derivative of the mean loss, the number that scikit-learn's tol is about."""
    scores = Z @ fit.coef.T + fit.intercept[:, 0]
    if scores.shape[1] == 1:
        residual = 1 / (1 + np.exp(-scores)) - y[:, None]
    else:
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        residual = scores / scores.sum(axis=1, keepdims=True) - np.eye(scores.shape[1])[y]
    return float(np.abs(Z.T @ residual + penalty * fit.coef.T).max() / len(Z))


def growth(quick: bool, repeats: int) -> list[Table]:
    """How a fit grows with rows, features and cells."""
    less = 10 if quick else 1
    cases = {
        "rows": [(100_000 // less, 256, 2), (1_000_000 // less, 256, 2)],
        "features": [(20_000 // less, d, 2) for d in (256, 512, 1_024)],
        "cells": [(50_000 // less, 256, E) for E in (2, 10, 50)],
    }
    lines = []
    for what, shapes in cases.items():
        first = None
        for n, d, E in shapes:
            X, y, e = embeddings(n, d, 2, E)
            ours = ISRClassifier(n_spurious=1, n_components=None)
            run = {"ours": lambda X=X, y=y, e=e, ours=ours: ours.fit(X, y, environments=e)}
            seconds = medians(run, repeats)["ours"]
            first = seconds if first is None else first
            shape = [f"{n:,}", f"{d:,}", str(2 * E)]
            lines.append([what, *shape, f"{seconds:.2f}", f"{seconds / first:.1f}"])
    return [Table("Growth", ["of", "rows", "features", "cells", "s", "times the first"], lines)]


def published_cov(X: np.ndarray, y: np.ndarray, e: np.ndarray, n_spurious: int) -> Any:
    """The published ISR-Cov: eigenvectors of a difference of covariances, then a new head."""
    first, second = (np.cov(X[(y == 1) & (e == i)].T) for i in range(2))
    values, vectors = np.linalg.eigh(first - second)
    V = vectors[:, np.argsort(-np.abs(values))[:n_spurious]].astype(X.dtype)
    return LogisticRegression().fit(X - (X @ V) @ V.T, y)


def _spread(n: int, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows one direction of which has a larger variance in the second environment."""
    X, y, e = embeddings(n, d)
    rng = np.random.default_rng(1)
    direction = np.linalg.qr(rng.standard_normal((d, 1)))[0][:, 0].astype(np.float32)
    X += (2 * e * rng.standard_normal(n)).astype(np.float32)[:, None] * direction
    return X, y, e


def _many_classes(K: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Twenty rows of 30 features for each class, in two environments."""
    rng = np.random.default_rng(0)
    y, e = np.repeat(np.arange(K), 20), rng.integers(2, size=20 * K)
    X = rng.standard_normal((K, 30))[y] + rng.standard_normal((20 * K, 30))
    X[:, 0] += e
    return X, y, e


def measured_wide(n: int, d: int) -> None:
    """Fit few rows of many features and print seconds and the peak memory of this process."""
    X, y, e = embeddings(n, d)
    start = time.process_time()
    with threadpool_limits(limits=1):
        ISRClassifier().fit(X, y, environments=e)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(json.dumps({"seconds": time.process_time() - start, "peak": peak}))


def cases(quick: bool, repeats: int) -> list[Table]:
    """Shapes for which users once had to wait: defaults beside what else they could run."""
    lines = []

    def compare(case: str, ours: Callable[[], Any], peer: str, theirs: Callable[[], Any]) -> None:
        with threadpool_limits(limits=1):
            found = medians({"ours": ours, "theirs": theirs}, repeats, time.process_time)
        seconds = [f"{found['ours']:.2f}", peer, f"{found['theirs']:.2f}"]
        lines.append([case, *seconds, f"{found['ours'] / found['theirs']:.2f}", ""])

    n, d = (1_000, 256) if quick else (4_795, 2_048)
    X, y, e = _spread(n, d)
    cov = ISRClassifier("cov", n_components=None)
    compare(
        f'`ISRClassifier("cov", n_components=None)`, {n:,} × {d:,} float32',
        lambda: cov.fit(X, y, environments=e),
        "published procedure",
        lambda: published_cov(X, y, e, 1),
    )
    for K in (50,) if quick else (400, 1_000):
        A, classes, where = _many_classes(K)
        compare(
            f"`ISRClassifier()`, {K:,} classes × 20 rows × 30 features",
            lambda A=A, k=classes, e=where: ISRClassifier().fit(A, k, environments=e),
            "`LogisticRegression()`",
            lambda A=A, k=classes: LogisticRegression().fit(A, k),
        )
    n, d = (100, 2_000) if quick else (500, 20_000)
    code = f"import speed; speed.measured_wide({n}, {d})"
    here = Path(__file__).parent
    run = [sys.executable, "-c", code]
    wide = json.loads(subprocess.run(run, capture_output=True, check=True, cwd=here).stdout)
    case = f"`ISRClassifier()`, {n:,} × {d:,} float32"
    lines.append([case, f"{wide['seconds']:.2f}", "", "", "", f"{wide['peak']:.2f}"])
    n, d = (500, 16) if quick else (5_000, 64)
    X, y, e = embeddings(n, d)
    with threadpool_limits(limits=1):
        start = time.process_time()
        ISRClassifierCV().fit(X, y, environments=e)
        seconds = time.process_time() - start
    lines.append([f"`ISRClassifierCV()`, {n:,} × {d}", f"{seconds:.2f}", "", "", "", ""])
    columns = ["case", "CPU s", "beside", "its CPU s", "ratio", "peak memory of the process, GB"]
    return [Table("Defaults on shapes that once took minutes", columns, lines)]


def main() -> None:
    """Measure, print and write."""
    parts = {"moments": moments, "fit": fit, "head": head, "growth": growth, "cases": cases}
    options = parser(str(__doc__), "speed")
    options.add_argument("part", choices=parts)
    options.add_argument("--repeats", type=int, help="runs of each contestant")
    chosen = options.parse_args()
    # A contestant that stops early says so in its number of passes.
    warnings.simplefilter("ignore")
    usual = 2 if chosen.quick else 3 if chosen.part == "cases" else 5
    repeats = chosen.repeats or usual
    tables = parts[chosen.part](chosen.quick, repeats)
    command = f"python benchmarks/speed.py {chosen.part}{' --quick' * chosen.quick}"
    if repeats != usual:
        command += f" --repeats {repeats}"
    precision = "float64" if chosen.part == "head" else "float32"
    threads = "1" if chosen.part == "head" else os.environ.get("OMP_NUM_THREADS", "all")
    notes = [f"Medians of {repeats} runs on the clock; {precision} features; {threads} threads."]
    if chosen.part == "cases":
        notes = [
            f"Processor time with one BLAS thread: medians of {repeats} runs, in turn, where there "
            "is something beside it; one run else."
        ]
    written(f"Speed: {chosen.part}", command, tables, chosen.out, notes)


if __name__ == "__main__":
    main()
