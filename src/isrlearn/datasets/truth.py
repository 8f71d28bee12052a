"""What a generator knows: latent features, linearly mixed, and the best invariant predictor."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.datasets import checks
from isrlearn.datasets.data import EnvironmentData, Splits
from isrlearn.datasets.streams import RandomState, Streams, Use


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearTruth(ABC):
    """A model of latent features ``z = (z_c, z_e)`` seen as ``x = R z = A z_c + B z_e``.

    Invariant features z_c relate to the target in the same way everywhere; spurious features
    z_e do so in a way that changes with the environment.

    Parameters
    ----------
    mixing : ndarray of shape (d, d)
        R, invertible; its first columns are A, the others B.
    n_invariant : int
        Dimension of z_c.
    """

    mixing: NDArray[np.float64]  # (d, d)
    n_invariant: int

    @property
    def n_features(self) -> int:
        """Number of features, d."""
        return len(self.mixing)

    @property
    def n_spurious(self) -> int:
        """Dimension of z_e."""
        return self.n_features - self.n_invariant

    @property
    @abstractmethod
    def n_environments(self) -> int:
        """Number of environments, E."""

    @property
    @abstractmethod
    def mean_rank(self) -> int:
        """Spurious dimensions along which cell means move between environments."""

    @property
    def A(self) -> NDArray[np.float64]:
        """The map of invariant features into x, (d, d_c)."""
        return self.mixing[:, : self.n_invariant]

    @property
    def B(self) -> NDArray[np.float64]:
        """The map of spurious features into x, (d, d_s)."""
        return self.mixing[:, self.n_invariant :]

    @cached_property
    def unmixing(self) -> NDArray[np.float64]:
        """The inverse of R, (d, d)."""
        return np.asarray(np.linalg.inv(self.mixing), dtype=np.float64)

    @cached_property
    def spurious_basis(self) -> NDArray[np.float64]:
        """An orthonormal basis of the span of B, (d, d_s)."""
        return np.asarray(np.linalg.qr(self.B)[0], dtype=np.float64)

    @property
    def coef(self) -> NDArray[np.float64]:
        """Weights of the optimal invariant predictor on x, shaped as scikit-learn does."""
        return self._invariant_head()[0] @ self.unmixing[: self.n_invariant]

    @property
    def intercept(self) -> Any:
        """Intercept of the optimal invariant predictor, shaped as scikit-learn does."""
        return self._invariant_head()[1]

    def latent(self, X: ArrayLike) -> NDArray[np.float64]:
        """The latent features of samples X, (n, d): invariant columns first."""
        return np.asarray(X, dtype=np.float64) @ self.unmixing.T

    def sample(
        self,
        n_samples: int | ArrayLike,
        *,
        random_state: RandomState | Streams = None,
        permuted: bool = False,
    ) -> EnvironmentData:
        """Samples of every environment, one environment after the other.

        Parameters
        ----------
        n_samples : int or array-like of shape (E,)
            Samples of each environment.
        random_state : int, Generator or None
            Where the draw comes from.
        permuted : bool, default=False
            Exchange z_e between the samples of an environment: its distribution stays, its
            relation to the target is gone.
        """
        each = checks.sizes(n_samples, self.n_environments)
        streams = Streams.of(random_state)
        Z = np.empty((sum(each), self.n_features))
        targets, start = [], 0
        for e, n in enumerate(each):
            rng = streams.generator(e)
            block = Z[start : start + n]
            targets.append(self._draw(e, block, rng))
            if permuted:
                block[:, self.n_invariant :] = rng.permutation(block[:, self.n_invariant :])
            start += n
        return EnvironmentData(
            self._mix(Z), np.concatenate(targets), np.repeat(np.arange(len(each)), each), self
        )

    def _mix(self, Z: NDArray[np.float64]) -> NDArray[np.float64]:
        """Observed features of latent ones."""
        return Z if np.array_equal(self.mixing, np.eye(self.n_features)) else Z @ self.mixing.T

    @abstractmethod
    def _draw(self, e: int, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[Any]:
        """Fill Z, (n, d), with latent features of environment e and return their targets."""

    @abstractmethod
    def _invariant_head(self) -> tuple[NDArray[np.float64], Any]:
        """Weights on z_c and intercept of the optimal invariant predictor."""


def span_of_shifts(means: NDArray[np.float64]) -> int:
    """Dimensions that means (..., E, d_s) span once each class's average is taken away."""
    shifts = means - means.mean(axis=-2, keepdims=True)
    return int(np.linalg.matrix_rank(shifts.reshape(-1, means.shape[-1]))) if means.size else 0


def draw_splits(truth: LinearTruth, n_samples: int | ArrayLike, streams: Streams) -> Splits:
    """Independent train and validation samples of the truth, and a test sample permuted."""
    return Splits(
        truth.sample(n_samples, random_state=streams.child(Use.TRAIN)),
        truth.sample(n_samples, random_state=streams.child(Use.VALIDATION)),
        truth.sample(n_samples, random_state=streams.child(Use.TEST), permuted=True),
    )


def permute_spurious(data: EnvironmentData, *, random_state: RandomState = None) -> EnvironmentData:
    """The data with spurious features exchanged between the samples of an environment.

    What is left to learn is the invariant predictor: this is the split the *oracle* of the
    linear unit tests is trained on.

    Parameters
    ----------
    data : EnvironmentData
        From a generator of this package, whose ``truth`` knows the mixing.
    random_state : int, Generator or None
        Where the permutations come from.

    Examples
    --------
    >>> from isrlearn.datasets import permute_spurious
    >>> from isrlearn.paper.datasets import make_linear_unit_test
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
    return EnvironmentData(truth._mix(Z), data.y, data.environments, truth)
