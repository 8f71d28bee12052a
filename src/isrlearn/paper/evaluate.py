"""Cells of the same data, fitted and scored one after the other."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from isrlearn.datasets import EnvironmentData
from isrlearn.paper.datasets import permute_spurious
from isrlearn.paper.experiments import EXPERIMENTS
from isrlearn.paper.methods import METHODS
from isrlearn.paper.records import CellKey, Record

__all__ = ["Failure", "Group", "evaluate", "test_errors"]


@dataclass(frozen=True)
class Group:
    """Cells that share their data: same data set, number of environments and seed.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    keys : tuple of CellKey
        The cells.

    Examples
    --------
    >>> key = CellKey("3s", "erm", 2, 0, "converged", {}, {"n_samples": 100})
    >>> Group("linear-unit-tests", (key,)).keys[0].method
    'erm'
    """

    experiment: str
    keys: tuple[CellKey, ...]


@dataclass(frozen=True)
class Failure:
    """A cell that raised an error; it is not recorded, so that a further run tries it again.

    Parameters
    ----------
    key : CellKey
        The cell.
    message : str
        What was raised.

    Examples
    --------
    >>> Failure(CellKey("3s", "erm", 2, 0, "converged"), "ValueError: no").message
    'ValueError: no'
    """

    key: CellKey
    message: str


def evaluate(group: Group) -> Iterator[Record | Failure]:
    """Outcome of each cell of a group, in order; the data are made once.

    Methods are scored on the test split, where spurious features are exchanged between the
    samples of an environment. The oracle is trained and validated on such data as well.

    Examples
    --------
    >>> key = CellKey("3s", "oracle", 2, 0, "converged", {}, {"n_samples": 200})
    >>> record, = evaluate(Group("linear-unit-tests", (key,)))
    >>> record.value < 0.05, len(record.per_environment)
    (True, 2)
    """
    first = group.keys[0]
    panel = EXPERIMENTS[group.experiment].panels[first.dataset]
    splits = panel.make(
        n_environments=first.n_environments, random_state=first.seed, **first.options
    )

    @cache
    def permuted() -> tuple[EnvironmentData, EnvironmentData]:
        train = permute_spurious(splits.train, random_state=first.seed)
        return train, permute_spurious(splits.validation, random_state=first.seed)

    for key in group.keys:
        method = METHODS[key.method]
        train, validation = permuted() if method.oracle else (splits.train, splits.validation)
        try:
            estimator = method.estimator(panel, key.n_environments, key.optimizer, key.parameters)
            seconds, warned = _fitted(estimator, train)
            errors = test_errors(estimator, splits.test)
            held_out = float(np.mean(test_errors(estimator, validation)))
            value = float(np.mean(errors))
            yield Record(key, value, held_out, errors, seconds, warned, _versions())
        except Exception as error:
            yield Failure(key, f"{type(error).__name__}: {error}")


def test_errors(estimator: Any, data: EnvironmentData) -> list[float]:
    """Error in each environment: the share of wrong labels, or the mean squared error.

    A squared error that overflows, as that of a diverged method does, is infinite.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y, e = np.zeros((4, 1)), np.array([0, 1, 0, 0]), np.array([0, 0, 1, 1])
    >>> test_errors(DummyClassifier().fit(X, y), EnvironmentData(X, y, e))
    [0.5, 0.0]
    """
    predicted = estimator.predict(data.X)
    if hasattr(estimator, "classes_"):
        wrong = (predicted != data.y).astype(float)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            wrong = np.nan_to_num((predicted - data.y) ** 2, nan=np.inf, posinf=np.inf)
    return [float(wrong[data.environments == e].mean()) for e in np.unique(data.environments)]


def _fitted(estimator: Any, data: EnvironmentData) -> tuple[float, list[str]]:
    """Seconds and warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        estimator.fit(data.X, data.y, environments=data.environments)
        seconds = time.perf_counter() - start
    return seconds, sorted({f"{w.category.__name__}: {w.message}"[:200] for w in caught})


@cache
def _versions() -> dict[str, str]:
    """Versions of what the result depends on."""
    import isrlearn

    found = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"isrlearn": isrlearn.__version__, "python": platform.python_version(), **found}
