"""Features of trained networks, and files that keep them so that each network is trained once."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.datasets import EnvironmentData, Splits
from isrlearn.io.features import feature_arrays, load_features
from isrlearn.paper.tables import write_files

#: From the samples, or paths, of some rows to a tensor.
Reader = Callable[[NDArray], Any]


@dataclass(frozen=True, eq=False)
class TrainedFeatures:
    """Features of training, validation and test samples, and the network's last layer."""

    splits: Splits
    #: Coefficients, a row per sorted class or one, and intercept; None of an untrained encoder.
    head: tuple[NDArray, NDArray] | None


def mapped(splits: Splits, change: Callable[[NDArray], NDArray]) -> Splits:
    """The splits with X changed by a function."""
    parts = (splits.train, splits.validation, splits.test)
    return Splits(*(replace(part, X=change(part.X)) for part in parts))


def as_oracle(splits: Splits, trained_with: str) -> tuple[Splits, str]:
    """Splits and objective of a network; the oracle is trained by ERM on the test split."""
    if trained_with != "oracle":
        return splits, trained_with
    return replace(splits, train=splits.test), "erm"


def cached_features(
    make: Callable[[Path], TrainedFeatures], folder: Path, name: str, options: Mapping[str, Any]
) -> TrainedFeatures:
    """Features from the file of this name and these options, or from `make`, then written to it.

    `make` gets the path of a checkpoint, from which an interrupted training resumes.
    """
    text = json.dumps(dict(options), sort_keys=True, default=str)
    path = folder / f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        checkpoint = path.with_suffix(".run")
        write_files(folder, {path.name: _packed(make(checkpoint))})
        checkpoint.unlink(missing_ok=True)
    splits = load_features(path)
    with np.load(path, allow_pickle=False) as archive:
        head = (archive["coef"], archive["intercept"]) if "coef" in archive.files else None
    return TrainedFeatures(splits, head)


def _packed(found: TrainedFeatures) -> bytes:
    """The contents of an .npz file."""
    arrays = feature_arrays(found.splits)
    arrays["X"] = arrays["X"].astype(np.float32)
    if found.head is not None:
        arrays["coef"], arrays["intercept"] = found.head
    out = io.BytesIO()
    np.savez(out, **arrays)  # type: ignore[arg-type]
    return out.getvalue()


@dataclass(frozen=True, eq=False)
class Batches:
    """Batches ``(x, y, environment)`` of samples, shuffled by torch's global generator."""

    X: NDArray  # samples, or what `read` turns into a tensor
    y: Any  # tensor of targets or of codes of classes
    environments: Any  # tensor of codes
    size: int
    shuffle: bool
    read: Reader | None

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        import torch

        n = len(self.y)
        order = torch.randperm(n) if self.shuffle else torch.arange(n)
        for rows in order.split(self.size):
            x = self.X[rows.numpy()]
            x = torch.from_numpy(x) if self.read is None else self.read(x)
            yield x, self.y[rows], self.environments[rows]


def trained_features(
    splits: Splits,
    model: Any,
    objective: str,
    settings: Mapping[str, Any],
    *,
    seed: int,
    batch_size: int,
    regression: bool = False,
    read: Reader | None = None,
    layer: str = "fc",
    validate: bool = True,
    checkpoint: Path | None = None,
) -> TrainedFeatures:
    """Features and head of a network trained on the training split with further settings."""
    import torch

    from isrlearn.paper.training import train
    from isrlearn.torch import extract_features

    classes, names = np.unique(splits.train.y), np.unique(splits.train.environments)

    def loader(data: EnvironmentData, size: int = 512, shuffle: bool = False) -> Batches:
        y = data.y.astype(np.float32) if regression else np.searchsorted(classes, data.y)
        e = np.searchsorted(names, data.environments)
        return Batches(data.X, torch.from_numpy(y), torch.from_numpy(e), size, shuffle, read)

    parts = (splits.train, splits.validation, splits.test)
    with one_thread():
        result = train(
            model,
            loader(splits.train, batch_size, shuffle=True),
            objective=objective,
            validation=loader(splits.validation) if validate else None,
            task="regression" if regression else "classification",
            device=accelerator(),
            random_state=seed,
            checkpoint=checkpoint,
            **settings,
        )
        found = [extract_features(result.model, loader(part), layer).X for part in parts]
    last = result.model.get_submodule(layer).cpu()
    head = last.weight.detach().numpy(), last.bias.detach().numpy()
    named = (replace(part, X=X, truth=None) for part, X in zip(parts, found, strict=True))
    return TrainedFeatures(Splits(*named), head)


def accelerator() -> Any:
    """The GPU that torch finds, or the processor."""
    import torch

    return torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, since sums in another order would give other weights."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
