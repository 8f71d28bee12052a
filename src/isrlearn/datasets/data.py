"""The values that generators and loaders return, and the .npz files that hold them."""

from __future__ import annotations

import os
import secrets
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FEATURES = ("X", "features", "embeddings")
LABELS = ("y", "labels", "label")
ENVIRONMENTS = ("environments", "environment", "place")
GROUPS = ("group", "groups")
SPLIT = "split"
_PARTS = (("train", "0"), ("validation", "val", "valid", "1"), ("test", "2"))


class DataError(ValueError):
    """Files of a data set that are missing, damaged, or not in the expected layout.

    Examples
    --------
    >>> from isrlearn.datasets import DataError, load_features
    >>> try:
    ...     load_features("no-such-file.npz")
    ... except DataError as error:
    ...     print(str(error).partition(":")[0])
    no-such-file.npz does not exist
    """


@dataclass(frozen=True, eq=False, repr=False)
class EnvironmentData:
    """Features, targets and environments of the same samples.

    Parameters
    ----------
    X : ndarray of shape (n, d), (n, channels, height, width) or (n,)
        Features, images or tokens; or the paths of files that hold them.
    y : ndarray of shape (n,)
        Labels, or target values for regression.
    environments : ndarray of shape (n,)
        The environment of each sample.
    truth : object, optional
        What the generator knows and a learner does not: the mixing matrix, the means, the
        optimal invariant predictor. ``None`` if nothing is known.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.datasets import EnvironmentData
    >>> EnvironmentData(np.zeros((3, 2)), np.array([0, 1, 1]), np.array(["a", "b", "b"]))
    EnvironmentData(n_samples=3, n_features=2, environments=['a', 'b'])
    """

    X: NDArray[Any]  # (n, d), (n, ...) or paths (n,)
    y: NDArray[Any]  # (n,)
    environments: NDArray[Any]  # (n,)
    truth: Any = None

    def __post_init__(self) -> None:
        if np.ndim(self.X) < 2 and np.asarray(self.X).dtype.kind not in "OU":
            raise ValueError(
                f"X has {np.ndim(self.X)} dimensions; it must have 2, (samples, features), or more."
            )
        lengths = {"X": len(self.X), "y": len(self.y), "environments": len(self.environments)}
        if len(set(lengths.values())) != 1:
            raise ValueError(
                f"X, y and environments must each have one row per sample; got {lengths} rows."
            )

    def __repr__(self) -> str:
        n, *rest = self.X.shape
        what = f"n_features={rest[0]}" if len(rest) == 1 else f"shape={(n, *rest)}"
        names = np.unique(self.environments).tolist()
        return f"EnvironmentData(n_samples={n}, {what}, environments={names})"


@dataclass(frozen=True, eq=False)
class Splits:
    """Training, validation and test samples of one data set.

    Parameters
    ----------
    train, validation, test : EnvironmentData
        Independent samples. The function that returns them says how the spurious features relate
        to the labels in each split.

    Examples
    --------
    >>> from isrlearn.datasets import load_digits_on_paper
    >>> load_digits_on_paper().test
    EnvironmentData(n_samples=500, n_features=192, environments=['blue paper', 'yellow paper'])
    """

    train: EnvironmentData
    validation: EnvironmentData
    test: EnvironmentData


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
    X, y = _first(arrays, FEATURES, "features", path), _first(arrays, LABELS, "labels", path)
    environments = _first(arrays, (*ENVIRONMENTS, *GROUPS), "environments", path)
    if not any(name in arrays for name in ENVIRONMENTS):
        environments = _of_groups(environments, y, path)
    split = _first(arrays, [SPLIT], "split, with 0, 1, 2 for train, validation, test", path)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise DataError(f"{path}: features must be numbers (n, d); they are {X.dtype}, {X.shape}")
    lengths = [len(column) for column in (X, y, environments, split)]
    if len(set(lengths)) != 1:
        raise DataError(
            f"{path}: every array must have one entry per sample; features, labels, environments "
            f"and split have {lengths}"
        )
    X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float32)
    if not np.isfinite(X).all():
        raise DataError(f"{path}: features hold NaN or infinity; leave those samples out")
    names = split.astype(str) if split.dtype.kind in "US" else split.astype(int).astype(str)
    known = np.isin(names, [name for part in _PARTS for name in part])
    if not known.all():
        raise DataError(
            f"{path}: 'split' holds {str(names[~known][0])!r}; it must hold 0, 1, 2 or 'train', "
            "'validation', 'test'"
        )
    parts = []
    for part in _PARTS:
        rows = np.isin(names, part)
        if not rows.any():
            raise DataError(f"{path}: the {part[0]} split has no samples")
        parts.append(EnvironmentData(X[rows], y[rows], environments[rows]))
    return Splits(*parts)


def save_features(path: str | os.PathLike[str], splits: Splits) -> Path:
    """Path of a .npz file that now holds these splits, for `load_features` to read.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.datasets import load_features, make_waterbirds_like, save_features
    >>> splits = make_waterbirds_like(n_features=32, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_features(save_features(f"{folder}/features.npz", splits)).train.X.shape
    (4795, 32)
    """
    parts, path = (splits.train, splits.validation, splits.test), Path(path)
    arrays: dict[str, Any] = {"split": np.repeat([0, 1, 2], [len(part.y) for part in parts])}
    for name in ("X", "y", "environments"):
        arrays[name] = np.concatenate([getattr(part, name) for part in parts])
    beside = path.with_name(f".{secrets.token_hex(4)}-{path.name}")
    try:
        with open(beside, "wb") as file:
            np.savez_compressed(file, **arrays)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def _arrays(path: Path) -> dict[str, NDArray]:
    """The arrays of a .npz file by their names."""
    if not zipfile.is_zipfile(path):
        state = "is not a .npz file" if path.is_file() else "does not exist"
        raise DataError(f"{path} {state}: save named arrays with numpy.savez")
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{path} cannot be read as .npz ({error}); its arrays must hold numbers or text, not "
            "Python objects"
        ) from error


def _first(
    arrays: Mapping[str, NDArray], names: Sequence[str], what: str, path: object
) -> NDArray[Any]:
    """The first array that has one of the names."""
    for name in names:
        if name in arrays:
            return arrays[name]
    wanted = " or ".join(map(repr, names))
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
