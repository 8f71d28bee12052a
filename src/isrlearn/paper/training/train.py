"""One loop for all objectives: train a network, and go on where a killed run stopped."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import asdict
from typing import Any

import torch
from torch import nn

from isrlearn._progress import progress as progress_bar
from isrlearn.io.files import check_writable
from isrlearn.paper.training._checkpoint import load_run, save_run
from isrlearn.paper.training._run import EpochRecord, Run, Settings, TrainingResult, check_count
from isrlearn.paper.training._seeds import seed_epoch, seeded
from isrlearn.paper.training.objectives import Groups, make_objective
from isrlearn.torch.batches import batches, model_device
from isrlearn.torch.evaluate import evaluate
from isrlearn.torch.task import Task, find_task


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
    """A trained copy of a network, by one of the methods that the paper post-processes.

    Every epoch is a function of the weights it starts from, `random_state` and its number:
    shuffling, dropout and augmentation draw from the global generators of torch, NumPy and
    Python, or from the loader's own, and all of them are seeded at the start of each epoch and
    put back at the end. So a run that is killed and started again with the same `checkpoint`
    ends, on a CPU, with the same weights to the last bit as one that was not.

    Parameters
    ----------
    model : torch.nn.Module
        Left as it is; the first weights are its own.
    loader : iterable
        Training batches ``(x, y, environment)``; see `extract_features`.
    objective : str, default="erm"
        "erm", "reweighting" (each group alike), "group_dro" (`step`), "irm" and "vrex"
        (`penalty`, `anneal_steps`), "ib_erm" (`bottleneck`, `layer`), "ib_irm" (all four),
        "mixup" (`alpha`) or "c_mixup" (`alpha`, `bandwidth`). Groups are the classes in each
        environment, or for regression the environments.
    validation : iterable, optional
        Validation batches. With them the model has the weights of the best epoch.
    task : {"classification", "regression"}, default="classification"
        Cross-entropy of one or K logits, or squared error.
    epochs : int, default=10
        A finished run with a checkpoint goes on if this grows.
    lr : float, default=0.01
    optimizer : {"sgd", "adam"}, default="sgd"
    momentum : float, default=0.9
        Of "sgd".
    weight_decay : float, default=0.0
        L2 penalty, as the optimisers of torch have it.
    decay : float, default=0.1
        Factor of the learning rate after every `decay_every` epochs.
    decay_every : int, optional
        Default: a constant learning rate.
    select : {"worst", "average"}, default="worst"
        Best epoch by the score of the worst validation group, or of all validation samples:
        accuracy, or for regression RMSE. The other one decides between equals.
    patience : int, optional
        Stop when that many epochs in a row were not better than the best. Needs `validation`.
    checkpoint : path, optional
        File that holds the run after every epoch, and from which it goes on if it is there. It
        is replaced as a whole, never in part.
    device : torch.device or str, optional
        Where to train; default: where the model is.
    random_state : int, default=0
    progress : bool, default=False
        Draw a bar, if on a terminal.
    **objective_parameters
        Parameters of the objective, named above.

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
    check_count("epochs", epochs, 1)
    if patience is not None and validation is None:
        raise ValueError(f"patience={patience!r} needs validation batches to be judged by")
    loss = make_objective(objective, objective_parameters)
    settings = Settings(
        objective,
        objective_parameters,
        task,
        lr,
        optimizer,
        momentum,
        weight_decay,
        decay,
        decay_every,
        select,
        patience,
        random_state,
    )
    place = model_device(model, device)
    run = Run(deepcopy(model).to(place), loss, settings)
    _resume(run, checkpoint, loader)
    with seeded(loader), progress_bar(epochs, "epochs", shown=progress) as advance:
        if loss.counts_groups and run.unfinished(epochs):
            seed_epoch(loader, random_state, 0)
            loss.groups = Groups.of(loader, kind)
        advance(len(run.history))
        while run.unfinished(epochs):
            _epoch(run, loader, validation, kind, place)
            advance(1)
            if checkpoint is not None:
                save_run(checkpoint, asdict(settings), run.state())
    return run.result()


def _resume(run: Run, checkpoint: Any, loader: Any) -> None:
    """Go on from a checkpoint, if there is one."""
    if checkpoint is None:
        return
    check_writable(checkpoint)
    if getattr(loader, "persistent_workers", False):
        raise ValueError(
            "the loader has persistent_workers=True: its workers carry their random numbers from "
            "epoch to epoch, so a run could not go on as it would have; set it to False"
        )
    state = load_run(checkpoint, asdict(run.settings))
    if state is not None:
        run.restore(state)


def _epoch(run: Run, loader: Any, validation: Any, task: Task, device: torch.device) -> None:
    """Train for one epoch, validate and record it."""
    number = len(run.history) + 1
    seed_epoch(loader, run.settings.random_state, number)
    lr = run.settings.lr_at(number)
    for group in run.optimizer.param_groups:
        group["lr"] = lr
    run.model.train()
    total, steps = 0.0, 0
    for batch in batches(loader, device):
        run.optimizer.zero_grad(set_to_none=True)
        loss = run.objective(run.model, batch, task)
        value = loss.item()
        if not math.isfinite(value):
            raise ValueError(
                f"the loss is {value} in batch {steps} of epoch {number}; lower lr={lr:g}, or look "
                "for NaN and infinity in the inputs"
            )
        loss.backward()
        run.optimizer.step()
        total, steps = total + value, steps + 1
    record = EpochRecord(number, lr, total / steps)
    if validation is not None:
        report = evaluate(run.model, validation, task=task.name, device=device)
        record = record._replace(worst=report.worst, average=report.average)
    run.record(record, task.sign)
