"""Rotated Coloured Fashion-MNIST: how far a garment is turned, which its colour mostly tells."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import RandomState, Streams, Use, integer, number
from isrlearn.paper.datasets.idx import load_idx_images

N_ENVIRONMENTS = 10
_INK = 5 / 255  # darker pixels are background and stay as they are
_BLOCK = 100  # images turned at a time: the work arrays fit a cache


@dataclass(frozen=True, eq=False)
class RotationTruth:
    """What is known of turned garments beside their pixels.

    Parameters
    ----------
    garment : ndarray of shape (n,)
        Fashion-MNIST's label, 0 to 9.
    redness : ndarray of shape (n,)
        The share of red in the colour, 0 to 1; the rest is blue.
    """

    garment: NDArray[np.uint8]  # (n,)
    redness: NDArray[np.float64]  # (n,)


def load_rcfmnist(
    *,
    n_train: int = 40_000,
    n_validation: int = 10_000,
    n_test: int = 10_000,
    correlation: float = 0.8,
    random_state: RandomState = 0,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> Splits:
    """Rotated Coloured Fashion-MNIST: in training the redder a garment the further it is turned.

    Fashion-MNIST's training images, each turned counter-clockwise by an angle drawn uniformly
    from 0 to 360 degrees; the target is that angle / 360. Pixels above 5/255 lose their green,
    and red and blue are multiplied by r and 1 - r. In training and validation r is the target
    for a share `correlation` of the images and one minus the target for the others; in test it is
    drawn uniformly, whatever the angle. Environments are ten bins of an image's mean red value,
    cut at deciles of the training split.

    Parameters
    ----------
    n_train, n_validation, n_test : int, default=40000, 10000 and 10000
        Images of each split, 60,000 at most in all.
    correlation : float, default=0.8
        Share of the images whose colour tells the angle.
    random_state : int, Generator or None, default=0
        Shuffles the images, draws angles and colours.
    data_home, download
        Where the files of Fashion-MNIST are; see :func:`load_idx_images`.

    Returns
    -------
    Splits
        X float32 of shape (n, 3, 28, 28) in [0, 1]; y float64 in [0, 1); environments 0 to 9,
        from least to most red. ``truth`` holds the garment and the colour.

    Notes
    -----
    Pixels are interpolated linearly where the published data take the nearest one.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_rcfmnist
    >>> splits = load_rcfmnist(n_train=2000, n_validation=500, n_test=500)  # doctest: +SKIP
    >>> splits.train.X.shape  # doctest: +SKIP
    (2000, 3, 28, 28)
    """
    share = number("correlation", correlation, 0, 1)
    sizes = (
        integer("n_train", n_train, N_ENVIRONMENTS),
        integer("n_validation", n_validation, 1),
        integer("n_test", n_test, 1),
    )
    images, garments = load_idx_images(
        "fashion-mnist", part="train", data_home=data_home, download=download
    )
    if sum(sizes) > len(images):
        raise ValueError(
            f"n_train={sizes[0]}, n_validation={sizes[1]} and n_test={sizes[2]} come to "
            f"{sum(sizes)} images; there are {len(images)}."
        )
    streams = Streams.of(random_state)
    order = streams.generator(Use.SHARED).permutation(len(images))
    stops = np.cumsum([0, *sizes])
    parts, edges = [], np.empty(0)
    for i, use in enumerate((Use.TRAIN, Use.VALIDATION, Use.TEST)):
        rows = order[stops[i] : stops[i + 1]]
        rng = streams.generator(use)
        y = rng.random(len(rows))
        told = np.where(rng.random(len(rows)) < share, y, 1 - y)
        redness = rng.random(len(rows)) if use is Use.TEST else told
        X = _coloured(rotated(images[rows].astype(np.float32) / 255, 360 * y), redness)
        red = X[:, 0].mean(axis=(1, 2))
        if use is Use.TRAIN:
            edges = np.quantile(red, np.arange(1, N_ENVIRONMENTS) / N_ENVIRONMENTS)
        truth = RotationTruth(garments[rows], redness)
        parts.append(EnvironmentData(X, y, np.searchsorted(edges, red), truth))
    return Splits(*parts)


def rotated(images: NDArray, degrees: NDArray) -> NDArray[np.float32]:
    """Square images (n, s, s) turned counter-clockwise about their centres, black around."""
    images = np.asarray(images, dtype=np.float32)
    out = np.empty_like(images)
    for start in range(0, len(images), _BLOCK):
        block = slice(start, start + _BLOCK)
        out[block] = _turned(images[block], np.deg2rad(degrees[block]))
    return out


def _turned(images: NDArray[np.float32], angles: NDArray) -> NDArray[np.float32]:
    n, s, _ = images.shape
    offset = np.arange(s, dtype=np.float32) - np.float32((s - 1) / 2)
    down, right = (a.ravel() for a in np.meshgrid(offset, offset, indexing="ij"))  # (s²,)
    cos, sin = (f(angles).astype(np.float32)[:, None] for f in (np.cos, np.sin))
    # Where each pixel comes from: the inverse rotation, rows counted downwards. One black pixel
    # around the image stands for all that lies outside.
    centre = np.float32((s - 1) / 2 + 1)
    row = np.clip(cos * down + sin * right + centre, 0, s + 1)
    column = np.clip(cos * right - sin * down + centre, 0, s + 1)
    top, left = (np.minimum(np.floor(a), s).astype(np.intp) for a in (row, column))
    row, column = row - top, column - left
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1))).reshape(n, -1)
    at = top * (s + 2) + left

    def corner(step: int) -> NDArray[np.float32]:
        return np.take_along_axis(padded, at + step, axis=1)

    above = corner(0) * (1 - column) + corner(1) * column
    below = corner(s + 2) * (1 - column) + corner(s + 3) * column
    return (above * (1 - row) + below * row).reshape(n, s, s)


def _coloured(images: NDArray[np.float32], redness: NDArray) -> NDArray[np.float32]:
    """Images (n, 3, s, s) whose ink is red and blue in these shares."""
    factors = np.stack([redness, np.zeros(len(redness)), 1 - redness], axis=1).astype(np.float32)
    grey = images[:, None]
    return np.where(grey > _INK, grey * factors[:, :, None, None], grey)
