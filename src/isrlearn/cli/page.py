"""A page of samples: what each class looks like in each environment, training beside test."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets import EnvironmentData, Splits

_PARTS = ("train", "test")
_BINS = 5  # rows of a page of images whose target is a number
_MOST = 400  # points of one cell in a scatter plot
# Okabe and Ito's colours; each class has a marker of its own as well.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
_MARKERS = "osD^vP*X"


def sample_page(
    splits: Splits, title: str, kind: str, *, regression: bool = False, random_state: int = 0
) -> bytes:
    """Content of a "png" or "svg" file that shows samples of a data set.

    Images are laid out by class, or by range of the target, down and by environment across, and
    every cell says which share of its row it holds. Other samples are drawn as points along the
    directions that vary most. The same data give the same bytes.

    Examples
    --------
    >>> from isrlearn.datasets import load_digits_on_paper
    >>> from isrlearn.cli.page import sample_page
    >>> sample_page(load_digits_on_paper(), "Digits on paper", "png")[1:4]
    b'PNG'
    """
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'isrlearn[plot]'") from None
    parts = [splits.train, splits.test]
    if _has_images(parts[0]):
        figure = _images(Figure, parts, regression, np.random.default_rng(random_state))
    else:
        figure = _scatter(Figure, parts, regression)
    figure.suptitle(title)
    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "isrlearn"}):
        figure.savefig(out, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else {})
    return out.getvalue()


def _has_images(data: EnvironmentData) -> bool:
    """Whether the samples are images, files of images, or flattened images."""
    return data.X.ndim in (1, 4) or hasattr(data.truth, "image_shape")


def _image(data: EnvironmentData, row: int) -> Any:
    """One sample as matplotlib draws it: (height, width, 3) in [0, 1]."""
    if data.X.ndim == 1:
        try:
            from PIL import Image
        except ImportError:
            raise ImportError("images are read by Pillow: pip install pillow") from None
        with Image.open(data.X[row]) as image:
            return np.asarray(image.convert("RGB").resize((64, 64))) / 255
    if data.X.ndim == 4:
        image = np.moveaxis(data.X[row], 0, -1)
        return image if image.dtype == np.uint8 else image.clip(0, 1)
    return data.X[row].reshape(data.truth.image_shape).clip(0, 1)


def _rows(y: NDArray, regression: bool) -> tuple[list[str], NDArray[np.intp]]:
    """Names of the rows of a page, and the row of each sample."""
    if not regression:
        classes, codes = np.unique(y, return_inverse=True)
        return [str(name) for name in classes], codes
    edges = np.linspace(y.min(), y.max(), _BINS + 1)
    names = [f"{round(low, 2):g} to {round(high, 2):g}" for low, high in itertools.pairwise(edges)]
    return names, np.clip(np.searchsorted(edges, y, side="right") - 1, 0, _BINS - 1)


def _images(
    make: Any, parts: list[EnvironmentData], regression: bool, rng: np.random.Generator
) -> Any:
    """One image of every cell."""
    names = np.unique(parts[0].environments)
    labels, _ = _rows(parts[0].y, regression)
    n, E = len(labels), len(names)
    figure = make(figsize=(1.6 + 2 * E * 0.72, 1.1 + n * 0.86), layout="constrained")
    for half, part, what in zip(figure.subfigures(1, 2), parts, _PARTS, strict=True):
        half.suptitle(what)
        axes = half.subplots(n, E, squeeze=False)
        codes = _rows(part.y, regression)[1]
        for k, e in np.ndindex(n, E):
            members = np.flatnonzero((codes == k) & (part.environments == names[e]))
            axis = axes[k, e]
            axis.set(xticks=[], yticks=[])
            if len(members):
                axis.imshow(_image(part, int(rng.choice(members))), interpolation="nearest")
            share = len(members) / max(1, (codes == k).sum())
            axis.set_xlabel(f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}", fontsize=7)
            if k == 0:
                axis.set_title(str(names[e]).replace(" ", "\n"), fontsize=7)
            if e == 0:
                axis.set_ylabel(labels[k], fontsize=8)
    return figure


def _scatter(make: Any, parts: list[EnvironmentData], regression: bool) -> Any:
    """Samples along the two directions in which the training features vary most.

    For a regression the target takes the place of the second direction.
    """
    train = parts[0]
    centre = train.X.mean(axis=0)
    directions = np.linalg.svd(train.X[:5000] - centre, full_matrices=False)[2][:2].T
    labels = [None] if regression else np.unique(train.y)
    figure = make(figsize=(9, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    for axis, part, what in zip(axes, parts, _PARTS, strict=True):
        Z = (part.X - centre) @ directions
        if regression:
            Z[:, 1] = part.y
        for i, name in enumerate(np.unique(train.environments)):
            for k, label in enumerate(labels):
                cell = (part.environments == name) & (regression or part.y == label)
                style = {"color": _COLOURS[i % 8], "marker": _MARKERS[k % 8], "alpha": 0.5}
                shown = str(name) if regression else f"{label}, {name}"
                axis.scatter(*Z[cell][:_MOST].T, s=9, linewidths=0, label=shown, **style)
        axis.set(title=what, ylabel="target" if regression else "")
    axes[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
