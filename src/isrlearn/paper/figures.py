"""Figures in the layout of the paper: a panel a data set, error against environments."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from isrlearn.paper.summary import Summary

if TYPE_CHECKING:
    from isrlearn.paper.published import PublishedResults

__all__ = ["error_figure", "require_matplotlib"]

# Okabe and Ito's colours, told apart under the common colour deficiencies. Each comes with a
# marker of its own, so that no line is known by colour alone; a method keeps its pair everywhere.
_STYLES: dict[str, tuple[str, str]] = {
    "isr-mean": ("#0072B2", "o"),
    "isr-mean-pooled": ("#56B4E9", "D"),
    "isr-mean-auto": ("#332288", "h"),
    "isr-cov": ("#D55E00", "s"),
    "isr-cov-pooled": ("#E69F00", "p"),
    "isr-multiclass": ("#D55E00", "s"),
    "isr-multiclass-pooled": ("#E69F00", "p"),
    "isr-regression": ("#0072B2", "o"),
    "isr-regression-pooled": ("#56B4E9", "D"),
    "isr-joint": ("#AA4499", "P"),
    "isr-joint-auto": ("#F0E442", "*"),
    "erm": ("#000000", "v"),
    "least-squares": ("#000000", "v"),
    "irmv1": ("#009E73", "^"),
    "irmv1-best": ("#117733", ">"),
    "iga": ("#CC79A7", "X"),
    "andmask": ("#882255", "<"),
    "oracle": ("#7F7F7F", "+"),
}
_OTHER = ("#999933", "d")
_FLOOR = 1e-8  # of a logarithmic axis: below it everything is solved


def error_figure(
    found: Iterable[Summary],
    titles: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    quantity: str = "Test error",
    log: bool = False,
    published: PublishedResults | None = None,
) -> dict[str, bytes]:
    """Contents of the files ``figure.png`` and ``figure.svg``, by name.

    Lines are means over seeds with a band of the 95 % interval. The same summaries give the same
    files, byte for byte, with the same version of matplotlib.

    Parameters
    ----------
    found : iterable of Summary
        What to draw.
    titles : mapping of str to str
        Title of each data set's panel, in order.
    labels : mapping of str to str
        Label of each method, in order.
    quantity : str, default="Test error"
        Label of the vertical axis.
    log : bool, default=False
        Logarithmic vertical axis, cut off at 1e-8.
    published : mapping, optional
        Published results, drawn dashed in the colour of their method.

    Raises
    ------
    ImportError
        If matplotlib, of the extra ``plot``, is not installed.

    Examples
    --------
    >>> from isrlearn.paper.records import CellKey, Record
    >>> from isrlearn.paper.summary import summaries
    >>> keys = [CellKey("3s", "erm", E, seed, "converged") for E in (2, 3) for seed in (0, 1)]
    >>> records = [Record(key, 0.2, 0.0, [0.2] * key.n_environments, 0.1) for key in keys]
    >>> files = error_figure(summaries(records), {"3s": "Example-3s"}, {"erm": "ERM"})
    >>> sorted(files), files["figure.png"][1:4]
    (['figure.png', 'figure.svg'], b'PNG')
    """
    figure_type, rc_context = require_matplotlib()
    found = list(found)
    shown = {name: title for name, title in titles.items() if any(s.dataset == name for s in found)}
    n_columns = min(len(shown), 4 if len(shown) > 6 else 3)
    n_rows = -(-len(shown) // n_columns)
    # Text stays text in the SVG: searchable, and a tenth of the size.
    with rc_context({"svg.hashsalt": "isrlearn", "svg.fonttype": "none", "font.size": 9}):
        figure = figure_type(figsize=(3.4 * n_columns, 2.7 * n_rows + 0.6), layout="constrained")
        axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True, sharey=True)
        for i, (axis, (dataset, title)) in enumerate(zip(axes.flat, shown.items(), strict=False)):
            _panel(axis, [s for s in found if s.dataset == dataset], labels, log, published)
            axis.set_title(title)
            if i % n_columns == 0:
                axis.set_ylabel(quantity)
            if i + n_columns >= len(shown):
                axis.set_xlabel("Environments E")
                axis.tick_params(labelbottom=True)
        for axis in axes.flat[len(shown) :]:
            axis.set_visible(False)
        _legend(figure, axes)
        return {"figure.png": _saved(figure, "png"), "figure.svg": _saved(figure, "svg")}


def require_matplotlib() -> tuple[Any, Any]:
    """Matplotlib's Figure and rc_context; neither touches the user's backend or settings.

    Raises
    ------
    ImportError
        If matplotlib, of the extra ``plot``, is not installed.

    Examples
    --------
    >>> require_matplotlib()[0].__name__
    'Figure'
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "figures need matplotlib, which is not installed: pip install 'isrlearn[plot]', or do "
            "without figures"
        ) from error
    return Figure, rc_context


def _panel(
    axis: Any,
    found: list[Summary],
    labels: Mapping[str, str],
    log: bool,
    published: PublishedResults | None,
) -> None:
    """One data set: a line and a band a method."""
    floor = _FLOOR if log else 0.0
    if log:
        axis.set_yscale("log")
    for method, label in labels.items():
        line = sorted((s for s in found if s.method == method), key=lambda s: s.n_environments)
        if not line:
            continue
        color, marker = _STYLES.get(method, _OTHER)
        E = [s.n_environments for s in line]
        mean = [max(s.mean, floor) for s in line]
        style = {"color": color, "marker": marker, "markersize": 4.5, "linewidth": 1.2}
        axis.plot(E, mean, label=label, **style)
        if line[0].n_seeds > 1:
            low = [max(s.mean - s.half_width, floor) for s in line]
            high = [max(s.mean + s.half_width, floor) for s in line]
            axis.fill_between(E, low, high, color=color, alpha=0.18, linewidth=0)
        if published is not None:
            _published_line(axis, published, line[0].dataset, method, label, style)
    axis.grid(alpha=0.3, linewidth=0.5)
    if log:
        axis.set_ylim(bottom=_FLOOR / 2)


def _published_line(
    axis: Any,
    published: PublishedResults,
    dataset: str,
    method: str,
    label: str,
    style: dict[str, Any],
) -> None:
    """The published means, dashed, with empty markers."""
    line = {E: p.mean for (name, m, E), p in published.items() if (name, m) == (dataset, method)}
    if line:
        style = {**style, "linestyle": "--", "markerfacecolor": "none", "linewidth": 0.9}
        axis.plot(list(line), list(line.values()), label=f"{label}, published", **style)


def _legend(figure: Any, axes: Any) -> None:
    """One legend for all panels, below them, each label once."""
    handles: dict[str, Any] = {}
    for axis in axes.flat:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=6, frameon=False
    )


def _saved(figure: Any, kind: str) -> bytes:
    """The figure as a file of the given kind, without a date."""
    out = io.BytesIO()
    metadata = {"Date": None} if kind == "svg" else {"Software": None}
    figure.savefig(out, format=kind, dpi=150, metadata=metadata)
    return out.getvalue()
