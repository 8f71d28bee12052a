"""Groups before and after, and the trade-off between their worst and their average."""

from __future__ import annotations

import math
from typing import Any

from isrlearn.metrics import GroupReport, GroupScore
from isrlearn.report._axes import Axis
from isrlearn.report._figures import WIDTH
from isrlearn.report._tradeoff import TradeOff
from isrlearn.report._words import by_class, group_name, interval, number, plural, worst_of

#: Groups that are drawn; of more, those that do worst.
MOST_GROUPS = 24


def headline(before: GroupReport | None, after: GroupReport) -> dict[str, Any]:
    """The worst group and the average before and after, and what to make of them in a sentence."""
    metric = after.metric
    worst = worst_of(after)
    found: dict[str, Any] = {
        "metric": "accuracy" if metric == "accuracy" else "root mean squared error",
        "after": _summary(after),
        "before": None,
        "sentence": (
            f"In the worst group, {group_name(worst, by_class(after))}, the "
            f"{'accuracy' if metric == 'accuracy' else 'error'} is {number(worst.value, metric)}."
        ),
        "caution": "",
    }
    if before is None:
        return found
    old = worst_of(before)
    found["before"] = _summary(before)
    better = worst.value > old.value if metric == "accuracy" else worst.value < old.value
    what = "accuracy" if metric == "accuracy" else "error"
    if worst.value == old.value:
        found["sentence"] = (
            f"The {what} of the worst group stays where it was, at {number(old.value, metric)}."
        )
        return found
    verb = "rises" if worst.value > old.value else "falls"
    found["sentence"] = (
        f"The {what} of the worst group {verb} from {number(old.value, metric)} to "
        f"{number(worst.value, metric)}{'' if better else ': the removal does not help here'}."
    )
    if max(old.low, worst.low) <= min(old.high, worst.high):
        found["caution"] = (
            "The two intervals overlap: with so few rows the difference is not certain."
        )
    return found


def _summary(report: GroupReport) -> dict[str, str]:
    worst = worst_of(report)
    return {
        "worst": number(worst.value, report.metric),
        "interval": interval(worst, report.metric),
        "group": group_name(worst, by_class(report)),
        "n": plural(worst.n, "row"),
        "average": number(report.average, report.metric),
        "average_interval": interval(report.overall, report.metric),
    }


def shown_groups(before: GroupReport | None, after: GroupReport) -> list[int]:
    """Positions of the groups that are drawn, in their order."""
    order = sorted(range(len(after.groups)), key=lambda i: _badness(after, i, before))
    return sorted(order[:MOST_GROUPS])


def _badness(after: GroupReport, i: int, before: GroupReport | None) -> float:
    sign = 1.0 if after.metric == "accuracy" else -1.0
    values = [sign * report.groups[i].value for report in (before, after) if report is not None]
    return min(values)


def group_bars(before: GroupReport | None, after: GroupReport) -> dict[str, Any]:
    """A bar before and a bar after for every group that is drawn."""
    metric, shown = after.metric, shown_groups(before, after)
    reports = [report for report in (before, after) if report is not None]
    top = 1.0
    if metric != "accuracy":
        ends = [_finite(r.groups[i].high, r.groups[i].value) for r in reports for i in shown]
        top = max(ends) or 1.0
    rows = []
    for i in shown:
        row: dict[str, Any] = {"name": group_name(after.groups[i], by_class(after))}
        row["n"] = f"{after.groups[i].n:,}"
        row["before"] = None if before is None else _bar(before.groups[i], top, metric)
        row["after"] = _bar(after.groups[i], top, metric)
        row["worst"] = after.groups[i] is worst_of(after)
        rows.append(row)
    axis = Axis(0.0, top, 0.0, 100.0)
    return {
        "rows": rows,
        "hidden": len(after.groups) - len(rows),
        "ticks": [(number(v, metric), place) for v, place in axis.ticks(4)],
        "level": f"{100 * after.level:g}%",
    }


def _bar(score: GroupScore, top: float, metric: str) -> dict[str, str]:
    low, high = score.low, _finite(score.high, top)
    return {
        "width": f"{100 * min(score.value / top, 1):.2f}%",
        "low": f"{100 * min(low / top, 1):.2f}%",
        "high": f"{100 * min(high / top, 1):.2f}%",
        "value": number(score.value, metric),
        "interval": interval(score, metric),
    }


def _finite(value: float, other: float) -> float:
    return value if math.isfinite(value) else other


def trade_off_figure(found: TradeOff) -> dict[str, Any]:
    """Average against worst group of every setting; better is right and up."""
    metric = found.after.metric
    flip = metric != "accuracy"
    top, bottom, left, right = 18, 270, 58, WIDTH - 16
    reports = list(found.reports.values())
    x = Axis.around([r.average for r in reports], left, right, margin=0.1)
    y = Axis.around([r.worst for r in reports], bottom, top, margin=0.1)
    if flip:
        x, y = Axis(x.low, x.high, right, left), Axis(y.low, y.high, top, bottom)
    shown = shown_groups(found.before, found.after)
    points = [
        _point(r, s, found.reports[r, s], x, y, shown) for r in found.counts for s in found.scales
    ]
    lines = []
    for r in found.counts[1:]:
        line = [p for p in points if p["r"] == r]
        places = " ".join(f"{p['x']:g},{p['y']:g}" for p in line)
        lines.append({"r": r, "places": places, "points": line})
    chosen = next(p for p in points if (p["r"], p["s"]) == found.chosen)
    plain = next(p for p in points if p["r"] == 0)
    groups = [group_name(found.after.groups[i], by_class(found.after)) for i in shown]
    return {
        "height": 330,
        "left": left,
        "right": right,
        "top": top,
        "bottom": bottom,
        "lines": lines,
        "chosen": chosen,
        "plain": plain,
        "x_ticks": [(number(v, metric), place) for v, place in x.ticks(4)],
        "y_ticks": [(number(v, metric), place) for v, place in y.ticks(5)],
        "counts": found.counts,
        "scales": found.scales,
        "at": [found.counts.index(found.chosen[0]), found.scales.index(found.chosen[1])],
        "groups": [
            {"name": name, "n": f"{found.after.groups[i].n:,}"}
            for name, i in zip(groups, shown, strict=True)
        ],
        "points": points,
        "table": [p for p in points if p["r"] > 0 and p["s"] < 1] or [plain],
    }


def _point(
    r: int, s: float, report: GroupReport, x: Axis, y: Axis, shown: list[int]
) -> dict[str, Any]:
    """One setting: where it is drawn, and the numbers that go with it as text."""
    summary = _summary(report)
    return {
        "r": r,
        "s": s,
        "x": x(report.average),
        "y": y(report.worst),
        "kept": f"{100 * s:g}%",
        **{key: summary[key] for key in ("worst", "interval", "group", "average")},
        "groups": [number(report.groups[i].value, report.metric) for i in shown],
    }
