"""Lazy predictions: a Dask collection in, a Dask collection out."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np


def predict(estimator: Any, X: Any) -> Any:
    """Predictions of a fitted estimator, made when they are computed.

    Parameters
    ----------
    estimator : fitted ISRClassifier or ISRRegressor
    X : dask array or dask frame
        A frame's columns are found by name where the estimator knows them.

    Returns
    -------
    dask array of shape (n,), or dask series

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.dask import predict
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> predict(reg, da.ones((4, 2), chunks=2)).shape
    (4,)
    """
    kind = estimator.classes_.dtype if hasattr(estimator, "classes_") else np.dtype(float)
    return _mapped(estimator, X, "predict", kind, None)


def predict_proba(estimator: Any, X: Any) -> Any:
    """Probabilities of the classes (n, n_classes), made when they are computed.

    Parameters are those of `predict`; X must be a Dask array or frame.

    Examples
    --------
    >>> import dask.array as da, numpy as np
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.dask import predict_proba
    >>> X, codes = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80)
    >>> clf = ISRClassifier(n_spurious=1).fit(X, codes % 2, environments=codes // 2 % 2)
    >>> predict_proba(clf, da.from_array(X, chunks=(30, -1))).shape
    (80, 2)
    """
    return _mapped(estimator, X, "predict_proba", np.dtype(float), len(estimator.classes_))


def _mapped(estimator: Any, X: Any, method: str, kind: np.dtype, width: int | None) -> Any:
    if hasattr(X, "map_partitions") and hasattr(X, "columns"):
        names = getattr(estimator, "feature_names_in_", None)
        chosen = list(X.columns) if names is None else list(names)
        X = X[chosen].to_dask_array(lengths=None)
    elif not hasattr(X, "map_blocks"):
        raise TypeError(f"X must be a Dask array or a Dask frame; got {type(X).__name__}")
    twin = _for_arrays(estimator)
    if width is None:
        return X.rechunk({1: -1}).map_blocks(_called, twin, method, dtype=kind, drop_axis=1)
    chunks = (X.chunks[0], (width,))
    return X.rechunk({1: -1}).map_blocks(_called, twin, method, dtype=kind, chunks=chunks)


def _called(block: Any, estimator: Any, method: str) -> Any:
    return getattr(estimator, method)(np.asarray(block))


def _for_arrays(estimator: Any) -> Any:
    """A copy of the estimator for plain arrays with its columns in order, without its moments."""
    twin = copy(estimator)
    for name in ("feature_names_in_", "moments_"):
        vars(twin).pop(name, None)
    return twin
