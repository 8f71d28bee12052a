"""Gaussian environments: the data models of the paper's section 3, with any mixing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.datasets import checks
from isrlearn.datasets._classification import GaussianTruth
from isrlearn.datasets._regression import RegressionTruth
from isrlearn.datasets.data import EnvironmentData
from isrlearn.datasets.mixing import mixing_matrix
from isrlearn.datasets.streams import RandomState, Streams, Use

# Where an environment's standard deviation is drawn from, in units of the invariant one.
_SIGMA_RANGE = (0.5, 1.5)


def make_gaussian_environments(
    n_samples: int | ArrayLike = 1000,
    n_environments: int = 3,
    *,
    n_classes: int = 2,
    n_invariant: int = 5,
    n_spurious: int = 5,
    mixing: str | ArrayLike | None = None,
    symmetric: bool | None = None,
    class_priors: ArrayLike | None = None,
    invariant_means: ArrayLike | None = None,
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
        Number of environments, E. They are named 0, 1, …, E - 1. One environment more leaves
        the parameters and samples of the others as they were.
    n_classes : int, default=2
        Number of classes, K, named 0, 1, …, K - 1. Not used for regression.
    n_invariant, n_spurious : int, default=5
        Dimensions d_c and d_s of the latent features.
    mixing : {"identity", "orthogonal", "random"} or array-like of shape (d, d), optional
        R, the identity by default. "random" is not orthogonal and has a condition number of at
        most 10.
    symmetric : bool, optional
        Two classes with means ``+mu`` (class 1) and ``-mu`` (class 0), the paper's binary
        model, instead of means of their own. By default so when there are two classes.
    class_priors : array-like of shape (K,), optional
        Probabilities of the classes, equal by default.
    invariant_means : array-like, optional
        mu_c, (d_c,), when symmetric or for regression; else one row a class, (K, d_c). Standard
        normal by default.
    spurious_means : array-like, optional
        mu_e, (E, d_s), when symmetric; else (K, E, d_s). For regression the offsets b_e,
        (E, d_s). Standard normal by default.
    sigma_invariant : float, default=1.0
        Standard deviation of invariant features.
    sigma_spurious : float or array-like of shape (E,), optional
        Standard deviation of spurious features in each environment. By default drawn between
        0.5 and 1.5 times `sigma_invariant`. Not used for regression, where z_e is a function
        of z_c.
    task : {"classification", "regression"}, default="classification"
        For regression ``y = w_c z_c + b_c`` and ``z_e = W_e z_c + b_e``, with w_c, b_c and W_e
        standard normal.
    random_state : int, Generator or None
        Where all that is random comes from: parameters that are not given, and samples.

    Returns
    -------
    EnvironmentData
        Its ``truth`` knows A, B, the means and deviations, the exact ``moments`` of every cell,
        a ``spurious_basis`` and ``coef``, ``intercept`` of the optimal invariant predictor
        (Proposition 1); ``truth.sample(...)`` draws more of the same.

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
    E = checks.integer("n_environments", n_environments, 1)
    d_c = checks.integer("n_invariant", n_invariant, 1)
    d_s = checks.integer("n_spurious", n_spurious, 0)
    sigma = checks.within("sigma_invariant", sigma_invariant, 0, above=True)
    R = mixing_matrix(mixing, d_c + d_s, streams.generator(Use.MIXING))
    truth: GaussianTruth | RegressionTruth
    if checks.choice("task", task, {"classification": False, "regression": True}):
        _refuse(symmetric=symmetric, class_priors=class_priors, sigma_spurious=sigma_spurious)
        parameters = _regression(streams, E, d_c, d_s, invariant_means, spurious_means)
        truth = RegressionTruth(mixing=R, n_invariant=d_c, sigma_invariant=sigma, **parameters)
    else:
        K = checks.integer("n_classes", n_classes, 2)
        mu_c, mu_e = _means(streams, K, E, d_c, d_s, symmetric, invariant_means, spurious_means)
        truth = GaussianTruth(
            mixing=R,
            n_invariant=d_c,
            class_priors=checks.probabilities("class_priors", class_priors, K),
            invariant_means=mu_c,
            spurious_means=mu_e,
            sigma_invariant=sigma,
            sigma_spurious=_spurious_sigmas(streams, E, sigma, sigma_spurious),
        )
    return truth.sample(n_samples, random_state=streams.child(Use.TRAIN))


def gaussian_truth(n_environments: int = 3, **parameters: Any) -> GaussianTruth | RegressionTruth:
    """The truth of :func:`make_gaussian_environments`, with no samples drawn.

    Parameters
    ----------
    n_environments : int, default=3
        Number of environments.
    **parameters
        Those of :func:`make_gaussian_environments`, ``random_state`` included.

    Examples
    --------
    >>> from isrlearn.datasets import gaussian_truth
    >>> truth = gaussian_truth(4, n_classes=3, n_invariant=2, n_spurious=3, random_state=0)
    >>> truth.moments.mean.shape, truth.coef.shape, truth.mean_rank
    ((3, 4, 5), (3, 5), 3)
    """
    return make_gaussian_environments(0, n_environments, **parameters).truth


# Every drawn parameter has a stream of its own below its environment's, so that giving one of
# them by hand leaves the others as they were.
_MEANS, _SIGMAS, _MAPS = range(3)


def _means(
    streams: Streams,
    K: int,
    E: int,
    d_c: int,
    d_s: int,
    symmetric: bool | None,
    invariant: ArrayLike | None,
    spurious: ArrayLike | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means of z_c, (K, d_c), and of z_e, (K, E, d_s): those given, else standard normal."""
    if symmetric and K != 2:
        raise ValueError(
            f"symmetric=True is the model of two classes, and n_classes={K}; leave symmetric out."
        )
    paired = K == 2 if symmetric is None else symmetric
    classes = () if paired else (K,)
    if invariant is None:
        invariant = streams.generator(Use.SHARED, _MEANS).standard_normal((*classes, d_c))
    if spurious is None:
        spurious = _per_environment(streams, E, (*classes, d_s))
    mu_c = checks.shaped("invariant_means", invariant, (*classes, d_c))
    mu_e = checks.shaped("spurious_means", spurious, (*classes, E, d_s))
    return (np.stack([-mu_c, mu_c]), np.stack([-mu_e, mu_e])) if paired else (mu_c, mu_e)


def _per_environment(streams: Streams, E: int, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Standard normal means of this shape for each environment, on the axis before the last."""
    each = [streams.generator(Use.ENVIRONMENT, e, _MEANS).standard_normal(shape) for e in range(E)]
    return np.stack(each, axis=-2)


def _spurious_sigmas(
    streams: Streams, E: int, sigma: float, given: float | ArrayLike | None
) -> NDArray[np.float64]:
    """Standard deviation of z_e in each environment: those given, else drawn."""
    if given is not None:
        return checks.positive_for_each("sigma_spurious", given, E)
    each = [streams.generator(Use.ENVIRONMENT, e, _SIGMAS).uniform(*_SIGMA_RANGE) for e in range(E)]
    return sigma * np.array(each)


def _regression(
    streams: Streams,
    E: int,
    d_c: int,
    d_s: int,
    invariant: ArrayLike | None,
    offsets: ArrayLike | None,
) -> dict[str, Any]:
    """Parameters of the paper's regression model: those given, else standard normal."""
    if invariant is None:
        invariant = streams.generator(Use.SHARED, _MEANS).standard_normal(d_c)
    if offsets is None:
        offsets = _per_environment(streams, E, (d_s,))
    rng = streams.generator(Use.SHARED, _MAPS)
    return {
        "invariant_mean": checks.shaped("invariant_means", invariant, (d_c,)),
        "weights": rng.standard_normal(d_c),
        "bias": float(rng.standard_normal()),
        "maps": np.array(
            [
                streams.generator(Use.ENVIRONMENT, e, _MAPS).standard_normal((d_s, d_c))
                for e in range(E)
            ]
        ),
        "gains": np.zeros((E, d_s)),
        "offsets": checks.shaped("spurious_means", offsets, (E, d_s)),
    }


def _refuse(**given: object) -> None:
    """Complain about parameters of classification that were given for regression."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} has no meaning for task='regression'; leave it out."
            )
