"""What a trained network says of every sample, kept in a file so that it is trained once."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets import Splits, load_features
from isrlearn.paper.tables import write_files

__all__ = ["TrainedFeatures", "cached_features"]


@dataclass(frozen=True, eq=False)
class TrainedFeatures:
    """Features of training, validation and test samples, and the head trained on them.

    Parameters
    ----------
    splits : Splits
        Features with labels and environments as names.
    head : (coef, intercept) or None
        The network's last layer: a row of coefficients for each sorted class, or one for a
        number. None for an encoder that was not trained on these labels.

    Examples
    --------
    >>> from isrlearn.datasets import make_waterbirds_like
    >>> TrainedFeatures(make_waterbirds_like(n_features=32), None).splits.train.X.shape
    (4795, 32)
    """

    splits: Splits
    head: tuple[NDArray, NDArray] | None


def cached_features(
    make: Callable[[], TrainedFeatures], folder: Path, name: str, options: Mapping[str, Any]
) -> TrainedFeatures:
    """Features from a file of this name and these options, or made and written to it.

    Examples
    --------
    >>> import tempfile
    >>> from isrlearn.datasets import make_waterbirds_like
    >>> def make():
    ...     print("training")
    ...     return TrainedFeatures(make_waterbirds_like(n_features=32), None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for _ in range(2):
    ...         found = cached_features(make, Path(folder), "erm-0", {"epochs": 1})
    training
    """
    text = json.dumps(dict(options), sort_keys=True, default=str)
    path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.npz"
    if not path.exists():
        found = make()
        write_files(folder, {path.name: _packed(found)})
    return _read(path)


def _packed(found: TrainedFeatures) -> bytes:
    parts = (found.splits.train, found.splits.validation, found.splits.test)
    arrays: dict[str, NDArray] = {
        "X": np.concatenate([part.X for part in parts]).astype(np.float32),
        "y": np.concatenate([part.y for part in parts]),
        "environments": np.concatenate([part.environments for part in parts]),
        "split": np.repeat([0, 1, 2], [len(part.y) for part in parts]),
    }
    if found.head is not None:
        arrays["coef"], arrays["intercept"] = found.head
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


def _read(path: Path) -> TrainedFeatures:
    splits = load_features(path)
    with np.load(path, allow_pickle=False) as archive:
        head = (archive["coef"], archive["intercept"]) if "coef" in archive.files else None
    return TrainedFeatures(splits, head)
