"""Names, numbers and figures as the template of a report shows them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from isrlearn.core.rank import RankTest
from isrlearn.markup import line, number
from isrlearn.metrics import GroupScore
from isrlearn.report.evidence import Evidence, real_shifts

#: Width of all figures, that of a small telephone: larger windows enlarge them.
WIDTH = 440
#: Groups, directions and angles that are drawn.
MOST_GROUPS, MOST_DIRECTIONS, MOST_ANGLES = 24, 24, 12


def name_of(value: Any, longest: int = 60) -> str:
    """A name from a file as one line of text."""
    return line(value, longest)


def group_name(score: GroupScore) -> str:
    """A group in words; a name that is a number says what it is the name of.

    Examples
    --------
    >>> from isrlearn.metrics import GroupScore
    >>> group_name(GroupScore("cow", "beach", 20, 0.5, 0.3, 0.7))
    'cow in beach'
    >>> group_name(GroupScore(1, 0, 20, 0.5, 0.3, 0.7))
    'class 1 in environment 0'
    """
    place = name_of(score.environment, 40)
    if not isinstance(score.environment, str):
        place = f"environment {place}"
    if score.label is None:
        return place
    label = name_of(score.label, 40)
    return f"{label if isinstance(score.label, str) else f'class {label}'} in {place}"


def score_text(value: float, metric: str) -> str:
    """An accuracy in per cent, or an error with at least three digits.

    Examples
    --------
    >>> score_text(0.73771, "accuracy"), score_text(1234.5, "rmse"), score_text(math.inf, "rmse")
    ('73.8%', '1,234', '∞')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "unknown"
    return f"{100 * value:.1f}%" if metric == "accuracy" else number(value)


def interval(score: Any, metric: str) -> str:
    """The two ends of a score's interval."""
    return f"{score_text(score.low, metric)} to {score_text(score.high, metric)}"


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic axis from `low` to `high`, drawn from `start` to `stop`.

    Examples
    --------
    >>> axis = Axis(0.0, 10.0, 0.0, 100.0)
    >>> axis(2.5), axis.ticks(5)
    (25.0, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    """

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    @classmethod
    def around(
        cls, values: Iterable[float], start: float, stop: float, *, margin: float = 0.06
    ) -> Self:
        """A linear axis that contains the values, with a margin on both sides."""
        finite = [v for v in values if math.isfinite(v)] or [0.0]
        low, high = min(finite), max(finite)
        room = margin * (high - low) or max(abs(high), 1.0) * margin
        return cls(low - room, high + room, start, stop)

    @classmethod
    def decades(cls, values: list[float], start: float, stop: float) -> Self:
        """A logarithmic axis over whole powers of ten around positive values."""
        low = 10.0 ** math.floor(math.log10(min(values)))
        high = 10.0 ** math.ceil(math.log10(max(values)) + 1e-9)
        return cls(low, high, start, stop, logarithmic=True)

    def __call__(self, value: float) -> float:
        """Position of a value; of a value beyond the axis, the end of the axis."""
        low, high = self.low, self.high
        if self.logarithmic:
            low, high = math.log10(low), math.log10(high)
            value = math.log10(value) if value > 0 else low
        share = 0.0 if math.isnan(value) else min(max((value - low) / (high - low), 0.0), 1.0)
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self, wanted: int = 5) -> list[float]:
        """About that many round values."""
        if self.logarithmic:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            stride = max(1, -(-(last - first) // wanted))
            return [10.0**k for k in range(first, last + 1, stride)]
        span = self.high - self.low
        power = 10.0 ** math.floor(math.log10(span / wanted))
        step = next(s * power for s in (1, 2, 2.5, 5, 10) if span <= wanted * s * power * 1.001)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [k * step for k in range(first, last + 1)]


def shown_groups(found: Evidence) -> list[int]:
    """Positions of the groups that are drawn: the worst ones of any model, in their order."""
    sign = 1.0 if found.report.metric == "accuracy" else -1.0
    reports = [found.report, *(found.comparison.reports.values() if found.comparison else ())]
    scores = sign * np.array([[g.value for g in report.groups] for report in reports])
    return sorted(scores.min(axis=0).argsort(kind="stable")[:MOST_GROUPS].tolist())


def group_bars(found: Evidence) -> dict[str, Any]:
    """Scores of the best alternative and of the model in the groups that are drawn."""
    shown, best = shown_groups(found), found.best
    rows = [(None if best is None else best.groups[i], found.report.groups[i]) for i in shown]
    top = 1.0
    if found.report.metric != "accuracy":
        ends = [g.high if math.isfinite(g.high) else g.value for row in rows for g in row if g]
        top = max(ends) or 1.0
    axis = Axis(0.0, top, 0.0, 100.0)
    return {"rows": rows, "hidden": len(found.report.groups) - len(rows), "x": axis}


def model_table(found: Evidence) -> dict[str, Any] | None:
    """Scores of every model: the worst group, the average and each group that is drawn."""
    if found.comparison is None:
        return None
    metric, models = found.report.metric, found.comparison.models.values()
    rows: list[tuple[str, int | None, list[float]]] = [
        ("worst group", None, [m.report.worst for m in models]),
        ("average", found.report.n, [m.report.average for m in models]),
    ]
    for i in shown_groups(found):
        group = found.report.groups[i]
        rows.append((group_name(group), group.n, [m.report.groups[i].value for m in models]))
    settings = []
    for model in models:
        names = ["C" if metric == "accuracy" else "alpha", "weights"]
        scale = model.settings.get("scale")
        names += ["method", "n_spurious", *(["scale"] if scale else [])] if scale != 1 else []
        known = ((name, model.settings[name]) for name in names if name in model.settings)
        settings.append(", ".join(f"{name}={name_of(value, 30)}" for name, value in known))
    return {"names": list(found.comparison.models), "rows": rows, "settings": settings}


def spectrum_figure(spectrum: Any, test: RankTest | None) -> dict[str, Any] | None:
    """Strength of each direction, its p-value, and the noise level."""
    every = real_shifts(spectrum if test is None else test.spectrum).tolist()
    shown = every[:MOST_DIRECTIONS]
    if not shown:
        return None
    noise = test.noise if test is not None and test.noise > 0 else None
    p_values = () if test is None else test.p_values[: len(shown)]
    return {
        "values": shown,
        "p_values": [f"{p:.2g}" if p >= 1e-16 else "below 1e-16" for p in p_values],
        "noise": noise,
        "y": Axis.decades([*shown, noise or shown[0]], 210, 16),
        "slot": (WIDTH - 66) / max(len(shown), 4),
        "hidden": len(every) - len(shown),
    }


def trade_off_figure(found: Evidence) -> dict[str, Any]:
    """Average against worst group of every setting and every model; better is right and up."""
    metric, reports = found.report.metric, list(found.reports.values())
    others = [] if found.comparison is None else list(found.comparison.reports.items())[:-1]
    every = [*reports, *(report for _, report in others)]
    left, right, top, bottom = 70, WIDTH - 16, 18, 270
    x = Axis.around([r.average for r in every], left, right, margin=0.1)
    y = Axis.around([r.worst for r in every], bottom, top, margin=0.1)
    if metric != "accuracy":
        x, y = Axis(x.low, x.high, right, left), Axis(y.low, y.high, top, bottom)
    shown = shown_groups(found)
    points = [
        {
            "r": r,
            "s": s,
            "x": x(report.average),
            "y": y(report.worst),
            "kept": f"{100 * s:g}%",
            "worst": score_text(report.worst, metric),
            "interval": interval(report.by_rank[0], metric),
            "group": group_name(report.by_rank[0]),
            "average": score_text(report.average, metric),
            "groups": [score_text(report.groups[i].value, metric) for i in shown],
        }
        for (r, s), report in found.reports.items()
    ]
    return {
        "x": x,
        "y": y,
        "counts": found.counts,
        "scales": found.scales,
        "at": [found.counts.index(found.chosen[0]), found.scales.index(found.chosen[1])],
        "points": points,
        "others": [(name, x(report.average), y(report.worst)) for name, report in others],
        "chosen": next(p for p in points if (p["r"], p["s"]) == found.chosen),
        "groups": [found.report.groups[i] for i in shown],
    }
