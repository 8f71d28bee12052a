"""Coloured digits, rotated garments in shades from red to blue, and garments on photographs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import SPLITS, RandomState, Streams, Use, integer, number, numbers
from isrlearn.io.errors import optional
from isrlearn.paper.datasets.files import load_idx_images

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


#: Fashion-MNIST's labels of each class; the first class is the common one.
GARMENTS = {"shirt": (0, 6), "coat": (2, 4)}
#: Sample photographs of scikit-learn, by what they show.
PHOTOS = {"temple": "china.jpg", "flower": "flower.jpg"}
_COMMON = 3682 / 4795  # share of landbirds among Waterbirds' training images
_OPAQUE = 0.25  # brightness from which a garment is opaque
_FACTOR = 3  # by which a garment of 28 pixels is enlarged


def load_fashion_on_photos(
    *,
    correlation: float = 0.95,
    n_train: int = 4795,
    n_validation: int = 1199,
    n_test: int = 2400,
    side: int = 96,
    random_state: RandomState = 0,
) -> Splits:
    """Shirts and coats on patches of two photographs, mostly one photograph per class in training.

    Garments of Fashion-MNIST, enlarged three times, at a random position on a patch of one of the
    two photographs that come with scikit-learn. The environment is the photograph. As in
    Waterbirds, 77 of 100 garments are of the first class; in training, 95 per cent of the shirts
    are on the temple and 95 per cent of the coats on the flower; in validation and test, both
    photographs are equally frequent. Test garments are Fashion-MNIST's test images.

    Parameters
    ----------
    correlation : float, default=0.95
        Share of the training images of each class on the photograph of that class.
    n_train, n_validation, n_test : int, default=4795, 1199 and 2400
        Sizes of the splits; the first two are those of Waterbirds.
    side : int, default=96
        Width and height of the images, at least 84.
    random_state : int, Generator or None, default=0
        Draws garments, positions and patches.

    Returns
    -------
    Splits
        X uint8 of shape (n, 3, side, side); y "shirt" or "coat"; environments "temple" or
        "flower".

    Examples
    --------
    >>> from isrlearn.paper.datasets import load_fashion_on_photos
    >>> splits = load_fashion_on_photos(n_train=100, n_validation=50, n_test=50)  # doctest: +SKIP
    >>> splits.train.X.shape  # doctest: +SKIP
    (100, 3, 96, 96)
    """
    share = number("correlation", correlation, 0, 1)
    integer("side", side, 28 * _FACTOR)
    photos = _photos()
    loaded = {part: load_idx_images("fashion-mnist", part=part) for part in ("train", "test")}
    streams = Streams.of(random_state)
    garments = {
        part: [np.flatnonzero(np.isin(labels, codes)) for codes in GARMENTS.values()]
        for part, (_, labels) in loaded.items()
    }
    left = [streams.generator(Use.SHARED).permutation(rows) for rows in garments["train"]]
    parts = []
    for use, n in zip(SPLITS, (n_train, n_validation, n_test), strict=True):
        n = integer(f"n_{use.name.lower()}", n, 4)
        rng = streams.generator(use)
        counts = [round(_COMMON * n), n - round(_COMMON * n)]
        if use is Use.TEST:
            left = [rng.permutation(rows) for rows in garments["test"]]
        rows = [r[:c] for r, c in zip(left, counts, strict=True)]
        left = [r[c:] for r, c in zip(left, counts, strict=True)]
        if [len(r) for r in rows] != counts:
            raise ValueError(
                f"n_train={n_train}, n_validation={n_validation} and n_test={n_test} need more "
                "garments than Fashion-MNIST has; choose smaller sizes."
            )
        images = loaded["test" if use is Use.TEST else "train"][0]
        own = share if use is Use.TRAIN else 0.5
        parts.append(_pasted(images, rows, own, photos, side, rng))
    return Splits(*parts)


def _photos() -> NDArray[np.uint8]:
    """The two photographs (2, height, width, 3)."""
    # Imported here, so that scikit-learn is loaded only when it is used.
    from sklearn.datasets import load_sample_image

    optional("PIL", "reading photographs", "networks")
    return np.stack([load_sample_image(name) for name in PHOTOS.values()])


def _pasted(
    images: NDArray[np.uint8],
    rows: list[NDArray[np.intp]],
    share: float,
    photos: NDArray[np.uint8],
    side: int,
    rng: np.random.Generator,
) -> EnvironmentData:
    """Garments of these rows on patches, exactly this share of each class on its own photograph."""
    own = [np.arange(len(r)) < round(share * len(r)) for r in rows]
    photo = np.concatenate([np.where(o, k, 1 - k) for k, o in enumerate(own)])
    label = np.repeat([0, 1], [len(r) for r in rows])
    order = rng.permutation(len(label))
    row, photo, label = np.concatenate(rows)[order], photo[order], label[order]
    X = np.empty((len(row), 3, side, side), dtype=np.uint8)
    height, width = photos.shape[1:3]
    room = side - 28 * _FACTOR + 1
    at = rng.integers(0, [height - side + 1, width - side + 1, room, room, 2], (len(row), 5))
    for i, (top, left, down, right, flip) in enumerate(at):
        patch = photos[photo[i], top : top + side, left : left + side].astype(np.float32)
        patch = patch[:, ::-1].copy() if flip else patch.copy()
        garment = np.kron(images[row[i]], np.ones((_FACTOR, _FACTOR), dtype=np.float32))
        alpha = np.minimum(garment / 255 / _OPAQUE, 1)[:, :, None]
        place = patch[down : down + 28 * _FACTOR, right : right + 28 * _FACTOR]
        place[:] = alpha * garment[:, :, None] + (1 - alpha) * place
        X[i] = np.moveaxis(patch, -1, 0)
    return EnvironmentData(X, np.array(list(GARMENTS))[label], np.array(list(PHOTOS))[photo])
