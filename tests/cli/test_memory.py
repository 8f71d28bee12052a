"""``isr fit`` works from a memory map: it never holds a copy of a large table."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import numpy as np
import pytest

ROWS, FEATURES = 200_000, 512
GIGABYTE = 10**9


@pytest.fixture(scope="module")
def big(tmp_path_factory):
    """A float32 array of 0.4 GB with its labels beside it; the first features are spurious."""
    path = tmp_path_factory.mktemp("big") / "big.npy"
    rng = np.random.default_rng(0)
    codes = np.arange(ROWS)
    y, e = codes % 2, codes // 2 % 4
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(ROWS, FEATURES))
    noise = rng.standard_normal((10_000, FEATURES), dtype=np.float32)
    for start in range(0, ROWS, len(noise)):
        rows = slice(start, start + len(noise))
        # Old noise in new places: drawing all of it anew would take longer than the fit.
        noise = np.roll(noise, 7, axis=1)
        X[rows] = noise
        X[rows, 0] += e[rows] * y[rows]
        X[rows, 1] += 2 * (y[rows] == 1) - 1
    X.flush()
    lines = [f"{label},env{where}" for label, where in zip(y, e, strict=True)]
    path.with_suffix(".labels.csv").write_text("\n".join(["y,e", *lines]))
    yield path
    path.unlink()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits anonymous memory alone")
@pytest.mark.parametrize(("head", "limit"), [("logistic", GIGABYTE), ("lda", GIGABYTE // 2)])
def test_fit_of_a_large_array_stays_below_the_limit(big, tmp_path, head, limit):
    arguments = ["fit", str(big), "--label", "y", "--environment", "e", "--head", head]
    arguments += ["--no-search", "--out", str(tmp_path / "m.isr"), "--json"]
    run = subprocess.run(
        [sys.executable, "-c", f"from isrlearn.cli import main; main({arguments!r})"],
        # All that is private and writable counts, touched or not; a file mapped to read does not.
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    assert run.returncode == 0
    assert '"n_spurious": 1' in run.stdout
