"""Features with the sizes and difficulty of Waterbirds', and a planted spurious subspace."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.datasets import parameters as check
from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import SPLITS, RandomState, Streams, Use, counts, mixing_matrix
from isrlearn.datasets.truth import GaussianTruth

CLASSES = ("landbird", "waterbird")
ENVIRONMENTS = ("land", "water")

# Rows of Waterbirds: one line per class, one column per environment.
_TRAIN = ((3498, 184), (56, 1057))
_VALIDATION = ((467, 466), (133, 133))
_TEST = ((2255, 2255), (642, 642))
#: Directions in which the classes differ; leading directions among which the spurious ones are.
_N_CORE, _SPAN = 20, 20
#: Standard deviations between the classes; size of the class-specific shift relative to the
#: shared one.
_CORE_DISTANCE, _CLASS_SPECIFIC = 3.75, 0.3


def make_waterbirds_like(
    *,
    n_features: int = 512,
    n_spurious: int = 5,
    spurious_distance: float = 3.5,
    n_train: ArrayLike = _TRAIN,
    n_validation: ArrayLike = _VALIDATION,
    n_test: ArrayLike = _TEST,
    random_state: RandomState = 0,
) -> Splits:
    """Birds on land and water as Gaussian features, with the groups of Waterbirds.

    A simulation of what a network's features of that data set look like to a linear head: many
    correlated features, a smallest group of 56 rows, and a background that shifts the features
    strongly, by different amounts for the two classes. In training most birds are where they
    belong; in *validation and test* each class is on either background equally often.

    Parameters
    ----------
    n_features : int, default=512
    n_spurious : int, default=5
        Dimensions of the spurious subspace, 2 or more. Two environments and two classes show two
        of them.
    spurious_distance : float, default=3.5
        Distance between the environments in standard deviations inside a cell, averaged over the
        classes. An additional shift in another spurious direction, with opposite signs for the two
        classes, is three tenths as large.
    n_train, n_validation, n_test : array-like of shape (2, 2)
        Rows of each class (landbird, waterbird) and environment (land, water), by default those
        of Waterbirds; 56 waterbirds are on land in training.
    random_state : int, Generator or None, default=0
        Source of the rotation, the directions, the means and the samples.

    Returns
    -------
    Splits
        y is "landbird" or "waterbird", environments are "land" or "water". ``truth`` has the
        ``spurious_basis``, the exact ``moments``, and ``coef`` and ``intercept`` of the best
        predictor that ignores the spurious subspace.

    Notes
    -----
    The classes are 3.75 standard deviations apart: the accuracy of a predictor that ignores the
    background is at most Φ(3.75 / 2), 0.970. The j-th largest variance inside a cell is 1/j. The
    spurious directions are among the 20 leading ones; the 20 core directions are anywhere, the j-th
    with a probability that falls as 1/j. These constants were chosen by hand so that the
    worst-group accuracy of logistic regression is about 0.75, and 0.94 after removing the spurious
    subspace. The simulation can show how methods compare; it cannot show how large a shortcut is in
    practice.

    Examples
    --------
    >>> from isrlearn.datasets import make_waterbirds_like
    >>> splits = make_waterbirds_like(n_features=64, random_state=0)
    >>> splits.train
    EnvironmentData(n_samples=4795, n_features=64, environments=['land', 'water'])
    >>> on_land = splits.train.environments == "land"
    >>> int((on_land & (splits.train.y == "waterbird")).sum())
    56
    """
    d = check.integer("n_features", n_features, 3)
    streams = Streams.of(random_state)
    rng = streams.generator(Use.SHARED)
    core, spurious = _positions(d, check.integer("n_spurious", n_spurious, 2), rng)
    gap, sign = np.zeros(d), np.array([[-1.0], [1.0]])
    gap[core] = _CORE_DISTANCE / 2 * _directions(len(core), 1, rng)[0]
    half = check.number("spurious_distance", spurious_distance, 0) / 2
    shared, specific = half * _directions(len(spurious), 2, rng)
    specific *= _CLASS_SPECIFIC
    invariant = np.setdiff1d(np.arange(d), spurious)
    order = np.append(invariant, spurious)
    truth = GaussianTruth(
        # Latent features are standard normal: their deviations are part of the mixing.
        mixing=mixing_matrix("orthogonal", d, streams.generator(Use.MIXING))[:, order]
        * (1.0 + order) ** -0.5,
        n_invariant=len(invariant),
        class_priors=np.full(2, 0.5),
        invariant_means=sign * gap[invariant],
        spurious_means=np.stack([sign * (shared + s * specific) for s in (-1, 1)]),
        sigma_invariant=1.0,
        sigma_spurious=np.ones(2),
    )
    sizes = {"n_train": n_train, "n_validation": n_validation, "n_test": n_test}
    parts = []
    for use, (name, value) in zip(SPLITS, sizes.items(), strict=True):
        rng, each = streams.generator(use), counts(name, value, (2, 2))
        cell = rng.permutation(np.repeat(np.arange(4), each.flat))
        k, e = cell // 2, cell % 2
        Z = rng.standard_normal((len(cell), d))[:, order]
        Z += np.hstack([truth.invariant_means[k], truth.spurious_means[k, e]])
        y, environments = np.array(CLASSES)[k], np.array(ENVIRONMENTS)[e]
        parts.append(EnvironmentData(Z @ truth.mixing.T, y, environments, truth))
    return Splits(*parts)


def _positions(d: int, n_spurious: int, rng: np.random.Generator) -> tuple[NDArray, NDArray]:
    """Distinct positions in the spectrum of the core and of the spurious directions."""
    if n_spurious > _SPAN or _N_CORE + n_spurious > d:
        raise ValueError(
            f"n_spurious={n_spurious} directions must be among the {_SPAN} leading ones, and with "
            f"{_N_CORE} core directions at most n_features={d} in all."
        )
    spurious = np.sort(rng.choice(_SPAN, n_spurious, replace=False))
    rest = np.setdiff1d(np.arange(d), spurious)
    chance = 1.0 / (1.0 + rest)
    core = np.sort(rng.choice(rest, _N_CORE, replace=False, p=chance / chance.sum()))
    return core, spurious


def _directions(d: int, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """n orthonormal directions in d dimensions, (n, d)."""
    return np.linalg.qr(rng.standard_normal((d, n)))[0].T
