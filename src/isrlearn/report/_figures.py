"""Geometry of the figures: what the template draws, in numbers and text."""

from __future__ import annotations

from typing import Any

import numpy as np

from isrlearn.core.rank import RankTest
from isrlearn.diagnosis import Stability
from isrlearn.report._axes import Axis
from isrlearn.report._view import Levels, View
from isrlearn.report._words import name_of

#: Width of all figures. That of a small telephone: larger windows enlarge them.
WIDTH = 440
#: Colours and shapes there are; further levels are drawn in grey, together.
LEVELS = 7
_MOST_VALUES = 24
_MOST_ANGLES = 12


def spectrum_figure(spectrum: Any, test: RankTest | None, chosen: int) -> dict[str, Any] | None:
    """Strength of each direction, the level of noise, and which of them are removed."""
    every = np.asarray(spectrum if test is None else test.spectrum, dtype=float)
    shown = every[:_MOST_VALUES]
    if not len(shown) or shown[0] <= 0:
        return None
    noise = test.noise if test is not None and test.noise > 0 else None
    top, bottom, left, right = 16, 210, 54, WIDTH - 12
    floor = shown[0] * 1e-9
    y = Axis.decades([*np.maximum(shown, floor), *([noise] if noise else [])], bottom, top)
    slot = (right - left) / max(len(shown), 4)
    bars = [
        {
            "x": round(left + (i + 0.2) * slot, 1),
            "middle": round(left + (i + 0.5) * slot, 1),
            "width": round(0.6 * slot, 1),
            "y": y(v),
            "height": round(bottom - y(v), 1),
            "removed": i < chosen,
            "number": i + 1,
            "value": f"{v:.3g}",
            "p": _p_value(test, i),
        }
        for i, v in enumerate(shown.tolist())
    ]
    every_other = 1 if len(bars) <= 12 else 2
    return {
        "height": 262,
        "left": left,
        "right": right,
        "bottom": bottom,
        "bars": bars,
        "labels": bars[::every_other],
        "noise": None if noise is None else {"y": y(noise), "value": f"{noise:.3g}"},
        # Between the last bar removed and the first one kept.
        "cut": round(left + chosen * slot, 1) if chosen < len(bars) else None,
        "ticks": [(f"{v:g}", place) for v, place in y.ticks(5)],
        "hidden": len(every) - len(shown),
    }


def _p_value(test: RankTest | None, i: int) -> str:
    """Of "the directions before this one are enough"."""
    if test is None or i >= len(test.p_values):
        return ""
    p = test.p_values[i]
    return "below 1e-16" if p < 1e-16 else f"{p:.2g}"


def scatter_figure(view: View, scale: float) -> dict[str, Any]:
    """The rows before the removal, and beside them what is left of the first direction."""
    top, bottom, left, middle, right = 14, 300, 40, 318, WIDTH - 10
    x = Axis.around(_inner(view.spurious), left + 8, middle - 8)
    y = Axis.around(_inner(view.invariant), bottom - 6, top + 6)
    kept = scale if view.removed else 1.0
    # The strip is as wide as the rest of what is left, and the jitter only to show the points.
    centre, half = (middle + 14 + right) / 2, (right - middle - 14) / 2 - 8
    spread = Axis(-1.0, 1.0, centre - half, centre + half)
    reach = max(abs(x.low), abs(x.high)) or 1.0
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(view.spurious))
    after = np.clip(view.spurious / reach * kept + jitter * (1 - kept), -1, 1)
    places = [
        (x(a), y(b), spread(c))
        for a, b, c in zip(view.spurious, view.invariant, after, strict=True)
    ]
    return {
        "height": 356,
        "left": left,
        "middle": middle,
        "right": right,
        "top": top,
        "bottom": bottom,
        "strip": {"x": middle + 14, "width": right - middle - 14, "middle": centre},
        "layers": [
            {"id": "class", "levels": _layer(view.classes, places)},
            {"id": "environment", "levels": _layer(view.environments, places)},
        ],
        "means": _means(view, x, y),
        "x_ticks": [(f"{v:g}", place) for v, place in x.ticks(5)],
        "y_ticks": [(f"{v:g}", place) for v, place in y.ticks(5)],
        "n_shown": len(view.spurious),
        "n": view.n,
        "removed": view.removed,
        "kept": f"{100 * kept:g}%",
    }


def _inner(values: np.ndarray) -> list[float]:
    """The range of nearly all values: a few far away must not squeeze the others."""
    low, high = np.quantile(values, [0.002, 0.998])
    room = 0.25 * (high - low)
    return [max(low - room, values.min()), min(high + room, values.max())]


def _layer(levels: Levels, places: list[tuple[float, float, float]]) -> list[dict[str, Any]]:
    """Points of each level as the coordinates of a polyline; the largest levels by name."""
    codes = levels.codes
    order = np.argsort(-np.bincount(codes[codes >= 0], minlength=len(levels.names)), kind="stable")
    named = sorted(order[:LEVELS].tolist())
    entries: list[tuple[str, np.ndarray, int]] = [
        (name_of(levels.names[k]), codes == k, i) for i, k in enumerate(named)
    ]
    rest = ~np.isin(codes, named)
    if rest.any():
        more = len(levels.names) - len(named)
        name = f"{more} others" if more else "unknown"
        entries.append((name, rest, LEVELS))
    drawn = []
    for name, member, style in entries:
        rows = np.flatnonzero(member).tolist()
        drawn.append(
            {
                "name": name,
                "style": style,
                "before": " ".join(f"{places[i][0]:g},{places[i][1]:g}" for i in rows),
                "after": " ".join(f"{places[i][2]:g},{places[i][1]:g}" for i in rows),
            }
        )
    return drawn


def _means(view: View, x: Axis, y: Axis) -> list[dict[str, Any]]:
    """Means of each class's environments, joined by a line: how far the class moves."""
    lines: dict[int, list[dict[str, Any]]] = {}
    for k, e, a, b in view.means:
        name = f"{name_of(view.classes.names[k])}, {name_of(view.environments.names[e])}"
        lines.setdefault(k, []).append({"x": x(a), "y": y(b), "name": name, "value": f"{a:+.2f}"})
    return [
        {"points": " ".join(f"{m['x']:g},{m['y']:g}" for m in line), "cells": line}
        for line in lines.values()
    ]


def angles_figure(found: Stability) -> dict[str, Any]:
    """Each principal angle, with the middle 95 % of the draws."""
    left, right = 64, WIDTH - 14
    x = Axis(0.0, 90.0, left, right)
    shown = range(min(len(found.median), _MOST_ANGLES))
    rows = [
        {
            "y": 24 + 26 * i,
            "name": f"angle {i + 1}",
            "median": x(found.median[i]),
            "low": x(found.low[i]),
            "high": x(found.high[i]),
            "text": f"{found.median[i]:.1f}°",
            "interval": f"{found.low[i]:.1f}° to {found.high[i]:.1f}°",
        }
        for i in shown
    ]
    bottom = 24 + 26 * len(rows) - 6
    return {
        "height": bottom + 40,
        "left": left,
        "right": right,
        "bottom": bottom,
        "rows": rows,
        "limit": x(30.0),
        "ticks": [(f"{v:g}°", x(v)) for v in (0, 15, 30, 45, 60, 75, 90)],
        "hidden": len(found.median) - len(rows),
    }
