"""The hyper-parameters of the published linear unit tests: ranges, defaults, the trials drawn.

The published suite (Aubin et al., "Linear unit-tests for invariance discovery", 2021) trains each
algorithm with 20 settings on 50 data sets and keeps the setting with the lowest mean validation
error. Setting 0 is the defaults; setting i is drawn from the ranges with seed 1000 + i, and that
seed draws the first weights too. The ranges of the information-bottleneck methods are those of
Ahuja et al. (2021) on the same tests. GroupDRO and V-REx were not published there; theirs are the
ranges of DomainBed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isrlearn.paper.baselines._estimator import LinearBaseline
from isrlearn.paper.baselines.andmask import ANDMaskClassifier, ANDMaskRegressor
from isrlearn.paper.baselines.erm import ERMClassifier, ERMRegressor
from isrlearn.paper.baselines.group_dro import GroupDROClassifier, GroupDRORegressor
from isrlearn.paper.baselines.ib_erm import IBERMClassifier, IBERMRegressor
from isrlearn.paper.baselines.ib_irm import IBIRMClassifier, IBIRMRegressor
from isrlearn.paper.baselines.iga import IGAClassifier, IGARegressor
from isrlearn.paper.baselines.irm import IRMv1Classifier, IRMv1Regressor
from isrlearn.paper.baselines.reweighting import ReweightedClassifier, ReweightedRegressor
from isrlearn.paper.baselines.vrex import VRExClassifier, VRExRegressor

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


def _power(u: float) -> float:
    return 10.0**u


def _one_minus_power(u: float) -> float:
    return 1.0 - 10.0**u


def _itself(u: float) -> float:
    return u


@dataclass(frozen=True)
class Range:
    """Values of a hyper-parameter: ``scale(u)`` with u uniform between ``low`` and ``high``.

    Parameters
    ----------
    default : float
        The value of the first trial.
    scale : callable
    low, high : float

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.paper.baselines import search_space
    >>> rate = search_space("ERM")["learning_rate"]
    >>> 1e-4 <= rate.sample(np.random.default_rng(0)) <= 1e-2
    True
    """

    default: float
    scale: Callable[[float], float]
    low: float
    high: float

    def sample(self, rng: np.random.Generator | random.Random) -> float:
        """A value drawn with ``rng.uniform``."""
        return self.scale(float(rng.uniform(self.low, self.high)))


@dataclass(frozen=True)
class _Entry:
    classifier: type[LinearBaseline]
    regressor: type[LinearBaseline]
    space: dict[str, Range]  # in the order in which the published trials draw


_ADAM = {
    "learning_rate": Range(1e-3, _power, -4, -2),
    "weight_decay": Range(0.0, _power, -6, -2),
}
_IRM = {"penalty": Range(0.9, _one_minus_power, -3, -0.3)}
_BOTTLENECK = {"bottleneck": Range(0.1, _one_minus_power, -2, 0)}

_ENTRIES: dict[str, _Entry] = {
    "ERM": _Entry(ERMClassifier, ERMRegressor, _ADAM),
    "Oracle": _Entry(ERMClassifier, ERMRegressor, _ADAM),
    "IRMv1": _Entry(IRMv1Classifier, IRMv1Regressor, _ADAM | _IRM),
    "IGA": _Entry(IGAClassifier, IGARegressor, _ADAM | {"penalty": Range(1e3, _power, 1, 5)}),
    "ANDMask": _Entry(
        ANDMaskClassifier,
        ANDMaskRegressor,
        {
            "learning_rate": Range(1e-3, _power, -4, 0),
            "weight_decay": Range(0.0, _power, -5, 0),
            "agreement": Range(0.9, _itself, 0.8, 1.0),
        },
    ),
    "Reweighted": _Entry(ReweightedClassifier, ReweightedRegressor, _ADAM),
    "GroupDRO": _Entry(
        GroupDROClassifier, GroupDRORegressor, _ADAM | {"step": Range(1e-2, _power, -3, -1)}
    ),
    "VREx": _Entry(VRExClassifier, VRExRegressor, _ADAM | {"penalty": Range(10.0, _power, -1, 5)}),
    "IBERM": _Entry(IBERMClassifier, IBERMRegressor, _ADAM | _BOTTLENECK),
    "IBIRM": _Entry(IBIRMClassifier, IBIRMRegressor, _ADAM | _IRM | _BOTTLENECK),
}


def _entry(algorithm: str) -> _Entry:
    if algorithm not in _ENTRIES:
        raise ValueError(f"no baseline is called {algorithm!r}; there are {', '.join(_ENTRIES)}.")
    return _ENTRIES[algorithm]


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
    return dict(_entry(algorithm).space)


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
    entry = _entry(algorithm)
    classes = {"classification": entry.classifier, "regression": entry.regressor}
    if task not in classes:
        raise ValueError(f"task is {task!r}; it must be 'classification' or 'regression'.")
    return classes[task](**parameters)


def published_trials(algorithm: str) -> list[dict[str, float]]:
    """The 20 settings of the published search, as parameters of our estimator.

    Each has its ``random_state``: with it, the first weights are the published ones as well.

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
    space = _entry(algorithm).space
    trials: list[dict[str, float]] = [{name: r.default for name, r in space.items()}]
    for seed in range(_FIRST_SEED + 1, _FIRST_SEED + N_TRIALS):
        stream = random.Random(seed)
        trials.append({name: r.sample(stream) for name, r in space.items()})
    return [trial | {"random_state": _FIRST_SEED + i} for i, trial in enumerate(trials)]


def published_parameters(algorithm: str, hyperparameters: Mapping[str, float]) -> dict[str, float]:
    """Parameters of our estimator for hyper-parameters in the published names.

    The trial they belong to is looked up, and with it the ``random_state`` of the published
    first weights. ANDMask in particular keeps the weights it starts from where environments
    disagree, so its error depends on them.

    Parameters
    ----------
    algorithm : str
        "ERM", "IRMv1", "IGA", "ANDMask" or "Oracle".
    hyperparameters : mapping
        With keys "lr", "wd" and, according to the algorithm, "irm_lambda", "penalty" or "tau".

    Examples
    --------
    >>> from isrlearn.paper.baselines import published_parameters
    >>> published_parameters("IRMv1", {"lr": 0.001, "wd": 0.0, "irm_lambda": 0.9})
    {'learning_rate': 0.001, 'weight_decay': 0.0, 'penalty': 0.9, 'random_state': 1000}
    """
    unknown = sorted(set(hyperparameters) - set(_FROM_PUBLISHED))
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is no published hyper-parameter; there are "
            f"{', '.join(_FROM_PUBLISHED)}."
        )
    parameters = {_FROM_PUBLISHED[name]: float(v) for name, v in hyperparameters.items()}
    for trial in published_trials(algorithm):
        # The published tables round to 15 decimals.
        if all(math.isclose(trial[k], v, rel_tol=1e-6) for k, v in parameters.items()):
            return parameters | {"random_state": int(trial["random_state"])}
    raise ValueError(
        f"{dict(hyperparameters)} is none of the {N_TRIALS} published settings of {algorithm}; "
        "for other settings, pass our parameters to make_baseline."
    )
