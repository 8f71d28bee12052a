"""The model file: one fitted estimator in arrays and JSON, read without running anything."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy
import sklearn

from isrlearn import __version__
from isrlearn.io._encoding import as_json, entries
from isrlearn.io._safetensors import read_arrays, read_json, write_arrays
from isrlearn.io._state import Arrays, restored, state_of
from isrlearn.io.errors import ModelFileError, shown
from isrlearn.io.files import atomic_write

#: Version of what is in the file; a change that older code cannot read gets the next number.
SCHEMA = 1
_FORMAT = "isrlearn"
_ENTRIES = ("state", "feature_names", "named", "metadata", "versions")


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model and what is stored with it; made by :func:`read_model`.

    Parameters
    ----------
    estimator : ISRClassifier, ISRRegressor or ISRTransformer
        Fitted.
    feature_names : tuple of str or None
        Names of the features, in the order the estimator takes them.
    metadata : dict
        What was given to `save`: names of columns, metrics, notes.
    versions : dict
        Versions of the libraries that wrote the file.
    sha256 : str
        Of everything in the file but this.
    schema : int

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.io import ModelFile
    >>> ModelFile(ISRClassifier()).to_dict()["estimator"]
    'ISRClassifier'
    """

    estimator: Any
    feature_names: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""
    schema: int = SCHEMA

    def to_dict(self) -> dict[str, Any]:
        """What is known of the model in numbers and text, ready for JSON."""
        return as_json(
            {
                "estimator": type(self.estimator).__name__,
                "parameters": {k: _brief(v) for k, v in self.estimator.get_params(False).items()},
                **_fitted(self.estimator),
                "feature_names": self.feature_names,
                "metadata": dict(self.metadata),
                "versions": dict(self.versions),
                "schema": self.schema,
                "sha256": self.sha256,
            }
        )


def save(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted estimator to one file in the safetensors format.

    The file is written beside and renamed: `path` holds the whole new model or what it held
    before. It has what predictions and inspection need (the head, the subspace, the counts and
    means of cells), not the scatters, which grow with the square of the features.

    Parameters
    ----------
    estimator : ISRClassifier, ISRRegressor or ISRTransformer
        Fitted. Of a search its ``best_estimator_`` is saved.
    path : path
        Any name; ``model.isr`` and ``model.safetensors`` are good ones.
    feature_names : sequence of str, optional
        Names of the features. Default: those the estimator was fitted with, if any.
    metadata : mapping, optional
        Anything JSON can hold.

    Examples
    --------
    >>> import os, tempfile
    >>> import isrlearn
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(200, 3, n_invariant=2, n_spurious=1, random_state=0)
    >>> clf = isrlearn.ISRClassifier().fit(data.X, data.y, environments=data.environments)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     isrlearn.save(clf, os.path.join(folder, "model.isr"))
    ...     same = isrlearn.load(os.path.join(folder, "model.isr"))
    >>> bool((same.predict_proba(data.X) == clf.predict_proba(data.X)).all())
    True
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    names = getattr(estimator, "feature_names_in_", None)
    arrays, state = state_of(estimator)
    if feature_names is None and names is not None:
        feature_names = names.tolist()
    if feature_names is not None:
        _check_names(list(feature_names), estimator.n_features_in_)
    model = {
        "state": state,
        "feature_names": None if feature_names is None else list(feature_names),
        "named": names is not None,
        "metadata": as_json(dict(metadata or {})),
        "versions": _versions(),
    }
    text = json.dumps(model, allow_nan=False)
    header = {"format": _FORMAT, "schema": str(SCHEMA), "model": text}
    header["sha256"] = _digest(arrays, text)
    with atomic_write(path) as file:
        write_arrays(file, arrays, header)


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted estimator of a model file; its predictions are those of the one saved, bit by bit.

    Nothing in the file is run. A file that is damaged, cut off, of another kind or of a newer
    schema is a :class:`ModelFileError`.

    Parameters
    ----------
    path : path

    Returns
    -------
    ISRClassifier, ISRRegressor or ISRTransformer

    Examples
    --------
    >>> import isrlearn
    >>> isrlearn.load("no-such-model.isr")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no-such-model.isr'
    """
    return read_model(path).estimator


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """The estimator of a model file and what is stored with it.

    Parameters
    ----------
    path : path

    Examples
    --------
    >>> import os, tempfile
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.io import read_model, save
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.isr")
    ...     save(reg, path, feature_names=["age", "dose"], metadata={"note": "first try"})
    ...     model = read_model(path)
    >>> model.feature_names, model.metadata
    (('age', 'dose'), {'note': 'first try'})
    """
    try:
        arrays, header = read_arrays(path)
        return _model(arrays, header)
    except OSError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except Exception as error:
        # The signature of a hostile file: sound in form, absurd in content.
        reason = f"{type(error).__name__} {shown(str(error))}"
        raise ModelFileError(f"{os.fspath(path)}: the content makes no sense: {reason}") from error


def _model(arrays: Arrays, header: dict[str, str]) -> ModelFile:
    if header.get("format") != _FORMAT or "model" not in header:
        raise ModelFileError("this is a safetensors file, but not a model of isrlearn")
    if header.get("schema") != str(SCHEMA):
        raise ModelFileError(
            f"its schema is {shown(header.get('schema'))}, and isrlearn {__version__} reads "
            f"{SCHEMA}: a newer version may read it"
        )
    text = header["model"]
    digest = _digest(arrays, text)
    if header.get("sha256") != digest:
        raise ModelFileError("the content is not what was saved (its SHA-256 differs)")
    state, names, named, metadata, versions = entries(
        read_json(text, "description"), "the file", *_ENTRIES
    )
    estimator = restored(arrays, state)
    if names is not None:
        _check_names(names, estimator.n_features_in_)
        if named:
            estimator.feature_names_in_ = np.array(names, dtype=object)
    objects = isinstance(metadata, dict) and isinstance(versions, dict)
    if not objects or not isinstance(named, bool):
        raise ModelFileError("metadata and versions must be JSON objects, named true or false")
    return ModelFile(
        estimator, None if names is None else tuple(names), metadata, versions, digest, SCHEMA
    )


def _check_names(names: Any, d: int) -> None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelFileError("feature names must be texts")
    if len(names) != d or len(set(names)) != d:
        raise ModelFileError(f"there must be {d} feature names, each another; got {len(names)}")


def _digest(arrays: Arrays, text: str) -> str:
    """SHA-256 of description and arrays, however they lie in the file."""
    table = [[name, str(arrays[name].dtype), list(arrays[name].shape)] for name in sorted(arrays)]
    sha = hashlib.sha256(json.dumps([text, table]).encode())
    for name in sorted(arrays):
        sha.update(np.ascontiguousarray(arrays[name]).data)
    return sha.hexdigest()


def _versions() -> dict[str, str]:
    return {
        "isrlearn": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


def _brief(value: Any) -> Any:
    """A parameter as one line."""
    if isinstance(value, tuple):
        return f"given, {np.shape(value[0])}"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _fitted(estimator: Any) -> dict[str, Any]:
    """What a fitted estimator knows, in small numbers and names."""
    if not hasattr(estimator, "eraser_"):
        return {}
    moments, test = estimator.moments_, estimator.rank_test_
    unlabelled = moments.unlabelled
    return {
        "n_features": estimator.n_features_in_,
        "n_spurious": estimator.n_spurious_,
        "classes": moments.classes if hasattr(estimator, "classes_") else None,
        "environments": moments.environments,
        "count": moments.count,
        "count_without_environment": None if unlabelled is None else unlabelled.count[:, 0],
        "spectrum": estimator.spectrum_,
        "rank_test": None
        if test is None
        else {
            "rank": test.rank,
            "p_values": test.p_values,
            "level": test.level,
            "noise": test.noise,
            "limit": test.limit,
            "spectrum": test.spectrum,
        },
    }
