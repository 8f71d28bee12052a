"""The model file: one fitted estimator as arrays and JSON, read without executing anything."""

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import scipy
import sklearn
from sklearn.pipeline import Pipeline, make_pipeline

from isrlearn import __version__
from isrlearn.estimators import TablePreparer
from isrlearn.io._state import Arrays, restored, state_of
from isrlearn.io.errors import ModelFileError, shown
from isrlearn.io.files import atomic_write
from isrlearn.markup import as_json

#: Version of what is in the file; a change that older code cannot read gets the next number.
SCHEMA = 3
#: Where the record of the model is in the metadata of a safetensors file.
_KEY = "isrlearn"
#: Longest header: room for the names of a hundred thousand features.
_MAX_HEADER = 1 << 22


@dataclass(frozen=True, eq=False)
class ModelFile:
    """A model and what is stored with it, as returned by :func:`read_model`.

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.io import ModelFile
    >>> ModelFile(ISRClassifier()).to_dict()["estimator"]
    'ISRClassifier'
    """

    estimator: Any  #: Fitted ISRClassifier, ISRRegressor or ISRTransformer.
    #: Names of the features, in the order the estimator expects.
    feature_names: tuple[str, ...] | None = None
    #: What was passed to `save`: names of columns, metrics, notes.
    metadata: Mapping[str, Any] = field(default_factory=dict)
    #: Versions of the libraries that wrote the file.
    versions: Mapping[str, str] = field(default_factory=dict)
    sha256: str = ""  #: Digest of everything else in the file.
    #: The steps before the estimator, which turn a table into its features.
    preparation: tuple[Any, ...] = ()

    @property
    def model(self) -> Any:
        """The estimator, at the end of a pipeline if there is a preparation."""
        steps = (*self.preparation, self.estimator)
        return make_pipeline(*steps) if self.preparation else self.estimator

    @property
    def preparer(self) -> TablePreparer | None:
        """The first step of the preparation, if it prepares a table."""
        first = self.preparation[0] if self.preparation else None
        return first if isinstance(first, TablePreparer) else None

    def to_dict(self) -> dict[str, Any]:
        """Everything about the model in numbers and text, ready for JSON."""
        estimator = self.estimator
        parameters = estimator.get_params(deep=False)
        if isinstance(parameters.get("head"), tuple):
            parameters["head"] = f"given, {np.shape(parameters['head'][0])}"
        record = {"estimator": type(estimator).__name__, "parameters": parameters}
        if hasattr(estimator, "eraser_"):
            moments, unlabelled = estimator.moments_, estimator.moments_.unlabelled
            record |= {
                "n_features": estimator.n_features_in_,
                "n_spurious": estimator.n_spurious_,
                "classes": moments.classes if hasattr(estimator, "classes_") else None,
                "environments": moments.environments,
                "count": moments.count,
                "count_without_environment": unlabelled and unlabelled.count[:, 0],
                "spectrum": estimator.spectrum_,
                "rank_test": estimator.rank_test_,
            }
        columns = self.preparer and self.preparer.columns_
        return as_json(vars(self) | record | {"preparation": columns})


def save(
    estimator: Any,
    path: str | os.PathLike[str],
    *,
    feature_names: Sequence[str] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted estimator to one file in the safetensors format, atomically.

    The file holds what predictions and inspection need (the head, the subspace, the counts and
    means of cells), not the scatters, whose size grows with the square of the features.

    Parameters
    ----------
    estimator : fitted ISRClassifier, ISRRegressor or ISRTransformer
        For a search, its ``best_estimator_`` is saved. A Pipeline that ends in one of them may
        begin with a :class:`isrlearn.TablePreparer` and a StandardScaler.
    path : path
        Any name, for example ``model.isr`` or ``model.safetensors``.
    feature_names : sequence of str, optional
        Names of the features. Default: those the estimator was fitted with, if any.
    metadata : mapping, optional
        Anything that JSON can represent.

    Examples
    --------
    >>> import isrlearn
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(200, 3, n_invariant=2, n_spurious=1, random_state=0)
    >>> clf = isrlearn.ISRClassifier().fit(data.X, data.y, environments=data.environments)
    >>> isrlearn.save(clf, "model.isr")
    >>> same = isrlearn.load("model.isr")
    >>> bool((same.predict_proba(data.X) == clf.predict_proba(data.X)).all())
    True
    """
    *before, estimator = steps_of(estimator)
    arrays, (*preparation, state) = state_of([*before, estimator])
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    own = getattr(_named(before, estimator), "feature_names_in_", None)
    names = own if feature_names is None else feature_names
    if names is None and before and hasattr(before[0], "feature_names_in_"):
        names = make_pipeline(*before).get_feature_names_out()
    record = {
        "schema": SCHEMA,
        "state": state,
        "preparation": preparation,
        "feature_names": None if names is None else checked_names(list(names), estimator),
        "named": own is not None,
        "metadata": as_json(dict(metadata or {})),
        "versions": {"isrlearn": __version__, "python": platform.python_version()}
        | {library.__name__: library.__version__ for library in (np, scipy, sklearn)},
    }
    text = json.dumps(record | {"sha256": _digest(arrays, record)})
    # A single key: safetensors writes several in arbitrary order.
    content = safetensors.numpy.save(arrays, {_KEY: text})
    length = int.from_bytes(content[:8], "little")
    if length > _MAX_HEADER:
        raise ModelFileError(
            f"names and metadata take {length} bytes; a model file has room for {_MAX_HEADER}"
        )
    with atomic_write(path) as file:
        file.write(content)


def load(path: str | os.PathLike[str]) -> Any:
    """The fitted estimator, or pipeline, of a model file; it predicts like the one that was saved.

    Nothing in the file is executed. A file that is damaged, truncated, of another kind or of
    another schema raises a :class:`ModelFileError`.

    Examples
    --------
    >>> import isrlearn
    >>> isrlearn.load("no-such-model.isr")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] No such file or directory: 'no-such-model.isr'
    """
    return read_model(path).model


def read_model(path: str | os.PathLike[str]) -> ModelFile:
    """The estimator of a model file and what is stored with it, as a :class:`ModelFile`.

    Examples
    --------
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.io import read_model, save
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> save(reg, "model.isr", feature_names=["age", "dose"], metadata={"note": "first try"})
    >>> model = read_model("model.isr")
    >>> model.feature_names, model.metadata
    (('age', 'dose'), {'note': 'first try'})
    """
    try:
        return _model(*_content(path))
    except OSError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{os.fspath(path)}: {error}") from None
    except Exception as error:
        # The libraries raise all kinds of exceptions on damaged or hostile files.
        reason = f"{type(error).__name__} {shown(str(error))}"
        raise ModelFileError(f"{os.fspath(path)}: the content is not valid: {reason}") from error


def _content(path: str | os.PathLike[str]) -> tuple[Arrays, dict[str, Any]]:
    """Arrays and record of a file; safetensors checks that the arrays fill the file exactly."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise ModelFileError("this is not a regular file")  # a pipe could block for ever
    with open(path, "rb") as file:
        size, start = os.fstat(file.fileno()).st_size, file.read(8)
    if len(start) < 8 or int.from_bytes(start, "little") > min(size - 8, _MAX_HEADER):
        raise ModelFileError(_other_kind(start, size))
    with safetensors.safe_open(path, "numpy") as content:
        metadata = content.metadata() or {}
        if _KEY not in metadata:
            raise ModelFileError("this is a safetensors file, but not a model of isrlearn")
        arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        return arrays, json.loads(metadata[_KEY])


def _model(arrays: Arrays, record: dict[str, Any]) -> ModelFile:
    if record.get("schema") != SCHEMA:
        raise ModelFileError(
            f"its schema is {shown(record.get('schema'))}, and isrlearn {__version__} reads "
            f"{SCHEMA}: another version may read it"
        )
    digest = record.pop("sha256", None)
    if digest != _digest(arrays, record):
        raise ModelFileError("the content is not what was saved (its SHA-256 differs)")
    if not isinstance(record["preparation"], list):
        raise ModelFileError("the preparation must be a list of steps")
    *steps, estimator = restored(arrays, [*record["preparation"], record["state"]])
    names = record["feature_names"]
    if names is not None:
        names = tuple(checked_names(names, estimator))
        if record["named"]:
            _named(steps, estimator).feature_names_in_ = np.array(names, dtype=object)
    metadata, versions = record["metadata"], record["versions"]
    if not isinstance(metadata, dict) or not isinstance(versions, dict):
        raise ModelFileError("metadata and versions must be JSON objects")
    return ModelFile(estimator, names, metadata, versions, digest, tuple(steps))


def steps_of(model: Any) -> list[Any]:
    """The steps of a pipeline, or an estimator alone; of a search, the best estimator."""
    model = getattr(model, "best_estimator_", model)
    *before, last = model if isinstance(model, Pipeline) else [model]
    return [*before, getattr(last, "best_estimator_", last)]


def _named(before: Sequence[Any], estimator: Any) -> Any:
    """The first step that meets the features by their names; a preparation has its own."""
    return next(step for step in (*before, estimator) if not isinstance(step, TablePreparer))


def _other_kind(start: bytes, size: int) -> str:
    """What a file seems to be if its first bytes are not the length of a header."""
    if start[:1] == b"\x80" and start[1:2] <= b"\x05":
        return "this is a pickle, which could run any code: nothing was loaded"
    if start.startswith(b"PK\x03\x04"):
        skops = "skops.io.load(path, trusted=isrlearn.io.TRUSTED_TYPES)"
        return f"this is an archive: if skops wrote it, open it with {skops}"
    return f"this is not a model file, or a damaged one ({size} bytes that begin with {start!r})"


def checked_names(names: list[str], estimator: Any) -> list[str]:
    """The names, if there is a distinct one for each feature."""
    d = estimator.n_features_in_
    if not all(isinstance(name, str) for name in names) or not len(names) == len(set(names)) == d:
        raise ModelFileError(f"there must be {d} distinct feature names; got {len(names)}")
    return names


def _digest(arrays: Arrays, record: dict[str, Any]) -> str:
    """SHA-256 of record and arrays, wherever they are in the file."""
    table = [[name, str(arrays[name].dtype), list(arrays[name].shape)] for name in sorted(arrays)]
    sha = hashlib.sha256(json.dumps([record, table]).encode())
    for name in sorted(arrays):
        sha.update(arrays[name].data)
    return sha.hexdigest()
