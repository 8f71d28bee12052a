"""Garments on photographs, in the proportions of Waterbirds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import SPLITS, RandomState, Streams, Use, integer, number
from isrlearn.io.errors import optional
from isrlearn.paper.datasets.idx import load_idx_images

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
    shuffled = [streams.generator(Use.SHARED).permutation(rows) for rows in garments["train"]]
    used = [0, 0]
    parts = []
    for use, n in zip(SPLITS, (n_train, n_validation, n_test), strict=True):
        n = integer(f"n_{use.name.lower()}", n, 4)
        rng = streams.generator(use)
        counts = [round(_COMMON * n), n - round(_COMMON * n)]
        if use is Use.TEST:
            rows = [rng.permutation(r)[:c] for r, c in zip(garments["test"], counts, strict=True)]
        else:
            rows = [r[u : u + c] for r, u, c in zip(shuffled, used, counts, strict=True)]
            used = [u + c for u, c in zip(used, counts, strict=True)]
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
