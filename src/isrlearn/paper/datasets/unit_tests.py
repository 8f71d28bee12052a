"""The linear unit tests by descriptive and published names, and those of the paper."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.parameters import RandomState, Streams, Use, integer
from isrlearn.datasets.truth import GaussianTruth, LinearTruth, RegressionTruth
from isrlearn.paper.datasets.examples import Frame, causal_regression, cows_camels, small_margin

_SCRAMBLED = "-scrambled"

_EXAMPLES: Mapping[str, tuple[str, Callable[..., LinearTruth]]] = {
    "causal-regression": ("1", causal_regression),
    "cows-camels": ("2", cows_camels),
    "small-margin": ("3", small_margin),
    "small-margin-variance": ("3'", partial(small_margin, high=0.3)),
}

#: Descriptive name of every linear unit test, with its published name.
LINEAR_UNIT_TESTS: Mapping[str, str] = {
    name + suffix: f"Example-{number[0]}{letter}{number[1:]}"
    for suffix, letter in (("", ""), (_SCRAMBLED, "s"))
    for name, (number, _) in _EXAMPLES.items()
}


def make_linear_unit_test(
    name: str,
    *,
    n_environments: int = 3,
    n_samples: int | ArrayLike = 10_000,
    n_invariant: int = 5,
    n_spurious: int = 5,
    random_state: RandomState = None,
) -> Splits:
    """Train, validation and test samples of a linear unit test.

    Validation is distributed like train; in test the spurious features are permuted within each
    environment. :func:`permute_spurious` does the same to train, for the published oracle.

    ======================= ========== =====================================================
    name                    published  what changes between environments
    ======================= ========== =====================================================
    "causal-regression"     Example-1  noise: 0.1, 1.5, 2.0, then 10 to the power U(-2, 1)
    "cows-camels"           Example-2  animals: 0.3, 0.5, 0.7 of class 1, then U(0.3, 0.7);
                                       backgrounds that agree: 0.95, 0.97, 0.99, then U(0.9, 1)
    "small-margin"          Example-3  standard normal means mu_e of the spurious features
    "small-margin-variance" Example-3' mu_e, and their standard deviation, U(0.1, 0.3)
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
    frame = Frame(random_state, n_environments, n_invariant, n_spurious, scrambled)
    return frame.splits(_EXAMPLES[example][1](frame), n_samples)


def make_multiclass_unit_test(
    n_classes: int = 3,
    *,
    n_environments: int = 3,
    n_samples: int | ArrayLike = 10_000,
    n_invariant: int = 5,
    n_spurious: int = 5,
    scramble: bool = True,
    random_state: RandomState = None,
) -> Splits:
    """Train, validation and test samples of the paper's multiclass unit test.

    Each class has an invariant mean, uniform on [0, 0.1), and each class in each environment a
    spurious mean, uniform on [0, 1); standard deviations are 0.01 and 0.1. In test the spurious
    features are permuted within each environment.

    Parameters
    ----------
    n_classes : int, default=3
        Number of classes, equally likely, named 0, 1, ….
    n_environments, n_samples, n_invariant, n_spurious, random_state
        As in :func:`make_linear_unit_test`.
    scramble : bool, default=True
        Multiply the features by a random orthogonal matrix.

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
    frame = Frame(random_state, n_environments, n_invariant, n_spurious, scramble)
    mu_e = [rng.random((K, frame.n_spurious)) for rng in frame.rngs()]
    truth = GaussianTruth(
        **frame.fields,
        class_priors=np.full(K, 1 / K),
        invariant_means=0.1 * frame.shared.random((K, frame.n_invariant)),
        spurious_means=np.stack(mu_e, axis=1),
        sigma_invariant=0.01,
        sigma_spurious=np.full(frame.n_environments, 0.1),
    )
    return frame.splits(truth, n_samples)


def make_regression_unit_test(
    *,
    n_environments: int = 3,
    n_samples: int | ArrayLike = 10_000,
    n_invariant: int = 5,
    n_spurious: int = 5,
    anticausal: bool = False,
    scramble: bool = True,
    random_state: RandomState = None,
) -> Splits:
    r"""Train, validation and test samples of the regression unit test.

    In the paper's model the spurious features depend on the invariant ones, without noise:

    .. math:: y = w_c^\top z_c + b_c, \qquad z_e = 50\,(W_e z_c + b_e), \qquad z_c \sim N(1, 0.1^2)

    with w_c, b_c, W_e and b_e standard normal. Least squares solves it, since y is a function of
    z_c and z_c a function of x. It does not solve the *anti-causal* variant, where y is
    ``w_c z_c`` plus noise and ``z_e = a_e y + b_e`` plus noise, with one gain ``a_e`` per
    environment, uniform on [0.5, 1.5): there z_e contains information about the noise in y that
    z_c does not. Noise, b_e and z_c, whose mean is zero, have standard deviation 0.1 there. In test
    the spurious features are permuted within each environment.

    Parameters
    ----------
    n_environments, n_samples, n_invariant, n_spurious, random_state
        As in :func:`make_linear_unit_test`.
    anticausal : bool, default=False
        Use the variant.
    scramble : bool, default=True
        Multiply the features by a random orthogonal matrix.

    Returns
    -------
    Splits
        Their ``truth`` has the ``moments``, ``coef``, ``intercept``, ``spurious_basis`` and
        ``mean_rank`` of these data.

    Examples
    --------
    >>> from isrlearn.paper.datasets import make_regression_unit_test
    >>> splits = make_regression_unit_test(n_environments=6, n_samples=200, random_state=0)
    >>> test, truth = splits.test, splits.test.truth
    >>> bool(abs(test.X @ truth.coef + truth.intercept - test.y).max() < 1e-10)
    True
    """
    frame = Frame(random_state, n_environments, n_invariant, n_spurious, scramble)
    E, d_c, d_s = frame.n_environments, frame.n_invariant, frame.n_spurious
    rngs, shared = frame.rngs(), frame.shared
    mean, scale, noise, offset = (0.0, 1.0, 0.1, 0.1) if anticausal else (1.0, 50.0, 0.0, 1.0)
    offsets = np.array([offset * rng.standard_normal(d_s) for rng in rngs])
    maps, gains = np.zeros((E, d_s, d_c)), np.zeros((E, d_s))
    if anticausal:
        gains[:] = np.array([rng.uniform(0.5, 1.5) for rng in rngs])[:, None]
    else:
        maps = np.array([rng.standard_normal((d_s, d_c)) for rng in rngs])
    truth = RegressionTruth(
        **frame.fields,
        invariant_mean=np.full(d_c, mean),
        sigma_invariant=0.1,
        weights=shared.standard_normal(d_c),
        bias=0.0 if anticausal else float(shared.standard_normal()),
        maps=scale * maps,
        gains=gains,
        offsets=scale * offsets,
        target_noise=noise,
        spurious_noise=noise,
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
    return EnvironmentData(Z @ truth.mixing.T, data.y, data.environments, truth)


def _lookup(name: str) -> tuple[str, bool]:
    """The descriptive name without its suffix, and whether features are scrambled."""
    given = str(name).strip().lower()
    # Spellings of "Example-3s'": the number, then s and the prime in either order.
    short = given.removeprefix("example").lstrip("- ").replace("′", "'")
    for example, (number, _) in _EXAMPLES.items():
        if given.removesuffix(_SCRAMBLED) == example:
            return example, given != example
        if short.replace("s", "", 1) == number:
            return example, "s" in short
    both = ", ".join(f"{k!r} ({v})" for k, v in LINEAR_UNIT_TESTS.items())
    raise ValueError(f"{name!r} is not a linear unit test; use one of {both}.")
