"""What is needed to get the same model again: parameters, Python, versions."""

from __future__ import annotations

import inspect
import platform
from typing import Any

import numpy as np
import scipy
import sklearn

from isrlearn import __version__

_LONGEST = 4000


def python_source(estimator: Any, sources: dict[str, str]) -> str:
    """Python that fits the model again.

    Examples
    --------
    >>> from isrlearn import ISRRegressor
    >>> print(python_source(ISRRegressor(2), {"train": "a.csv", "label": "y", "environment": "e"}))
    from isrlearn import ISRRegressor
    from isrlearn.io import read_table
    <BLANKLINE>
    train = read_table("a.csv", label="y", environment="e")
    model = ISRRegressor(n_spurious=2)
    model.fit(train.X, train.y, environments=train.environments)
    """
    kind = type(estimator).__name__
    lines = [f"from isrlearn import {kind}"]
    if sources.get("train"):
        given = [_quoted(sources["train"])]
        for name in ("label", "environment", "labels", "features"):
            if sources.get(name):
                given.append(f"{name}={_quoted(sources[name])}")
        lines += ["from isrlearn.io import read_table", ""]
        lines.append(f"train = read_table({', '.join(given)})")
    else:
        lines += ["", "# train: the features, labels and environments of the training rows"]
    settings = ", ".join(f"{name}={_value(value)}" for name, value in changed(estimator).items())
    lines.append(f"model = {kind}({settings})")
    lines.append("model.fit(train.X, train.y, environments=train.environments)")
    return "\n".join(lines)


def changed(estimator: Any) -> dict[str, Any]:
    """Parameters that differ from their defaults.

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> changed(ISRClassifier(n_spurious=2, C=1.0))
    {'n_spurious': 2}
    """
    defaults = inspect.signature(type(estimator)).parameters
    return {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if not _same(value, defaults[name].default)
    }


def parameters(estimator: Any) -> list[tuple[str, str]]:
    """All parameters as text, those that were changed first."""
    own = changed(estimator)
    rest = {k: v for k, v in estimator.get_params(deep=False).items() if k not in own}
    return [(name, _value(value)) for name, value in {**own, **rest}.items()]


def versions() -> list[tuple[str, str]]:
    """Libraries that take part and their versions."""
    return [
        ("isrlearn", __version__),
        ("numpy", np.__version__),
        ("scipy", scipy.__version__),
        ("scikit-learn", sklearn.__version__),
        ("Python", platform.python_version()),
    ]


def short(text: str) -> str:
    """A text that is not too long for a page."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + " …"


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and not isinstance(value, tuple) and value == default


def _value(value: Any) -> str:
    """A parameter as Python would write it, where that is short."""
    if isinstance(value, tuple):
        return "(coef, intercept)"
    value = value.item() if isinstance(value, np.generic) else value
    return short(" ".join(repr(value).split()))


def _quoted(text: Any) -> str:
    """Text or texts as Python literals, in double quotes where that does."""
    if not isinstance(text, str):
        return "[" + ", ".join(map(_quoted, text)) + "]"
    literal = repr(text)
    return f'"{text}"' if literal == f"'{text}'" and '"' not in text else literal
