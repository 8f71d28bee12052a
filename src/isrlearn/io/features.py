"""Features of training, validation and test samples in one .npz file."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets import EnvironmentData, Splits
from isrlearn.io._columns import check_numbers
from isrlearn.io.errors import TableError, listed, reading
from isrlearn.io.files import atomic_write
from isrlearn.io.tables import open_table

_FEATURES = ("X", "features", "embeddings")
_LABELS = ("y", "labels", "label")
_ENVIRONMENTS = ("environments", "environment", "place", "group", "groups")
_PARTS = (("train", "0"), ("validation", "val", "valid", "1"), ("test", "2"))


def load_features(path: str | os.PathLike[str]) -> Splits:
    """Splits of a .npz file of features, such as the embeddings of a network.

    The file holds arrays with one entry, or row, per sample:

    ===============================================  ===========================================
    ``X``, or ``features``, ``embeddings``           features (n, d), floats
    ``y``, or ``labels``, ``label``                  labels, or numbers to predict (n,)
    ``environments``, or ``environment``, ``place``  the environment of each sample (n,)
    ``group``, in the absence of those               class and environment in one: ``y * E + e``
    ``split``                                        0, 1, 2 or "train", "validation", "test" (n,)
    ===============================================  ===========================================

    Parameters
    ----------
    path : path
        The file. Nothing in it is executed: arrays of Python objects are refused.

    Examples
    --------
    >>> from isrlearn.io import load_features
    >>> y, place, split = [0, 1] * 3, [0, 0, 1] * 2, [0, 1, 2] * 2
    >>> np.savez("clip.npz", X=np.eye(6, 4), y=y, place=place, split=split)
    >>> load_features("clip.npz").train
    EnvironmentData(n_samples=2, n_features=4, environments=[0])
    """
    source = open_table(path)
    with reading(source.path):
        features = source.groups[_first(_FEATURES, source.groups, "features (n, d)")]
        roles = {"labels": _LABELS, "environments": _ENVIRONMENTS, "split": ("split",)}
        names = [_first(known, source.columns, role) for role, known in roles.items()]
        rows, _, found = source.read(features, names)
        X, (y, environments, split) = np.asarray(rows[:]), (found[name] for name in names)
        lengths = [len(column) for column in (X, y, environments, split)]
        if len(set(lengths)) != 1:
            raise TableError(
                "every array must have one entry per sample; features, labels, environments and "
                f"split have {lengths}"
            )
        check_numbers(X, features)
        if names[1].startswith("group"):
            environments = _of_groups(environments, y)
        part_of = (split if split.dtype.kind == "U" else split.astype(int)).astype(str)
        if unknown := {*part_of.tolist()}.difference(*_PARTS):
            raise TableError(
                f"'split' holds {min(unknown)!r}; it must hold 0, 1, 2 or 'train', 'validation', "
                "'test'"
            )
        parts = []
        for part in _PARTS:
            rows = np.isin(part_of, part)
            if not rows.any():
                raise TableError(f"the {part[0]} split has no samples")
            parts.append(EnvironmentData(X[rows], y[rows], environments[rows]))
    return Splits(*parts)


def save_features(path: str | os.PathLike[str], splits: Splits) -> Path:
    """Path of a .npz file that now holds these splits, for `load_features` to read.

    Examples
    --------
    >>> from isrlearn.datasets import make_waterbirds_like
    >>> from isrlearn.io import load_features, save_features
    >>> splits = make_waterbirds_like(n_features=32, random_state=0)
    >>> load_features(save_features("features.npz", splits)).train.X.shape
    (4795, 32)
    """
    with atomic_write(path) as file:
        np.savez(file, **feature_arrays(splits))  # type: ignore[arg-type]
    return Path(path)


def feature_arrays(splits: Splits) -> dict[str, NDArray]:
    """The arrays of a file that holds these splits."""
    parts = (splits.train, splits.validation, splits.test)
    names = ("X", "y", "environments")
    arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return arrays | {"split": np.repeat([0, 1, 2], [len(part.y) for part in parts])}


def _first(names: Sequence[str], known: Iterable[str], what: str) -> str:
    """The first of the names that an array has."""
    known = list(known)
    for name in names:
        if name in known:
            return name
    wanted = " or ".join(map(repr, names))
    raise TableError(f"it has no {what}: {wanted} must be among {listed(known)}")


def _of_groups(group: NDArray, y: NDArray) -> NDArray:
    """Environments of groups coded as class times the number of environments, plus environment."""
    classes, k = np.unique(y, return_inverse=True)
    n_groups = int(group.max()) + 1 if group.dtype.kind in "iu" else 0
    n_each, rest = divmod(n_groups, len(classes))
    if rest or not n_each or (group // n_each != k).any():
        raise TableError(
            f"'group' is not class * E + environment for {len(classes)} classes; add an array "
            "'environments'"
        )
    return group % n_each
