"""A page of samples: what each class looks like in each environment, training beside test."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets import EnvironmentData, Splits

_BINS = 5  # rows of a page whose target is a number
_MOST = 400  # points of one cell


def sample_page(
    splits: Splits, title: str, kind: str, *, regression: bool = False, random_state: int = 0
) -> bytes:
    """Content of a "png" or "svg" file that shows samples of a data set.

    Classes, or ranges of the target, are laid out down and environments across, and every cell
    says which share of its row it holds. A cell shows an image, or points along the two
    directions in which the training features vary most. The same data give the same bytes.

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
    train = splits.train
    names, labels = np.unique(train.environments), _rows(train.y, regression)[0]
    images = train.X.ndim in (1, 4) or hasattr(train.truth, "image_shape")
    draw = _image_drawer(np.random.default_rng(random_state)) if images else _point_drawer(train)
    shape = len(labels), len(names)
    figure = Figure(figsize=(1.6 + 1.44 * shape[1], 1.1 + 0.86 * shape[0]), layout="constrained")
    figure.suptitle(title)
    halves: Any = figure.subfigures(1, 2)
    for half, what in zip(halves, ("train", "test"), strict=True):
        half.suptitle(what)
        part = getattr(splits, what)
        axes, codes = half.subplots(*shape, squeeze=False), _rows(part.y, regression)[1]
        for k, e in np.ndindex(shape):
            members = np.flatnonzero((codes == k) & (part.environments == names[e]))
            axis = axes[k, e]
            axis.set(xticks=[], yticks=[])
            if len(members):
                draw(axis, part, members)
            share = len(members) / max(1, (codes == k).sum())
            axis.set_xlabel(f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}", fontsize=7)
            if k == 0:
                axis.set_title(str(names[e]).replace(" ", "\n"), fontsize=7)
            if e == 0:
                axis.set_ylabel(labels[k], fontsize=8)
    out = io.BytesIO()
    with rc_context({"svg.hashsalt": "isrlearn"}):
        figure.savefig(out, format=kind, dpi=130, metadata={"Date": None} if kind == "svg" else {})
    return out.getvalue()


def _rows(y: NDArray, regression: bool) -> tuple[list[str], NDArray[np.intp]]:
    """Names of the rows of a page, and the row of each sample."""
    if not regression:
        classes, codes = np.unique(y, return_inverse=True)
        return [str(name) for name in classes], codes
    edges = np.linspace(y.min(), y.max(), _BINS + 1)
    names = [f"{round(low, 2):g} to {round(high, 2):g}" for low, high in itertools.pairwise(edges)]
    return names, np.clip(np.searchsorted(edges, y, side="right") - 1, 0, _BINS - 1)


def _image_drawer(rng: np.random.Generator) -> Callable[..., None]:
    """A function that draws one of the images of a cell."""

    def draw(axis: Any, data: EnvironmentData, members: NDArray[np.intp]) -> None:
        axis.imshow(_image(data, int(rng.choice(members))), interpolation="nearest")

    return draw


def _point_drawer(train: EnvironmentData) -> Callable[..., None]:
    """A function that draws the samples of a cell along the first principal components."""
    centre = train.X.mean(axis=0)
    directions = np.linalg.svd(train.X[:5000] - centre, full_matrices=False)[2][:2].T
    limit = 1.05 * np.abs((train.X - centre) @ directions).max()

    def draw(axis: Any, data: EnvironmentData, members: NDArray[np.intp]) -> None:
        axis.scatter(*((data.X[members[:_MOST]] - centre) @ directions).T, s=3, alpha=0.5)
        axis.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")

    return draw


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
