"""Parameters of the generators: those a caller gave, checked, and those drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

RandomState = int | np.random.Generator | None
T = TypeVar("T")

# Bounds the condition number of "random" mixing: singular values in [10^-1/2, 10^1/2].
_LARGEST_CONDITION = 10.0


def integer(name: str, value: object, low: int) -> int:
    """The value, if it is an integer of at least `low`."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < low:
        raise ValueError(f"{name}={value!r} must be an integer, {low} or more.")
    return int(value)


def number(
    name: str, value: float, low: float = -np.inf, high: float = np.inf, *, above: bool = False
) -> float:
    """The value, if it is a finite number in [low, high], or in (low, high] when `above`."""
    return float(numbers(name, value, (), low, high, above=above))


def numbers(
    name: str,
    value: ArrayLike,
    shape: tuple[int, ...],
    low: float = -np.inf,
    high: float = np.inf,
    *,
    above: bool = False,
) -> NDArray[np.float64]:
    """A float copy of the value, of this shape and within these bounds."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r} must hold numbers, in the shape {shape}.") from None
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}; it must have {shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity; every value must be finite.")
    if ((array <= low) if above else (array < low)).any() or (array > high).any():
        left, right = "(" if above else "[", ")" if high == np.inf else "]"
        verb = "have every entry" if shape else "be"
        raise ValueError(f"{name}={value!r} must {verb} in {left}{low:g}, {high:g}{right}.")
    return array


def counts(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Numbers of samples in this shape, from as many of them or from one for all."""
    array = numbers(name, np.full(shape, value) if np.ndim(value) == 0 else value, shape)
    if (array < 0).any() or (array != np.round(array)).any():
        raise ValueError(f"{name}={value!r} must hold integers, 0 or more.")
    return array.astype(np.int64)


def choice(name: str, value: object, legal: Mapping[str, T]) -> T:
    """The entry of `legal` under this name."""
    if not isinstance(value, str) or value not in legal:
        raise ValueError(f"{name}={value!r} is unknown; use one of {', '.join(map(repr, legal))}.")
    return legal[value]


class Use(IntEnum):
    """What a random stream is for; the numbers are part of every seeded data set, never change."""

    MIXING = 0
    SHARED = 1
    ENVIRONMENT = 2
    TRAIN = 3
    VALIDATION = 4
    TEST = 5
    PERMUTATION = 6


SPLITS = (Use.TRAIN, Use.VALIDATION, Use.TEST)


@dataclass(frozen=True)
class Streams:
    """A tree of random streams: each depends on the seed and on its own path only.

    More environments, or more samples, therefore leave what was drawn for the others unchanged.
    """

    entropy: int
    path: tuple[int, ...] = ()

    @classmethod
    def of(cls, random_state: RandomState | Streams) -> Streams:
        """The root of the streams of a seed, a generator (which advances) or fresh entropy."""
        if isinstance(random_state, Streams):
            return random_state
        if random_state is None:
            return cls(int(np.random.SeedSequence().generate_state(1, np.uint64)[0]))
        if isinstance(random_state, np.random.Generator):
            return cls(int(random_state.integers(2**63)))
        if isinstance(random_state, (int, np.integer)) and random_state >= 0:
            return cls(int(random_state))
        raise ValueError(
            f"random_state={random_state!r} is not a seed; pass a non-negative integer, a "
            "numpy.random.Generator, or None for a different draw every time."
        )

    def child(self, *path: int) -> Streams:
        """The streams below this one."""
        return Streams(self.entropy, (*self.path, *path))

    def generator(self, *path: int) -> np.random.Generator:
        """A generator at the start of the stream at this path."""
        seed = np.random.SeedSequence(self.entropy, spawn_key=(*self.path, *path))
        return np.random.default_rng(seed)


def mixing_matrix(kind: str, d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The matrix R, (d, d), from latent to observed features."""
    kinds = {"identity": lambda *_: np.eye(d), "orthogonal": _orthogonal, "random": _random}
    return choice("mixing", kind, kinds)(d, rng)


def _orthogonal(d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    Q, R = np.linalg.qr(rng.standard_normal((d, d)))
    # Without the signs of R's diagonal, Q depends on LAPACK's convention and is not uniform.
    return np.asarray(Q * np.sign(np.diag(R)))


def _random(d: int, rng: np.random.Generator) -> NDArray[np.float64]:
    half = np.log10(_LARGEST_CONDITION) / 2
    singular_values = 10.0 ** rng.uniform(-half, half, d)
    return _orthogonal(d, rng) * singular_values @ _orthogonal(d, rng)
