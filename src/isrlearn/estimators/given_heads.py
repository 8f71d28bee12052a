"""Heads that users give: coefficients, linear scikit-learn estimators; and the published one."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from isrlearn.core.subspace import Eraser
from isrlearn.core.whiten import Coordinates
from isrlearn.estimators.heads import Problem

#: Rows on which a given head is checked to be affine, most features that are rotated by a d×d
#: matrix, and share of the largest deviation below which a direction holds rounding errors.
_PROBES, _ROTATED, _ROUNDING = 16, 4096, 1e-6


def check_head(head: object, n_classes: int | None, n_features: int) -> tuple[NDArray, NDArray]:
    """Coefficients (1, d), (K, d) or, of a regression, (d,), and intercepts given by the user."""
    if not isinstance(head, tuple) or len(head) != 2:
        raise ValueError(f"head must be a pair (coef, intercept); got {head!r}")
    coef = np.atleast_2d(np.asarray(head[0], dtype=float))
    intercept = np.atleast_1d(np.asarray(head[1], dtype=float))
    allowed = {1} if n_classes is None else {1, 2} if n_classes == 2 else {n_classes}
    if coef.ndim != 2 or coef.shape[1] != n_features or coef.shape[0] not in allowed:
        rows = " or ".join(str(r) for r in sorted(allowed))
        raise ValueError(
            f"head's coef has shape {np.shape(head[0])}; expected {rows} row(s) of "
            f"{n_features} features"
        )
    if intercept.shape != (coef.shape[0],):
        raise ValueError(
            f"head's intercept has shape {np.shape(head[1])}; expected ({coef.shape[0]},)"
        )
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("head's coef and intercept must be finite")
    if n_classes == 2 and coef.shape[0] == 2:  # a network with two logits
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    return (coef[0], intercept) if n_classes is None else (coef, intercept)


def published_coordinates(eraser: Eraser) -> Coordinates:
    """Erased features as in the authors' code: rotated, spurious directions first, not whitened."""
    d, r = eraser.basis.shape
    if r == 0 or d > _ROTATED:
        return Coordinates(eraser, np.ones(d))
    Q = np.linalg.qr(eraser.basis, mode="complete")[0]
    Q[:, :r] *= eraser.scale
    return Coordinates(eraser, Q)


def published_head(head: Any, penalty: float, sample: Any) -> Any:
    """The authors' logistic regression in place of ours; other heads as they are."""
    # Their solver stops early, on features that are not centred, so that only the same one gives
    # the same predictions. Rows that are not in memory keep ours, which minimises the same loss.
    if head != "logistic" or type(sample.X) is not np.ndarray:  # a memory map is on disk
        return head
    return LogisticRegression(C=1 / penalty if penalty else np.inf, max_iter=1000)


def fit_estimator(head: Any, problem: Problem, *, clean: bool) -> tuple[NDArray, NDArray]:
    """Coefficients and intercepts of a fitted clone of a linear scikit-learn estimator."""
    fitted = clone(head)
    Z, y, weight = problem.sample.in_memory(problem.coordinates, problem.weights)
    if clean:
        # Rounding errors are left of what was erased, and a head without a penalty would magnify
        # them: least squares in scikit-learn before 1.9 takes them for a feature. In float64: a
        # float32 product would leave as much rounding error again.
        wide = Z.astype(np.float64, copy=False)
        values, vectors = np.linalg.eigh(wide.T @ wide)
        nothing = vectors[:, values <= _ROUNDING**2 * values.max(initial=0.0)]
        Z = wide - (wide @ nothing) @ nothing.T if nothing.size else Z
    name, regression = f"head {type(head).__name__}", problem.sample.target is not None
    if (is_classifier if regression else is_regressor)(head):
        raise ValueError(f"{name} must be a {'regressor' if regression else 'classifier'}")
    if weight is not None and not has_fit_parameter(fitted, "sample_weight"):
        raise ValueError(
            f"{name} takes no sample_weight, so rows cannot be weighted: "
            "leave out sample_weight and weights, or use another head"
        )
    fitted.fit(Z, y, **({} if weight is None else {"sample_weight": weight}))
    if not hasattr(fitted, "coef_") or not hasattr(fitted, "intercept_"):
        raise ValueError(
            f"{name} has no coef_ and intercept_: it must be a linear estimator for the removal "
            "to be folded into it"
        )
    # Coefficients must be all there is to it: a log link, or one-versus-one, cannot be folded.
    scores = getattr(fitted, "decision_function", fitted.predict if regression else None)
    found = np.ravel(Z[:_PROBES] @ np.atleast_2d(fitted.coef_).T + fitted.intercept_)
    expected = found if scores is None else np.ravel(scores(Z[:_PROBES]))
    close = 1e-3 * np.abs(expected).max(initial=1e-12)  # float32 rows have float32 scores
    if found.shape != expected.shape or np.abs(found - expected).max(initial=0.0) > close:
        raise ValueError(
            f"{name} has a decision function other than X @ coef_.T + intercept_: the removal "
            "cannot be folded into it. Use a linear one."
        )
    coef = np.ravel(fitted.coef_) if regression else np.atleast_2d(fitted.coef_)
    return problem.coordinates.fold(coef, np.atleast_1d(fitted.intercept_))
