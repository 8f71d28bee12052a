"""Samples along the direction that shifts most and along the one that the head uses."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import encode
from isrlearn.report.evidence import LabelledRows, cells_of, refit, thinned
from isrlearn.report.figures import WIDTH, Axis, name_of

#: Points that are drawn, and cells whose means are drawn: more of them hide the points.
_MOST_POINTS, _MOST_CELLS = 1200, 36
#: Colours and shapes; further classes or environments share a grey one.
_STYLES = 7
_THIRDS = np.array(["low third of the target", "middle third", "high third of the target"])

Levels = tuple[NDArray, NDArray[np.intp]]  # names, and the position of each row's name or -1


def samples_figure(
    estimator: Any, rows: LabelledRows, train: LabelledRows | None
) -> dict[str, Any] | None:
    """Some rows in two coordinates, in standard deviations inside the cells.

    The first coordinate is that of the direction that shifts most with the environment, the
    second that of the head once all spurious directions are removed. None if nothing shifts.
    """
    removed = bool(estimator.eraser_.basis.shape[1])
    eraser = estimator.eraser_ if removed else _strongest(estimator, train)
    if eraser is None:
        return None
    classes, environments = encode(rows.y), encode(rows.environments)
    if not hasattr(estimator, "classes_"):
        classes = _THIRDS, np.searchsorted(np.quantile(rows.y, [1 / 3, 2 / 3]), rows.y)
    cells = cells_of(classes[1], rows.environments)
    a = _standardised(rows.X, eraser.dual[:, 0], cells)
    b = _standardised(rows.X, _head_direction(estimator, eraser, rows), cells)
    x = Axis.around(_inner(a), 48, 310)
    y = Axis.around(_inner(b), 294, 20)
    # The strip beside the plot shows what is left of the first coordinate; the jitter only
    # separates the points.
    strip = Axis(-1.0, 1.0, 340, WIDTH - 18)
    kept = float(estimator.scale) if removed else 1.0
    shown = thinned(cells, _MOST_POINTS)
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(shown)) * (1 - kept)
    left = a[shown] / max(abs(x.low), abs(x.high)) * kept + jitter
    points = [(x(u), y(v), strip(w)) for u, v, w in zip(a[shown], b[shown], left, strict=True)]
    return {
        "x": x,
        "y": y,
        "strip": strip,
        "layers": {
            "class": _layer(classes[0], classes[1][shown], points),
            "environment": _layer(environments[0], environments[1][shown], points),
        },
        "means": _means(classes, environments, a, b),
        "n_shown": len(shown),
        "n": len(cells),
        "removed": removed,
        "kept": f"{100 * kept:g}%",
    }


def _strongest(estimator: Any, train: LabelledRows | None) -> Any:
    """Eraser of the one direction that shifts most, if there is one."""
    if train is None:
        return None
    try:
        eraser = refit(estimator, train, n_spurious=1).eraser_
    except (ValueError, np.linalg.LinAlgError):
        return None
    return eraser if eraser.basis.shape[1] else None


def _head_direction(estimator: Any, eraser: Any, rows: LabelledRows) -> NDArray[np.float64]:
    """What the head uses once all spurious directions are removed."""
    coef = np.atleast_2d(estimator.coef_)
    coef = coef - (coef @ eraser.basis) @ eraser.dual.T
    if len(coef) == 1:
        return coef[0]
    # Of many classes, the combination of scores that separates their means best.
    means = np.stack([rows.X[rows.y == k].mean(axis=0) for k in np.unique(rows.y)])
    scores = means.astype(float) @ coef.T
    return np.linalg.svd(scores - scores.mean(axis=0), full_matrices=False)[2][0] @ coef


def _standardised(X: NDArray, direction: NDArray, cells: NDArray) -> NDArray[np.float64]:
    """Centred coordinates along a direction, in standard deviations inside the cells."""
    # Without a copy of X in another precision.
    values = (X @ direction.astype(np.result_type(X, np.float32))).astype(float)
    _, codes, count = np.unique(cells, return_inverse=True, return_counts=True)
    mean = np.bincount(codes, values) / count
    deviation = np.sqrt(np.mean((values - mean[codes]) ** 2))
    centred = values - values.mean()
    return centred / (deviation if deviation > 1e-12 * np.abs(centred).max(initial=0) else 1.0)


def _inner(values: NDArray) -> list[float]:
    """The range of nearly all values: a few outliers must not squeeze the others."""
    low, high = np.quantile(values, [0.002, 0.998])
    room = 0.25 * (high - low)
    return [max(low - room, values.min()), min(high + room, values.max())]


def _layer(names: NDArray, codes: NDArray, points: list[tuple]) -> list[dict[str, Any]]:
    """Points of each level as coordinates of polylines; the largest levels have a style each."""
    sizes = np.bincount(codes[codes >= 0], minlength=len(names))
    named = np.sort(np.argsort(-sizes, kind="stable")[:_STYLES]).tolist()
    levels = [(name_of(names[k]), codes == k) for k in named]
    others = ~np.isin(codes, named)
    if others.any():
        more = len(names) - len(named)
        levels.append((f"{more} others" if more else "unknown", others))
    drawn = []
    for i, (name, member) in enumerate(levels):
        own = [points[row] for row in np.flatnonzero(member)]
        drawn.append(
            {
                "name": name,
                "style": i if i < len(named) else _STYLES,
                "before": " ".join(f"{u:g},{v:g}" for u, v, _ in own),
                "after": " ".join(f"{w:g},{v:g}" for _, v, w in own),
            }
        )
    return drawn


def _means(classes: Levels, environments: Levels, a: NDArray, b: NDArray) -> list[list[dict]]:
    """Mean of every cell, one list per class; none where there are too many cells."""
    if len(classes[0]) * len(environments[0]) > _MOST_CELLS:
        return []
    found: list[list[dict]] = []
    for k, label in enumerate(classes[0]):
        found.append([])
        for e, place in enumerate(environments[0]):
            rows = (classes[1] == k) & (environments[1] == e)
            if rows.any():
                name = f"{name_of(label)}, {name_of(place)}"
                found[-1].append({"name": name, "x": a[rows].mean(), "y": b[rows].mean()})
    return found
