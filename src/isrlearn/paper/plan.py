"""The cells of a run, and the hyper-parameters that the validation error chooses."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from isrlearn.paper.baselines import published_parameters
from isrlearn.paper.experiments import EXPERIMENTS, METHODS, Parameters
from isrlearn.paper.records import CellKey, Record
from isrlearn.paper.summary import published_results


@dataclass(frozen=True)
class Plan:
    """Everything that determines the numbers of a run.

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
        The trials are compared by their mean validation error over this many first seeds, and
        the best runs on all seeds.
    n_samples : int
        Samples of each environment in each split.

    Examples
    --------
    >>> plan = Plan("linear-unit-tests", ("3s",), ("erm", "irmv1"), (2, 3), 4, n_trials=2)
    >>> len(plan.first_keys())  # erm on every seed, irmv1's trials on the seeds of the search
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
        check_names("data set", self.datasets, experiment.panels)
        check_names("method", self.methods, METHODS)
        least = {"n_seeds": 1, "n_trials": 1, "n_search_seeds": 1, "n_samples": 10}
        for name, low in least.items():
            if getattr(self, name) < low:
                raise ValueError(f"{name}={getattr(self, name)}: it must be at least {low}")
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
        for cell in self._cells():
            self._trials(*cell)

    def first_keys(self) -> list[CellKey]:
        """Cells known in advance: of methods without a search, and all trials of the others."""
        keys = []
        for cell in self._cells():
            trials = self._trials(*cell)
            n_seeds = self.n_seeds if len(trials) == 1 else min(self.n_search_seeds, self.n_seeds)
            keys += [self._key(*cell, s, trial) for trial, s in product(trials, range(n_seeds))]
        return list({key.id: key for key in keys}.values())  # two methods may show the same cells

    def final_keys(self, by_id: Mapping[str, Record]) -> list[tuple[str, CellKey]]:
        """Method and cell of every result, given the records of all the first cells."""
        return [
            (cell[1], self._key(*cell, seed, best))
            for cell in self._cells()
            for best in [self._best(*cell, by_id)]
            for seed in range(self.n_seeds)
        ]

    def _best(self, dataset: str, method: str, E: int, by_id: Mapping[str, Record]) -> Parameters:
        """Hyper-parameters with the smallest mean error over seeds; the first of equal ones."""
        seeds = range(min(self.n_search_seeds, self.n_seeds))

        def error(parameters: Parameters) -> float:
            ids = [self._key(dataset, method, E, seed, parameters).id for seed in seeds]
            if any(i not in by_id for i in ids):
                return np.inf  # a trial that failed on any seed cannot win
            return float(np.mean([getattr(by_id[i], METHODS[method].chosen_by) for i in ids]))

        return min(self._trials(dataset, method, E), key=error)

    def _trials(self, dataset: str, method: str, E: int) -> Sequence[Parameters]:
        """Hyper-parameters to try; one entry where there is nothing to choose."""
        recorded = METHODS[method].cells or method
        found = METHODS[recorded]
        optimizer = found.optimized(self.optimizer)
        # As in the paper, settings are searched for where none are published: those of ISR, and
        # all of Example-3' and 3s'.
        known = self.experiment == "linear-unit-tests" and not dataset.endswith("'")
        known = known and not recorded.startswith("isr-")
        if optimizer == "published" and known:
            cell = published_results().get((dataset, recorded, E))
            if cell is None:
                raise ValueError(
                    f"nothing is published for {recorded!r} on {dataset!r} with {E} environments; "
                    "published are erm, irmv1, iga, andmask and oracle on the linear unit tests "
                    "with 2 to 10 environments"
                )
            return [published_parameters(found.label, cell.parameters)]
        return found.trials[optimizer](self.n_trials)

    def _cells(self) -> Iterator[tuple[str, str, int]]:
        return product(self.datasets, self.methods, self.environments)

    def _key(self, dataset: str, method: str, E: int, seed: int, chosen: Parameters) -> CellKey:
        # A method with one way to be optimised has the same cells whatever the run asks for.
        optimizer = METHODS[method].optimized(self.optimizer)
        recorded = METHODS[method].cells or method
        options = {"n_samples": self.n_samples}
        return CellKey(dataset, recorded, E, seed, optimizer, chosen, options)


def check_names(kind: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise for the first unknown name."""
    for name in names:
        if name not in known:
            raise ValueError(f"unknown {kind} {name!r}; there are: {', '.join(known)}")
