"""Random numbers of an epoch that depend on the seed and the epoch alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


@contextmanager
def seeded(loader: Any) -> Iterator[None]:
    """A context in which generators may be seeded: afterwards they are as they were.

    These are the global ones of torch, NumPy and Python, which loaders, augmentations and
    dropout draw from, and any that the loader and its samplers hold.
    """
    own = [(generator, generator.get_state()) for generator in _generators(loader)]
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    devices = range(torch.cuda.device_count())
    try:
        with torch.random.fork_rng(devices=devices):
            yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
        for generator, state in own:
            generator.set_state(state)


def seed_epoch(loader: Any, random_state: int, epoch: int) -> None:
    """Seed every generator for an epoch, whatever was drawn before it."""
    seed = int(np.random.SeedSequence([random_state, epoch]).generate_state(1, np.uint64)[0]) >> 1
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    random.seed(seed)
    for generator in _generators(loader):
        generator.manual_seed(seed)
    # The samplers of distributed training are told the epoch.
    set_epoch = getattr(getattr(loader, "sampler", None), "set_epoch", None)
    if set_epoch is not None:
        set_epoch(epoch)


def _generators(loader: Any) -> list[torch.Generator]:
    """The generators that a loader and its samplers hold, each once."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    holders = [
        loader,
        getattr(loader, "sampler", None),
        batch_sampler,
        getattr(batch_sampler, "sampler", None),
    ]
    found = [getattr(holder, "generator", None) for holder in holders]
    unique = {id(generator): generator for generator in found}
    return [g for g in unique.values() if isinstance(g, torch.Generator)]
