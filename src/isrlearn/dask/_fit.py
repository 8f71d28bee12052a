"""`fit`: the estimators, fitted on collections larger than one machine's memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from isrlearn import validation as check
from isrlearn.core._logistic_head import default_tol, fits_copied, unit_scatter
from isrlearn.core.heads import Coordinates, head_coordinates
from isrlearn.core.logistic import solve_logistic
from isrlearn.core.moments import Moments
from isrlearn.dask._parts import Parts, parts_of
from isrlearn.dask._sums import DaskRows, Kept, moments_of
from isrlearn.estimators import ISRClassifier, ISRRegressor, ISRTransformer
from isrlearn.estimators._heads import cell_weights, warn_if_unfinished


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

    The same estimator as its own `fit` would give: moments are summed part by part, and the
    logistic head sums its loss so, a pass over the parts at a time. Parts are merged in their
    order, so that a run gives the same bits again, even if workers die meanwhile. Data are never
    moved: tasks go where they are, and only sums come back. Persist a collection that fits in the
    cluster's memory, or every pass will make it anew.

    Parameters
    ----------
    estimator : ISRClassifier, ISRRegressor or ISRTransformer
        With one of our own heads, or a given one.
    X : dask array, dask frame, path or list of paths
        Files may be .npy (with labels in a table beside), .parquet, .zarr, .csv or .npz.
    y, environments, sample_weight : dask or NumPy arrays, or names of columns
        Arrays go with an array. A frame and files need the names of their columns.
    features : sequence of str, optional
        Columns of a frame, or of files, to take; all the others when not given.

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
    check.check_choice("missing_environments", estimator.missing_environments, ("raise", "single"))
    if environments is None and estimator.missing_environments == "raise":
        check.check_environments(None, 0, "raise")
    if y is None and not isinstance(estimator, ISRTransformer):
        raise ValueError("y is needed: labels, or the name of the column that holds them")
    parts = parts_of(X, y, environments, sample_weight, features)
    for kind, fitter in _FITTERS.items():
        if isinstance(estimator, kind):
            return fitter(estimator, parts)
    raise TypeError(
        f"{type(estimator).__name__} cannot be fitted on Dask collections; the estimators that "
        f"can are {', '.join(kind.__name__ for kind in _FITTERS)}"
    )


def _known(estimator: Any, parts: Parts) -> None:
    estimator._know_features(parts.n_features)
    if parts.feature_names is not None:
        estimator.feature_names_in_ = np.array(parts.feature_names, dtype=object)


def _check_moments(moments: Any, recovery: Any, estimator: Any) -> None:
    if not isinstance(moments, Moments):
        raise ValueError("there are no rows")
    if recovery.n_spurious == "auto" and recovery.rank_test == "permutation":
        raise ValueError("rank_test='permutation' needs rows in memory; these are in parts")
    if estimator.missing_environments == "raise" and len(moments.environments) < 2:
        raise ValueError(
            f"the rows have {len(moments.environments)} environment(s), "
            f"{moments.environments.tolist()}; ISR compares environments and needs at least two"
        )


def _fit_classifier(estimator: ISRClassifier, parts: Parts) -> ISRClassifier:
    recovery = estimator._recovery()
    if not isinstance(estimator.head, str | tuple):
        raise ValueError(
            "a scikit-learn head needs rows in memory, and these are in parts: take 'logistic', "
            "'lda' or a pair (coef, intercept)"
        )
    keep = estimator._keep(recovery, parts.n_rows, parts.n_features)
    kept = Kept(1 if keep == "mean" else 2, keep == "pooled", classes=True, targets=False)
    moments = moments_of(parts, kept)
    _check_moments(moments, recovery, estimator)
    check_classification_targets(moments.classes)
    _known(estimator, parts)
    components = estimator._set(recovery, moments)
    if estimator.head != "logistic":
        return estimator._fold_moments(components)
    coordinates = head_coordinates(moments, estimator.eraser_, components)
    estimator.coef_, estimator.intercept_ = _logistic(estimator, parts, moments, coordinates)
    return estimator


def _logistic(
    estimator: ISRClassifier, parts: Parts, moments: Moments, coordinates: Coordinates
) -> tuple[Any, Any]:
    K, p = len(moments.classes), coordinates.n_coordinates
    copied = fits_copied(K, p, parts.n_features)
    weights = cell_weights(moments, estimator.class_weight, estimator.group_weight)
    rows = DaskRows(
        parts,
        moments.classes,
        moments.environments,
        weights,
        coordinates if copied else None,
    )
    count, total = _class_weight(moments, weights)
    fit = solve_logistic(
        rows,
        np.full(p, 1 / estimator.C),
        count,
        np.zeros(p) if copied else coordinates.eraser.center,
        unit_scatter(moments, coordinates, total),
        tol=default_tol(parts.dtype),
        features=None if copied else coordinates,
    )
    warn_if_unfinished(fit, estimator.C)
    return coordinates.fold(fit.coef, fit.intercept) if copied else (fit.coef, fit.intercept)


def _class_weight(moments: Moments, weights: Any) -> tuple[Any, float]:
    """Weight of each class's rows for the head, and of all of them."""
    count = moments.by_class[0]
    if weights is not None:
        inside, outside = weights
        count = (moments.count * inside).sum(axis=1)
        if moments.unlabelled is not None:
            count = count + moments.unlabelled.count[:, 0] * outside
    return count, float(count.sum())


def _fit_regressor(estimator: ISRRegressor, parts: Parts) -> ISRRegressor:
    recovery = estimator._recovery()
    if not isinstance(estimator.head, str | tuple):
        raise ValueError("a scikit-learn head needs rows in memory; take 'ridge' or a given pair")
    recovery.least(parts.n_rows, parts.n_features)
    kept = Kept(2, estimator._keep() == "pooled", classes=False, targets=True)
    moments = moments_of(parts, kept)
    _check_moments(moments, recovery, estimator)
    _known(estimator, parts)
    return estimator._fold_moments(estimator._set(recovery, moments))


def _fit_transformer(estimator: ISRTransformer, parts: Parts) -> ISRTransformer:
    recovery = estimator._recovery()
    keep = recovery.least(parts.n_rows, parts.n_features)
    classes = estimator.method != "regression"
    kept = Kept(1 if keep == "mean" else 2, keep == "pooled", classes=classes, targets=False)
    moments = moments_of(parts, kept)
    _check_moments(moments, recovery, estimator)
    _known(estimator, parts)
    return estimator._set(recovery, moments)


_FITTERS: dict[type, Any] = {
    ISRClassifier: _fit_classifier,
    ISRRegressor: _fit_regressor,
    ISRTransformer: _fit_transformer,
}
