"""The linear unit tests, by descriptive and published names, and the multiclass unit test."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import RandomState, Streams, Use, integer, number
from isrlearn.datasets.truth import GaussianTruth, LinearTruth
from isrlearn.paper.datasets.examples import (
    Frame,
    causal_regression,
    cows_camels,
    small_margin,
    small_margin_variance,
)

_SCRAMBLED = "-scrambled"

_EXAMPLES: Mapping[str, tuple[str, Callable[..., LinearTruth]]] = {
    "causal-regression": ("1", causal_regression),
    "cows-camels": ("2", cows_camels),
    "small-margin": ("3", small_margin),
    "small-margin-variance": ("3'", small_margin_variance),
}

#: Descriptive name of every linear unit test, with its published name.
LINEAR_UNIT_TESTS: Mapping[str, str] = MappingProxyType(
    {
        name + suffix: f"Example-{number[0]}{letter}{number[1:]}"
        for suffix, letter in (("", ""), (_SCRAMBLED, "s"))
        for name, (number, _) in _EXAMPLES.items()
    }
)


def make_linear_unit_test(
    name: str,
    *,
    n_environments: int = 3,
    n_samples: int | ArrayLike = 10_000,
    n_invariant: int = 5,
    n_spurious: int = 5,
    random_state: RandomState = None,
    **constants: Any,
) -> Splits:
    """Train, validation and test samples of a linear unit test.

    Validation is distributed like train; in test the spurious features are permuted within each
    environment. :func:`permute_spurious` does the same to train, for the published oracle.

    ======================= ========== =====================================================
    name                    published  constants, and what they are by default
    ======================= ========== =====================================================
    "causal-regression"     Example-1  ``noise=(0.1, 1.5, 2.0)`` of the first environments,
                                       10 to the power U(``noise_exponents=(-2, 1)``) beyond
    "cows-camels"           Example-2  ``animal=(0.3, 0.5, 0.7)`` and ``agreement=(0.95, 0.97,
                                       0.99)`` of the first environments, uniform in
                                       ``animal_range=(0.3, 0.7)`` and
                                       ``agreement_range=(0.9, 1.0)`` beyond;
                                       ``invariant_scale=0.01``, ``spurious_scale=1.0``,
                                       ``noise=sqrt(0.1)``
    "small-margin"          Example-3  ``margin=0.1``, ``spurious_scale=1.0`` (of mu_e),
                                       ``sigma_invariant=0.1``, ``sigma_spurious=0.1``
    "small-margin-variance" Example-3' as Example-3, with ``sigma_spurious_range=(0.1, 0.3)``,
                                       drawn once per environment
    ======================= ========== =====================================================

    With "-scrambled" after the name (an "s" in the published ones) the features are those of
    the plain test with the same seed, multiplied by a random orthogonal matrix.

    Parameters
    ----------
    name : str
        A name in the table; published names may omit "Example" and the hyphen: "3s'",
        "Example3s'" and "small-margin-variance-scrambled" are the same data set.
    n_environments : int, default=3
        Number of environments, named 0, 1, …; a larger number leaves the first ones unchanged.
    n_samples : int or array-like of shape (E,), default=10,000
        Samples of each environment in each split.
    n_invariant, n_spurious : int, default=5
        Dimensions of the two kinds of features.
    random_state : int, Generator or None
        Source of the random numbers.
    **constants
        Constants in the table.

    Returns
    -------
    Splits
        Targets are real numbers in Example-1, classes 0 and 1 in the others. The ``truth`` of
        each split has A, B, the parameters of every environment, ``mean_rank`` (the number of
        spurious dimensions that cell means reveal: none in Example-1, one in Example-2), and
        ``coef`` and ``intercept`` of the optimal invariant predictor.

    Notes
    -----
    Where the paper and the published code differ, constants are those of the code: in Example-2
    noise of *variance* 0.1 and an invariant scale of 0.01 (0.02 in the paper). Labels of Example-3
    are exactly balanced. The paper's code draws sigma_e of Example-3' again for every split; here
    it stays the same for an environment.

    Examples
    --------
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> splits = make_linear_unit_test("3s'", n_environments=4, n_samples=500, random_state=0)
    >>> splits.train
    EnvironmentData(n_samples=2000, n_features=10, environments=[0, 1, 2, 3])
    >>> splits.train.truth.mean_rank
    3
    """
    example, scrambled = _lookup(name)
    build = _EXAMPLES[example][1]
    _check_constants(example, build, constants)
    frame = Frame.of(random_state, n_environments, n_invariant, n_spurious, scrambled)
    return frame.splits(build(frame, **constants), n_samples)


def make_multiclass_unit_test(
    n_classes: int = 3,
    *,
    n_environments: int = 3,
    n_samples: int | ArrayLike = 10_000,
    n_invariant: int = 5,
    n_spurious: int = 5,
    invariant_scale: float = 0.1,
    spurious_scale: float = 1.0,
    sigma_invariant: float = 0.1,
    sigma_spurious: float = 0.1,
    scramble: bool = True,
    random_state: RandomState = None,
) -> Splits:
    """Train, validation and test samples of the paper's multiclass unit test.

    Each class has an invariant mean, and each class in each environment a spurious mean, all
    uniform on [0, 1); both kinds of features are scaled after the noise is added. In test the
    spurious features are permuted within each environment.

    Parameters
    ----------
    n_classes : int, default=3
        Number of classes, equally likely, named 0, 1, ….
    n_environments : int, default=3
        Number of environments, named 0, 1, …; a larger number leaves the first ones unchanged.
    n_samples : int or array-like of shape (E,), default=10,000
        Samples of each environment in each split.
    n_invariant, n_spurious : int, default=5
        Dimensions of the two kinds of features.
    invariant_scale, spurious_scale : float, default=0.1 and 1.0
        Factors of the latent features, noise included.
    sigma_invariant, sigma_spurious : float, default=0.1
        Standard deviations before scaling.
    scramble : bool, default=True
        Multiply the features by a random orthogonal matrix.
    random_state : int, Generator or None
        Source of the random numbers.

    Returns
    -------
    Splits
        Their ``truth`` has the ``moments``, ``coef``, ``intercept``, ``spurious_basis`` and
        ``mean_rank`` (the smaller of d_s and K (E - 1)) of these data.

    Examples
    --------
    >>> from isrlearn.paper.datasets import make_multiclass_unit_test
    >>> splits = make_multiclass_unit_test(4, n_environments=2, n_samples=300, random_state=0)
    >>> splits.train
    EnvironmentData(n_samples=600, n_features=10, environments=[0, 1])
    >>> splits.train.truth.mean_rank
    4
    """
    K = integer("n_classes", n_classes, 2)
    nu_c = number("invariant_scale", invariant_scale, 0, above=True)
    nu_e = number("spurious_scale", spurious_scale, 0, above=True)
    sigma_e = number("sigma_spurious", sigma_spurious, 0, above=True)
    frame = Frame.of(random_state, n_environments, n_invariant, n_spurious, scramble)
    mu_e = [rng.random((K, frame.n_spurious)) for rng in frame.rngs()]
    truth = GaussianTruth(
        **frame.fields,
        class_priors=np.full(K, 1 / K),
        invariant_means=nu_c * frame.shared.random((K, frame.n_invariant)),
        spurious_means=nu_e * np.stack(mu_e, axis=1),
        sigma_invariant=nu_c * number("sigma_invariant", sigma_invariant, 0, above=True),
        sigma_spurious=np.full(frame.n_environments, nu_e * sigma_e),
    )
    return frame.splits(truth, n_samples)


def permute_spurious(data: EnvironmentData, *, random_state: RandomState = None) -> EnvironmentData:
    """The data with the spurious features permuted among the samples of each environment.

    Only the invariant predictor is left to learn: the *oracle* of the linear unit tests is trained
    on these data.

    Parameters
    ----------
    data : EnvironmentData
        From a generator of this package whose ``truth`` knows the mixing.
    random_state : int, Generator or None
        Source of the permutations.

    Examples
    --------
    >>> from isrlearn.paper.datasets import make_linear_unit_test, permute_spurious
    >>> train = make_linear_unit_test("2", n_samples=1000, random_state=0).train
    >>> agreement = lambda data: round(float(((data.X[:, 5] > 0) == data.y).mean()), 1)
    >>> agreement(train), agreement(permute_spurious(train, random_state=0))
    (1.0, 0.5)
    """
    truth = data.truth
    if not isinstance(truth, LinearTruth):
        raise ValueError(
            "only data of a generator that knows its mixing can be permuted; data.truth is "
            f"{type(truth).__name__}."
        )
    streams = Streams.of(random_state).child(Use.PERMUTATION)
    Z = truth.latent(data.X)
    spurious = Z[:, truth.n_invariant :]
    for i, name in enumerate(np.unique(data.environments)):
        rows = np.flatnonzero(data.environments == name)
        spurious[rows] = spurious[streams.generator(i).permutation(rows)]
    return EnvironmentData(truth.observed(Z), data.y, data.environments, truth)


def _lookup(name: str) -> tuple[str, bool]:
    """The descriptive name without its suffix, and whether features are scrambled."""
    plain = str(name).strip().lower().removesuffix(_SCRAMBLED)
    if plain in _EXAMPLES:
        return plain, str(name).strip().lower() != plain
    # Spellings of "Example-3s'": the number, then s and the prime in either order.
    short = plain.removeprefix("example").lstrip("- ").replace("′", "'")
    number = short.replace("s", "", 1)
    numbers = {number: example for example, (number, _) in _EXAMPLES.items()}
    if plain != str(name).strip().lower() or number not in numbers:
        both = ", ".join(f"{k!r} ({v})" for k, v in LINEAR_UNIT_TESTS.items())
        raise ValueError(f"{name!r} is not a linear unit test; use one of {both}.")
    return numbers[number], "s" in short


def _check_constants(
    name: str, build: Callable[..., LinearTruth], constants: Mapping[str, Any]
) -> None:
    """Raise for constants that this unit test does not have."""
    legal = [
        p.name for p in inspect.signature(build).parameters.values() if p.kind is p.KEYWORD_ONLY
    ]
    unknown = sorted(set(constants) - set(legal))
    if unknown:
        raise ValueError(
            f"{', '.join(unknown)}: not a constant of {name!r}, whose constants are "
            f"{', '.join(legal)}."
        )
