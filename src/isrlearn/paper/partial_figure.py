"""The figure of partial labels: accuracy against the share of rows with an environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from isrlearn.paper.figures import _saved, require_matplotlib

if TYPE_CHECKING:
    from isrlearn.paper.partial_curves import Curve

__all__ = ["labels_figure"]

_COLORS = {"isr": "#0072B2", "reweighting": "#D55E00", "plain": "#000000"}
_STYLES = {"worst group": ("-", "o"), "average": ("--", "s")}


def labels_figure(
    curves: Iterable[Curve], titles: Mapping[str, str], labels: Mapping[str, str]
) -> dict[str, bytes]:
    """Contents of the files ``figure.png`` and ``figure.svg``, by name.

    Solid lines are the worst group, dashed ones the average; bands are 95 % intervals of the mean.

    Parameters
    ----------
    curves : iterable of Curve
        What to draw.
    titles : mapping of str to str
        Title of each data set's panel, in order.
    labels : mapping of str to str
        Label of each method, in order.
    """
    figure_type, rc_context = require_matplotlib()
    curves = list(curves)
    # Text stays text in the SVG: searchable, and a tenth of the size.
    with rc_context({"svg.hashsalt": "isrlearn", "svg.fonttype": "none", "font.size": 9}):
        figure = figure_type(figsize=(5.2 * max(len(titles), 2), 3.7), layout="constrained")
        axes = figure.subplots(1, len(titles), squeeze=False, sharey=True)
        for axis, (dataset, title) in zip(axes.flat, titles.items(), strict=True):
            for method, label in labels.items():
                for score in _STYLES:
                    line = [
                        c
                        for c in curves
                        if (c.dataset, c.method, c.score) == (dataset, method, score)
                    ]
                    _line(axis, line, f"{label}, {score}")
            _dress(axis, sorted({c.fraction for c in curves}))
            axis.set_title(title)
        axes.flat[0].set_ylabel("Test accuracy")
        handles, names = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=len(labels), frameon=False)
        return {"figure.png": _saved(figure, "png"), "figure.svg": _saved(figure, "svg")}


def _line(axis: Any, line: list[Curve], label: str) -> None:
    """A line and its band."""
    if not line:
        return
    color = _COLORS.get(line[0].method, "#AA4499")
    style, marker = _STYLES[line[0].score]
    at = [c.fraction for c in line]
    axis.plot(
        at,
        [c.mean for c in line],
        label=label,
        color=color,
        linestyle=style,
        marker=marker,
        markersize=4,
        linewidth=1.2,
    )
    if line[0].n_draws > 1:
        low = [c.mean - c.half_width for c in line]
        high = [c.mean + c.half_width for c in line]
        axis.fill_between(at, low, high, color=color, alpha=0.18, linewidth=0)


def _dress(axis: Any, fractions: list[float]) -> None:
    """Axes in percent, fewer labels to the right."""
    axis.set_xscale("log")
    axis.set_xticks(fractions, [f"{fraction:.0%}" for fraction in fractions])
    axis.minorticks_off()
    axis.invert_xaxis()
    axis.set_xlabel("Rows whose environment is known")
    axis.grid(alpha=0.3, linewidth=0.5)
