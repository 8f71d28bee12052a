"""Draws the pictures of the theory page: what each algorithm sees, with what our code finds.

`python docs/theory/draw.py` writes the SVG files next to it.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from isrlearn.core import (
    Eraser,
    covariance_subspace,
    mean_subspace,
    multiclass_subspace,
    regression_subspace,
)
from isrlearn.engine import cell_moments

HERE = Path(__file__).parent
# Distinguishable under the common colour deficiencies (Okabe and Ito).
COLOURS = ("#0072B2", "#D55E00", "#009E73")
SPURIOUS, INVARIANT = "#A02070", "#333333"
STYLE = {
    "svg.hashsalt": "isrlearn",
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


#: Where the variables of a causal graph stand; those that are observed are shaded.
NODES = {"y": (0.0, 1.0), "e": (2.0, 1.0), "z_c": (0.4, 0.0), "z_e": (1.6, 0.0), "x": (1.0, -1.0)}
OBSERVED = ("y", "e", "x")
#: What causes what, in the two models of the paper.
GRAPHS = {
    "classification": ("y z_c", "y z_e", "e z_e", "z_c x", "z_e x"),
    "regression": ("z_c y", "z_c z_e", "e z_e", "z_c x", "z_e x"),
}


def draw_graphs() -> plt.Figure:
    """The causal graphs of the two data models; arrows of the environment are coloured."""
    figure, both = plt.subplots(1, 2, figsize=(6.4, 3.0))
    for axes, (title, edges) in zip(both, GRAPHS.items(), strict=True):
        for edge in edges:
            start, end = edge.split()
            colour = SPURIOUS if start == "e" else INVARIANT
            style = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 15}
            axes.annotate("", NODES[end], NODES[start], arrowprops=style | {"shrinkB": 15})
        for name, (x, y) in NODES.items():
            shade = "#D0D0D0" if name in OBSERVED else "white"
            axes.scatter(x, y, s=620, color=shade, edgecolor=INVARIANT, zorder=2)
            axes.text(x, y, f"${name}$", ha="center", va="center")
        axes.set(xlim=(-0.5, 2.5), ylim=(-1.5, 1.5), title=title, aspect="equal")
        axes.axis("off")
    return figure


def draw_mean() -> plt.Figure:
    """Three environments, two spurious dimensions: the means of a class span them."""
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0, 1.0], [3.0, 0.5, 1.0], [0.8, 3.0, 1.0]])
    X = centres.repeat(40, axis=0) + 0.45 * rng.standard_normal((120, 3))
    e = np.arange(3).repeat(40)
    moments = cell_moments(X, None, e)
    basis = mean_subspace(moments, 2).basis
    figure = plt.figure(figsize=(5.0, 4.2))
    axes = space(figure)
    for k in range(3):
        axes.scatter(*X[e == k].T, s=7, color=COLOURS[k], alpha=0.5)
    means = moments.mean[0]
    axes.scatter(*means.T, s=60, color=COLOURS, edgecolor="black", depthshade=False)
    plane(axes, means.mean(axis=0), basis)
    normal = np.cross(*basis.T)
    arrow(axes, means.mean(axis=0), normal * np.sign(normal[2]) * 1.8, "invariant")
    axes.set_title("ISR-Mean: one class in three environments\nspans a plane with its means")
    return figure


def draw_cov() -> plt.Figure:
    """Two environments with the same mean: variances differ along the spurious direction."""
    rng = np.random.default_rng(1)
    A, B = np.array([0.4, 1.0]), np.array([1.0, 0.35])
    figure, axes = plt.subplots(figsize=(5.0, 3.8))
    parts = []
    for spread in (0.5, 1.6):
        z = rng.standard_normal((150, 2)) * (0.6, spread)
        parts.append(z @ np.stack([A, B]))
    X, e = np.concatenate(parts), np.repeat([0, 1], 150)
    moments = cell_moments(X, None, e)
    for k in (1, 0):
        axes.scatter(*parts[k].T, s=8, color=COLOURS[k], alpha=0.5)
        axes.plot(*ellipse(moments.covariance[0, k]), color=COLOURS[k], label=f"environment {k}")
    found = covariance_subspace(moments, 1).basis[:, 0]
    flat_arrow(axes, found * 4.0 * np.sign(found[0]), SPURIOUS, "spurious: where spread differs")
    axes.set_aspect("equal")
    axes.legend(frameon=False, loc="lower right")
    axes.set_title("ISR-Cov: one class, two environments, equal means")
    return figure


def draw_multiclass() -> plt.Figure:
    """Two classes that shift along different directions: two environments are enough."""
    rng = np.random.default_rng(2)
    shift = {0: np.array([3.0, 0.4, 0.0]), 1: np.array([0.5, 2.6, 0.0])}
    start = {0: np.array([0.0, 0.0, 0.0]), 1: np.array([0.6, 0.2, 2.2])}
    X = np.concatenate([start[k] + e * shift[k] + cloud(rng) for k in (0, 1) for e in (0, 1)])
    y, e = np.repeat([0, 1], 80), np.tile(np.repeat([0, 1], 40), 2)
    moments = cell_moments(X, y, e)
    basis = multiclass_subspace(moments, 2).basis
    figure = plt.figure(figsize=(5.0, 4.2))
    axes = space(figure)
    for k, mark in ((0, "o"), (1, "^")):
        for j in (0, 1):
            rows = (y == k) & (e == j)
            axes.scatter(*X[rows].T, s=9, marker=mark, color=COLOURS[j], alpha=0.5)
        axes.plot(*moments.mean[k].T, color="black", linewidth=2)
        x, y_, z = moments.mean[k].mean(axis=0)
        axes.text(x, y_, z + 1.0, f"class {k}")
    plane(axes, moments.mean[0].mean(axis=0), basis)
    axes.set_title("ISR-Multiclass: each class adds a direction\nof the same plane")
    return figure


def draw_regression() -> plt.Figure:
    """Environments shift along the spurious direction; the target changes across it."""
    rng = np.random.default_rng(3)
    A, B = np.array([0.25, 1.0]), np.array([1.0, 0.3])
    parts, targets = [], []
    for offset in (-2.5, 0.0, 2.5):
        z = rng.standard_normal(80)
        spurious = offset + 0.5 * z + 0.4 * rng.standard_normal(80)
        parts.append(z[:, None] * A + spurious[:, None] * B)
        targets.append(z)
    X, e = np.concatenate(parts), np.repeat(np.arange(3), 80)
    moments = cell_moments(X, None, e)
    found = regression_subspace(moments, 1).basis[:, 0]
    figure, axes = plt.subplots(figsize=(5.4, 3.6))
    dots = axes.scatter(*X.T, c=np.concatenate(targets), s=10, cmap="viridis")
    axes.plot(*moments.mean[0].T, "o", color=SPURIOUS, markersize=9, markeredgecolor="black")
    flat_arrow(axes, found * 3.6 * np.sign(found[0]), SPURIOUS, "spurious: where means shift")
    axes.set_aspect("equal")
    figure.colorbar(dots, label="target y", shrink=0.8)
    axes.set_title("ISR-Regression: three environments, no class")
    return figure


def draw_erase() -> plt.Figure:
    """Samples before and after the removal of one direction."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 240)
    e = np.where(rng.random(240) < 0.85, y, 1 - y)
    z = np.stack([2.0 * y - 1.0 + 0.55 * rng.standard_normal(240), 4.0 * e - 2.0], axis=1)
    z[:, 1] += 0.5 * rng.standard_normal(240)
    X = z @ np.array([[0.35, 1.0], [1.0, 0.2]])
    moments = cell_moments(X, y, e)
    found = mean_subspace(moments, 1)
    left = Eraser.of(found, 0.0, moments.total[1])(X)
    figure, both = plt.subplots(1, 2, figsize=(8.0, 3.6), sharex=True, sharey=True)
    for axes, rows, title in ((both[0], X, "before"), (both[1], left, "after")):
        for k, (j, mark) in product((0, 1), enumerate("ox")):
            part = rows[(y == k) & (e == j)]
            label = f"class {k}, environment {j}"
            axes.scatter(*part.T, s=14, marker=mark, color=COLOURS[k], alpha=0.7, label=label)
        axes.set_aspect("equal")
        axes.set_title(title)
    basis = found.basis[:, 0] * np.sign(found.basis[0, 0])
    flat_arrow(both[0], 2.6 * basis, SPURIOUS, "removed")
    both[0].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.0, 1.0))
    return figure


def cloud(rng: np.random.Generator) -> np.ndarray:
    """Forty samples around the origin."""
    return 0.35 * rng.standard_normal((40, 3))


def space(figure: plt.Figure) -> plt.Axes:
    """Axes in three dimensions without numbers."""
    axes = figure.add_subplot(projection="3d")
    axes.set(xticklabels=[], yticklabels=[], zticklabels=[])
    axes.view_init(elev=22, azim=-62)
    return axes


def plane(axes: plt.Axes, centre: np.ndarray, basis: np.ndarray) -> None:
    """The plane of a basis around a point."""
    s, t = np.meshgrid([-2.3, 2.3], [-2.3, 2.3])
    points = centre[:, None, None] + basis[:, :1, None] * s + basis[:, 1:, None] * t
    axes.plot_surface(*points, color=SPURIOUS, alpha=0.25, linewidth=0)


def arrow(axes: plt.Axes, start: np.ndarray, step: np.ndarray, text: str) -> None:
    """A named arrow in three dimensions."""
    axes.quiver(*start, *step, color=INVARIANT, linewidth=2, arrow_length_ratio=0.15)
    axes.text(*(start + 1.1 * step), text, color=INVARIANT)


def flat_arrow(axes: plt.Axes, tip: np.ndarray, colour: str, text: str) -> None:
    """A named arrow from the origin."""
    style = {"arrowstyle": "-|>", "color": colour, "linewidth": 2.5}
    axes.annotate("", tip, (0.0, 0.0), arrowprops=style)
    box = {"facecolor": "white", "alpha": 0.85, "edgecolor": "none", "pad": 1.5}
    where = {"xytext": (0, 9), "textcoords": "offset points", "ha": "right", "bbox": box}
    axes.annotate(text, tip, color=colour, **where)


def ellipse(covariance: np.ndarray) -> np.ndarray:
    """Two standard deviations around the origin."""
    angle = np.linspace(0.0, 2.0 * np.pi, 100)
    return 2.0 * np.linalg.cholesky(covariance) @ np.stack([np.cos(angle), np.sin(angle)])


def main() -> None:
    """Writes the pictures."""
    mpl.use("svg")
    figures = {
        "graphs": draw_graphs,
        "mean": draw_mean,
        "cov": draw_cov,
        "multiclass": draw_multiclass,
        "regression": draw_regression,
        "erase": draw_erase,
    }
    with mpl.rc_context(STYLE):
        for name, draw in figures.items():
            draw().savefig(HERE / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
