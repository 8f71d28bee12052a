"""What removing the subspace costs in labels, and what it leaves of the environment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core.moments import Moments
from isrlearn.diagnosis._folds import Fold
from isrlearn.diagnosis._frame import Frame

#: Rows a coordinate of a cell that make a quadratic probe of its environment worth training.
_ROWS_PER_COORDINATE = 10
#: Share of the pooled covariance in that of a cell, so that it can be inverted.
_FLOOR = 1e-3


@dataclass(frozen=True)
class Information:
    """How well labels and environments can be told before and after the removal.

    Everything is measured on rows that neither found the subspace nor trained the probe.

    Parameters
    ----------
    score : {"balanced accuracy", "R²"}
        What the labels' numbers are.
    label_before, label_after : float
        Score of a linear model trained and tried inside each environment, mean over
        environments; NaN if no environment has two classes. Such a model may use whatever
        tells classes apart in that environment, shortcuts included.
    label_error : float
        Standard error of their difference.
    environment_before, environment_after : float
        Balanced accuracy of predicting the environment of a row whose class is known.
    environment_chance : float
        What guessing would have.
    quadratic : bool
        Whether that prediction may use covariances as well as means.

    Examples
    --------
    >>> found = Information("balanced accuracy", 0.9, 0.8, 0.01, 0.9, 0.6, 0.5, False)
    >>> round(found.label_lost, 2), round(found.environment_left, 2)
    (0.1, 0.25)
    """

    score: str
    label_before: float
    label_after: float
    label_error: float
    environment_before: float
    environment_after: float
    environment_chance: float
    quadratic: bool

    @property
    def label_lost(self) -> float:
        """Drop of the labels' score."""
        return self.label_before - self.label_after

    @property
    def environment_left(self) -> float:
        """Share of the environment's readability above chance that is left, in [0, 1]."""
        before = self.environment_before - self.environment_chance
        after = self.environment_after - self.environment_chance
        return float(np.clip(after / before, 0.0, 1.0)) if before > 0 else 0.0


def information(
    frame: Frame,
    folds: Iterable[Fold],
    classes: NDArray,
    target: NDArray | None = None,
) -> Information:
    """Information of a frame before and after its subspace is removed.

    Parameters
    ----------
    frame : Frame
    folds : iterable of Fold
    classes : ndarray of int
        Positions of the classes whose environment is predicted.
    target : ndarray of shape (n,), optional
        What a regression predicts, for each row of the frame.
    """
    n, E = len(frame.rows), len(frame.moments.environments)
    told = np.full((2, n), np.nan)  # the environment: right or wrong, before and after
    known = np.full((2, n), np.nan)  # the label: right or wrong, or the variance not explained
    # Covariances of a regression change along invariant directions too: they are not held
    # against it.
    quadratic = target is None
    for fold in folds:
        quadratic = quadratic and _allows_covariances(fold.probe, classes)
        for after, basis in enumerate((fold.basis[:, :0], fold.basis)):
            told[after, fold.test] = _environments(frame, fold, basis, classes, quadratic)
            known[after, fold.test] = (
                _labels(frame, fold, basis)
                if target is None
                else _residuals(frame, fold, basis, target)
            )
    inside = np.isin(frame.classes, classes)
    tried = ~np.isnan(known[0])
    label_before, label_after = (_cell_mean(frame, row, tried)[0] for row in known)
    if target is not None:
        label_before, label_after = 1 - label_before, 1 - label_after
    return Information(
        score="balanced accuracy" if target is None else "R²",
        label_before=label_before,
        label_after=label_after,
        label_error=_cell_mean(frame, known[1] - known[0], tried)[1],
        environment_before=_cell_mean(frame, told[0], inside)[0],
        environment_after=_cell_mean(frame, told[1], inside)[0],
        environment_chance=1 / E,
        quadratic=quadratic,
    )


def _cell_mean(frame: Frame, value: NDArray, rows: NDArray) -> tuple[float, float]:
    """Mean over cells of the mean inside each, and its standard error."""
    E = len(frame.moments.environments)
    cell = (frame.classes * E + frame.environments)[rows]
    n = np.bincount(cell)
    if not len(n):
        return float("nan"), float("nan")
    used = n > 0
    mean = np.bincount(cell, value[rows])[used] / n[used]
    square = np.bincount(cell, value[rows] ** 2)[used] / n[used]
    variance = np.maximum(square - mean**2, 0.0) / n[used]
    return float(mean.mean()), float(np.sqrt(variance.sum()) / len(mean))


def removed(Z: NDArray, basis: NDArray) -> NDArray[np.float64]:
    """Rows without their part in the span of an orthonormal basis."""
    return Z - (Z @ basis) @ basis.T if basis.shape[1] else Z


def _labels(frame: Frame, fold: Fold, basis: NDArray) -> NDArray:
    """Whether each row's class is told inside its environment; NaN where there is one class."""
    train = fold.found + fold.probe
    mean = removed(train.mean, basis)
    Z, k, e = frame.rows[fold.test], frame.classes[fold.test], frame.environments[fold.test]
    Z = removed(Z, basis)
    right = np.full(len(Z), np.nan)
    for place in range(train.count.shape[1]):
        seen = np.flatnonzero(train.count[:, place])
        rows = np.flatnonzero((e == place) & np.isin(k, seen))
        if len(seen) > 1 and len(rows):
            # Within-cell covariance is the identity here: the nearest mean is Fisher's rule.
            scores = Z[rows] @ mean[seen, place].T - 0.5 * np.sum(mean[seen, place] ** 2, axis=1)
            right[rows] = seen[scores.argmax(axis=1)] == k[rows]
    return right


def _environments(
    frame: Frame, fold: Fold, basis: NDArray, classes: NDArray, quadratic: bool
) -> NDArray:
    """Whether each row's environment is told, given its class; NaN for other classes."""
    rest = linalg.null_space(basis.T) if basis.shape[1] else np.eye(len(basis))
    probe = fold.probe.map(rest)
    Z, k, e = frame.rows[fold.test] @ rest, frame.classes[fold.test], frame.environments[fold.test]
    right = np.full(len(Z), np.nan)
    for c in classes:
        rows = np.flatnonzero(k == c)
        scores = np.full((len(rows), probe.count.shape[1]), -np.inf)
        for place in np.flatnonzero(probe.count[c]):
            if quadratic:
                scores[:, place] = _log_density(
                    Z[rows], probe.mean[c, place], probe.covariance[c, place]
                )
            else:
                mean = probe.mean[c, place]
                scores[:, place] = Z[rows] @ mean - 0.5 * mean @ mean
        right[rows] = scores.argmax(axis=1) == e[rows]
    return right


def _log_density(Z: NDArray, mean: NDArray, covariance: NDArray) -> NDArray:
    """Logarithm of a Gaussian density, up to a constant."""
    # A direction may have no variance in a cell; all have one in the cells together.
    floor = _FLOOR * np.eye(len(covariance))
    lower = linalg.cholesky((1 - _FLOOR) * covariance + floor, lower=True)
    white = linalg.solve_triangular(lower, (Z - mean).T, lower=True)
    return -0.5 * np.sum(white**2, axis=0) - np.log(np.diag(lower)).sum()


def _allows_covariances(probe: Moments, classes: NDArray) -> bool:
    """Whether every cell has a scatter and rows enough to invert its covariance."""
    enough = probe.count[classes].min() >= _ROWS_PER_COORDINATE * probe.n_features
    return not probe.pooled and bool(enough)


def _residuals(frame: Frame, fold: Fold, basis: NDArray, target: NDArray) -> NDArray:
    """Squared error of each row over the variance of its environment, of ridge regression there.

    NaN where the target does not vary.
    """
    Z, e = removed(frame.rows, basis), frame.environments
    train = np.ones(len(Z), bool)
    train[fold.test] = False
    share = np.zeros(len(fold.test))
    for place in range(fold.probe.count.shape[1]):
        rows, tried = np.flatnonzero(train & (e == place)), e[fold.test] == place
        centre, level = Z[rows].mean(axis=0), target[rows].mean()
        test = fold.test[tried]
        coef = ridge(Z[rows] - centre, target[rows] - level)
        error = target[test] - level - (Z[test] - centre) @ coef
        variance = np.var(target[e == place])
        share[tried] = error**2 / variance if variance > 0 else np.nan
    return share


def ridge(A: NDArray, b: NDArray) -> NDArray[np.float64]:
    """Coefficients (p,) of ridge regression on centred, whitened features.

    The penalty shrinks them by n / (n + p): little unless rows are few.
    """
    p = A.shape[1]
    return linalg.solve(A.T @ A + p * np.eye(p), A.T @ b, assume_a="pos")
