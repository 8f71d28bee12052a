"""`fit`: the estimators, fitted on collections larger than one machine's memory."""

from __future__ import annotations

from typing import Any

from isrlearn import validation as check
from isrlearn.core.methods import METHODS
from isrlearn.dask._parts import parts_of
from isrlearn.dask._sums import DaskSample
from isrlearn.estimators import ISRClassifier, ISRRegressor, ISRTransformer, pipeline

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

    The result equals the estimator's own `fit`: moments are summed part by part, and so is the
    loss of the logistic head, one pass over the parts per step. Parts are merged in their order,
    so that a run gives the same bits again, even if workers die meanwhile. Data stay where they
    are: tasks go to them, and only sums come back. Persist a collection that fits in the cluster's
    memory, or every pass computes it again.

    Parameters
    ----------
    estimator : ISRClassifier, ISRRegressor or ISRTransformer
        With one of our own heads, or a given pair.
    X : dask array, dask frame, path or list of paths
        Files may be .npy (with labels in a table beside), .parquet, .zarr, .csv or .npz.
    y, environments, sample_weight : dask or NumPy arrays, or names of columns
        Arrays go with an array; a frame and files need the names of their columns.
    features : sequence of str, optional
        Columns of a frame or of files to use; default: all the others.

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
    settings = estimator._settings()
    if environments is None and estimator.missing_environments == "raise":
        check.check_environments(None, 0, "raise")
    if y is None and not isinstance(estimator, ISRTransformer):
        raise ValueError("y is needed: labels, or the name of the column that holds them")
    target: str | None = "classes" if METHODS[settings.method].uses_classes else None
    if isinstance(estimator, ISRRegressor):
        target = "numbers"
    parts = parts_of(X, y, environments, sample_weight, features)
    fitted = pipeline.fit(settings, DaskSample(parts, target))
    moments = fitted.moments
    if estimator.missing_environments == "raise" and len(moments.environments) < 2:
        raise ValueError(
            f"the rows have {len(moments.environments)} environment(s), "
            f"{moments.environments.tolist()}; ISR compares environments and needs at least two"
        )
    if isinstance(estimator, ISRClassifier):
        check.check_classes(moments.classes, moments.class_count)
    check.know_features(estimator, parts.n_features, parts.feature_names)
    store = getattr(estimator, "_store", None)
    return fitted.store(estimator) if store is None else store(fitted)
