"""The state of a training run: settings, epochs done, checkpoints and random numbers."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from isrlearn.datasets.parameters import integer
from isrlearn.io import ModelFileError
from isrlearn.io.files import atomic_write
from isrlearn.paper.training.objectives import Objective
from isrlearn.validation import check_between, check_choice

#: How a checkpoint begins, with a version; a SHA-256 checksum of the rest follows.
_MAGIC = b"isrlearn training run 2\n"


class EpochRecord(NamedTuple):
    """Loss and validation scores of one epoch.

    Examples
    --------
    >>> from isrlearn.paper.training import EpochRecord
    >>> EpochRecord(1, 0.1, 0.7, worst=0.5, average=0.6).loss
    0.7
    """

    epoch: int  # 1, 2, …
    lr: float
    loss: float  # mean over the batches of the objective
    worst: float | None = None  # validation score of the worst group
    average: float | None = None  # validation score over all samples


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained network and the history of its training.

    Examples
    --------
    >>> import torch
    >>> from isrlearn.paper.training import TrainingResult
    >>> TrainingResult(torch.nn.Linear(1, 1), (), 3, False).best_epoch
    3
    """

    model: nn.Module  # with the weights of the best epoch, or of the last one without validation
    history: tuple[EpochRecord, ...]
    best_epoch: int  # the epoch, counted from 1, that the weights come from
    stopped_early: bool  # because patience was exhausted


def check_settings(settings: dict[str, Any]) -> None:
    """Raise unless the settings of a run, which stay the same when it is resumed, are legal."""
    for name, high in (("lr", np.inf), ("momentum", 1.0), ("weight_decay", np.inf), ("decay", 1.0)):
        check_between(name, settings[name], 0.0, high)
    check_choice("optimizer", settings["optimizer"], ("sgd", "adam"))
    check_choice("select", settings["select"], ("worst", "average"))
    integer("random_state", settings["random_state"], 0)
    for name in ("decay_every", "patience"):
        if settings[name] is not None:
            integer(name, settings[name], 1)


class Run:
    """The state of a run between two epochs."""

    def __init__(self, model: nn.Module, objective: Objective, settings: dict[str, Any]) -> None:
        self.model, self.objective, self.settings = model, objective, settings
        free = [p for p in model.parameters() if p.requires_grad]
        given = {name: settings[name] for name in ("lr", "weight_decay")}
        if settings["optimizer"] == "adam":
            # Fused: one pass over the weights, a third off a step of a ResNet-18 on a processor.
            self.optimizer: torch.optim.Optimizer = torch.optim.Adam(free, fused=True, **given)
        else:
            self.optimizer = torch.optim.SGD(free, momentum=settings["momentum"], **given)
        self.history: list[EpochRecord] = []
        self.best: tuple[int, dict[str, Any]] | None = None  # epoch, state dict

    @property
    def stopped(self) -> bool:
        """Whether patience is exhausted by the epochs since the best one."""
        waited = 0 if self.best is None else len(self.history) - self.best[0]
        return self.settings["patience"] is not None and waited >= self.settings["patience"]

    def unfinished(self, epochs: int) -> bool:
        """Whether epochs remain."""
        return len(self.history) < epochs and not self.stopped

    def start_epoch(self) -> tuple[int, float]:
        """Number, from 1, and learning rate of the next epoch, which the optimizer now has."""
        number, every = len(self.history) + 1, self.settings["decay_every"]
        lr = self.settings["lr"] * self.settings["decay"] ** ((number - 1) // every if every else 0)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        return number, lr

    def record(self, record: EpochRecord, sign: int) -> None:
        """Add an epoch, and keep its weights if its validation score is the best."""
        if record.worst is not None:
            best = None if self.best is None else self.history[self.best[0] - 1]
            if best is None or self._score(record, sign) > self._score(best, sign):
                weights = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
                self.best = record.epoch, weights
        self.history.append(record)

    def _score(self, record: EpochRecord, sign: int) -> tuple[float, ...]:
        """The scores to compare epochs by; the second breaks ties."""
        scores = [sign * value for value in (record.worst, record.average) if value is not None]
        return tuple(scores if self.settings["select"] == "worst" else reversed(scores))

    def state(self) -> dict[str, Any]:
        """Everything needed to resume, as tensors and plain values."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "objective": self.objective.state(),
            "history": [tuple(record) for record in self.history],
            "best": self.best,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        try:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.objective.restore(state["objective"])
            self.history = [EpochRecord(*record) for record in state["history"]]
            self.best = state["best"]
        except (AttributeError, KeyError, RuntimeError, TypeError, ValueError) as error:
            raise ValueError(f"the checkpoint holds a run of another network: {error}") from error

    def result(self) -> TrainingResult:
        """The result so far, with the best weights."""
        epoch = len(self.history)
        if self.best is not None:
            epoch, weights = self.best
            self.model.load_state_dict(weights)
        self.model.eval()
        return TrainingResult(self.model, tuple(self.history), epoch, self.stopped)


def plain(value: Any) -> Any:
    """Settings with scalars of NumPy and torch, or paths, as values that a checkpoint can hold."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if getattr(value, "ndim", None) == 0:
        return value.item()
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def save_run(path: str | os.PathLike[str], settings: dict[str, Any], state: dict[str, Any]) -> None:
    """Replace the checkpoint by this state, atomically."""
    buffer = BytesIO()
    torch.save({"settings": settings, **state}, buffer)
    content = buffer.getbuffer()
    with atomic_write(path) as file:
        file.write(_MAGIC + sha256(content).digest())
        file.write(content)


def load_run(path: str | os.PathLike[str], settings: dict[str, Any]) -> dict[str, Any] | None:
    """The state of a run with these settings, or None if the file does not exist."""
    if not Path(path).exists():
        return None
    name, again = repr(os.fspath(path)), "name another file, or delete it to start again"
    data, start = Path(path).read_bytes(), len(_MAGIC) + 32
    if not data.startswith(_MAGIC):
        raise ModelFileError(f"{name} is not a training run that this version can resume; {again}")
    content = memoryview(data)[start:]
    if sha256(content).digest() != data[len(_MAGIC) : start]:
        raise ModelFileError(f"{name} is damaged: its checksum does not match; {again}")
    try:
        # Tensors and plain values only, so that a checkpoint cannot run code.
        run = torch.load(BytesIO(content), map_location="cpu", weights_only=True)
        saved = dict(run["settings"])
    except Exception as error:  # torch has no class for what a forged file can raise
        raise ModelFileError(f"{name} is not a training run: {error}; {again}") from error
    for key, value in settings.items():
        if saved.get(key) != value:
            raise ValueError(
                f"{name} holds a run with {key}={saved.get(key)!r}, but now it is {value!r}; "
                f"{again}"
            )
    return run


@contextmanager
def seeded(loader: Any) -> Iterator[None]:
    """A context in which all generators may be seeded; their states are restored at its end."""
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
    """Seed every generator for an epoch, independently of what was drawn before."""
    seed = int(np.random.SeedSequence([random_state, epoch]).generate_state(1, np.uint64)[0]) >> 1
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    random.seed(seed)
    for generator in _generators(loader):
        generator.manual_seed(seed)
    # Samplers of distributed training need the epoch.
    set_epoch = getattr(getattr(loader, "sampler", None), "set_epoch", None)
    if set_epoch is not None:
        set_epoch(epoch)


def _generators(loader: Any) -> list[torch.Generator]:
    """The generators of a loader and its samplers, each once."""
    own, batched = (getattr(loader, name, None) for name in ("sampler", "batch_sampler"))
    holders = [loader, own, batched, getattr(batched, "sampler", None)]
    found = [getattr(holder, "generator", None) for holder in holders]
    unique = {id(generator): generator for generator in found}
    return [g for g in unique.values() if isinstance(g, torch.Generator)]
