"""Coloured images: MNIST digits in ten colours, and rotated garments in shades from red to blue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import SPLITS, RandomState, Streams, Use, integer, number, numbers
from isrlearn.paper.datasets.idx import load_idx_images

#: Red, green and blue, 0 to 255; the first is the colour of the digit 0, and so on.
COLOURS = {
    "dark green": (0, 100, 0),
    "rosy brown": (188, 143, 143),
    "red": (255, 0, 0),
    "gold": (255, 215, 0),
    "green": (0, 255, 0),
    "royal blue": (65, 105, 225),
    "cyan": (0, 225, 225),
    "blue": (0, 0, 255),
    "pink": (255, 20, 147),
    "grey": (160, 160, 160),
}
_VALIDATION_SHARE = 0.1
_N_BINS = 10  # of the mean red value
_INK = 5 / 255  # darker pixels are background and are not coloured


@dataclass(frozen=True, eq=False)
class ColourTruth:
    """What is known of coloured digits besides their pixels."""

    correlation: NDArray[np.float64]  # (n,) probability that the image has its digit's colour


@dataclass(frozen=True, eq=False)
class RotationTruth:
    """What is known of rotated garments besides their pixels."""

    garment: NDArray[np.uint8]  # (n,) Fashion-MNIST's label, 0 to 9
    redness: NDArray[np.float64]  # (n,) share of red in the colour; the rest is blue


def load_mc_cmnist(
    *,
    n_samples: int | None = None,
    correlations: Sequence[float] = (1.0, 0.9),
    random_state: RandomState = 0,
) -> Splits:
    """Multi-class Coloured MNIST: in training nearly every digit has its own colour.

    The 70,000 images of MNIST are shuffled and split in three. Each image is made black and white
    and its ink is coloured: with its digit's own colour with the first probability in the first
    third and the second probability in the second third; otherwise, and always in the last third,
    with one of ten colours at random. The last third is the test split; a tenth of the others is
    the validation split, coloured like training. Environments are the colours: 100 groups.

    Parameters
    ----------
    n_samples : int, optional
        Total number of images; by default all 70,000.
    correlations : sequence of two floats, default=(1.0, 0.9)
        The two probabilities.
    random_state : int, Generator or None, default=0
        Shuffles the images and draws the colours.

    Returns
    -------
    Splits
        X float32 of shape (n, 3, 28, 28) in [0, 1]; y the digit; environments names of colours.
        ``truth.correlation`` distinguishes the thirds.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_mc_cmnist
    >>> splits = load_mc_cmnist(n_samples=9000)  # doctest: +SKIP
    >>> splits.train.X.shape, splits.validation.X.shape, len(splits.test.y)  # doctest: +SKIP
    ((5400, 3, 28, 28), (600, 3, 28, 28), 3000)
    """
    shares = numbers("correlations", correlations, (2,), 0, 1)
    if n_samples is not None:
        integer("n_samples", n_samples, 30)
    images, digits = load_idx_images("mnist")
    n = len(digits) if n_samples is None else n_samples
    if n > len(digits):
        raise ValueError(f"n_samples={n} must be at most {len(digits)}, the images of MNIST.")
    streams = Streams.of(random_state)
    order = streams.generator(Use.SHARED).permutation(len(digits))[:n]
    first, second, last = (order[i::3] for i in range(3))
    held = [round(_VALIDATION_SHARE * len(rows)) for rows in (first, second)]
    left = [len(first) - held[0], len(second) - held[1]]
    names, rgb = np.array(list(COLOURS)), np.array(list(COLOURS.values())) / 255

    def part(use: Use, rows: NDArray[np.intp], share: NDArray[np.float64]) -> EnvironmentData:
        """Images of these rows, each in its digit's colour with its probability."""
        rng = streams.generator(use)
        y = digits[rows].astype(np.int64)
        own = rng.random(len(rows)) < share
        colour = np.where(own, y, rng.integers(len(COLOURS), size=len(rows)))
        X = (images[rows] > 0)[:, None] * rgb.astype(np.float32)[colour][:, :, None, None]
        return EnvironmentData(X, y, names[colour], ColourTruth(share))

    return Splits(
        part(Use.TRAIN, np.r_[first[held[0] :], second[held[1] :]], np.repeat(shares, left)),
        part(Use.VALIDATION, np.r_[first[: held[0]], second[: held[1]]], np.repeat(shares, held)),
        part(Use.TEST, last, np.zeros(len(last))),
    )


def load_rcfmnist(
    *,
    n_train: int = 40_000,
    n_validation: int = 10_000,
    n_test: int = 10_000,
    correlation: float = 0.8,
    random_state: RandomState = 0,
) -> Splits:
    """Rotated Coloured Fashion-MNIST: in training, redder garments are rotated further.

    Fashion-MNIST's training images, each rotated counter-clockwise by an angle drawn uniformly
    from 0 to 360 degrees; the target is that angle / 360. Pixels above 5/255 lose their green,
    and red and blue are multiplied by r and 1 - r. In training and validation r is the target
    for a share `correlation` of the images and one minus the target for the others; in test it is
    drawn uniformly, independently of the angle. Environments are ten bins of an image's mean red
    value, split at the deciles of the training split.

    Parameters
    ----------
    n_train, n_validation, n_test : int, default=40000, 10000 and 10000
        Images of each split, at most 60,000 in total.
    correlation : float, default=0.8
        Share of the images whose colour reveals the angle.
    random_state : int, Generator or None, default=0
        Shuffles the images, draws angles and colours.

    Returns
    -------
    Splits
        X float32 of shape (n, 3, 28, 28) in [0, 1]; y float64 in [0, 1); environments 0 to 9,
        from least to most red. ``truth`` holds the garment and the colour.

    Notes
    -----
    Pixels are interpolated linearly, where the published data use the nearest pixel.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_rcfmnist
    >>> splits = load_rcfmnist(n_train=2000, n_validation=500, n_test=500)  # doctest: +SKIP
    >>> splits.train.X.shape  # doctest: +SKIP
    (2000, 3, 28, 28)
    """
    share = number("correlation", correlation, 0, 1)
    sizes = (
        integer("n_train", n_train, _N_BINS),
        integer("n_validation", n_validation, 1),
        integer("n_test", n_test, 1),
    )
    images, garments = load_idx_images("fashion-mnist", part="train")
    if sum(sizes) > len(images):
        raise ValueError(
            f"n_train={sizes[0]}, n_validation={sizes[1]} and n_test={sizes[2]} add up to "
            f"{sum(sizes)} images; there are {len(images)}."
        )
    streams = Streams.of(random_state)
    order = streams.generator(Use.SHARED).permutation(len(images))
    parts, edges = [], np.empty(0)
    for use, rows in zip(SPLITS, np.split(order, np.cumsum(sizes))[:3], strict=True):
        rng = streams.generator(use)
        y = rng.random(len(rows))
        redness = np.where(rng.random(len(rows)) < share, y, 1 - y)
        if use is Use.TEST:
            redness = rng.random(len(rows))
        X = _red_and_blue(rotated(images[rows].astype(np.float32) / 255, 360 * y), redness)
        red = X[:, 0].mean(axis=(1, 2))
        if use is Use.TRAIN:
            edges = np.quantile(red, np.arange(1, _N_BINS) / _N_BINS)
        truth = RotationTruth(garments[rows], redness)
        parts.append(EnvironmentData(X, y, np.searchsorted(edges, red), truth))
    return Splits(*parts)


def rotated(images: NDArray, degrees: NDArray) -> NDArray[np.float32]:
    """Images (n, s, s) rotated counter-clockwise about their centres, black outside."""
    settings = {"reshape": False, "order": 1, "mode": "grid-constant", "prefilter": False}
    pairs = zip(images, degrees, strict=True)
    return np.stack([ndimage.rotate(image, angle, **settings) for image, angle in pairs])


def _red_and_blue(images: NDArray[np.float32], redness: NDArray) -> NDArray[np.float32]:
    """Images (n, 3, s, s) whose ink is red and blue in these shares."""
    factors = np.stack([redness, np.zeros(len(redness)), 1 - redness], axis=1).astype(np.float32)
    grey = images[:, None]
    return np.where(grey > _INK, grey * factors[:, :, None, None], grey)
