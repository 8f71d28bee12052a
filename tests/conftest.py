"""Running ``isr``, and tiny copies of published data sets in exactly their layouts."""

from __future__ import annotations

import csv
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from isrlearn.cli import main

N_GROUP = 12  # rows of every class × environment × split


def _rows(n_classes: int) -> list[tuple[int, int, int]]:
    """(class, environment, split) of every row, shuffled."""
    cells = np.indices((n_classes, 2, 3)).reshape(3, -1).T
    rows = np.repeat(cells, N_GROUP, axis=0)
    return [tuple(map(int, row)) for row in np.random.default_rng(0).permutation(rows)]


def _image(path: Path, label: int, environment: int, rng: np.random.Generator) -> None:
    """A blob, left or right by its class, on a ground of the environment's colour."""
    image = pytest.importorskip("PIL.Image")
    ground = np.array([[40, 120, 40], [40, 60, 160]])[environment]
    pixels = np.clip(ground + rng.normal(0, 12, (24, 24, 3)), 0, 255)
    pixels[8:16, 12 * label + 2 : 12 * label + 10] = 230
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(pixels.astype(np.uint8)).save(path)


def _csv(path: Path, head: list[str], rows: list[list]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([head, *rows])


@pytest.fixture(scope="session")
def waterbirds_folder(tmp_path_factory):
    """metadata.csv with a path of each image, its label, split and background."""
    root = tmp_path_factory.mktemp("waterbird_complete95_forest2water2")
    rng = np.random.default_rng(1)
    table = []
    for i, (y, place, split) in enumerate(_rows(2), start=1):
        name = f"{i:03d}.Some_Bird/Some_Bird_{i:04d}.jpg"
        _image(root / name, y, place, rng)
        table.append([i, name, y, split, place, f"/{'fo'[place]}/forest/{i:08d}.jpg"])
    head = ["img_id", "img_filename", "y", "split", "place", "place_filename"]
    _csv(root / "metadata.csv", head, table)
    return root


@pytest.fixture(scope="session")
def celeba_folder(tmp_path_factory):
    """The published text files: a count, names, and rows padded with spaces."""
    root = tmp_path_factory.mktemp("celeba")
    rng = np.random.default_rng(2)
    names = ["Bald", "Blond_Hair", "Male", "Young"]
    attributes, partition = [], []
    for i, (blond, male, split) in enumerate(_rows(2), start=1):
        name = f"{i:06d}.jpg"
        _image(root / "img_align_celeba" / name, blond, male, rng)
        values = [-1, 2 * blond - 1, 2 * male - 1, 1]
        attributes.append(f"{name} " + " ".join(f"{v:2d}" for v in values))
        partition.append(f"{name} {split}")
    lines = [str(len(attributes)), " ".join(names) + " ", *attributes]
    (root / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
    (root / "list_eval_partition.txt").write_text("\n".join(partition) + "\n")
    return root


@pytest.fixture(scope="session")
def multinli_folder(tmp_path_factory):
    """Metadata of all pairs, and their tokens in three files of pickled objects."""
    torch = pytest.importorskip("torch")
    root = tmp_path_factory.mktemp("multinli")
    rng = np.random.default_rng(3)
    rows = _rows(3)
    table = [[i, y, negation, split] for i, (y, negation, split) in enumerate(rows)]
    head = ["", "gold_label", "sentence2_has_negation", "split"]
    _csv(root / "data" / "metadata_random.csv", head, table)
    # The published files name this class in a module that a reader does not have.
    module = types.ModuleType("utils_glue")
    module.InputFeatures = type("InputFeatures", (), {"__module__": "utils_glue"})
    sys.modules["utils_glue"] = module
    try:
        _pickled(torch, module.InputFeatures, rows, root / "glue_data" / "MNLI", rng)
    finally:
        del sys.modules["utils_glue"]
    return root


def _pickled(torch, kind, rows, folder: Path, rng: np.random.Generator) -> None:
    items = []
    for y, negation, _ in rows:
        words = rng.integers(1000, 1010, 12)
        words[0], words[1] = 101, 2000 + y
        words[2] = 3000 if negation else words[2]
        item = kind()
        item.input_ids = [*map(int, words), *[0] * 116]
        item.input_mask = [*[1] * 12, *[0] * 116]
        item.segment_ids = [*[0] * 6, *[1] * 6, *[0] * 116]
        item.label_id = y
        items.append(item)
    folder.mkdir(parents=True)
    stops = [0, len(items) // 2, 3 * len(items) // 4, len(items)]
    names = ("train", "_128_mnli"), ("dev", "_128_mnli"), ("dev", "_128_mnli-mm")
    for i, (part, end) in enumerate(names):
        path = folder / f"cached_{part}_bert-base-uncased{end}"
        torch.save(items[stops[i] : stops[i + 1]], path)


@pytest.fixture
def isr(capsys):
    """Runs ``isr``: status, standard output, standard error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return run


@pytest.fixture
def well(isr):
    """Runs ``isr``, which must end well and be silent but for its result."""

    def run(*arguments):
        status, out, err = isr(*arguments)
        assert (status, err) == (0, "")
        return out

    return run


@pytest.fixture
def mistake(isr):
    """Runs ``isr`` with a mistake in it: the one line that it says."""

    def run(*arguments):
        status, out, err = isr(*arguments)
        assert (status, out) == (2, "")
        usage = ("Usage", "Try")
        lines = [line for line in err.splitlines() if line and not line.startswith(usage)]
        assert len(lines) == 1
        assert "Traceback" not in err
        return lines[0]

    return run
