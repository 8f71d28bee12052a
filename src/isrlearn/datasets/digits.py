"""Handwritten digits printed on coloured paper: real images with a shortcut."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import SPLITS, RandomState, Streams, Use, number

#: Red, green and blue of each paper. Most odd digits are on the first, most even on the second.
PAPERS = {"yellow paper": (0.80, 0.75, 0.60), "blue paper": (0.60, 0.65, 0.80)}
#: Standard deviations of the colour of a sheet, and of a pixel from its sheet.
_SHEET_DEVIATION, _PIXEL_DEVIATION = 0.05, 0.02
_ENDS = (1000, 1297)  # of the training and of the validation images


@dataclass(frozen=True, eq=False)
class PaperTruth:
    """What is known about digits on paper besides their pixels."""

    digit: NDArray[np.int64]  # (n,) the digit on each image, 0 to 9
    paper: NDArray[np.float64]  # (n, 3) the colour of each sheet, jitter included
    image_shape: tuple[int, int, int] = (8, 8, 3)  # X.reshape(-1, *image_shape) are pictures


def load_digits_on_paper(*, correlation: float = 0.95, random_state: RandomState = 0) -> Splits:
    """Odd and even digits on paper of two colours, where the colour misleads after training.

    The 1,797 images of 8 x 8 pixels that come with scikit-learn, white on coloured paper: each
    channel of a pixel is ``image * (1 - b) + b``, where b is the colour of the sheet: it varies by
    0.05 (standard deviation) between sheets and by 0.02 between pixels, clipped to [0, 1]. There
    are 1,000 training, 297 validation and 500 test images. The environment is the paper. In
    training most odd digits are on the first paper and most even digits on the second, so a
    classifier can do well by the colour alone. In *validation and test* each class is on either
    paper equally often: all four groups are present, to choose a model by its worst group and to
    evaluate it.

    Parameters
    ----------
    correlation : float, default=0.95
        Share of the training images of each class on the paper of that class, in [0, 1].
    random_state : int, Generator or None, default=0
        Source of the splits, the papers and their colours.

    Returns
    -------
    Splits
        X has 192 columns, ``X.reshape(-1, 8, 8, 3)`` are pictures; y is "odd" or "even";
        environments are names of papers. ``truth`` holds the digit and the colour of each image.

    Notes
    -----
    Logistic regression on standardised pixels, average and worst-group test accuracy over eight
    seeds: 0.65 and 0.27 with ``C=0.01``, 0.80 and 0.59 with ``C=1``. After removing the one
    direction in which the means of a class differ between papers: 0.89 and 0.83, 0.86 and 0.75.

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
    # Imported here: importing the package must not import scikit-learn.
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    share = number("correlation", correlation, 0, 1)
    names, colours = np.array(list(PAPERS)), np.array(list(PAPERS.values()))
    streams = Streams.of(random_state)
    order = streams.generator(Use.SHARED).permutation(len(digits))
    parts = []
    for use, rows in zip(SPLITS, np.split(order, _ENDS), strict=True):
        rng = streams.generator(use)
        odd = digits[rows] % 2
        sheet = odd.copy()  # position of the paper; that of a class is the other one
        for kind in (0, 1):
            members = rng.permutation(np.flatnonzero(odd == kind))
            on_own = share if use is Use.TRAIN else 0.5
            sheet[members[: round(on_own * len(members))]] = 1 - kind
        paper = colours[sheet] + _SHEET_DEVIATION * rng.standard_normal((len(rows), 3))
        b = paper[:, None, :] + _PIXEL_DEVIATION * rng.standard_normal((len(rows), 64, 3))
        b = np.clip(b, 0.0, 1.0)
        X = (images[rows, :, None] / 16 * (1 - b) + b).reshape(len(rows), -1)
        y = np.where(odd, "odd", "even")
        parts.append(EnvironmentData(X, y, names[sheet], PaperTruth(digits[rows], paper)))
    return Splits(*parts)
