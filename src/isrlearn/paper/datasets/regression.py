"""The regression unit test, and a variant that rewards the shortcut."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isrlearn.datasets.data import Splits
from isrlearn.datasets.parameters import RandomState, number
from isrlearn.datasets.truth import RegressionTruth
from isrlearn.paper.datasets.examples import Frame, interval

#: Least value, and defaults of the paper's model and of the anti-causal variant.
_PRESETS = {
    "invariant_mean": (-np.inf, 1.0, 0.0),
    "spurious_scale": (0.0, 50.0, 1.0),
    "target_noise": (0.0, 0.0, 0.1),
    "spurious_noise": (0.0, 0.0, 0.1),
    "offset_scale": (0.0, 1.0, 0.1),
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

    In the paper's model the spurious features depend on the invariant ones, without noise:

    .. math:: y = w_c^\top z_c + b_c, \qquad z_e = \nu_s (W_e z_c + b_e)

    with w_c, b_c, W_e and b_e standard normal. Least squares solves it, since y is a function of
    z_c and z_c a function of x. It does not solve the *anti-causal* variant, where y is
    ``w_c z_c`` plus noise and ``z_e = a_e y + b_e`` plus noise, with one gain ``a_e`` per
    environment: there z_e contains information about the noise in y that z_c does not. In test the
    spurious features are permuted within each environment.

    Parameters
    ----------
    n_environments : int, default=3
        Number of environments, named 0, 1, …; a larger number leaves the first ones unchanged.
    n_samples : int or array-like of shape (E,), default=10,000
        Samples of each environment in each split.
    n_invariant, n_spurious : int, default=5
        Dimensions of the two kinds of features.
    anticausal : bool, default=False
        Use the variant. Of two defaults below, the first is that of the paper's model, the second
        that of the variant.
    invariant_mean : float, default=1.0 or 0.0
        Mean of every invariant feature, before scaling.
    sigma_invariant : float, default=0.1
        Standard deviation of invariant features, before scaling.
    invariant_scale : float, default=1.0
        Factor of z_c.
    spurious_scale : float, default=50.0 or 1.0
        Factor of z_e, noise included.
    target_noise, spurious_noise : float, default=0.0 or 0.1
        Standard deviations of the noise in y and, before scaling, in z_e.
    gain_range : pair of float, default=(0.5, 1.5)
        Range of a_e, in the variant.
    offset_scale : float, default=1.0 or 0.1
        Standard deviation of b_e, before scaling.
    scramble : bool, default=True
        Multiply the features by a random orthogonal matrix.
    random_state : int, Generator or None
        Source of the random numbers.

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
    given = (invariant_mean, spurious_scale, target_noise, spurious_noise, offset_scale)
    values = {
        name: number(name, defaults[bool(anticausal)] if value is None else value, low)
        for (name, (low, *defaults)), value in zip(_PRESETS.items(), given, strict=True)
    }
    nu_c = number("invariant_scale", invariant_scale, 0, above=True)
    nu_e = values["spurious_scale"]
    gains = interval("gain_range", gain_range)
    frame = Frame.of(random_state, n_environments, n_invariant, n_spurious, scramble)
    E, d_c, d_s = frame.n_environments, frame.n_invariant, frame.n_spurious
    rngs, shared = frame.rngs(), frame.shared
    offsets = np.array([values["offset_scale"] * rng.standard_normal(d_s) for rng in rngs])
    maps, gain = np.zeros((E, d_s, d_c)), np.zeros((E, d_s))
    if anticausal:
        gain[:] = np.array([rng.uniform(*gains) for rng in rngs])[:, None]
    else:
        maps = np.array([rng.standard_normal((d_s, d_c)) for rng in rngs])
    truth = RegressionTruth(
        **frame.fields,
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
    return frame.splits(truth, n_samples)
