"""Samples on the first spurious and the first invariant direction."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.erase import Eraser
from isrlearn.core.labels import encode
from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest
from isrlearn.estimators._reading import moments_for
from isrlearn.estimators._recovery import Recovery
from isrlearn.estimators.search._splits import Sample, cells_of
from isrlearn.report._rows import thinned

#: Points that are drawn.
_MOST = 1200
#: Cells whose means are drawn; more of them hide the points.
_MOST_CELLS = 36
_THIRDS = ("low third of the target", "middle third", "high third of the target")


@dataclass(frozen=True, eq=False)
class Levels:
    """Names of the classes or environments and the one of each row drawn; -1 for none."""

    names: tuple[Any, ...]
    codes: NDArray[np.intp]  # (m,)


@dataclass(frozen=True, eq=False)
class View:
    """Some rows in two coordinates, in standard deviations inside the cells.

    Parameters
    ----------
    spurious, invariant : ndarray of shape (m,)
        Along the direction that moves most, and along what the head looks at once all spurious
        directions are gone.
    classes, environments : Levels
        A regression has thirds of the target as classes.
    means : tuple of (class, environment, spurious, invariant)
        Mean of all the rows of each cell, by positions of their names; none of too many.
    n : int
        Rows there are.
    removed : bool
        Whether the direction is one that the model removes.
    """

    spurious: NDArray[np.float64]  # (m,)
    invariant: NDArray[np.float64]  # (m,)
    classes: Levels
    environments: Levels
    means: tuple[tuple[int, int, float, float], ...]
    n: int
    removed: bool


def view_of(estimator: Any, rows: Sample, train: Sample | None) -> View | None:
    """Rows as a model sees them; None if nothing moves that could be shown."""
    eraser = estimator.eraser_
    removed = bool(eraser.basis.shape[1])
    if not removed:
        found = None if train is None else _strongest(estimator, train)
        if found is None:
            return None
        eraser = found
    x = _projected(rows.X, eraser.center, eraser.dual[:, 0])
    y = _projected(rows.X, eraser.center, _head_direction(estimator, eraser, rows))
    classes, environments = _labels(estimator, rows), _levels(rows.environments)
    cells = cells_of(classes.codes, rows.environments)
    x, y = _standardised(x, cells), _standardised(y, cells)
    means = _cell_means(classes, environments, x, y)
    shown = thinned(cells, _MOST)
    return View(
        x[shown],
        y[shown],
        replace(classes, codes=classes.codes[shown]),
        replace(environments, codes=environments.codes[shown]),
        means,
        len(cells),
        removed,
    )


def rank_test_of(estimator: Any, train: Sample | None) -> RankTest | None:
    """The test for the number of directions: the model's own, or made up for."""
    if estimator.rank_test_ is not None or train is None:
        return estimator.rank_test_
    recovery = replace(estimator._recovery(), n_spurious="auto", rank_test="moments")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            test = recovery(_moments(estimator, recovery, train))[0].rank_test
    except (ValueError, np.linalg.LinAlgError):
        # What was asked for by number can be removed where no test can be made.
        return None
    return test if test is not None and np.isfinite(test.spectrum).all() else None


def _strongest(estimator: Any, train: Sample) -> Eraser | None:
    """Eraser of the one direction that moves most."""
    recovery = replace(estimator._recovery(), n_spurious=1)
    try:
        eraser = recovery(_moments(estimator, recovery, train))[1]
    except (ValueError, np.linalg.LinAlgError):
        return None
    return eraser if eraser.basis.shape[1] else None


def _moments(estimator: Any, recovery: Recovery, train: Sample) -> Moments:
    labels = train.y if hasattr(estimator, "classes_") else None
    keep = recovery.least(len(train.y), train.X.shape[1])
    return moments_for(train.X, labels, train.environments, keep)


def _head_direction(estimator: Any, eraser: Eraser, rows: Sample) -> NDArray[np.float64]:
    """What the head looks at once all that is spurious is gone; of many classes, most of it."""
    whole = replace(eraser, scale=0.0)
    coef = np.atleast_2d(whole.fold(estimator.coef_, np.zeros(1))[0])
    if len(coef) == 1:
        return coef[0]
    # Of the differences between classes, the direction that tells most of them apart.
    means = np.stack([rows.X[rows.y == k].mean(axis=0) for k in np.unique(rows.y)])
    scores = means.astype(float) @ coef.T
    _, _, Vt = np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)
    return Vt[0] @ coef


def _projected(X: NDArray, center: NDArray, direction: NDArray) -> NDArray[np.float64]:
    """Coordinates of rows, in their own precision: a mapped array is not copied."""
    offset = float(center @ direction)
    return (X @ direction.astype(X.dtype)).astype(float) - offset


def _standardised(values: NDArray, cells: NDArray) -> NDArray[np.float64]:
    """Values centred, in units of their standard deviation inside the cells."""
    _, codes, count = np.unique(cells, return_inverse=True, return_counts=True)
    mean = np.bincount(codes, values) / count
    deviation = np.sqrt(np.mean((values - mean[codes]) ** 2))
    centred = values - values.mean()
    return centred / (deviation if deviation > 1e-12 * np.abs(centred).max(initial=0) else 1.0)


def _labels(estimator: Any, rows: Sample) -> Levels:
    if hasattr(estimator, "classes_"):
        return _levels(rows.y)
    cuts = np.quantile(rows.y, [1 / 3, 2 / 3])
    return Levels(_THIRDS, np.searchsorted(cuts, rows.y))


def _levels(values: NDArray) -> Levels:
    names, codes = encode(values)
    return Levels(tuple(names.tolist()), codes)


def _cell_means(
    classes: Levels, environments: Levels, x: NDArray, y: NDArray
) -> tuple[tuple[int, int, float, float], ...]:
    if len(classes.names) * len(environments.names) > _MOST_CELLS:
        return ()
    means = []
    for k in range(len(classes.names)):
        for e in range(len(environments.names)):
            rows = (classes.codes == k) & (environments.codes == e)
            if rows.any():
                means.append((k, e, float(x[rows].mean()), float(y[rows].mean())))
    return tuple(means)
