"""Pages of samples: drawn for every kind of data, the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.datasets import EnvironmentData, Splits, make_gaussian_environments
from isrlearn.paper.datasets import load_waterbirds
from isrlearn.paper.figures import sample_page

pytest.importorskip("matplotlib")


def of(kind: str) -> Splits:
    rng = np.random.default_rng(0)
    y, environments = np.tile([0, 1], 20), np.repeat(["a", "b"], 20)
    if kind == "images":
        X = rng.random((40, 3, 6, 6)).astype(np.float32)
        return Splits(*[EnvironmentData(X, y, environments)] * 3)
    task = "regression" if kind == "numbers" else "classification"
    data = make_gaussian_environments(40, 3, task=task, random_state=0)
    return Splits(data, data, data)


@pytest.mark.parametrize("kind", ["images", "numbers", "classes"])
def test_a_page_of_every_kind(kind):
    splits, regression = of(kind), kind == "numbers"
    png, svg = (sample_page(splits, "A page", k, regression=regression) for k in ("png", "svg"))
    assert png.startswith(b"\x89PNG")
    assert b"A page" in svg or b"<use" in svg
    assert svg == sample_page(splits, "A page", "svg", regression=regression)


def test_images_in_files(waterbirds_folder):
    assert len(sample_page(load_waterbirds(waterbirds_folder), "Birds", "png")) > 5000


def test_a_drawn_data_set(well, mistake, tmp_path, waterbirds_folder, multinli_folder):
    birds = ("datasets", "show", "waterbirds", "--data", waterbirds_folder, "--out")
    well(*birds, tmp_path / "birds.svg")
    assert (tmp_path / "birds.svg").read_bytes().startswith(b"<?xml")
    assert "plotted as .png or .svg" in mistake(*birds, tmp_path / "birds.pdf")
    sentences = ("datasets", "show", "multinli", "--data", multinli_folder)
    line = mistake(*sentences, "--out", tmp_path / "a.png")
    assert "made of tokens: there is nothing to plot" in line
    digits = ("datasets", "show", "digits-on-paper", "--data", tmp_path)
    assert "leave --data out" in mistake(*digits, "--out", tmp_path / "a.png")
