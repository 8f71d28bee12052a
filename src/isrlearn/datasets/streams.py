"""Independent random streams, each named by what it is for, from one seed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

RandomState = int | np.random.Generator | None


class Use(IntEnum):
    """What a stream is for; the numbers are part of every seeded data set and never change."""

    MIXING = 0
    SHARED = 1
    ENVIRONMENT = 2
    TRAIN = 3
    VALIDATION = 4
    TEST = 5
    PERMUTATION = 6


@dataclass(frozen=True)
class Streams:
    """A tree of random streams: a stream depends on its path and the seed, on nothing else.

    So one more environment, or more samples, leaves what was drawn for the others as it was.
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
        return Streams(self.entropy, (*self.path, *(int(step) for step in path)))

    def generator(self, *path: int) -> np.random.Generator:
        """A generator at the start of the stream at this path."""
        stream = self.child(*path)
        return np.random.default_rng(
            np.random.SeedSequence(stream.entropy, spawn_key=stream.path),
        )
