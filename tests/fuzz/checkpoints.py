"""Damaged checkpoints of training runs: each is refused by our own error, and quickly.

Run as a script for many of them: ``python tests/fuzz/checkpoints.py 10000``. A sample is part of
the suite (``tests/paper/training/test_train.py``).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from isrlearn.io import ModelFileError
from isrlearn.paper.training import train

#: Seconds that no file may take.
LONGEST = 5.0


def damaged(whole: bytes, rng: np.random.Generator) -> bytes:
    """A damaged copy of a file: flipped bits, lost, doubled, swapped or foreign bytes."""
    data, n = bytearray(whole), len(whole)
    a, b = sorted(rng.integers(0, n, size=2).tolist())
    kind = rng.integers(6)
    if kind == 0:
        for i in rng.integers(0, n, size=rng.integers(1, 4)):
            data[i] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        del data[a:]
    elif kind == 2:
        del data[a : b + 1]
    elif kind == 3:
        data[a:a] = data[a:b]
    elif kind == 4:
        data[a : b + 1] = bytes(b + 1 - a)
    else:
        data[a : a + 64] = rng.bytes(min(64, n - a))
    return bytes(data)


def faults(n: int, seed: int = 0) -> Iterator[str]:
    """What went wrong for each of n damaged checkpoints that were not refused as they should."""
    rng = np.random.default_rng(seed)
    draw = torch.Generator().manual_seed(seed)
    batch = torch.randn(24, 3, generator=draw), torch.arange(24) % 2, torch.arange(24) // 2 % 2
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.pt"
        run = {"objective": "group_dro", "optimizer": "adam", "checkpoint": path}
        train(torch.nn.Linear(3, 2), [batch], epochs=1, **run)
        whole = path.read_bytes()
        for i in range(n):
            if i and i % 1000 == 0:
                print(f"{i} of {n}", flush=True)
            data = damaged(whole, rng)
            if data == whole:
                continue
            path.write_bytes(data)
            start = time.monotonic()
            try:
                train(torch.nn.Linear(3, 2), [batch], epochs=1, **run)
                yield f"file {i} of seed {seed} was loaded"
            except ModelFileError:
                pass
            except Exception as error:
                yield f"file {i} of seed {seed}: {type(error).__name__}: {error}"
            if time.monotonic() - start > LONGEST:
                yield f"file {i} of seed {seed} took {time.monotonic() - start:.1f} s"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("n", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = list(faults(given.n, given.seed))
    print(f"{given.n} damaged checkpoints, {len(found)} faults", *found[:20], sep="\n")
    raise SystemExit(bool(found))
