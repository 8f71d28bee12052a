"""One small sample, written in every format that a table can have."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

N, D = 60, 4


@dataclass(frozen=True)
class Sample:
    """Features, classes and environments of the same rows."""

    X: np.ndarray
    y: np.ndarray
    environments: np.ndarray
    names: tuple[str, ...] = tuple(f"f{i}" for i in range(D))


@pytest.fixture
def sample():
    """Two classes in two environments; the last feature shifts with the environment."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(N) % 2, "cow", "camel")
    environments = np.where(np.arange(N) % 4 < 2, "grass", "sand")
    X = rng.standard_normal((N, D)).astype(np.float32)
    X[:, 0] += y == "cow"
    X[:, -1] += 3 * (environments == "sand")
    return Sample(X, y, environments)


def write_csv(sample: Sample, path: Path) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([*sample.names, "y", "e"])
        for x, y, e in zip(sample.X, sample.y, sample.environments, strict=True):
            rows.writerow([*x.tolist(), y, e])
    return path


def write_parquet(sample: Sample, path: Path) -> Path:
    columns = {name: sample.X[:, i] for i, name in enumerate(sample.names)}
    pq.write_table(pa.table({**columns, "y": sample.y, "e": sample.environments}), path)
    return path


def write_lists(sample: Sample, path: Path) -> Path:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(sample.X.ravel()), D)
    pq.write_table(pa.table({"f": vectors, "y": sample.y, "e": sample.environments}), path)
    return path


def write_npz(sample: Sample, path: Path) -> Path:
    np.savez(path, X=sample.X, y=sample.y, e=sample.environments)
    return path


def write_npy(sample: Sample, path: Path) -> Path:
    np.save(path, sample.X)
    lines = [f"{y},{e}" for y, e in zip(sample.y, sample.environments, strict=True)]
    path.with_suffix(".labels.csv").write_text("\n".join(["y,e", *lines]))
    return path


WRITERS = {
    "table.csv": write_csv,
    "table.parquet": write_parquet,
    "lists.parquet": write_lists,
    "table.npz": write_npz,
    "table.npy": write_npy,
}


@pytest.fixture(params=WRITERS)
def table_path(request, sample, tmp_path):
    """The sample in a file of each format."""
    return WRITERS[request.param](sample, tmp_path / request.param)


@pytest.fixture
def write(sample, tmp_path):
    """Writes the sample, or a similar one, to a file with the given name."""

    def to(name, data=sample):
        return WRITERS[name](data, tmp_path / name)

    return to
