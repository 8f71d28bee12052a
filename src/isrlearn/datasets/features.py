"""Feature files: what any extractor found in each sample, with labels, in one .npz."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.files import DataError

FEATURES = ("X", "features", "embeddings")
LABELS = ("y", "labels", "label")
ENVIRONMENTS = ("environments", "environment", "place")
GROUPS = ("group", "groups")
SPLIT = "split"
_PARTS = (("train", "0"), ("validation", "val", "valid", "1"), ("test", "2"))


def load_features(path: str | os.PathLike[str]) -> Splits:
    """Splits of a .npz file of features.

    The file holds arrays with one entry, or row, a sample:

    ===============================================  ===========================================
    ``X``, or ``features``, ``embeddings``           features (n, d), floats
    ``y``, or ``labels``, ``label``                  labels, or numbers to predict (n,)
    ``environments``, or ``environment``, ``place``  the environment of each sample (n,)
    ``group``, where there is none of those          class and environment in one: ``y * E + e``
    ``split``                                        0, 1, 2 or "train", "validation", "test" (n,)
    ===============================================  ===========================================

    Parameters
    ----------
    path : path
        The file. Nothing in it is run: arrays of Python objects are refused.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from isrlearn.datasets import load_features
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/clip.npz"
    ...     np.savez(path, X=np.eye(6, 4), y=[0, 1] * 3, place=[0, 0, 1] * 2, split=[0, 1, 2] * 2)
    ...     splits = load_features(path)
    >>> splits.train
    EnvironmentData(n_samples=2, n_features=4, environments=[0])
    """
    arrays = _arrays(Path(path))
    X = arrays[_found(arrays, FEATURES, path, "features")]
    y = arrays[_found(arrays, LABELS, path, "labels")]
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(f"{path}: features must be numbers (n, d); they are {X.dtype}, {X.shape}")
    if any(name in arrays for name in ENVIRONMENTS):
        environments = arrays[_found(arrays, ENVIRONMENTS, path, "environments")]
    else:
        group = arrays[_found(arrays, GROUPS, path, "environments", ENVIRONMENTS)]
        environments = _of_groups(group, y, path)
    if SPLIT not in arrays:
        raise DataError(
            f"{path} has no array 'split': add one with 0 for training, 1 for validation and 2 for "
            "test samples"
        )
    split = arrays[SPLIT]
    lengths = {"features": len(X), "labels": len(y), "environments": len(environments)}
    lengths["split"] = len(split)
    if len(set(lengths.values())) != 1:
        raise DataError(f"{path}: arrays must have one entry a sample each; got {lengths}")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)
    if not np.isfinite(X).all():
        raise DataError(f"{path}: features hold NaN or infinity; leave those samples out")
    return _split(X, y, environments, split, path)


def save_features(path: str | os.PathLike[str], splits: Splits) -> Path:
    """Path of a .npz file that now holds these splits, ready for `load_features`.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.datasets import load_features, make_waterbirds_like, save_features
    >>> splits = make_waterbirds_like(n_features=32, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_features(save_features(f"{folder}/features.npz", splits)).train.X.shape
    (4795, 32)
    """
    parts = (splits.train, splits.validation, splits.test)
    np.savez_compressed(
        path,
        X=np.concatenate([part.X for part in parts]),
        y=np.concatenate([part.y for part in parts]),
        environments=np.concatenate([part.environments for part in parts]),
        split=np.repeat([0, 1, 2], [len(part.y) for part in parts]),
    )
    return Path(path)


def _arrays(path: Path) -> dict[str, NDArray]:
    if not path.is_file():
        raise DataError(f"{path} is not there: give a .npz file of features")
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise DataError(f"{path} holds one array without a name; save it by numpy.savez")
        with archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, zipfile.BadZipFile, EOFError) as error:
        raise DataError(f"{path} cannot be read as .npz ({error})") from error
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{path} cannot be read as .npz ({error}); arrays must hold numbers or text, no objects"
        ) from error


def _found(
    arrays: Mapping[str, NDArray],
    names: Sequence[str],
    path: object,
    what: str,
    instead: Sequence[str] = (),
) -> str:
    """The first of the names that is there."""
    for name in names:
        if name in arrays:
            return name
    wanted = " or ".join(repr(name) for name in (*instead, *names))
    raise DataError(f"{path} has no {what}: {wanted} must be among {sorted(arrays)}")


def _of_groups(group: NDArray, y: NDArray, path: object) -> NDArray:
    """Environments of groups coded as class times the number of environments, plus environment."""
    classes, k = np.unique(y, return_inverse=True)
    n_groups = int(group.max()) + 1 if group.dtype.kind in "iu" and len(group) else 0
    n_each, rest = divmod(n_groups, len(classes) or 1)
    if len(group) != len(y) or rest or not n_each or (group // n_each != k).any():
        raise DataError(
            f"{path}: 'group' is not class * E + environment for {len(classes)} classes; add an "
            "array 'environments'"
        )
    return group % n_each


def _split(X: NDArray, y: NDArray, environments: NDArray, split: NDArray, path: object) -> Splits:
    names = split.astype(str) if split.dtype.kind in "US" else split.astype(int).astype(str)
    known = np.isin(names, [name for part in _PARTS for name in part])
    if not known.all():
        raise DataError(
            f"{path}: 'split' holds {str(names[~known][0])!r}; it must hold 0, 1, 2 or 'train', "
            "'validation', 'test'"
        )
    parts = []
    for part in _PARTS:
        rows = np.flatnonzero(np.isin(names, part))
        if not len(rows):
            raise DataError(f"{path}: no sample is of the {part[0]} split")
        parts.append(EnvironmentData(X[rows], y[rows], environments[rows]))
    return Splits(*parts)
