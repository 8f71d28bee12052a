"""What the parts of a diagnosis share: they turn into plain dicts."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def label(name: Any) -> Any:
    """A label as the user wrote it, without NumPy's type around it."""
    return name.item() if isinstance(name, np.generic) else name


def plain(value: Any) -> Any:
    """Dataclasses, arrays and NumPy's numbers as dicts, lists and Python's own.

    Numbers that JSON has no word for, NaN and infinities, become None.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    value = label(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
