"""A page of training and test samples of each class in each environment."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from isrlearn.datasets import EnvironmentData, Splits
from isrlearn.paper.figures import drawn

_BINS = 5  # rows of a page whose target is a number
_MOST = 400  # points of one cell


def sample_page(
    splits: Splits, title: str, kind: str, *, regression: bool = False, random_state: int = 0
) -> bytes:
    """Page of samples, "png" or "svg": classes, or ranges of the target, down; environments across.

    A cell shows an image, or points along the two directions in which features vary most.
    """
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
