"""One training loop for all objectives; an interrupted run resumes from its checkpoint."""

import math
import os
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from isrlearn.datasets.parameters import integer
from isrlearn.io.files import check_writable
from isrlearn.paper.training.objectives import make_objective
from isrlearn.paper.training.run import (
    EpochRecord,
    Run,
    TrainingResult,
    check_settings,
    load_run,
    plain,
    save_run,
    seed_epoch,
    seeded,
)
from isrlearn.paper.training.task import Groups, Task, find_task
from isrlearn.progress import progress as progress_bar
from isrlearn.torch.batches import batches, model_device
from isrlearn.torch.features import evaluate


def train(
    model: nn.Module,
    loader: Iterable[Any],
    *,
    objective: str = "erm",
    validation: Iterable[Any] | None = None,
    task: str = "classification",
    epochs: int = 10,
    lr: float = 1e-2,
    optimizer: str = "sgd",
    momentum: float = 0.9,
    weight_decay: float = 0.0,
    decay: float = 0.1,
    decay_every: int | None = None,
    select: str = "worst",
    patience: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    device: Any = None,
    random_state: int = 0,
    progress: bool = False,
    **objective_parameters: Any,
) -> TrainingResult:
    """A trained copy of a network, by one of the methods whose features the paper post-processes.

    The result of an epoch depends only on the weights it starts from, `random_state` and its
    number: shuffling, dropout and augmentation draw from the global generators of torch, NumPy
    and Python, or from the loader's own; all of them are seeded at the start of each epoch and
    restored at the end of training. A run that is killed and started again with the same
    `checkpoint` therefore ends, on a CPU, with bitwise the same weights as an uninterrupted one.

    Parameters
    ----------
    model : torch.nn.Module
        The network to start from; it is not modified.
    loader : iterable
        Training batches ``(x, y, environment)``; see `extract_features`.
    objective : str, default="erm"
        "erm", "reweighting" (equal weight per group), "group_dro" (`step`), "irm" and "vrex"
        (`penalty`, `anneal_steps`), "ib_erm" (`bottleneck`, `layer`), "ib_irm" (all four),
        "mixup" (`alpha`) or "c_mixup" (`alpha`, `bandwidth`). Groups are the classes in each
        environment, or for regression the environments.
    validation : iterable, optional
        Validation batches. If given, the result has the weights of the best epoch.
    task : {"classification", "regression"}, default="classification"
        The loss: cross-entropy of one or K logits, or squared error.
    epochs : int, default=10
        Number of epochs. A finished run with a checkpoint continues if this is increased.
    lr : float, default=0.01
    optimizer : {"sgd", "adam"}, default="sgd"
    momentum : float, default=0.9
        Momentum of "sgd".
    weight_decay : float, default=0.0
        L2 penalty, as in the optimizers of torch.
    decay : float, default=0.1
        Factor by which the learning rate changes every `decay_every` epochs.
    decay_every : int, optional
        Number of epochs; by default the learning rate is constant.
    select : {"worst", "average"}, default="worst"
        Choose the best epoch by the score of the worst validation group, or of all validation
        samples: accuracy, or for regression RMSE. The other score breaks ties.
    patience : int, optional
        Stop after this many epochs without improvement. Needs `validation`.
    checkpoint : path, optional
        File to which the run is written after every epoch, and from which it resumes if the
        file exists. It is replaced atomically.
    device : torch.device or str, optional
        Where to train; default: where the model is.
    random_state : int, default=0
    progress : bool, default=False
        Show a progress bar, if on a terminal.
    **objective_parameters
        Parameters of the objective, as listed above.

    Returns
    -------
    TrainingResult
        Its model is in evaluation mode.

    Examples
    --------
    >>> import torch
    >>> from isrlearn.paper.training import train
    >>> x = torch.randn(64, 2, generator=torch.Generator().manual_seed(0))
    >>> batch = x, (x[:, 0] > 0).long(), torch.arange(64) % 2
    >>> result = train(torch.nn.Linear(2, 2), [batch], objective="vrex", penalty=1.0, epochs=50)
    >>> result.best_epoch, result.history[-1].loss < result.history[0].loss
    (50, True)
    """
    kind = find_task(task)
    integer("epochs", epochs, 1)
    if patience is not None and validation is None:
        raise ValueError(f"patience={patience!r} needs validation batches")
    given = {"objective": objective, "parameters": objective_parameters, "task": task, "lr": lr}
    given |= {"optimizer": optimizer, "momentum": momentum, "weight_decay": weight_decay}
    given |= {"decay": decay, "decay_every": decay_every, "select": select, "patience": patience}
    settings = plain(given | {"random_state": random_state})
    check_settings(settings)
    loss = make_objective(objective, settings["parameters"])
    place = model_device(model, device)
    run = Run(deepcopy(model).to(place), loss, settings)
    _resume(run, checkpoint, loader)
    with seeded(loader), progress_bar(epochs, "epochs", shown=progress) as advance:
        if loss.counts_groups and run.unfinished(epochs):
            seed_epoch(loader, settings["random_state"], 0)
            loss.groups = Groups.of(loader, kind)
        advance(len(run.history))
        while run.unfinished(epochs):
            _epoch(run, loader, validation, kind, place)
            advance(1)
            if checkpoint is not None:
                save_run(checkpoint, settings, run.state())
    return run.result()


def _resume(run: Run, checkpoint: Any, loader: Any) -> None:
    """Continue from a checkpoint, if there is one."""
    if checkpoint is None:
        return
    check_writable(checkpoint)
    if getattr(loader, "persistent_workers", False):
        raise ValueError(
            "the loader has persistent_workers=True: its workers keep their random numbers from "
            "epoch to epoch, so a resumed run would differ; set it to False"
        )
    state = load_run(checkpoint, run.settings)
    if state is not None:
        run.restore(state)


def _epoch(run: Run, loader: Any, validation: Any, task: Task, device: torch.device) -> None:
    """Train for one epoch, validate and record it."""
    number, lr = run.start_epoch()
    seed_epoch(loader, run.settings["random_state"], number)
    run.model.train()
    total, steps = 0.0, 0
    for batch in batches(loader, device):
        run.optimizer.zero_grad(set_to_none=True)
        loss = run.objective(run.model, batch, task)
        value = loss.item()
        if not math.isfinite(value):
            raise ValueError(
                f"the loss is {value} in batch {steps} of epoch {number}; lower lr={lr:g}, or "
                "check the inputs for NaN and infinity"
            )
        loss.backward()
        run.optimizer.step()
        total, steps = total + value, steps + 1
    record = EpochRecord(number, lr, total / steps)
    if validation is not None:
        report = evaluate(run.model, validation, task=task.name, device=device)
        record = record._replace(worst=report.worst, average=report.average)
    run.record(record, task.sign)
