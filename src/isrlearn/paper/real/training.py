"""Networks trained on splits in memory or on disk, and the features they give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets import EnvironmentData, Splits
from isrlearn.paper.real.features import TrainedFeatures

__all__ = ["Batches", "one_thread", "trained_features"]

#: Turns samples, or paths, of some rows into a tensor.
Reader = Callable[[NDArray], Any]


class Batches:
    """Batches ``(x, y, environment)`` of samples, shuffled by torch's global generator.

    Parameters
    ----------
    data : EnvironmentData
    codes : (y, environments)
        Numbers of each sample.
    size : int
    shuffle : bool
    read : callable, optional
        From rows of X to a tensor; by default X holds the samples themselves.
    """

    def __init__(
        self,
        data: EnvironmentData,
        codes: tuple[NDArray, NDArray],
        size: int,
        shuffle: bool,
        read: Reader | None = None,
    ) -> None:
        import torch

        self._X, self._read, self._size, self._shuffle = data.X, read, size, shuffle
        self._y, self._environments = (torch.from_numpy(np.ascontiguousarray(c)) for c in codes)

    def __len__(self) -> int:
        return -(-len(self._y) // self._size)

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        import torch

        n = len(self._y)
        order = torch.randperm(n) if self._shuffle else torch.arange(n)
        for rows in order.split(self._size):
            x = self._X[rows.numpy()]
            x = torch.from_numpy(x) if self._read is None else self._read(x)
            yield x, self._y[rows], self._environments[rows]


def trained_features(
    splits: Splits,
    model: Any,
    objective: str,
    *,
    regression: bool,
    seed: int,
    batch_size: int = 128,
    read: Reader | None = None,
    layer: str = "fc",
    validate: bool = True,
    settings: Mapping[str, Any] | None = None,
) -> TrainedFeatures:
    """Features, and the head, of a network trained on the training split.

    Parameters
    ----------
    splits : Splits
    model : torch.nn.Module
    objective : str
        A name that `isrlearn.paper.training.train` knows.
    regression : bool
    seed : int
    batch_size : int, default=128
    read : callable, optional
        From rows of X to a tensor.
    layer : str, default="fc"
        The last layer.
    validate : bool, default=True
        Keep the epoch with the best worst validation group.
    settings : mapping, optional
        Further parameters of `isrlearn.paper.training.train`.
    """
    from isrlearn.paper.training import train
    from isrlearn.torch import extract_features

    codes = _codes(splits.train, regression)
    parts = (splits.train, splits.validation, splits.test)
    loaders = [Batches(part, codes(part), 512, False, read) for part in parts]
    with one_thread():
        result = train(
            model,
            Batches(splits.train, codes(splits.train), batch_size, True, read),
            objective=objective,
            validation=loaders[1] if validate else None,
            task="regression" if regression else "classification",
            random_state=seed,
            **(settings or {}),
        )
        found = [extract_features(result.model, loader, layer).X for loader in loaders]
    last = result.model.get_submodule(layer)
    head = last.weight.detach().numpy(), last.bias.detach().numpy()
    named = (replace(part, X=X, truth=None) for part, X in zip(parts, found, strict=True))
    return TrainedFeatures(Splits(*named), head)


def _codes(
    train: EnvironmentData, regression: bool
) -> Callable[[EnvironmentData], tuple[NDArray, NDArray]]:
    """Numbers of labels and environments, by their places among those of training."""
    classes, names = np.unique(train.y), np.unique(train.environments)

    def codes(data: EnvironmentData) -> tuple[NDArray, NDArray]:
        y = data.y.astype(np.float32) if regression else np.searchsorted(classes, data.y)
        return y, np.searchsorted(names, data.environments)

    return codes


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread: sums in another order would give other weights."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
