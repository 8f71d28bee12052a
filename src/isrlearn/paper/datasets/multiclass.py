"""The multiclass linear unit test."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isrlearn.datasets.data import Splits
from isrlearn.datasets.parameters import RandomState, Streams, Use, integer, mixing_matrix, number
from isrlearn.datasets.truth import GaussianTruth
from isrlearn.paper.datasets.unit_tests import draw_splits


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

    Each class has a mean of its own, and each class in each environment a spurious one, all
    uniform on [0, 1); both kinds of features are scaled after the noise is added. In test the
    spurious features are permuted within each environment.

    Parameters
    ----------
    n_classes : int, default=3
        Number of classes, equally likely, named 0, 1, ….
    n_environments : int, default=3
        Number of environments, named 0, 1, …; one more leaves the others as they were.
    n_samples : int or array-like of shape (E,), default=10,000
        Samples of each environment in each split.
    n_invariant, n_spurious : int, default=5
        Dimensions of the two kinds of features.
    invariant_scale, spurious_scale : float, default=0.1 and 1.0
        What latent features are multiplied by, noise included.
    sigma_invariant, sigma_spurious : float, default=0.1
        Standard deviations before scaling.
    scramble : bool, default=True
        Put the features under a random orthogonal matrix.
    random_state : int, Generator or None
        Where all that is random comes from.

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
    E = integer("n_environments", n_environments, 1)
    d_c = integer("n_invariant", n_invariant, 1)
    d_s = integer("n_spurious", n_spurious, 0)
    nu_c = number("invariant_scale", invariant_scale, 0, above=True)
    nu_e = number("spurious_scale", spurious_scale, 0, above=True)
    streams = Streams.of(random_state)
    mixing = "orthogonal" if scramble else "identity"
    mu_e = [streams.generator(Use.ENVIRONMENT, e).random((K, d_s)) for e in range(E)]
    sigma_e = number("sigma_spurious", sigma_spurious, 0, above=True)
    truth = GaussianTruth(
        mixing=mixing_matrix(mixing, d_c + d_s, streams.generator(Use.MIXING)),
        n_invariant=d_c,
        class_priors=np.full(K, 1 / K),
        invariant_means=nu_c * streams.generator(Use.SHARED).random((K, d_c)),
        spurious_means=nu_e * np.stack(mu_e, axis=1),
        sigma_invariant=nu_c * number("sigma_invariant", sigma_invariant, 0, above=True),
        sigma_spurious=np.full(E, nu_e * sigma_e),
    )
    return draw_splits(truth, n_samples, streams)
