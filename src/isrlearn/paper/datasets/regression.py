"""The regression linear unit test, and a variant in which the shortcut pays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.datasets.data import Splits
from isrlearn.datasets.parameters import (
    RandomState,
    Streams,
    Use,
    integer,
    interval,
    mixing_matrix,
    number,
)
from isrlearn.datasets.truth import RegressionTruth
from isrlearn.paper.datasets.unit_tests import draw_splits

_PRESETS = {
    False: {
        "invariant_mean": 1.0,
        "spurious_scale": 50.0,
        "target_noise": 0.0,
        "spurious_noise": 0.0,
        "offset_scale": 1.0,
    },
    True: {
        "invariant_mean": 0.0,
        "spurious_scale": 1.0,
        "target_noise": 0.1,
        "spurious_noise": 0.1,
        "offset_scale": 0.1,
    },
}


def make_regression_unit_test(
    *,
    n_environments: int = 3,
    n_samples: int | ArrayLike = 10_000,
    n_invariant: int = 5,
    n_spurious: int = 5,
    anticausal: bool = False,
    invariant_mean: float | None = None,
    sigma_invariant: float = 0.1,
    invariant_scale: float = 1.0,
    spurious_scale: float | None = None,
    target_noise: float | None = None,
    spurious_noise: float | None = None,
    gain_range: tuple[float, float] = (0.5, 1.5),
    offset_scale: float | None = None,
    scramble: bool = True,
    random_state: RandomState = None,
) -> Splits:
    r"""Train, validation and test samples of the regression unit test.

    In the paper's model the spurious features follow the invariant ones, and nothing is noisy:

    .. math:: y = w_c^\top z_c + b_c, \qquad z_e = \nu_s (W_e z_c + b_e)

    with w_c, b_c, W_e and b_e standard normal. Least squares solves it: y is a function of z_c
    and z_c a function of x. The *anti-causal* variant is one where it does not: y is
    ``w_c z_c`` plus noise and ``z_e = a_e y + b_e`` plus noise, with one gain ``a_e`` an
    environment, so z_e tells of the noise in y that z_c cannot. In test the spurious features
    are permuted within each environment.

    Parameters
    ----------
    n_environments : int, default=3
        Number of environments, named 0, 1, …; one more leaves the others as they were.
    n_samples : int or array-like of shape (E,), default=10,000
        Samples of each environment in each split.
    n_invariant, n_spurious : int, default=5
        Dimensions of the two kinds of features.
    anticausal : bool, default=False
        The variant. The defaults below are for the paper's model and, second, for the variant.
    invariant_mean : float, default=1.0 or 0.0
        Mean of every invariant feature, before scaling.
    sigma_invariant : float, default=0.1
        Standard deviation of invariant features, before scaling.
    invariant_scale : float, default=1.0
        What z_c is multiplied by.
    spurious_scale : float, default=50.0 or 1.0
        What z_e is multiplied by, noise included.
    target_noise, spurious_noise : float, default=0.0 or 0.1
        Standard deviations of the noise in y and, before scaling, in z_e.
    gain_range : pair of float, default=(0.5, 1.5)
        Where a_e is drawn from, in the variant.
    offset_scale : float, default=1.0 or 0.1
        Standard deviation of b_e, before scaling.
    scramble : bool, default=True
        Put the features under a random orthogonal matrix.
    random_state : int, Generator or None
        Where all that is random comes from.

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
    values = _PRESETS[bool(anticausal)] | _given(
        invariant_mean=invariant_mean,
        spurious_scale=spurious_scale,
        target_noise=target_noise,
        spurious_noise=spurious_noise,
        offset_scale=offset_scale,
    )
    E = integer("n_environments", n_environments, 1)
    d_c = integer("n_invariant", n_invariant, 1)
    d_s = integer("n_spurious", n_spurious, 0)
    nu_c = number("invariant_scale", invariant_scale, 0, above=True)
    nu_e = values["spurious_scale"]
    gains = interval("gain_range", gain_range)
    streams = Streams.of(random_state)
    shared = streams.generator(Use.SHARED)
    rngs = [streams.generator(Use.ENVIRONMENT, e) for e in range(E)]
    offsets = np.array([values["offset_scale"] * rng.standard_normal(d_s) for rng in rngs])
    links = _effects_of_target if anticausal else _effects_of_causes
    maps, gain = links(rngs, d_c, d_s, gains)
    mixing = "orthogonal" if scramble else "identity"
    truth = RegressionTruth(
        mixing=mixing_matrix(mixing, d_c + d_s, streams.generator(Use.MIXING)),
        n_invariant=d_c,
        invariant_mean=np.full(d_c, nu_c * values["invariant_mean"]),
        sigma_invariant=nu_c * number("sigma_invariant", sigma_invariant, 0, above=True),
        weights=shared.standard_normal(d_c),
        bias=0.0 if anticausal else float(shared.standard_normal()),
        maps=nu_e * maps,
        gains=nu_e * gain,
        offsets=nu_e * offsets,
        target_noise=values["target_noise"],
        spurious_noise=nu_e * values["spurious_noise"],
    )
    return draw_splits(truth, n_samples, streams)


def _given(**numbers: float | None) -> dict[str, float]:
    """Those of the numbers that were given, checked; only the mean may be negative."""
    return {
        name: number(name, value, -np.inf if name == "invariant_mean" else 0)
        for name, value in numbers.items()
        if value is not None
    }


def _effects_of_causes(
    rngs: list[np.random.Generator], d_c: int, d_s: int, gains: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """W_e, standard normal, and no gains: the paper's model."""
    maps = np.array([rng.standard_normal((d_s, d_c)) for rng in rngs])
    return maps, np.zeros((len(rngs), d_s))


def _effects_of_target(
    rngs: list[np.random.Generator], d_c: int, d_s: int, gains: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """No W_e, and one gain an environment for all its spurious features: the variant."""
    each = np.array([rng.uniform(*gains) for rng in rngs])
    return np.zeros((len(rngs), d_s, d_c)), np.tile(each[:, None], d_s)
