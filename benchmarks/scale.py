"""Measure memory, fits on sparse rows, the cost of Dask and the time of the import.

    python benchmarks/scale.py memory --out docs/benchmarks/speed/memory
    python benchmarks/scale.py sparse --out docs/benchmarks/speed/sparse
    python benchmarks/scale.py dask --quick
    python benchmarks/scale.py import

``memory`` writes a file of 8 GB to the folder of --data, and fits on its memory map in a process of
its own. ``dask`` compares the processor time of two workers, one BLAS thread each, with
that of one process, after a first pass that is not counted.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
from _clock import parser, written
from scipy import sparse

from isrlearn import ISRClassifier
from isrlearn.core.labels import Cells
from isrlearn.engine import cell_moments
from isrlearn.paper.tables import Table

GIGABYTE = 10**9


def array_on_disk(path: Path, n: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Write float32 rows with a spurious direction; return classes and environments."""
    rng = np.random.default_rng(0)
    codes = np.arange(n)
    y, e = codes % 2, codes // 2 % 4
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    noise = rng.standard_normal((10_000, d), dtype=np.float32)
    for start in range(0, n, len(noise)):
        rows = slice(start, min(start + len(noise), n))
        noise = np.roll(noise, 7, axis=1)
        X[rows] = noise[: rows.stop - start]
        X[rows, 0] += e[rows]
        X[rows, 1] += y[rows]
    X.flush()
    return y, e


def anonymous() -> float:
    """Gigabytes of anonymous memory of this process."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1e6


def measured_fit(path: str, head: str) -> None:
    """Fit on a memory map and print seconds and gigabytes; runs in a process of its own."""
    X = np.load(path, mmap_mode="r")
    codes = np.arange(len(X))
    before, peak, done = anonymous(), [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], anonymous())

    thread = threading.Thread(target=watch)
    thread.start()
    start = time.perf_counter()
    ISRClassifier(head=head).fit(X, codes % 2, environments=codes // 2 % 4)
    seconds = time.perf_counter() - start
    done.set()
    thread.join()
    print(json.dumps({"seconds": seconds, "before": before, "peak": peak[0]}))


def measured_sparse(n: int, d: int, entries: int) -> None:
    """Fit and predict on sparse rows, and print seconds and gigabytes; in its own process."""
    rng = np.random.default_rng(0)
    codes = np.arange(n)
    y, e = codes % 2, codes // 2 % 4
    columns = (d * rng.random((n, entries)) ** 3).astype(np.int32)  # few columns are frequent
    columns[:, 0], columns[:, 1] = y, 2 + e
    values, ends = np.ones(n * entries), np.arange(0, n * entries + 1, entries)
    X = sparse.csr_array((values, columns.ravel(), ends), shape=(n, d))
    X.sum_duplicates()
    start = time.process_time()
    clf = ISRClassifier().fit(X, y, environments=e)
    fitted = time.process_time()
    clf.predict(X)
    found = {"fit": fitted - start, "predict": time.process_time() - fitted}
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGABYTE
    found["rows"] = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / GIGABYTE
    print(json.dumps(found))


def thin(folder: Path, quick: bool) -> list[Table]:
    """Processor time and peaks of memory of fits on sparse rows of growing size."""
    lines = []
    for n, d in ((5_000, 5_000),) if quick else ((20_000, 10_000), (100_000, 50_000)):
        code = f"import scale; scale.measured_sparse({n}, {d}, 100)"
        run = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=Path(__file__).parent,
        )
        found = json.loads(run.stdout)
        times = [f"{found[name]:.1f}" for name in ("fit", "predict")]
        sizes = [f"{found['rows']:.2f}", f"{n * d * 8 / GIGABYTE:.1f}", f"{found['peak']:.2f}"]
        lines.append([f"{n:,} × {d:,}, 100 entries per row", *times, *sizes])
    columns = ["rows", "fit, CPU s", "predict, CPU s", "rows, GB", "dense, GB", "peak, GB"]
    return [Table("Fits on sparse rows", columns, lines)]


def memory(folder: Path, quick: bool) -> list[Table]:
    """Peaks of anonymous memory of fits on files of growing size."""
    lines = []
    for gigabytes in (0.05, 0.1) if quick else (1, 8):
        d = 512
        n = int(gigabytes * GIGABYTE / 4 / d)
        path = folder / "rows.npy"
        array_on_disk(path, n, d)
        for head in ("logistic", "lda"):
            code = f"import scale; scale.measured_fit({str(path)!r}, {head!r})"
            run = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                check=True,
                cwd=Path(__file__).parent,
            )
            found = json.loads(run.stdout)
            more = found["peak"] - found["before"]
            scatter = d * d * 8 / GIGABYTE
            lines.append(
                [
                    f"{gigabytes:g} GB, {n:,} × {d}",
                    head,
                    f"{found['seconds']:.1f}",
                    f"{found['peak']:.2f}",
                    f"{more:.2f}",
                    f"{scatter:.3f}",
                ]
            )
        path.unlink()
    columns = ["file", "head", "s", "anonymous GB at the peak", "of the fit", "one scatter, GB"]
    return [Table("Memory of a fit on a memory map", columns, lines)]


def measured_moments(path: str, repeats: int) -> None:
    """Print processor seconds of passes over a memory map; runs in a process of its own."""
    X, labels = np.load(path, mmap_mode="r"), np.load(Path(path).with_suffix(".labels.npz"))
    y, e, seconds = labels["y"], labels["e"], []
    for _ in range(repeats + 1):
        start = time.process_time()
        cell_moments(X, y, e)
        seconds.append(time.process_time() - start)
    print(statistics.median(seconds[1:]))


def alone(path: Path, repeats: int, threads: int | None) -> float:
    """Processor seconds of one process, with this many BLAS threads, or one per core."""
    run = subprocess.run(
        [sys.executable, "-c", f"import scale; scale.measured_moments({str(path)!r}, {repeats})"],
        capture_output=True,
        check=True,
        cwd=Path(__file__).parent,
        env=os.environ | ({} if threads is None else {"OMP_NUM_THREADS": str(threads)}),
    )
    return float(run.stdout)


def dask(folder: Path, quick: bool) -> list[Table]:
    """Processor seconds of moments by two workers and by one process, and whether they agree."""
    import dask.array as da

    from isrlearn.dask import local_cluster
    from isrlearn.dask.parts import rows_of
    from isrlearn.estimators.heads import Sample

    n, d, repeats = (100_000, 128, 2) if quick else (1_000_000, 256, 5)
    path = folder / "rows.npy"
    y, e = array_on_disk(path, n, d)
    np.savez(path.with_suffix(".labels.npz"), y=y, e=e)
    X = np.load(path, mmap_mode="r")
    here = cell_moments(X, y, e)
    one, all_threads = alone(path, repeats, 1), alone(path, repeats, None)
    lines = []
    with local_cluster(2) as cluster, cluster.get_client() as client:
        chunks = da.from_array(np.asarray(X), chunks=(n // 20, -1)).persist()
        for what, source in {
            "file": ([path], "y", "e"),
            "chunks in memory": (chunks, y, e),
        }.items():
            roles = dict(zip(("y", "environments"), source[1:], strict=True))
            together = []
            for _ in range(repeats + 1):
                before = sum(client.run(time.process_time).values())
                rows, labels = rows_of(source[0], roles, None, "classification")
                cells = Cells.of(labels["y"], labels["environments"])
                there = rows.in_parts(Sample(rows, cells)).moments("cell")
                together.append(sum(client.run(time.process_time).values()) - before)
            two = statistics.median(together[1:])
            error = np.abs(there.scatter - here.scatter).max() / np.abs(here.scatter).max()
            line = [what, f"{n:,} × {d}", f"{two:.2f}", f"{one:.2f}", f"{two / one:.2f}"]
            lines.append([*line, f"{all_threads:.2f}", f"{two / all_threads:.2f}", f"{error:.0e}"])
    columns = ["rows", "shape", "two workers, CPU s", "one process, 1 thread, CPU s", "ratio"]
    columns += ["one process, all threads, CPU s", "ratio to that", "error"]
    return [Table("Moments by Dask", columns, lines)]


def imports(quick: bool) -> list[Table]:
    """Seconds to import, in fresh interpreters."""
    statements = ("import isrlearn", "from isrlearn import ISRClassifier")
    seconds = {}
    for what in (*statements, "import sklearn.linear_model"):
        times = []
        for _ in range(3 if quick else 11):
            code = f"import time; s = time.perf_counter(); {what}; print(time.perf_counter() - s)"
            run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
            times.append(float(run.stdout))
        seconds[what] = statistics.median(times)
    lines = [
        [what, f"{s:.3f}", f"{s / seconds['import sklearn.linear_model']:.2f}"]
        for what, s in seconds.items()
    ]
    return [Table("Import", ["statement", "s", "÷ the last one"], lines)]


def main() -> None:
    """Measure, print and write."""
    options = parser(str(__doc__), "scale")
    options.add_argument("part", choices=["memory", "sparse", "dask", "import"])
    options.add_argument("--data", type=Path, help="folder for large files; default: a new one")
    chosen = options.parse_args()
    # Before a cluster: it sets the variable for its workers in this process too.
    threads = os.environ.get("OMP_NUM_THREADS", "as many as cores")
    with tempfile.TemporaryDirectory(dir=chosen.data) as name:
        folder = Path(name)
        if chosen.part == "import":
            tables = imports(chosen.quick)
        else:
            parts = {"memory": memory, "sparse": thin, "dask": dask}
            tables = parts[chosen.part](folder, chosen.quick)
    command = f"python benchmarks/scale.py {chosen.part}{' --quick' * chosen.quick}"
    runs = {"memory": "One run each.", "dask": f"Medians of {2 if chosen.quick else 5} runs."}
    runs["sparse"] = "One run each, in a process of its own, interpreter and libraries included."
    runs["import"] = f"Medians of {3 if chosen.quick else 11} runs."
    notes = [runs[chosen.part], f"BLAS threads: {threads}."]
    written(f"Scale: {chosen.part}", command, tables, chosen.out, notes)


if __name__ == "__main__":
    main()
