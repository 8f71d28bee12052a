"""Figures in the layout of the paper, one panel per data set, and pages of samples."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from isrlearn.datasets import EnvironmentData, Splits
from isrlearn.io.errors import optional
from isrlearn.paper.records import grouped
from isrlearn.paper.summary import PublishedResults, Summary

if TYPE_CHECKING:
    from isrlearn.paper.partial_labels import Curve

#: Colour and marker of each method, the same in all figures. The colours are those of Okabe and
#: Ito, distinguishable under the common colour deficiencies; the markers make sure that no line
#: is identified by its colour alone.
STYLES: dict[str, tuple[str, str]] = {
    "isr-mean": ("#0072B2", "o"),
    "isr-mean-authors": ("#CC6677", "H"),
    "isr-mean-pooled": ("#56B4E9", "D"),
    "isr-mean-auto": ("#332288", "h"),
    "isr-cov": ("#D55E00", "s"),
    "isr-cov-pooled": ("#E69F00", "p"),
    "isr-multiclass": ("#D55E00", "s"),
    "isr-multiclass-authors": ("#CC6677", "H"),
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
_FLOOR = 1e-8  # lower end of a logarithmic axis: smaller errors count as solved

_LABELS_COLOURS = {"isr": "#0072B2", "isr-cov": "#009E73"}
_LABELS_COLOURS |= {"reweighting": "#D55E00", "reweighting-filled": "#E69F00", "plain": "#000000"}
_LABELS_COLOURS |= {"isr-published": "#56B4E9", "isr-cov-published": "#88CCAA"}
_LABELS_STYLES = {"worst group": ("-", "o"), "average": ("--", "s")}


def require_matplotlib() -> tuple[Any, Any]:
    """Matplotlib's Figure and rc_context, which leave the user's backend and settings alone."""
    module = optional("matplotlib.figure", "a figure", "plot")
    return module.Figure, optional("matplotlib", "a figure", "plot").rc_context


def drawn(
    size: tuple[float, float], draw: Callable[[Any], None], name: str = "figure"
) -> dict[str, bytes]:
    """Contents, by file name, of a figure as PNG and SVG: the same bytes for the same figure."""
    figure_type, rc_context = require_matplotlib()
    files = {}
    # In the SVG, text remains text: searchable, and a tenth of the size.
    with rc_context({"svg.hashsalt": "isrlearn", "svg.fonttype": "none", "font.size": 9}):
        figure = figure_type(figsize=size, layout="constrained")
        draw(figure)
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
            out = io.BytesIO()
            figure.savefig(out, format=kind, dpi=150, metadata=metadata)
            files[f"{name}.{kind}"] = out.getvalue()
    return files


def error_figure(
    found: Iterable[Summary],
    titles: Mapping[str, str],
    labels: Mapping[str, str],
    *,
    quantity: str = "Test error",
    log: bool = False,
    published: PublishedResults | None = None,
) -> dict[str, bytes]:
    """Files of a figure of errors with 95 % bands against the number of environments."""
    found = list(found)
    shown = {name: title for name, title in titles.items() if any(s.dataset == name for s in found)}
    n_columns = min(len(shown), 4 if len(shown) > 6 else 3)
    n_rows = -(-len(shown) // n_columns)

    def draw(figure: Any) -> None:
        axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex=True, sharey=True)
        for i, (axis, (dataset, title)) in enumerate(zip(axes.flat, shown.items(), strict=False)):
            _error_panel(axis, [s for s in found if s.dataset == dataset], labels, log, published)
            axis.set_title(title)
            if i % n_columns == 0:
                axis.set_ylabel(quantity)
            if i + n_columns >= len(shown):
                axis.set_xlabel("Environments E")
                axis.tick_params(labelbottom=True)
        for axis in axes.flat[len(shown) :]:
            axis.set_visible(False)
        _legend(figure, 6)

    return drawn((3.4 * n_columns, 2.7 * n_rows + 0.6), draw)


def _error_panel(
    axis: Any,
    found: list[Summary],
    labels: Mapping[str, str],
    log: bool,
    published: PublishedResults | None,
) -> None:
    """One data set, with a line and a band per method."""
    floor = _FLOOR if log else 0.0
    if log:
        axis.set_yscale("log")
    for method, label in labels.items():
        line = sorted((s for s in found if s.method == method), key=lambda s: s.n_environments)
        if not line:
            continue
        colour, marker = STYLES.get(method, _OTHER)
        style = {"color": colour, "marker": marker, "markersize": 4.5}
        _line(axis, [s.n_environments for s in line], line, label, style, floor)
        curve = (line[0].dataset, method)
        means = {key[2]: p.mean for key, p in (published or {}).items() if key[:2] == curve}
        if means:
            style |= {"linestyle": "--", "markerfacecolor": "none", "linewidth": 0.9}
            axis.plot(list(means), list(means.values()), label=f"{label}, published", **style)
    axis.grid(alpha=0.3, linewidth=0.5)
    if log:
        axis.set_ylim(bottom=_FLOOR / 2)


def labels_figure(
    curves: Iterable[Curve], titles: Mapping[str, str], labels: Mapping[str, str]
) -> dict[str, bytes]:
    """Files of a figure of accuracies against the share of rows with a known environment."""
    lines = grouped(curves, lambda curve: (curve.dataset, curve.method, curve.score))
    fractions = sorted({c.fraction for line in lines.values() for c in line})

    def draw(figure: Any) -> None:
        axes = figure.subplots(1, len(titles), squeeze=False, sharey=True)
        for axis, (dataset, title) in zip(axes.flat, titles.items(), strict=True):
            for method, label in labels.items():
                colour = _LABELS_COLOURS.get(method, "#AA4499")
                for score, (style, marker) in _LABELS_STYLES.items():
                    line = lines.get((dataset, method, score))
                    if line is None:
                        continue
                    look: dict[str, Any] = {"color": colour, "linestyle": style}
                    look |= {"marker": marker, "markersize": 4}
                    _line(axis, [c.fraction for c in line], line, f"{label}, {score}", look)
            axis.set_xscale("log")
            axis.set_xticks(fractions, [f"{fraction:.0%}" for fraction in fractions])
            axis.minorticks_off()
            axis.invert_xaxis()  # fewer labels to the right
            axis.set_xlabel("Rows whose environment is known")
            axis.grid(alpha=0.3, linewidth=0.5)
            axis.set_title(title)
        axes.flat[0].set_ylabel("Test accuracy")
        _legend(figure, min(len(labels), 3))

    return drawn((5.2 * max(len(titles), 2), 4.3), draw)


def _line(
    axis: Any, at: list[Any], line: list[Any], label: str, look: dict[str, Any], floor: float = 0.0
) -> None:
    """A line of means, with a band of the 95 % intervals where there are any."""
    low, mean, high = (
        [max(p.mean + sign * p.half_width if sign else p.mean, floor) for p in line]
        for sign in (-1, 0, 1)
    )
    axis.plot(at, mean, label=label, linewidth=1.2, **look)
    if not math.isnan(line[0].half_width):
        axis.fill_between(at, low, high, color=look["color"], alpha=0.18, linewidth=0)


def _legend(figure: Any, n_columns: int) -> None:
    """One legend for all panels, below them, with each label once."""
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=n_columns, frameon=False
    )


_BINS = 5  # rows of a page whose target is a number
_MOST = 400  # points of one cell


def sample_page(
    splits: Splits, title: str, kind: str, *, regression: bool = False, random_state: int = 0
) -> bytes:
    """Page of samples: classes, or ranges of the target, down and environments across."""
    train, rng = splits.train, np.random.default_rng(random_state)
    names, labels = np.unique(train.environments), _rows(train.y, regression)[0]
    images = train.X.ndim in (1, 4) or hasattr(train.truth, "image_shape")
    if not images:
        pca = PCA(2, svd_solver="full").fit(train.X[:5000])
        limit = 1.05 * np.abs(pca.transform(train.X)).max()
    shape = len(labels), len(names)

    def draw_cell(axis: Any, part: EnvironmentData, members: NDArray[np.intp]) -> None:
        if images:
            axis.imshow(_image(part, rng.choice(members)), interpolation="nearest")
        else:
            axis.scatter(*pca.transform(part.X[members[:_MOST]]).T, s=3, alpha=0.5)
            axis.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")

    def draw(figure: Any) -> None:
        figure.suptitle(title)
        for half, what in zip(figure.subfigures(1, 2), ("train", "test"), strict=True):
            half.suptitle(what)
            part = getattr(splits, what)
            axes, codes = half.subplots(*shape, squeeze=False), _rows(part.y, regression)[1]
            for k, e in np.ndindex(shape):
                members = np.flatnonzero((codes == k) & (part.environments == names[e]))
                axis, share = axes[k, e], len(members) / max(1, (codes == k).sum())
                axis.set(xticks=[], yticks=[])
                if len(members):
                    draw_cell(axis, part, members)
                axis.set_xlabel(f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}", fontsize=7)
                if k == 0:
                    axis.set_title(str(names[e]).replace(" ", "\n"), fontsize=7)
                if e == 0:
                    axis.set_ylabel(labels[k], fontsize=8)

    return drawn((1.6 + 1.44 * shape[1], 1.1 + 0.86 * shape[0]), draw)[f"figure.{kind}"]


def _rows(y: NDArray, regression: bool) -> tuple[list[str], NDArray[np.intp]]:
    """Names of the rows of a page, and the row of each sample."""
    if not regression:
        classes, codes = np.unique(y, return_inverse=True)
        return [str(name) for name in classes], codes
    edges = np.linspace(y.min(), y.max(), _BINS + 1)
    names = [f"{round(low, 2):g} to {round(high, 2):g}" for low, high in itertools.pairwise(edges)]
    return names, np.clip(np.searchsorted(edges, y, side="right") - 1, 0, _BINS - 1)


def _image(data: EnvironmentData, row: int) -> NDArray:
    """The picture of a sample: its own pixels, or those of its file."""
    image = data.X[row]
    if data.X.ndim == 1:
        # Pillow comes with matplotlib.
        from PIL import Image

        with Image.open(image) as file:
            return np.asarray(file.convert("RGB").resize((64, 64)))
    by_channel = data.X.ndim == 4
    image = np.moveaxis(image, 0, -1) if by_channel else image.reshape(data.truth.image_shape)
    return image if image.dtype == np.uint8 else image.clip(0, 1)
