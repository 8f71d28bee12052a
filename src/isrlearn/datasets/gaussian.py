"""Gaussian environments: the data models of the paper's section 3, with any mixing."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.datasets import parameters as check
from isrlearn.datasets.data import EnvironmentData
from isrlearn.datasets.parameters import RandomState, Streams, Use, mixing_matrix
from isrlearn.datasets.truth import GaussianTruth, LinearTruth, RegressionTruth

# An environment's standard deviation is drawn from this range, in units of the invariant one.
_SIGMA_RANGE = (0.5, 1.5)

# Every drawn parameter has a stream of its own, so that giving one of them by hand leaves the
# others unchanged.
_MEANS, _SIGMAS, _MAPS = range(3)


def make_gaussian_environments(
    n_samples: int | ArrayLike = 1000,
    n_environments: int = 3,
    *,
    n_classes: int = 2,
    n_invariant: int = 5,
    n_spurious: int = 5,
    mixing: str = "identity",
    class_priors: ArrayLike | None = None,
    spurious_means: ArrayLike | None = None,
    sigma_invariant: float = 1.0,
    sigma_spurious: float | ArrayLike | None = None,
    task: str = "classification",
    random_state: RandomState = None,
) -> EnvironmentData:
    """Samples of the Gaussian environments of the paper's section 3, with the truth.

    Parameters
    ----------
    n_samples : int or array-like of shape (E,), default=1000
        Samples of each environment; 0 for the truth alone.
    n_environments : int, default=3
        Number of environments, E, named 0, 1, …, E - 1. Adding an environment leaves the
        parameters and samples of the others unchanged.
    n_classes : int, default=2
        Number of classes, K, named 0, 1, …, K - 1. Two classes have the means ``+mu`` (class 1)
        and ``-mu`` (class 0), the paper's binary model; more have means of their own. Not used for
        regression.
    n_invariant, n_spurious : int, default=5
        Dimensions d_c and d_s of the latent features.
    mixing : {"identity", "orthogonal", "random"}, default="identity"
        R. "random" is not orthogonal; its condition number is at most 10.
    class_priors : array-like of shape (K,), optional
        Probabilities of the classes, equal by default.
    spurious_means : array-like, optional
        mu_e, (E, d_s), of two classes; (K, E, d_s) of more. For regression the offsets b_e,
        (E, d_s). Standard normal by default, as the invariant means are.
    sigma_invariant : float, default=1.0
        Standard deviation of the invariant features.
    sigma_spurious : float or array-like of shape (E,), optional
        Standard deviation of the spurious features in each environment. Default: drawn between
        0.5 and 1.5 times `sigma_invariant`. Not used for regression, where z_e is a function
        of z_c.
    task : {"classification", "regression"}, default="classification"
        For regression ``y = w_c z_c + b_c`` and ``z_e = W_e z_c + b_e``, with w_c, b_c and W_e
        standard normal.
    random_state : int, Generator or None
        Source of all randomness: of the parameters that are not given, and of the samples.

    Returns
    -------
    EnvironmentData
        Its ``truth`` has A, B, the means and deviations, the exact ``moments`` of every cell, a
        ``spurious_basis``, and ``coef`` and ``intercept`` of the optimal invariant predictor
        (Proposition 1); ``truth.sample(...)`` draws more samples.

    Examples
    --------
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(500, 6, n_spurious=4, mixing="random", random_state=0)
    >>> data
    EnvironmentData(n_samples=3000, n_features=9, environments=[0, 1, 2, 3, 4, 5])
    >>> logit = data.X @ data.truth.coef[0] + data.truth.intercept[0]
    >>> bool(((logit > 0) == data.y).mean() > 0.9)
    True
    """
    streams = Streams.of(random_state)
    E = check.integer("n_environments", n_environments, 1)
    K = check.integer("n_classes", n_classes, 2)
    d_c = check.integer("n_invariant", n_invariant, 1)
    d_s = check.integer("n_spurious", n_spurious, 0)
    sigma = check.number("sigma_invariant", sigma_invariant, 0, above=True)
    R = mixing_matrix(mixing, d_c + d_s, streams.generator(Use.MIXING))
    regression = check.choice("task", task, {"classification": False, "regression": True})
    classes = () if regression or K == 2 else (K,)

    def rngs(of: int) -> list[np.random.Generator]:
        """A generator of this parameter for every environment."""
        return [streams.generator(Use.ENVIRONMENT, e, of) for e in range(E)]

    mu_c = streams.generator(Use.SHARED, _MEANS).standard_normal((*classes, d_c))
    if spurious_means is None:
        spurious_means = np.stack([g.standard_normal((*classes, d_s)) for g in rngs(_MEANS)], -2)
    mu_e = check.numbers("spurious_means", spurious_means, (*classes, E, d_s))
    shared: dict[str, Any] = {"mixing": R, "n_invariant": d_c, "sigma_invariant": sigma}
    truth: LinearTruth
    if regression:
        for name, value in (("class_priors", class_priors), ("sigma_spurious", sigma_spurious)):
            if value is not None:
                raise ValueError(f"{name} does not apply to task='regression'; leave it out.")
        rng = streams.generator(Use.SHARED, _MAPS)
        truth = RegressionTruth(
            **shared,
            invariant_mean=mu_c,
            weights=rng.standard_normal(d_c),
            bias=float(rng.standard_normal()),
            maps=np.stack([g.standard_normal((d_s, d_c)) for g in rngs(_MAPS)]),
            gains=np.zeros((E, d_s)),
            offsets=mu_e,
        )
    else:
        if sigma_spurious is None:
            sigma_spurious = sigma * np.array([g.uniform(*_SIGMA_RANGE) for g in rngs(_SIGMAS)])
        elif np.ndim(sigma_spurious) == 0:
            sigma_spurious = np.full(E, sigma_spurious)
        truth = GaussianTruth(
            **shared,
            class_priors=_priors(class_priors, K),
            invariant_means=mu_c if classes else np.stack([-mu_c, mu_c]),
            spurious_means=mu_e if classes else np.stack([-mu_e, mu_e]),
            sigma_spurious=check.numbers("sigma_spurious", sigma_spurious, (E,), 0, above=True),
        )
    return truth.sample(n_samples, random_state=streams.child(Use.TRAIN))


def _priors(given: ArrayLike | None, K: int) -> NDArray[np.float64]:
    """Probabilities of the classes: those given, or equal ones."""
    if given is None:
        return np.full(K, 1.0 / K)
    priors = check.numbers("class_priors", given, (K,), 0, above=True)
    if not np.isclose(priors.sum(), 1.0):
        raise ValueError(f"class_priors={given!r} must be {K} positive numbers that sum to 1.")
    return priors / priors.sum()
