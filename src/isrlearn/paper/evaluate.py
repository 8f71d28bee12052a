"""Cells that share their data, fitted and scored one after the other."""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from isrlearn.datasets import EnvironmentData
from isrlearn.paper.datasets import permute_spurious
from isrlearn.paper.experiments import EXPERIMENTS, METHODS
from isrlearn.paper.records import CellKey, Failure, Record
from isrlearn.paper.runner import each_fit, grouped


def evaluate(experiment: str, keys: Sequence[CellKey]) -> Iterator[Record | Failure]:
    """Outcome of each cell on the test split; the data, the same for all cells, are made once."""
    first = keys[0]
    panel = EXPERIMENTS[experiment].panels[first.dataset]
    splits = panel.make(
        n_environments=first.n_environments, random_state=first.seed, **first.options
    )

    @cache
    def permuted() -> tuple[EnvironmentData, EnvironmentData]:
        train = permute_spurious(splits.train, random_state=first.seed)
        return train, permute_spurious(splits.validation, random_state=first.seed)

    def records(cells: list[CellKey]) -> Iterator[Record]:
        method = METHODS[cells[0].method]
        train, validation = permuted() if method.oracle else (splits.train, splits.validation)
        models = [
            method.estimator(panel, key.n_environments, key.optimizer, key.parameters)
            for key in cells
        ]
        fits = _fits(models, (train.X, train.y, train.environments))
        for key, (model, seconds, warned) in zip(cells, fits, strict=True):
            errors = environment_errors(model, splits.test)
            held_out = float(np.mean(environment_errors(model, validation)))
            value = float(np.mean(errors))
            yield Record(key, value, held_out, errors, seconds, warned, _versions())

    return each_fit(grouped(keys, lambda key: key.method).values(), records)


def _fits(models: Sequence[Any], data: tuple[Any, ...]) -> Iterator[tuple[Any, float, list[str]]]:
    """Fitted models with seconds and warnings; trials of the published steps are fitted at once."""
    first, n = models[0], len(models)
    if n > 1 and getattr(first, "optimizer", "") == "published":
        _, seconds, warned = fitted(first.fit_together, models, *data)
        yield from ((model, seconds / n, warned) for model in models)
    else:
        yield from (fitted(model.fit, *data) for model in models)


def environment_errors(estimator: Any, data: EnvironmentData) -> list[float]:
    """Share of wrong labels or mean squared error, infinite on overflow, per environment."""
    predicted = estimator.predict(data.X)
    if hasattr(estimator, "classes_"):
        wrong = (predicted != data.y).astype(float)
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            wrong = np.nan_to_num((predicted - data.y) ** 2, nan=np.inf, posinf=np.inf)
    return [float(wrong[data.environments == e].mean()) for e in np.unique(data.environments)]


def fitted(fit: Any, *arguments: Any, **keywords: Any) -> tuple[Any, float, list[str]]:
    """Result, seconds and distinct warnings of a fit."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        result = fit(*arguments, **keywords)
        seconds = time.perf_counter() - start
    return result, seconds, sorted({f"{w.category.__name__}: {w.message}"[:200] for w in caught})


@cache
def _versions() -> dict[str, str]:
    """Versions of the packages that the result depends on."""
    import isrlearn

    found = {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    return {"isrlearn": isrlearn.__version__, "python": platform.python_version(), **found}
