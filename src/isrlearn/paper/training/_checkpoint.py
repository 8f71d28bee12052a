"""Training runs on disk: whole or not there, and gone on with only by the same run."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import torch

from isrlearn.io.files import atomic_write

#: Raised when what a checkpoint holds changes.
_VERSION = 1
_KIND = "isrlearn training run"


def save_run(path: str | os.PathLike[str], settings: dict[str, Any], state: dict[str, Any]) -> None:
    """Put a run's state in the place of the one before it."""
    with atomic_write(path) as file:
        torch.save({"kind": _KIND, "version": _VERSION, "settings": settings, **state}, file)


def load_run(path: str | os.PathLike[str], settings: dict[str, Any]) -> dict[str, Any] | None:
    """The state of a run with these settings; None if there is no file."""
    if not Path(path).exists():
        return None
    try:
        # Tensors and plain values only: a checkpoint from elsewhere runs no code.
        run = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError, EOFError, ValueError):
        run = None
    if not isinstance(run, dict) or run.get("kind") != _KIND or run.get("version") != _VERSION:
        raise ValueError(
            f"{os.fspath(path)!r} is not a training run that this version can go on with; name "
            "another file, or delete it to start anew"
        )
    for name, value in settings.items():
        if run["settings"].get(name) != value:
            raise ValueError(
                f"{os.fspath(path)!r} holds a run with {name}={run['settings'].get(name)!r}, and "
                f"now it is {value!r}; name another file, or delete it to start anew"
            )
    return run
