"""The published linear unit tests as models to sample from."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isrlearn.core import Moments
from isrlearn.datasets.data import Splits
from isrlearn.datasets.parameters import RandomState, Streams, Use, integer, mixing_matrix
from isrlearn.datasets.truth import GaussianTruth, LinearTruth


@dataclass(frozen=True, eq=False, kw_only=True)
class CausalRegressionTruth(LinearTruth):
    r"""Causes and effects of a target, with noise that changes with the environment.

    .. math:: v = z_c W_{cy} + s_e \varepsilon, \qquad y = \textstyle\sum_i v_i, \qquad
              z_e = v W_{ys} + \eta, \qquad z_c \sim N(0, s_e^2 I)

    with standard normal noise of dimensions d_c and d_s.
    """

    causes: NDArray[np.float64]  # (d_c, d_c), W_cy
    effects: NDArray[np.float64]  # (d_c, d_s), W_ys
    noise: NDArray[np.float64]  # (E,), s_e: standard deviation of causes and target noise

    @property
    def spurious_means(self) -> NDArray[np.float64]:
        """Mean of z_e in each environment, (E, d_s): zero."""
        return np.zeros((len(self.noise), self.n_spurious))

    @cached_property
    def moments(self) -> Moments:
        """Exact moments of x in every environment, in one class."""
        d_c, d_s = self.n_invariant, self.n_spurious
        # z = s_e (z_c, noise of v) carried through the model, plus unit noise on z_e.
        carried = np.zeros((2 * d_c, d_c + d_s))
        carried[:d_c, :d_c] = np.eye(d_c)
        carried[:, d_c:] = np.vstack([self.causes, np.eye(d_c)]) @ self.effects
        signal, unit = self.mixing @ carried.T, self.B @ self.B.T
        covariance = self.noise[:, None, None] ** 2 * (signal @ signal.T) + unit
        return Moments.population(np.zeros((1, len(self.noise), d_c + d_s)), covariance[None])

    def _draw(
        self, e: int, Z: NDArray[np.float64], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        n, d_c, s = len(Z), self.n_invariant, self.noise[e]
        invariant, spurious = Z[:, :d_c], Z[:, d_c:]
        invariant[:] = s * rng.standard_normal((n, d_c))
        v = invariant @ self.causes + s * rng.standard_normal((n, d_c))
        spurious[:] = v @ self.effects + rng.standard_normal(spurious.shape)
        return np.asarray(v.sum(axis=1))

    def _invariant_head(self) -> tuple[NDArray[np.float64], float]:
        return self.causes.sum(axis=1), 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class CowsCamelsTruth(LinearTruth):
    """Animals that are faint in the image, and backgrounds that mostly agree with them.

    An animal a = +1 with probability `animal`, else -1; a background b = a with probability
    `agreement`, else -a. ``z_c = (a + noise) invariant_scale``, ``z_e = (b + noise)
    spurious_scale``; the label is 1 where the sum of z_c is positive.
    """

    animal: NDArray[np.float64]  # (E,) probabilities
    agreement: NDArray[np.float64]  # (E,) probabilities
    invariant_scale: float
    spurious_scale: float
    noise: float  # standard deviation, before scaling

    @property
    def spurious_means(self) -> NDArray[np.float64]:
        """Mean of z_e of one animal in each environment, (E, d_s)."""
        return self.spurious_scale * np.outer(2 * self.agreement - 1, np.ones(self.n_spurious))

    def _draw(self, e: int, Z: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
        n, d_c = len(Z), self.n_invariant
        animal = np.where(rng.random(n) < self.animal[e], 1.0, -1.0)
        background = np.where(rng.random(n) < self.agreement[e], animal, -animal)
        rng.standard_normal(out=Z)
        Z *= self.noise
        Z[:, :d_c] += animal[:, None]
        Z[:, d_c:] += background[:, None]
        Z[:, :d_c] *= self.invariant_scale
        Z[:, d_c:] *= self.spurious_scale
        return (Z[:, :d_c].sum(axis=1) > 0).astype(np.int64)

    def _invariant_head(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        # The label is the sign of the sum: any positive multiple of it predicts the same.
        return np.full((1, self.n_invariant), 1 / self.invariant_scale), np.zeros(1)


@dataclass(frozen=True)
class Frame:
    """What all unit tests share: the random streams, the dimensions, the mixing."""

    random_state: RandomState
    n_environments: int
    n_invariant: int
    n_spurious: int
    scramble: bool  # whether features are multiplied by a random orthogonal matrix

    def __post_init__(self) -> None:
        for name, low in (("n_environments", 1), ("n_invariant", 1), ("n_spurious", 0)):
            integer(name, getattr(self, name), low)

    @cached_property
    def streams(self) -> Streams:
        """The random streams."""
        return Streams.of(self.random_state)

    @property
    def shared(self) -> np.random.Generator:
        """A new generator of the parameters that all environments share."""
        return self.streams.generator(Use.SHARED)

    def rngs(self, *path: int) -> list[np.random.Generator]:
        """New generators of the parameters of each environment."""
        each = range(self.n_environments)
        return [self.streams.generator(Use.ENVIRONMENT, e, *path) for e in each]

    def splits(self, truth: LinearTruth, n_samples: int | ArrayLike) -> Splits:
        """Independent training and validation samples, and test samples with z_e permuted."""
        return Splits(
            truth.sample(n_samples, random_state=self.streams.child(Use.TRAIN)),
            truth.sample(n_samples, random_state=self.streams.child(Use.VALIDATION)),
            truth.sample(n_samples, random_state=self.streams.child(Use.TEST), permuted=True),
        )

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that all truths have."""
        kind = "orthogonal" if self.scramble else "identity"
        rng, d = self.streams.generator(Use.MIXING), self.n_invariant + self.n_spurious
        return {"mixing": mixing_matrix(kind, d, rng), "n_invariant": self.n_invariant}


def causal_regression(frame: Frame) -> CausalRegressionTruth:
    """Example-1; noise of environments beyond the third is 10 to a uniform exponent."""
    d_c, d_s, rng = frame.n_invariant, frame.n_spurious, frame.shared
    return CausalRegressionTruth(
        **frame.fields,
        causes=rng.standard_normal((d_c, d_c)) / d_c,
        effects=rng.standard_normal((d_c, d_s)) / max(d_s, 1),
        noise=_listed_first((0.1, 1.5, 2.0), [10.0 ** r.uniform(-2, 1) for r in frame.rngs()]),
    )


def cows_camels(frame: Frame) -> CowsCamelsTruth:
    """Example-2; probabilities of environments beyond the third are uniform."""
    drawn = np.array([[r.uniform(0.3, 0.7), r.uniform(0.9, 1.0)] for r in frame.rngs()])
    return CowsCamelsTruth(
        **frame.fields,
        animal=_listed_first((0.3, 0.5, 0.7), drawn[:, 0]),
        agreement=_listed_first((0.95, 0.97, 0.99), drawn[:, 1]),
        invariant_scale=0.01,
        spurious_scale=1.0,
        noise=0.1**0.5,
    )


def small_margin(frame: Frame, *, high: float = 0.1) -> GaussianTruth:
    """Example-3: class 0 has means +0.1 and +mu_e, class 1 has -0.1 and -mu_e.

    The spurious standard deviation of an environment is uniform from 0.1 to `high`.
    """
    # A separate stream, so that with the same seed the means do not depend on `high`.
    sigmas = np.array([rng.uniform(0.1, high) for rng in frame.rngs(1)])
    mu_c = np.full(frame.n_invariant, 0.1)
    mu_e = np.array([rng.standard_normal(frame.n_spurious) for rng in frame.rngs()])
    return GaussianTruth(
        **frame.fields,
        class_priors=np.array([0.5, 0.5]),
        invariant_means=np.stack([mu_c, -mu_c]),
        spurious_means=np.stack([mu_e, -mu_e]),
        sigma_invariant=0.1,
        sigma_spurious=sigmas,
        stratified=True,
    )


def _listed_first(listed: tuple[float, ...], drawn: ArrayLike) -> NDArray[np.float64]:
    """The drawn values, the first of them replaced by those listed."""
    values = np.array(drawn, dtype=np.float64)
    values[: len(listed)] = listed[: len(values)]
    return values
