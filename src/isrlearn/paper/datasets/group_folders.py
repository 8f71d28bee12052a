"""Waterbirds, CelebA and MultiNLI as they are published: folders that the user downloads."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.files import DataError, folders

_DROP = "https://nlp.stanford.edu/data/dro/"
_WATERBIRDS = (
    f"download and unpack {_DROP}waterbird_complete95_forest2water2.tar.gz and give the folder "
    "that holds metadata.csv"
)
_CELEBA = (
    "download list_attr_celeba, list_eval_partition and img_align_celeba from "
    "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html (or the CSV files of its copy on Kaggle) "
    "and give the folder that holds them"
)
_MULTINLI = (
    "take metadata_random.csv from https://github.com/kohpangwei/group_DRO, folder "
    f"dataset_metadata/multinli, and unpack {_DROP}multinli_bert_features.tar.gz; give the folder "
    "with data/metadata_random.csv and glue_data/MNLI"
)
_TOKEN_FILES = tuple(
    f"cached_{part}"
    for part in (
        "train_bert-base-uncased_128_mnli",
        "dev_bert-base-uncased_128_mnli",
        "dev_bert-base-uncased_128_mnli-mm",
    )
)

Root = str | os.PathLike[str]


def load_waterbirds(root: Root | None = None) -> Splits:
    """Waterbirds: paths of images of birds on land or water, in the published splits.

    Parameters
    ----------
    root : path, optional
        The folder ``waterbird_complete95_forest2water2``, with ``metadata.csv`` and a folder of
        images for each species. Default: the folder ``waterbirds`` of the data folder named by
        ISRLEARN_DATA, or of the user's cache.

    Returns
    -------
    Splits
        X paths of images (n,); y "landbird" or "waterbird"; environments "land" or "water".
        4,795, 1,199 and 5,794 images.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_waterbirds
    >>> load_waterbirds("waterbird_complete95_forest2water2").train.y[0]  # doctest: +SKIP
    'landbird'
    """
    folder = _folder(root, "waterbirds")
    table = _columns(
        folder / "metadata.csv", ("img_filename", "y", "split", "place"), advice=_WATERBIRDS
    )
    paths = _paths(folder, table["img_filename"], _WATERBIRDS)
    y = _named(table["y"], ("landbird", "waterbird"), "y", folder)
    places = _named(table["place"], ("land", "water"), "place", folder)
    return _splits(paths, y, places, table["split"], folder)


def load_celeba(
    root: Root | None = None, *, target: str = "Blond_Hair", environment: str = "Male"
) -> Splits:
    """CelebA: paths of portraits, one attribute to predict and one that goes with it.

    Parameters
    ----------
    root : path, optional
        The folder with ``list_attr_celeba``, ``list_eval_partition`` (each ``.txt`` as published
        or ``.csv``) and the images in ``img_align_celeba``; they may be in its folder ``data``.
        Default: the folder ``celeba`` of the data folder named by ISRLEARN_DATA, or of the user's
        cache.
    target, environment : str, default="Blond_Hair" and "Male"
        Names of attributes.

    Returns
    -------
    Splits
        X paths of images (n,); y and environments 0 or 1, absent or present. 162,770, 19,867 and
        19,962 images.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_celeba
    >>> round(float(load_celeba("celeba").train.y.mean()), 2)  # doctest: +SKIP
    0.15
    """
    folder = _folder(root, "celeba")
    if not any((folder / f"list_attr_celeba.{kind}").exists() for kind in ("txt", "csv")):
        folder = folder / "data" if (folder / "data").is_dir() else folder
    attributes = _celeba_table(folder, "list_attr_celeba", ("image_id", target, environment))
    partition = _celeba_table(folder, "list_eval_partition", ("image_id", "partition"))
    if list(attributes["image_id"]) != list(partition["image_id"]):
        raise DataError(f"{folder}: list_attr_celeba and list_eval_partition list other images")
    paths = _paths(folder / "img_align_celeba", attributes["image_id"], _CELEBA)
    # −1 is absent, 1 is present; in files of 0 and 1 the same holds.
    y, environments = (
        (_whole(attributes[name], name, folder) > 0).astype(int) for name in (target, environment)
    )
    return _splits(paths, y, environments, partition["partition"], folder)


def load_multinli(root: Root | None = None) -> Splits:
    """MultiNLI: tokens of pairs of sentences, and whether the second has a word of negation.

    Parameters
    ----------
    root : path, optional
        The folder with ``data/metadata_random.csv`` and the three files of cached features in
        ``glue_data/MNLI``. Default: the folder ``multinli`` of the data folder named by
        ISRLEARN_DATA, or of the user's cache. Needs torch, which wrote the features; they are
        read without running any code that is in them.

    Returns
    -------
    Splits
        X int64 of shape (n, 128, 3): token, mask and segment ids of BERT's tokenizer; y
        "contradiction", "entailment" or "neutral"; environments "no negation" or "negation".
        206,175, 82,462 and 123,712 pairs.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_multinli
    >>> load_multinli("multinli").train.X.shape  # doctest: +SKIP
    (206175, 128, 3)
    """
    folder = _folder(root, "multinli")
    table = _columns(
        folder / "data" / "metadata_random.csv",
        ("gold_label", "sentence2_has_negation", "split"),
        advice=_MULTINLI,
    )
    codes = _whole(table["gold_label"], "gold_label", folder)
    tokens, stated = _tokens(folder / "glue_data" / "MNLI")
    if len(stated) != len(codes) or (stated != codes).any():
        raise DataError(
            f"{folder}: the cached features ({len(stated)} pairs) and metadata_random.csv "
            f"({len(codes)}) do not have the same labels; {_MULTINLI}"
        )
    y = _named(
        table["gold_label"], ("contradiction", "entailment", "neutral"), "gold_label", folder
    )
    negation = _named(
        table["sentence2_has_negation"],
        ("no negation", "negation"),
        "sentence2_has_negation",
        folder,
    )
    return _splits(tokens, y, negation, table["split"], folder)


def _folder(root: Root | None, name: str) -> Path:
    """The given folder; else the first of this name in the data folders that is there."""
    if root is not None:
        return Path(root).expanduser()
    places = [folder / name for folder in folders()]
    return next((place for place in places if place.is_dir()), places[-1])


def _rows(path: Path, advice: str) -> list[list[str]]:
    if not path.is_file():
        raise DataError(f"{path} is not there: {advice}")
    with open(path, newline="", encoding="utf-8") as file:
        return [row for row in csv.reader(file) if row]


def _columns(path: Path, wanted: Sequence[str], advice: str) -> dict[str, NDArray[np.str_]]:
    """Columns of a CSV file by name, as text."""
    return _picked(path, *_headed(_rows(path, advice)), wanted)


def _headed(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    return (rows[0], rows[1:]) if rows else ([], [])


def _picked(
    path: Path, names: Sequence[str], rows: Sequence[Sequence[str]], wanted: Iterable[str]
) -> dict[str, NDArray[np.str_]]:
    for name in wanted:
        if name not in names:
            raise DataError(f"{path} has no column {name!r}; it has {', '.join(names)}")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise DataError(f"{path}, line {number} has {len(row)} fields; the header {len(names)}")
    place = {name: i for i, name in enumerate(names)}
    return {name: np.array([row[place[name]] for row in rows], dtype=str) for name in wanted}


def _celeba_table(folder: Path, name: str, wanted: Sequence[str]) -> dict[str, NDArray[np.str_]]:
    """A table of CelebA: CSV with a header, or published text in columns."""
    if (folder / f"{name}.csv").is_file():
        return _columns(folder / f"{name}.csv", wanted, _CELEBA)
    path = folder / f"{name}.txt"
    if not path.is_file():
        raise DataError(f"{path} (or .csv) is not there: {_CELEBA}")
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if "attr" in name:
        # A line with the number of images, then the names of the attributes, without image_id.
        names = ["image_id", *(lines[1] if len(lines) > 1 else [])]
        return _picked(path, names, lines[2:], wanted)
    return _picked(path, ["image_id", "partition"], lines, wanted)


def _paths(folder: Path, names: NDArray[np.str_], advice: str) -> NDArray[Any]:
    """Paths of files, of which the first and the last are looked for."""
    paths = np.array([os.path.join(folder, name) for name in names], dtype=object)
    for path in paths[[0, -1]] if len(paths) else []:
        if not os.path.isfile(path):
            raise DataError(f"{path} is not there: {advice}")
    return paths


def _whole(values: NDArray[np.str_], name: str, folder: Path) -> NDArray[np.int64]:
    try:
        return values.astype(np.float64).astype(np.int64)
    except ValueError:
        raise DataError(f"{folder}: column {name!r} holds something that is no number") from None


def _named(
    values: NDArray[np.str_], names: Sequence[str], column: str, folder: Path
) -> NDArray[np.str_]:
    """Codes 0, 1, … as names."""
    codes = _whole(values, column, folder)
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(names):
        raise DataError(
            f"{folder}: column {column!r} holds {sorted(set(codes.tolist()))}; it must hold 0 to "
            f"{len(names) - 1}"
        )
    return np.array(names)[codes]


def _splits(
    X: NDArray, y: NDArray, environments: NDArray, split: NDArray[np.str_], folder: Path
) -> Splits:
    """Rows 0, 1 and 2 of the published split."""
    codes = _whole(split, "split", folder)
    parts = []
    for code, name in enumerate(("training", "validation", "test")):
        rows = np.flatnonzero(codes == code)
        if not len(rows):
            raise DataError(f"{folder}: no row is of the {name} split ({code})")
        parts.append(EnvironmentData(X[rows], y[rows], environments[rows]))
    return Splits(*parts)


class InputFeatures:
    """Stands for the class by which the token files were written; it only holds what they hold."""


def _tokens(folder: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token, mask and segment ids (n, length, 3) and labels (n,) of the cached features."""
    try:
        import torch
    except ImportError:
        raise ImportError(
            "the token files were written by torch: pip install 'isrlearn[torch]'"
        ) from None
    pairs: list[Mapping[str, Any]] = []
    for name in _TOKEN_FILES:
        path = folder / name
        if not path.is_file():
            raise DataError(f"{path} is not there: {_MULTINLI}")
        known = [(InputFeatures, "utils_glue.InputFeatures")]
        with torch.serialization.safe_globals(known):
            try:
                pairs += [vars(item) for item in torch.load(path, weights_only=True)]
            except Exception as error:  # of any kind: the file is not ours
                reason = str(error).split("\n", 1)[0]
                raise DataError(f"{path} cannot be read: {reason}; {_MULTINLI}") from error
    fields = ("input_ids", "input_mask", "segment_ids")
    X = np.stack([np.array([p[field] for p in pairs], dtype=np.int64) for field in fields], axis=2)
    return X, np.array([pair["label_id"] for pair in pairs], dtype=np.int64)
