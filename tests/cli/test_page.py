"""Pages of samples: drawn for every kind of data, the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from isrlearn.cli.catalogue import draw_dataset
from isrlearn.cli.page import sample_page
from isrlearn.datasets import EnvironmentData, Splits, make_gaussian_environments
from isrlearn.paper.datasets import load_waterbirds

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
    page = sample_page(of(kind), "A page", regression=kind == "numbers")
    assert page["png"].startswith(b"\x89PNG")
    assert b"A page" in page["svg"] or b"<use" in page["svg"]
    assert page == sample_page(of(kind), "A page", regression=kind == "numbers")


def test_images_in_files(waterbirds_folder):
    page = sample_page(load_waterbirds(waterbirds_folder), "Birds")
    assert len(page["png"]) > 5000


def test_a_drawn_data_set(tmp_path, waterbirds_folder, multinli_folder):
    path = draw_dataset("waterbirds", tmp_path / "birds.svg", root=waterbirds_folder)
    assert path.read_bytes().startswith(b"<?xml")
    with pytest.raises(ValueError, match=r"drawn as \.png or \.svg"):
        draw_dataset("waterbirds", tmp_path / "birds.pdf", root=waterbirds_folder)
    with pytest.raises(ValueError, match="made of tokens: there is nothing to draw"):
        draw_dataset("multinli", tmp_path / "a.png", root=multinli_folder)
    with pytest.raises(ValueError, match="leave it out"):
        draw_dataset("digits-on-paper", tmp_path / "a.png", root=tmp_path)
