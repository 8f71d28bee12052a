"""`fit` and `predict` of the estimators on collections larger than one machine's memory."""

from copy import copy
from functools import partial
from typing import Any

import numpy as np

from isrlearn.dask.parts import is_frame, rows_of
from isrlearn.estimators import ISRClassifier, ISRRegressor, ISRTransformer
from isrlearn.validation import all_or_nothing

_ESTIMATORS = (ISRClassifier, ISRRegressor, ISRTransformer)


def fit(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    environments: Any = None,
    sample_weight: Any = None,
    features: Any = None,
) -> Any:
    """The estimator, fitted on a Dask array, a Dask frame or files, on the scheduler in use.

    The result equals that of the estimator's own `fit` on rows read block by block, except that
    unknown environments form one more environment of the logistic head: moments are summed part by
    part, and so is the loss of the logistic head, with one pass per step. Parts are merged in their
    order, so repeated runs agree to the last bit, even if workers die. The data stay where they
    are: tasks go to them, and only sums come back. Persist a collection that fits in the cluster's
    memory, or every pass computes it again.

    Parameters
    ----------
    estimator : ISRClassifier, ISRRegressor or ISRTransformer
        Its head must be one of ours or a pair (coef, intercept).
    X : dask array, dask frame, path or list of paths
        Files may be .npy (with the labels in a table next to it), .parquet, .zarr, .csv or .npz.
    y, environments, sample_weight : dask or NumPy arrays, or names of columns
        Arrays if X is an array; names of columns if X is a frame or files.
    features : sequence of str, optional
        Feature columns of a frame or of files; default: all other columns.

    Examples
    --------
    >>> import dask.array as da
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.dask import fit, predict
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(500, 4, n_invariant=3, n_spurious=2, random_state=0)
    >>> X = da.from_array(data.X, chunks=(300, -1))
    >>> clf = fit(ISRClassifier(), X, data.y, environments=data.environments)
    >>> clf.n_spurious_, predict(clf, X).compute().shape
    (2, (2000,))
    """
    if not isinstance(estimator, _ESTIMATORS):
        raise TypeError(
            f"{type(estimator).__name__} cannot be fitted on Dask collections; the estimators that "
            f"can are {', '.join(kind.__name__ for kind in _ESTIMATORS)}"
        )
    roles = {"y": y, "environments": environments, "sample_weight": sample_weight}
    return _fit(estimator, X, roles, features)


@all_or_nothing
def _fit(estimator: Any, X: Any, roles: dict[str, Any], features: Any) -> Any:
    """`fit` of an estimator that can be fitted on Dask."""
    if roles["y"] is None and estimator._settings().method != "regression":
        raise ValueError("y is needed: labels, or the name of the column that holds them")
    task = "regression" if isinstance(estimator, ISRRegressor) else "classification"
    rows, labels = rows_of(X, roles, features, task)
    return estimator.fit(rows, **labels)


def predict(estimator: Any, X: Any) -> Any:
    """Lazy predictions of a fitted estimator: a Dask array of shape (n,).

    Parameters
    ----------
    estimator : fitted ISRClassifier or ISRRegressor
    X : dask array or dask frame
        The columns of a frame are selected by name if the estimator was fitted with names.

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
    return _lazy(estimator, X, "predict", dtype=kind, drop_axis=1)


def predict_proba(estimator: Any, X: Any) -> Any:
    """Lazy class probabilities: a Dask array of shape (n, n_classes).

    The parameters are those of `predict`.

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
    return _lazy(estimator, X, "predict_proba", dtype=float, width=len(estimator.classes_))


def _lazy(estimator: Any, X: Any, method: str, width: int | None = None, **result: Any) -> Any:
    """A method of the estimator, applied to chunks of whole rows, with its features in order."""
    if is_frame(X):
        names = {str(name): name for name in X.columns}  # known as text, whatever they are
        wanted = getattr(estimator, "feature_names_in_", names)
        X = X[[names.get(name, name) for name in wanted]].to_dask_array()
    elif not hasattr(X, "map_blocks"):
        raise TypeError(f"X must be a Dask array or a Dask frame; got {type(X).__name__}")
    # A copy for plain arrays, without the moments, which can be large.
    small = copy(estimator)
    for name in ("feature_names_in_", "moments_"):
        vars(small).pop(name, None)
    X = X.rechunk({1: -1})
    if width is not None:
        result["chunks"] = (X.chunks[0], (width,))
    none = np.empty((0,) if width is None else (0, width), dtype=result["dtype"])
    return X.map_blocks(partial(_applied, getattr(small, method), none), **result)


def _applied(method: Any, none: Any, X: Any) -> Any:
    """Predictions of the rows of a chunk: those of a frame that was filtered may be `none`."""
    return method(X) if len(X) else none
