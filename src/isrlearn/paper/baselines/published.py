"""Hyper-parameters of the published linear unit tests: ranges, defaults and trials.

The published suite (Aubin et al., "Linear unit-tests for invariance discovery", 2021) trains each
algorithm with 20 settings on 50 data sets and keeps the setting with the lowest mean validation
error. Setting 0 holds the defaults; setting i is drawn from the ranges with seed 1000 + i, and that
seed also draws the initial weights. The ranges of the information-bottleneck methods are those of
Ahuja et al. (2021) on the same tests. GroupDRO and V-REx were not published there; their ranges are
those of DomainBed.
"""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from isrlearn.paper.baselines import erm, invariance
from isrlearn.paper.baselines.linear import LinearBaseline
from isrlearn.validation import check_choice

N_TRIALS = 20
_FIRST_SEED = 1000
_FROM_PUBLISHED = {
    "lr": "learning_rate",
    "wd": "weight_decay",
    "irm_lambda": "penalty",
    "penalty": "penalty",
    "ib_lambda": "bottleneck",
    "tau": "agreement",
}


_power = partial(pow, 10.0)


def _one_minus_power(u: float) -> float:
    return 1.0 - 10.0**u


@dataclass(frozen=True)
class Range:
    """Values of a hyper-parameter: ``scale(u)`` with u uniform between ``low`` and ``high``.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.paper.baselines import search_space
    >>> rate = search_space("ERM")["learning_rate"]
    >>> 1e-4 <= rate.sample(np.random.default_rng(0)) <= 1e-2
    True
    """

    default: float  # the value of the first trial
    scale: Callable[[float], float]
    low: float
    high: float

    def sample(self, rng: np.random.Generator | random.Random) -> float:
        """A value drawn with ``rng.uniform``."""
        return self.scale(float(rng.uniform(self.low, self.high)))


_ADAM = {
    "learning_rate": Range(1e-3, _power, -4, -2),
    "weight_decay": Range(0.0, _power, -6, -2),
}
_IRM = {"penalty": Range(0.9, _one_minus_power, -3, -0.3)}
_BOTTLENECK = {"bottleneck": Range(0.1, _one_minus_power, -2, 0)}

#: Ranges by algorithm, in the order in which the published trials draw them. The estimators are
#: called by the algorithm's name followed by "Classifier" or "Regressor".
_SPACES: dict[str, dict[str, Range]] = {
    "ERM": _ADAM,
    "Oracle": _ADAM,
    "IRMv1": _ADAM | _IRM,
    "IGA": _ADAM | {"penalty": Range(1e3, _power, 1, 5)},
    "ANDMask": {
        "learning_rate": Range(1e-3, _power, -4, 0),
        "weight_decay": Range(0.0, _power, -5, 0),
        "agreement": Range(0.9, float, 0.8, 1.0),
    },
    "Reweighted": _ADAM,
    "GroupDRO": _ADAM | {"step": Range(1e-2, _power, -3, -1)},
    "VREx": _ADAM | {"penalty": Range(10.0, _power, -1, 5)},
    "IBERM": _ADAM | _BOTTLENECK,
    "IBIRM": _ADAM | _IRM | _BOTTLENECK,
}


def search_space(algorithm: str) -> dict[str, Range]:
    """The range of each hyper-parameter that the published search draws.

    Parameters
    ----------
    algorithm : str
        "ERM", "IRMv1", "IGA", "ANDMask", ... ; "Oracle" is ERM.

    Examples
    --------
    >>> from isrlearn.paper.baselines import search_space
    >>> list(search_space("IRMv1"))
    ['learning_rate', 'weight_decay', 'penalty']
    """
    if algorithm not in _SPACES:
        raise ValueError(f"no baseline is called {algorithm!r}; there are {', '.join(_SPACES)}.")
    return dict(_SPACES[algorithm])


def make_baseline(
    algorithm: str, *, task: str = "classification", **parameters: Any
) -> LinearBaseline:
    """A baseline by the name the literature uses.

    Parameters
    ----------
    algorithm : str
        "ERM", "IRMv1", "IGA", "ANDMask", ... ; "Oracle" is ERM.
    task : {"classification", "regression"}, default="classification"
    **parameters
        Parameters of the estimator.

    Examples
    --------
    >>> from isrlearn.paper.baselines import make_baseline
    >>> make_baseline("IRMv1", penalty=0.5)
    IRMv1Classifier(penalty=0.5)
    """
    search_space(algorithm)  # raises for an unknown name
    check_choice("task", task, ("classification", "regression"))
    name = "ERM" if algorithm == "Oracle" else algorithm
    name += "Classifier" if task == "classification" else "Regressor"
    kind: type[LinearBaseline] = getattr(erm, name, None) or getattr(invariance, name)
    return kind(**parameters)


def published_trials(algorithm: str) -> list[dict[str, float]]:
    """The 20 settings of the published search, as parameters of our estimator.

    Each includes the ``random_state`` that gives the published initial weights.

    Parameters
    ----------
    algorithm : str
        "ERM", "IRMv1", "IGA", "ANDMask", ... ; "Oracle" is ERM.

    Examples
    --------
    >>> from isrlearn.paper.baselines import published_trials
    >>> trials = published_trials("ERM")
    >>> trials[0]
    {'learning_rate': 0.001, 'weight_decay': 0.0, 'random_state': 1000}
    >>> round(trials[1]["learning_rate"], 6)
    0.00392
    """
    space = search_space(algorithm)
    trials: list[dict[str, float]] = [{name: r.default for name, r in space.items()}]
    for seed in range(_FIRST_SEED + 1, _FIRST_SEED + N_TRIALS):
        stream = random.Random(seed)
        trials.append({name: r.sample(stream) for name, r in space.items()})
    return [trial | {"random_state": _FIRST_SEED + i} for i, trial in enumerate(trials)]


def published_parameters(algorithm: str, hyperparameters: Mapping[str, float]) -> dict[str, float]:
    """Parameters of our estimator for hyper-parameters in the published names.

    The trial with these hyper-parameters is looked up for its ``random_state``, which gives the
    published initial weights. ANDMask in particular keeps its initial weights where environments
    disagree, so its error depends on them.

    Parameters
    ----------
    algorithm : str
        "ERM", "IRMv1", "IGA", "ANDMask" or "Oracle".
    hyperparameters : mapping
        With the keys "lr", "wd" and, depending on the algorithm, "irm_lambda", "penalty" or "tau".

    Examples
    --------
    >>> from isrlearn.paper.baselines import published_parameters
    >>> published_parameters("IRMv1", {"lr": 0.001, "wd": 0.0, "irm_lambda": 0.9})
    {'learning_rate': 0.001, 'weight_decay': 0.0, 'penalty': 0.9, 'random_state': 1000}
    """
    unknown = sorted(set(hyperparameters) - set(_FROM_PUBLISHED))
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not a published hyper-parameter; there are "
            f"{', '.join(_FROM_PUBLISHED)}."
        )
    parameters = {_FROM_PUBLISHED[name]: float(v) for name, v in hyperparameters.items()}
    for trial in published_trials(algorithm):
        # The published tables are rounded to 15 decimals.
        if all(math.isclose(trial[k], v, rel_tol=1e-6) for k, v in parameters.items()):
            return parameters | {"random_state": int(trial["random_state"])}
    raise ValueError(
        f"{dict(hyperparameters)} is not one of the {N_TRIALS} published settings of {algorithm}; "
        "for other settings, pass our parameters to make_baseline."
    )
