"""Rows read: into moments, into fewer components, into scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from isrlearn import validation as check
from isrlearn.core._range import CentredRows, is_wide, prefers_rows, projected, row_components
from isrlearn.core.moments import Moments
from isrlearn.core.rows import Rows
from isrlearn.core.whiten import ROWS_PER_FEATURE

if TYPE_CHECKING:
    from isrlearn.estimators._recovery import Recovery

Keep = Literal["mean", "pooled", "cell"]

#: With fewer principal components than that nobody begins.
_FEWEST_COMPONENTS = 1


class Reduction(NamedTuple):
    """Principal directions (d, p), or None for all features, and what is known of the rows there.

    The moments, and the rows themselves, less their mean, where the directions came from rows.
    """

    components: NDArray | None
    moments: Moments
    rows: NDArray | None = None


def read(
    recovery: Recovery,
    X: Any,
    y: NDArray | None,
    environments: NDArray,
    keep: Keep,
    sample_weight: NDArray | None = None,
    *,
    lean: bool = False,
) -> tuple[Moments, Reduction | None]:
    """Moments of the rows, and their reduction where it is cheaper made from the rows too.

    The moments of all features keep means only then: nobody needs more, and d×d numbers may
    be too many. So they do for a `lean` head, which takes few rows standardised.
    """
    d = X.shape[1]
    n = float(len(X) if sample_weight is None else sample_weight.sum())
    few = is_wide(d) and n < ROWS_PER_FEATURE * d
    if lean and few and keep == "pooled" and recovery.least(n, d) == "mean":
        keep = "mean"
    if recovery.n_components is None or not prefers_rows(n, d, _FEWEST_COMPONENTS):
        return moments_for(X, y, environments, keep, sample_weight=sample_weight), None
    means = moments_for(X, y, environments, "mean", sample_weight=sample_weight)
    p = recovery.looked_at(means)
    if p is None and keep == "mean":
        return means, None
    if p is None or not prefers_rows(n, d, p):
        return moments_for(X, y, environments, keep, sample_weight=sample_weight), None
    center = means.total()[1]
    centred = CentredRows(X, center, sample_weight)
    components = row_components(centred, int(p))
    rows = projected(centred, components)
    reduced = moments_for(rows, y, environments, keep, sample_weight=sample_weight)
    return means, Reduction(components, reduced.moved(center @ components), rows)


def affine(estimator: Any, X: Any, coef: NDArray, intercept: NDArray) -> NDArray:
    """``X @ coef + intercept`` (n, m) in X's precision, of rows that are checked first."""
    check.refuse_path(X)
    if not isinstance(X, Rows):
        X = validate_data(estimator, X, reset=False, dtype=[np.float64, np.float32])
        return X @ coef.astype(X.dtype) + intercept.astype(X.dtype)
    check.check_source(estimator, X, None, reset=False)
    out = np.empty((len(X), coef.shape[1]), dtype=X.dtype)
    for rows, block in X.blocks():
        out[rows] = block @ coef.astype(X.dtype) + intercept.astype(X.dtype)
    if not np.isfinite(out).all():
        row = int(np.flatnonzero(~np.isfinite(out).all(axis=1))[0])
        raise ValueError(f"X contains NaN or infinity in row {row}; drop or impute such rows")
    return out


def moments_for(
    X: NDArray,
    y: NDArray | None,
    environments: NDArray,
    keep: Keep,
    *,
    targets: NDArray | None = None,
    sample_weight: NDArray | None = None,
) -> Moments:
    """Moments that keep just what is asked for."""
    return Moments.from_data(
        X,
        y,
        environments,
        order=1 if keep == "mean" else 2,
        pooled=keep == "pooled",
        targets=targets,
        sample_weight=sample_weight,
    )
