"""Samples along the direction that shifts most and along the one that the head uses."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import Cells
from isrlearn.engine import sum_cells
from isrlearn.estimators.compare import LabelledRows, thinned
from isrlearn.report.evidence import refit_if_possible
from isrlearn.report.figures import WIDTH, Axis, name_of

#: Points that are drawn, and cells whose means are drawn: more of them hide the points.
MOST_POINTS, _MOST_CELLS = 1200, 36
#: Colours and shapes; further classes or environments share a grey one.
_STYLES = 7
_THIRDS = np.array(["low third of the target", "middle third", "high third of the target"])


def samples_figure(
    estimator: Any, rows: LabelledRows, train: LabelledRows | None
) -> dict[str, Any] | None:
    """Some rows in the coordinates of `sample_places`; None if nothing shifts."""
    found = sample_places(estimator, rows, train)
    if found is None:
        return None
    places, cells = found
    removed = estimator.eraser_.basis.shape[1] > 0 and estimator.scale < 1
    x, y = Axis.around(_inner(places[:, 0]), 48, 310), Axis.around(_inner(places[:, 1]), 294, 20)
    # The strip beside the plot shows what is left of the first coordinate; the jitter only
    # separates the points.
    strip = Axis(-1.0, 1.0, 340, WIDTH - 18)
    kept = float(estimator.scale) if removed else 1.0
    shown = thinned(cells, MOST_POINTS)
    a, b = places[shown].T
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(shown)) * (1 - kept)
    left = a / max(abs(x.low), abs(x.high)) * kept + jitter
    points = np.array([(x(u), y(v), strip(w)) for u, v, w in zip(a, b, left, strict=True)])
    return {
        "x": x,
        "y": y,
        "strip": strip,
        "layers": {
            "class": _layer(cells.classes, cells.k[shown], points),
            "environment": _layer(cells.environments, cells.e[shown], points),
        },
        "means": _means(places, cells),
        "n_shown": len(shown),
        "n": len(places),
        "removed": removed,
        "kept": f"{100 * kept:g}%",
    }


def sample_places(
    estimator: Any, rows: LabelledRows, train: LabelledRows | None = None
) -> tuple[NDArray[np.float64], Cells] | None:
    """Rows in two coordinates (n, 2), in standard deviations inside the cells, and their cells.

    The first coordinate is that of the direction that shifts most with the environment, the
    second that of the head once all spurious directions are removed. A regression's target is
    cut into thirds. None if nothing shifts.
    """
    shown = estimator  # or a model that removes the one direction which shifts most
    if not shown.eraser_.basis.shape[1] and train is not None:
        shown = refit_if_possible(estimator, train, n_spurious=1)
    if shown is None or not shown.eraser_.basis.shape[1]:
        return None
    eraser = shown.eraser_
    regression = not hasattr(estimator, "classes_")
    cells = Cells.of(None if regression else rows.y, rows.environments)
    if regression:
        third = np.searchsorted(np.quantile(rows.y, [1 / 3, 2 / 3]), rows.y)
        cells = Cells(_THIRDS, cells.environments, third, cells.e)
    directions = np.column_stack([eraser.dual[:, 0], _head_direction(estimator, eraser)])
    return _standardised(rows.X, directions, cells), cells


def _head_direction(estimator: Any, eraser: Any) -> NDArray[np.float64]:
    """What the head uses once all spurious directions are removed."""
    coef = np.atleast_2d(estimator.coef_)
    coef = coef - (coef @ eraser.basis) @ eraser.dual.T
    if len(coef) == 1:
        return coef[0]
    # Of many classes, the combination of scores that separates their means best.
    scores = estimator.moments_.by_class[1] @ coef.T
    return np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)[2][0] @ coef


def _standardised(X: NDArray, directions: NDArray, cells: Cells) -> NDArray[np.float64]:
    """Centred coordinates along the directions, in standard deviations inside the cells."""
    # Without a copy of X in another precision.
    values = (X @ directions.astype(np.result_type(X, np.float32))).astype(float)
    centred = values - values.mean(axis=0)
    moments = sum_cells(centred, cells, pooled=True)
    deviation = np.sqrt(np.diag(moments.within()) / max(moments.count.sum(), 1))
    significant = deviation > 1e-12 * np.abs(centred).max(axis=0, initial=0)
    return centred / np.where(significant, deviation, 1.0)


def _inner(values: NDArray) -> list[float]:
    """The range of nearly all values: a few outliers must not squeeze the others."""
    low, high = np.quantile(values, [0.002, 0.998])
    room = 0.25 * (high - low)
    return [max(low - room, values.min()), min(high + room, values.max())]


def _layer(names: NDArray, codes: NDArray, points: NDArray) -> list[dict[str, Any]]:
    """Points of each level as coordinates of polylines; the largest levels have a style each."""
    sizes = np.bincount(codes[codes >= 0], minlength=len(names))
    named = np.sort(np.argsort(-sizes, kind="stable")[:_STYLES]).tolist()
    levels = [(name_of(names[k]), codes == k) for k in named]
    others = ~np.isin(codes, named)
    if others.any():
        more = len(names) - len(named)
        levels.append((f"{more} others" if more else "unknown", others))
    return [
        {
            "name": name,
            "style": i if i < len(named) else _STYLES,
            "before": " ".join(f"{u:g},{v:g}" for u, v, _ in points[member]),
            "after": " ".join(f"{w:g},{v:g}" for _, v, w in points[member]),
        }
        for i, (name, member) in enumerate(levels)
    ]


def _means(places: NDArray, cells: Cells) -> list[list[dict]]:
    """Mean of every cell, one list per class; none where there are too many cells."""
    if len(cells.classes) * len(cells.environments) > _MOST_CELLS:
        return []
    moments = sum_cells(places, cells, order=1)
    return [
        [
            {"name": f"{name_of(label)}, {name_of(place)}", "x": x, "y": y}
            for place, n, (x, y) in zip(cells.environments, count, mean, strict=True)
            if n
        ]
        for label, count, mean in zip(cells.classes, moments.count, moments.mean, strict=True)
    ]
