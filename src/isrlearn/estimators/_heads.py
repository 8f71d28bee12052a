"""Heads that are fitted on rows, and the weights of those rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import has_fit_parameter

from isrlearn import validation as check
from isrlearn.core._logistic_head import logistic_head
from isrlearn.core.heads import Coordinates
from isrlearn.core.labels import encode
from isrlearn.core.logistic import LogisticFit
from isrlearn.core.moments import Moments
from isrlearn.core.rows import Rows

#: Rows on which a given head is checked to be affine.
_PROBES = 16
#: Share of the largest deviation below which a direction holds rounding.
_ROUNDING = 1e-6
#: Penalty a row that makes a logistic loss so round that it needs no full preconditioner; that
#: which will do where rows are so few a feature that the matrix costs more than passes.
_ROUND, _ROUND_ENOUGH, _FEW = 1e-3, 1e-4, 3.0
#: Most features for which there can be a full preconditioner.
_SQUARE = 8192


def is_lean(head: Any, C: float, n: float, d: int) -> bool:
    """Whether a head on n rows of d features is better fitted without a d×d matrix."""
    needed = _ROUND_ENOUGH if n <= _FEW * d else _ROUND
    return not isinstance(head, str) or d > _SQUARE or needed * n <= 1.0 / C


def fit_head(
    head: Any,
    X: Any,
    y: NDArray,
    moments: Moments,
    coordinates: Coordinates,
    C: float,
    weight: NDArray | None,
) -> tuple[NDArray, NDArray]:
    """Coefficients and intercepts in the original features, with a warning if they may be off."""
    if not isinstance(head, str):
        fitted = fit_on_rows(head, in_memory(X, coordinates), y, weight)
        return coordinates.fold(np.atleast_2d(fitted.coef_), np.atleast_1d(fitted.intercept_))
    codes = encode(y, moments.classes)[1]
    coef, intercept, fit = logistic_head(X, codes, moments, coordinates, C=C, weight=weight)
    warn_if_unfinished(fit, C)
    return coef, intercept


def warn_if_unfinished(fit: LogisticFit, C: float) -> None:
    """Warn if a logistic head did not reach its minimum."""
    if not fit.converged:
        warnings.warn(
            f"the logistic head stopped after {fit.n_passes} passes over the rows, about "
            f"{fit.gradient_norm:.1g} from its minimum. Classes that the features separate have "
            f"none without a penalty: try a smaller C than {C:g}",
            ConvergenceWarning,
            stacklevel=4,
        )


def in_memory(X: Any, coordinates: Coordinates) -> NDArray:
    """Rows in the head's coordinates, for heads that want them all at once."""
    if isinstance(X, Rows):
        raise ValueError(
            "a scikit-learn head needs rows in memory, and these are read some at a time: take a "
            "head of ours, 'logistic', 'lda' or 'ridge'"
        )
    return coordinates(X)


def fit_on_rows(head: Any, Z: NDArray, y: NDArray, weight: NDArray | None) -> Any:
    """A fitted clone of a scikit-learn linear estimator."""
    fitted = clone(head)
    Z = _without_rounding(Z)
    if weight is None:
        fitted.fit(Z, y)
    elif has_fit_parameter(fitted, "sample_weight"):
        fitted.fit(Z, y, sample_weight=weight)
    else:
        raise ValueError(
            f"head {type(head).__name__} takes no sample_weight, so rows cannot be weighted: "
            "leave out sample_weight, class_weight and group_weight or take another head"
        )
    if not hasattr(fitted, "coef_") or not hasattr(fitted, "intercept_"):
        raise ValueError(
            f"head {type(head).__name__} has no coef_ and intercept_: it must be a linear "
            "estimator for the removal to be folded into it"
        )
    _check_affine(fitted, Z[:_PROBES])
    return fitted


def _without_rounding(Z: NDArray) -> NDArray:
    """The rows with directions that hold nothing but rounding set to zero.

    Of what was erased rounding is left, and a head without a penalty would blow it up: least
    squares in scikit-learn before 1.9 takes it for a feature. In float64: a float32 product has
    too few digits to tell, and would leave as much rounding again.
    """
    wide = Z.astype(np.float64, copy=False)
    values, vectors = np.linalg.eigh(wide.T @ wide)
    nothing = vectors[:, values <= _ROUNDING**2 * values.max(initial=0.0)]
    return wide - (wide @ nothing) @ nothing.T if nothing.size else Z


def _check_affine(fitted: Any, Z: NDArray) -> None:
    """Raise unless coef_ and intercept_ are all there is to the head.

    A log link, or coefficients of one class against one other, would fold into nonsense.
    """
    scores = getattr(fitted, "decision_function", None if is_classifier(fitted) else fitted.predict)
    if scores is None:
        return
    found = np.ravel(Z @ np.atleast_2d(fitted.coef_).T + fitted.intercept_)
    expected = np.ravel(scores(Z))
    close = 1e-3 * np.abs(expected).max(initial=1e-12)  # float32 rows have float32 scores
    if found.shape != expected.shape or np.abs(found - expected).max(initial=0.0) > close:
        raise ValueError(
            f"head {type(fitted).__name__} has a decision function other than "
            "X @ coef_.T + intercept_: the removal cannot be folded into it. Take a linear one."
        )


def check_weights(class_weight: Any, group_weight: Any) -> None:
    """Raise unless at most one of the two ways to weigh rows is asked for."""
    check.check_choice("group_weight", group_weight, (None, "balanced"))
    if not isinstance(class_weight, dict):
        check.check_choice("class_weight", class_weight, (None, "balanced"))
    if class_weight is not None and group_weight is not None:
        raise ValueError(
            "group_weight='balanced' weighs every class in every environment the same, classes "
            "included: give class_weight or group_weight, not both"
        )


def cell_weights(
    moments: Moments, class_weight: Any, group_weight: Any
) -> tuple[NDArray, NDArray] | None:
    """Weight of a row of each cell (K, E), and of an unlabelled row of each class (K,).

    None if all rows weigh the same. Balanced groups weigh ``n / (n_groups * n_group)`` a row, the
    paper's reweighting; a row whose environment is unknown then weighs as its class would.
    """
    K, E = moments.count.shape
    totals = moments.by_class()[0]
    if group_weight == "balanced":
        groups = np.count_nonzero(moments.count)
        with np.errstate(divide="ignore"):
            weight = moments.count.sum() / (groups * moments.count)
        return np.where(moments.count > 0, weight, 0.0), totals.sum() / (K * totals)
    if class_weight is None:
        return None
    if class_weight == "balanced":
        by_class = totals.sum() / (K * totals)
    else:
        # The class weights of a dict do not depend on y beyond the names.
        by_class = compute_class_weight(class_weight, classes=moments.classes, y=moments.classes)
    return np.repeat(by_class[:, None], E, axis=1), by_class


def row_weights(
    moments: Moments,
    y: NDArray | None,
    environments: NDArray,
    weights: tuple[NDArray, NDArray] | None,
    sample_weight: NDArray | None,
) -> NDArray | None:
    """Weight of each row: its cell's times its own; None if all are one."""
    if weights is None:
        return sample_weight
    inside, outside = weights
    k = np.zeros(len(environments), dtype=int) if y is None else encode(y, moments.classes)[1]
    e = encode(environments, moments.environments)[1]
    weight = np.where(e < 0, outside[k], inside[k, e])
    return weight if sample_weight is None else weight * sample_weight
