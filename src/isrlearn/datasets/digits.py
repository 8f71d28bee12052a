"""Handwritten digits printed on coloured paper: real images with a shortcut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.datasets import checks
from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.streams import RandomState, Streams, Use

#: Red, green and blue of each paper. Odd digits mostly get the first one, even digits the second.
PAPERS: Mapping[str, tuple[float, float, float]] = MappingProxyType(
    {"yellow paper": (0.80, 0.75, 0.60), "blue paper": (0.60, 0.65, 0.80)}
)

# Which paper, by its place, goes with each class.
_OWN_PAPER = {"even": 1, "odd": 0}


@dataclass(frozen=True, eq=False)
class PaperTruth:
    """What is known of digits on paper beside their pixels.

    Parameters
    ----------
    digit : ndarray of shape (n,)
        The digit on each image, 0 to 9.
    paper : ndarray of shape (n, 3)
        The colour of each sheet, jitter included.
    image_shape : tuple of int
        ``X.reshape(-1, *image_shape)`` are pictures.
    """

    digit: NDArray[np.int64]  # (n,)
    paper: NDArray[np.float64]  # (n, 3)
    image_shape: tuple[int, int, int] = (8, 8, 3)


def load_digits_on_paper(
    *,
    correlation: float = 0.95,
    n_train: int = 1000,
    n_validation: int = 297,
    papers: Mapping[str, ArrayLike] = PAPERS,
    jitter: float = 0.05,
    noise: float = 0.02,
    random_state: RandomState = 0,
) -> Splits:
    """Odd and even digits on sheets of two colours, a colour that lies once training is over.

    The 1,797 images of 8 x 8 pixels that come with scikit-learn, white on coloured paper: each
    channel of a pixel is ``image * (1 - b) + b``, where b is the colour of the sheet. The
    environment is the paper. In training most odd digits are on the first paper and most even
    digits on the second, so a classifier can do well by the colour alone. In *validation and
    test* each class is on either paper equally often: all four groups are there to choose a
    model by its worst group, and to judge it.

    Parameters
    ----------
    correlation : float, default=0.95
        Share of the training images of each class on the paper that goes with it, in [0, 1].
    n_train, n_validation : int, default=1000 and 297
        Images of the two splits; the others, 500 by default, are the test split.
    papers : mapping of str to (red, green, blue), default=PAPERS
        Name and colour of the two papers; the default is yellow and blue.
    jitter : float, default=0.05
        Standard deviation of a sheet's colour, one number a channel.
    noise : float, default=0.02
        Standard deviation of the paper's colour from pixel to pixel. With jitter and noise the
        colour b is clipped to [0, 1], so pixels are in [0, 1] too.
    random_state : int, Generator or None, default=0
        Where splits, papers, jitter and noise come from.

    Returns
    -------
    Splits
        X has 192 columns, ``X.reshape(-1, 8, 8, 3)`` are pictures; y is "odd" or "even";
        environments are names of papers. ``truth`` holds the digit and the colour of each image.

    Notes
    -----
    Logistic regression on standardised pixels, average and worst-group test accuracy over eight
    seeds: 0.65 and 0.27 with ``C=0.01``, 0.80 and 0.59 with ``C=1``. With the one direction in
    which the means of a class differ between papers taken out: 0.89 and 0.83, 0.86 and 0.75.

    Examples
    --------
    >>> from isrlearn.datasets import load_digits_on_paper
    >>> splits = load_digits_on_paper()
    >>> splits.train
    EnvironmentData(n_samples=1000, n_features=192, environments=['blue paper', 'yellow paper'])
    >>> odd, yellow = splits.train.y == "odd", splits.train.environments == "yellow paper"
    >>> round(float((odd == yellow).mean()), 2)
    0.95
    """
    # Imported here: the package must not pay for scikit-learn until it is used.
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    share = checks.within("correlation", correlation, 0, 1)
    names, colours = _checked_papers(papers)
    spread = checks.within("jitter", jitter, 0), checks.within("noise", noise, 0)
    stops = np.cumsum([0, *_sizes(n_train, n_validation, len(digits))])
    streams = Streams.of(random_state)
    order = streams.generator(Use.SHARED).permutation(len(digits))
    parts = []
    for i, use in enumerate((Use.TRAIN, Use.VALIDATION, Use.TEST)):
        rows = order[stops[i] : stops[i + 1]]
        rng = streams.generator(use)
        y = np.where(digits[rows] % 2, "odd", "even")
        sheet = _sheets(y, share if use is Use.TRAIN else 0.5, rng)
        X, paper = _printed(images[rows] / 16, colours[sheet], *spread, rng)
        parts.append(EnvironmentData(X, y, names[sheet], PaperTruth(digits[rows], paper)))
    return Splits(*parts)


def _sizes(n_train: int, n_validation: int, n: int) -> tuple[int, int, int]:
    """Sizes of the three splits of n images, at least one of them left to test."""
    train = checks.integer("n_train", n_train, 1)
    validation = checks.integer("n_validation", n_validation, 0)
    if train + validation >= n:
        raise ValueError(
            f"n_train={train} and n_validation={validation} leave no test images of {n}; their "
            f"sum must be below {n}."
        )
    return train, validation, n - train - validation


def _checked_papers(
    papers: Mapping[str, ArrayLike],
) -> tuple[NDArray[np.str_], NDArray[np.float64]]:
    """Names (2,) and colours (2, 3) of the papers."""
    if len(papers) != 2:
        raise ValueError(f"papers names {len(papers)} papers, {list(papers)}; it must name two.")
    colours = [checks.shaped(f"papers[{name!r}]", rgb, (3,)) for name, rgb in papers.items()]
    for name, rgb in zip(papers, colours, strict=True):
        if (rgb < 0).any() or (rgb > 1).any():
            raise ValueError(f"papers[{name!r}]={rgb.tolist()} must be in [0, 1].")
    return np.array(list(papers)), np.array(colours)


def _sheets(y: NDArray[np.str_], share: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """The paper of each image: its own for exactly a share of each class, rounded."""
    sheet = np.empty(len(y), dtype=np.int64)
    for label, own in _OWN_PAPER.items():
        rows = rng.permutation(np.flatnonzero(y == label))
        n_own = round(share * len(rows))
        sheet[rows[:n_own]], sheet[rows[n_own:]] = own, 1 - own
    return sheet


def _printed(
    images: NDArray[np.float64],
    colours: NDArray[np.float64],
    jitter: float,
    noise: float,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Pixels of images (n, 64) on sheets of these colours (n, 3), and the sheets' colours."""
    paper = colours + jitter * rng.standard_normal(colours.shape)
    b = paper[:, None, :] + noise * rng.standard_normal((*images.shape, 3))
    b = np.clip(b, 0.0, 1.0)
    pixels = images[:, :, None] * (1 - b) + b
    return pixels.reshape(len(images), -1), paper
