"""Multi-class Coloured MNIST: ten digits, ten colours that mostly give the digit away."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import RandomState, Streams, Use, integer, number, numbers
from isrlearn.paper.datasets.idx import load_idx_images

#: Red, green and blue, 0 to 255; the digit 0 owns the first, 1 the second and so on.
COLOURS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
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
)
_VALIDATION_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class ColourTruth:
    """What is known of coloured digits beside their pixels.

    Parameters
    ----------
    correlation : ndarray of shape (n,)
        Probability with which the image was given its digit's own colour.
    """

    correlation: NDArray[np.float64]  # (n,)


def load_mc_cmnist(
    *,
    n_samples: int | None = None,
    correlations: Sequence[float] = (1.0, 0.9),
    random_state: RandomState = 0,
    data_home: str | os.PathLike[str] | None = None,
    download: bool = True,
) -> Splits:
    """Multi-class Coloured MNIST: in training nearly every digit has its own colour.

    The 70,000 images of MNIST, shuffled and dealt in three. Each image is made black and white
    and its ink coloured: with its digit's own colour with the first probability in the first
    third and the second in the second third, else, and always in the last third, with one of ten
    colours at random. The last third is the test split; a tenth of the others is the validation
    split, coloured as training is. Environments are the colours: 100 groups.

    Parameters
    ----------
    n_samples : int, optional
        Images to use in all; by default all 70,000.
    correlations : sequence of two floats, default=(1.0, 0.9)
        The two probabilities.
    random_state : int, Generator or None, default=0
        Shuffles the images and draws the colours.
    data_home, download
        Where the files of MNIST are; see :func:`load_idx_images`.

    Returns
    -------
    Splits
        X float32 of shape (n, 3, 28, 28) in [0, 1]; y the digit; environments names of colours.
        ``truth.correlation`` tells the thirds apart.

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_mc_cmnist
    >>> splits = load_mc_cmnist(n_samples=9000)  # doctest: +SKIP
    >>> splits.train.X.shape, splits.validation.X.shape, len(splits.test.y)  # doctest: +SKIP
    ((5400, 3, 28, 28), (600, 3, 28, 28), 3000)
    """
    shares = numbers("correlations", np.asarray(correlations), (2,))
    for share in shares:
        number("correlations", share, 0, 1)
    if n_samples is not None:
        integer("n_samples", n_samples, 30)
    images, digits = load_idx_images("mnist", data_home=data_home, download=download)
    n = len(digits) if n_samples is None else n_samples
    if n > len(digits):
        raise ValueError(f"n_samples={n} must be at most {len(digits)}, the images of MNIST.")
    streams = Streams.of(random_state)
    order = streams.generator(Use.SHARED).permutation(len(digits))[:n]
    thirds = [order[i::3] for i in range(3)]
    held_out = [round(_VALIDATION_SHARE * len(rows)) for rows in thirds[:2]]
    parts = {
        Use.TRAIN: [rows[k:] for rows, k in zip(thirds, held_out, strict=False)],
        Use.VALIDATION: [rows[:k] for rows, k in zip(thirds, held_out, strict=False)],
        Use.TEST: [thirds[2]],
    }
    return Splits(
        *(
            _coloured(images, digits, rows, [0.0] if use is Use.TEST else shares, streams, use)
            for use, rows in parts.items()
        )
    )


def _coloured(
    images: NDArray[np.uint8],
    digits: NDArray[np.uint8],
    parts: Sequence[NDArray[np.intp]],
    shares: Sequence[float] | NDArray,
    streams: Streams,
    use: Use,
) -> EnvironmentData:
    """Images of these rows, each part of them coloured with a probability of its own."""
    rows = np.concatenate(parts)
    share = np.repeat(np.asarray(shares, dtype=float), [len(part) for part in parts])
    rng = streams.generator(use)
    y = digits[rows].astype(np.int64)
    own = rng.random(len(rows)) < share
    colour = np.where(own, y, rng.integers(len(COLOURS), size=len(rows)))
    rgb = (np.array(list(COLOURS.values())) / 255).astype(np.float32)[colour]  # (n, 3)
    X = (images[rows] > 0)[:, None] * rgb[:, :, None, None]
    return EnvironmentData(X, y, np.array(list(COLOURS))[colour], ColourTruth(share))
