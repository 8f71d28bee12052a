"""The state of a training run: settings, optimiser, epochs done and the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from isrlearn import validation as check
from isrlearn.paper.training.objectives import Objective


class EpochRecord(NamedTuple):
    """What one epoch came to.

    Examples
    --------
    >>> from isrlearn.paper.training import EpochRecord
    >>> EpochRecord(1, 0.1, 0.7, worst=0.5, average=0.6).loss
    0.7
    """

    epoch: int  # 1, 2, …
    lr: float
    loss: float  # mean over the batches of what was minimised
    worst: float | None = None  # validation score of the worst group
    average: float | None = None  # validation score of all samples


@dataclass(frozen=True, eq=False)
class TrainingResult:
    """A trained network and how it came about.

    Parameters
    ----------
    model : torch.nn.Module
        With the weights of the best epoch, or of the last one without validation.
    history : tuple of EpochRecord
    best_epoch : int
        The epoch, counted from 1, whose weights the model has.
    stopped_early : bool
        Whether patience ended before the epochs did.

    Examples
    --------
    >>> import torch
    >>> from isrlearn.paper.training import TrainingResult
    >>> TrainingResult(torch.nn.Linear(1, 1), (), 3, False).best_epoch
    3
    """

    model: nn.Module
    history: tuple[EpochRecord, ...]
    best_epoch: int
    stopped_early: bool


@dataclass(frozen=True)
class Settings:
    """What a run may not change half-way."""

    objective: str
    parameters: dict[str, Any]
    task: str
    lr: float
    optimizer: str
    momentum: float
    weight_decay: float
    decay: float
    decay_every: int | None
    select: str
    patience: int | None
    random_state: int

    def __post_init__(self) -> None:
        check.check_between("lr", self.lr, 0.0, np.inf)
        check.check_choice("optimizer", self.optimizer, ("sgd", "adam"))
        check.check_between("momentum", self.momentum, 0.0, 1.0)
        check.check_between("weight_decay", self.weight_decay, 0.0, np.inf)
        check.check_between("decay", self.decay, 0.0, 1.0)
        check.check_choice("select", self.select, ("worst", "average"))
        check_count("random_state", self.random_state, 0)
        for name in ("decay_every", "patience"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), 1)

    def make_optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        """An optimiser of the parameters that are not frozen."""
        parameters = [p for p in model.parameters() if p.requires_grad]
        if self.optimizer == "adam":
            return torch.optim.Adam(parameters, lr=self.lr, weight_decay=self.weight_decay)
        return torch.optim.SGD(
            parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay
        )

    def lr_at(self, epoch: int) -> float:
        """Learning rate of an epoch, counted from 1."""
        steps = 0 if self.decay_every is None else (epoch - 1) // self.decay_every
        return self.lr * self.decay**steps


class Run:
    """The state of a run between two epochs."""

    def __init__(self, model: nn.Module, objective: Objective, settings: Settings) -> None:
        self.model, self.objective, self.settings = model, objective, settings
        self.optimizer = settings.make_optimizer(model)
        self.history: list[EpochRecord] = []
        self.best: tuple[int, dict[str, Any]] | None = None  # epoch, state dict

    @property
    def waited(self) -> int:
        """Epochs since the best one."""
        return 0 if self.best is None else len(self.history) - self.best[0]

    @property
    def stopped(self) -> bool:
        """Whether patience has ended."""
        return self.settings.patience is not None and self.waited >= self.settings.patience

    def unfinished(self, epochs: int) -> bool:
        """Whether there is another epoch to do."""
        return len(self.history) < epochs and not self.stopped

    def record(self, record: EpochRecord, sign: int) -> None:
        """Add an epoch, and keep its weights if it is the best by validation."""
        if record.worst is not None:
            best = None if self.best is None else self.history[self.best[0] - 1]
            if best is None or self._score(record, sign) > self._score(best, sign):
                weights = {k: v.detach().clone() for k, v in self.model.state_dict().items()}
                self.best = record.epoch, weights
        self.history.append(record)

    def _score(self, record: EpochRecord, sign: int) -> tuple[float, ...]:
        """What to choose by; the other score decides between equals."""
        scores = [sign * value for value in (record.worst, record.average) if value is not None]
        return tuple(scores if self.settings.select == "worst" else reversed(scores))

    def state(self) -> dict[str, Any]:
        """All that is needed to go on, as tensors and plain values."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "objective": self.objective.state(),
            "history": [tuple(record) for record in self.history],
            "best": self.best,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.objective.restore(state["objective"])
        self.history = [EpochRecord(*record) for record in state["history"]]
        self.best = state["best"]

    def result(self) -> TrainingResult:
        """The run as it is, the model with its best weights."""
        epoch = len(self.history)
        if self.best is not None:
            epoch, weights = self.best
            self.model.load_state_dict(weights)
        self.model.eval()
        return TrainingResult(self.model, tuple(self.history), epoch, self.stopped)


def check_count(name: str, value: Any, least: int) -> None:
    """Raise unless value is an integer of at least that."""
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be an integer of at least {least}; got {value!r}")
