"""Waterbirds, CelebA and MultiNLI as published, in folders that the user downloads."""

import csv
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.io.errors import optional
from isrlearn.paper.datasets.files import DataError, folders

_DROP = "https://nlp.stanford.edu/data/dro/"
_WATERBIRDS = (
    f"download and unpack {_DROP}waterbird_complete95_forest2water2.tar.gz and pass the folder "
    "that holds metadata.csv"
)
_CELEBA = (
    "download list_attr_celeba, list_eval_partition and img_align_celeba from "
    "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html (or the CSV files of its copy on Kaggle) "
    "and pass the folder that holds them"
)
_MULTINLI = (
    "download metadata_random.csv from https://github.com/kohpangwei/group_DRO, folder "
    f"dataset_metadata/multinli, and unpack {_DROP}multinli_bert_features.tar.gz; pass the folder "
    "with data/metadata_random.csv and glue_data/MNLI"
)
_TOKEN_FILES = tuple(
    f"cached_{part}_bert-base-uncased_128_{task}"
    for part, task in (("train", "mnli"), ("dev", "mnli"), ("dev", "mnli-mm"))
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
    path = folder / "metadata.csv"
    table = _columns(path, _rows(path, _WATERBIRDS), ("img_filename", "y", "split", "place"))
    paths = _paths(folder, table["img_filename"], _WATERBIRDS)
    y = _named(table, "y", ("landbird", "waterbird"), folder)
    places = _named(table, "place", ("land", "water"), folder)
    return _splits(paths, y, places, table["split"], folder)


def load_celeba(
    root: Root | None = None, *, target: str = "Blond_Hair", environment: str = "Male"
) -> Splits:
    """CelebA: paths of portraits, an attribute to predict and a correlated one.

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
        raise DataError(f"{folder}: list_attr_celeba and list_eval_partition name different images")
    paths = _paths(folder / "img_align_celeba", attributes["image_id"], _CELEBA)
    # Present is 1; absent is −1, or 0 in some copies.
    y, environments = (
        (_whole(attributes[name], name, folder) > 0).astype(int) for name in (target, environment)
    )
    return _splits(paths, y, environments, partition["partition"], folder)


def load_multinli(root: Root | None = None) -> Splits:
    """MultiNLI: tokens of sentence pairs, and whether the second has a negation.

    Parameters
    ----------
    root : path, optional
        The folder with ``data/metadata_random.csv`` and the three files of cached features in
        ``glue_data/MNLI``. Default: the folder ``multinli`` of the data folder named by
        ISRLEARN_DATA, or of the user's cache. The files were written by torch, which is needed to
        read them; code that they may contain is not run.

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
    path = folder / "data" / "metadata_random.csv"
    wanted = ("gold_label", "sentence2_has_negation", "split")
    table = _columns(path, _rows(path, _MULTINLI), wanted)
    codes = _whole(table["gold_label"], "gold_label", folder)
    tokens, stated = _tokens(folder / "glue_data" / "MNLI")
    if len(stated) != len(codes) or (stated != codes).any():
        raise DataError(
            f"{folder}: the cached features ({len(stated)} pairs) and metadata_random.csv "
            f"({len(codes)}) do not have the same labels; {_MULTINLI}"
        )
    y = _named(table, "gold_label", ("contradiction", "entailment", "neutral"), folder)
    negation = _named(table, "sentence2_has_negation", ("no negation", "negation"), folder)
    return _splits(tokens, y, negation, table["split"], folder)


def _folder(root: Root | None, name: str) -> Path:
    """The given folder, or the first folder of this name in the data folders."""
    if root is not None:
        return Path(root).expanduser()
    places = [folder / name for folder in folders()]
    return next((place for place in places if place.is_dir()), places[-1])


def _rows(path: Path, advice: str) -> list[list[str]]:
    """Fields of every line that is not empty: of a CSV file, or separated by spaces."""
    if not path.is_file():
        raise DataError(f"{path} does not exist: {advice}")
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.reader(file) if path.suffix == ".csv" else map(str.split, file)
        return [row for row in rows if row]


def _columns(
    path: Path, rows: list[list[str]], wanted: Sequence[str]
) -> dict[str, NDArray[np.str_]]:
    """Columns by name, as text; the first row holds the names."""
    names = rows[0] if rows else []
    for name in wanted:
        if name not in names:
            raise DataError(f"{path} has no column {name!r}; it has {', '.join(names)}")
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise DataError(f"{path}, line {line} has {len(row)} fields; the header {len(names)}")
    columns = dict(zip(names, zip(*rows[1:], strict=True), strict=False))
    return {name: np.array(columns.get(name, ()), dtype=str) for name in wanted}


def _celeba_table(folder: Path, name: str, wanted: Sequence[str]) -> dict[str, NDArray[np.str_]]:
    """A table of CelebA: CSV with a header, or the published text."""
    path = folder / f"{name}.csv"
    if path.is_file():
        return _columns(path, _rows(path, _CELEBA), wanted)
    path = folder / f"{name}.txt"
    rows = _rows(path, _CELEBA)
    if name == "list_attr_celeba":
        # The number of images, then the names of the attributes without that of the image.
        header = ["image_id", *(rows[1] if len(rows) > 1 else [])]
        return _columns(path, [header, *rows[2:]], wanted)
    return _columns(path, [["image_id", "partition"], *rows], wanted)


def _paths(folder: Path, names: NDArray[np.str_], advice: str) -> NDArray[Any]:
    """Paths of files, of which the first and the last must exist."""
    paths = np.array([os.path.join(folder, name) for name in names], dtype=object)
    for path in paths[[0, -1]] if len(paths) else []:
        if not os.path.isfile(path):
            raise DataError(f"{path} does not exist: {advice}")
    return paths


def _whole(values: NDArray[np.str_], name: str, folder: Path) -> NDArray[np.int64]:
    """The values of a column as integers."""
    try:
        return values.astype(np.float64).astype(np.int64)
    except ValueError:
        raise DataError(f"{folder}: column {name!r} holds a value that is not a number") from None


def _named(
    table: Mapping[str, NDArray[np.str_]], column: str, names: Sequence[str], folder: Path
) -> NDArray[np.str_]:
    """The codes 0, 1, … of a column as names."""
    codes = _whole(table[column], column, folder)
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(names):
        raise DataError(
            f"{folder}: column {column!r} holds {sorted(set(codes.tolist()))}; it must hold 0 to "
            f"{len(names) - 1}"
        )
    return np.array(names)[codes]


def _splits(
    X: NDArray, y: NDArray, environments: NDArray, split: NDArray[np.str_], folder: Path
) -> Splits:
    """The published splits, coded 0, 1 and 2."""
    codes = _whole(split, "split", folder)
    parts = []
    for code, name in enumerate(("training", "validation", "test")):
        rows = np.flatnonzero(codes == code)
        if not len(rows):
            raise DataError(f"{folder}: the {name} split ({code}) has no rows")
        parts.append(EnvironmentData(X[rows], y[rows], environments[rows]))
    return Splits(*parts)


class InputFeatures:
    """A substitute for the class of the objects in the token files."""


def _tokens(folder: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Token, mask and segment ids (n, length, 3) and labels (n,) of the cached features."""
    torch = optional("torch", "reading the token files", "torch")
    pairs: list[Mapping[str, Any]] = []
    for name in _TOKEN_FILES:
        path = folder / name
        if not path.is_file():
            raise DataError(f"{path} does not exist: {_MULTINLI}")
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
