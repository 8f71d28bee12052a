"""Which cells a run is made of, and which hyper-parameters the validation error chooses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from isrlearn.paper.baselines import published_parameters
from isrlearn.paper.evaluate import Group
from isrlearn.paper.experiments import EXPERIMENTS
from isrlearn.paper.methods import METHODS
from isrlearn.paper.published import published_cell
from isrlearn.paper.records import CellKey, Record

__all__ = ["Plan", "grouped", "numbers"]


@dataclass(frozen=True)
class Plan:
    """Everything that decides the numbers of a run.

    Parameters
    ----------
    experiment : str
        Name of the experiment.
    datasets, methods : tuple of str
        Names of the data sets and methods.
    environments : tuple of int
        Numbers of environments.
    n_seeds : int
        Seeds 0 to n_seeds − 1 are run.
    optimizer : {"converged", "published"}
        How methods that have the choice are optimised.
    n_trials : int
        Hyper-parameters tried for each method that has any.
    n_search_seeds : int
        The trials are compared on the first seeds, by the mean validation error over them, and
        the best runs on all.
    n_samples : int
        Samples of each environment in each split.

    Raises
    ------
    ValueError
        If a name is unknown, a number out of range, or a method cannot do the task.

    Examples
    --------
    >>> plan = Plan("linear-unit-tests", ("3s",), ("erm", "irmv1"), (2, 3), 4, n_trials=2)
    >>> len(plan.first_keys())  # erm on every seed, irmv1's trials on every seed that decides
    20
    """

    experiment: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    environments: tuple[int, ...]
    n_seeds: int
    optimizer: str = "converged"
    n_trials: int = 20
    n_search_seeds: int = 3
    n_samples: int = 10_000

    def __post_init__(self) -> None:
        experiment = EXPERIMENTS[self.experiment]
        _check_names("data set", self.datasets, experiment.panels)
        _check_names("method", self.methods, METHODS)
        for name in ("n_seeds", "n_trials", "n_search_seeds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)}: it must be at least 1")
        if self.n_samples < 10:
            raise ValueError(f"n_samples={self.n_samples}: it must be at least 10")
        if not self.environments or min(self.environments) < 2:
            raise ValueError(
                f"environments={list(self.environments)}: each number must be at least 2"
            )
        for dataset, method in product(self.datasets, self.methods):
            task = experiment.panels[dataset].task
            if task not in METHODS[method].tasks:
                able = [name for name, other in METHODS.items() if task in other.tasks]
                raise ValueError(
                    f"{method!r} cannot do the {task} of data set {dataset!r}; "
                    f"these can: {', '.join(able)}"
                )
        for cell in product(self.datasets, self.methods, self.environments):
            self._trials(*cell)

    def first_keys(self) -> list[CellKey]:
        """Cells known in advance: of methods without a search, and all trials of the others."""
        keys = (key for cell in self._cells() for key in self._first(*cell))
        return list({key.id: key for key in keys}.values())  # once each, also if two show it

    def _first(self, dataset: str, method: str, E: int) -> Iterator[CellKey]:
        trials = self._trials(dataset, method, E)
        n_seeds = self.n_seeds if len(trials) == 1 else min(self.n_search_seeds, self.n_seeds)
        for parameters, seed in product(trials, range(n_seeds)):
            yield self._key(dataset, method, E, seed, parameters)

    def final_keys(self, by_id: Mapping[str, Record]) -> list[tuple[str, CellKey]]:
        """Method and cell of every result, given the records of all the first cells."""
        keys = []
        for dataset, method, E in self._cells():
            best = self._best(dataset, method, E, by_id)
            for seed in range(self.n_seeds):
                keys.append((method, self._key(dataset, method, E, seed, best)))
        return keys

    def _best(
        self, dataset: str, method: str, E: int, by_id: Mapping[str, Record]
    ) -> Mapping[str, Any]:
        """Hyper-parameters of the smallest mean error over seeds; of equal ones, the first."""
        trials = self._trials(dataset, method, E)
        if len(trials) == 1:
            return trials[0]
        seeds = range(min(self.n_search_seeds, self.n_seeds))
        errors = []
        for parameters in trials:
            ids = [self._key(dataset, method, E, seed, parameters).id for seed in seeds]
            # A trial that failed anywhere is out.
            complete = all(i in by_id for i in ids)
            found = [getattr(by_id[i], METHODS[method].chosen_by) for i in ids if complete]
            errors.append(float(np.mean(found)) if complete else np.inf)
        return trials[int(np.argmin(errors))]

    def _trials(self, dataset: str, method: str, E: int) -> list[dict[str, Any]]:
        """Hyper-parameters to try; one entry where there is nothing to choose."""
        recorded = METHODS[method].cells or method
        found = METHODS[recorded]
        optimizer = found.optimized(self.optimizer)
        if optimizer == "published" and self.experiment == "linear-unit-tests":
            cell = published_cell(dataset, recorded, E)
            return [dict(published_parameters(found.label, cell.parameters))]
        return found.trials[optimizer](self.n_trials)

    def _cells(self) -> Iterator[tuple[str, str, int]]:
        return product(self.datasets, self.methods, self.environments)

    def _key(
        self, dataset: str, method: str, E: int, seed: int, parameters: Mapping[str, Any]
    ) -> CellKey:
        # A method with one way to be optimised has the same cells whatever the run asks for.
        optimizer = METHODS[method].optimized(self.optimizer)
        recorded = METHODS[method].cells or method
        options = {"n_samples": self.n_samples}
        return CellKey(dataset, recorded, E, seed, optimizer, parameters, options)


def grouped(experiment: str, keys: Iterable[CellKey]) -> list[Group]:
    """Cells gathered by their data, seed by seed.

    With whole seeds finished first, an interrupted run has something to show, and the time left
    is estimated from cells of every size.

    Examples
    --------
    >>> keys = [CellKey("3s", m, 2, s, "converged") for m in ("erm", "oracle") for s in (0, 1)]
    >>> [len(group.keys) for group in grouped("linear-unit-tests", keys)]
    [2, 2]
    """
    groups: dict[tuple[int, str, int], list[CellKey]] = {}
    for key in keys:
        groups.setdefault((key.seed, key.dataset, key.n_environments), []).append(key)
    # Large ones first within a seed, so that no worker is left alone with one at the end.
    order = sorted(groups, key=lambda data: (data[0], -data[2], data[1]))
    return [Group(experiment, tuple(groups[data])) for data in order]


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers of a range such as ``2:10``, ends included, or a list such as ``2,4,8``.

    Examples
    --------
    >>> numbers("2:5"), numbers("2,4,8"), numbers("3")
    ((2, 3, 4, 5), (2, 4, 8), (3,))
    """
    try:
        if ":" in text:
            first, last = (int(part) for part in text.split(":"))
            found = tuple(range(first, last + 1))
        else:
            found = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a range such as 2:10 nor a list such as 2,4,8"
        ) from None
    if not found or min(found) < 1:
        raise ValueError(f"{text!r} must name whole numbers from 1 up, the smaller end first")
    return found


def _check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise for the first unknown name."""
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {kind} {name!r}; there are: {', '.join(known)}")
