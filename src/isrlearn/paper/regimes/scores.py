"""Every method in every regime: settings by one rule, scores in one file."""

import csv
import json
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, StratifiedKFold

from isrlearn import ISRClassifier, ISRClassifierCV
from isrlearn.core.labels import Cells, is_missing
from isrlearn.estimators import DFRClassifier
from isrlearn.metrics import worst_group_accuracy
from isrlearn.paper import projections, rivals
from isrlearn.paper.plan import check_names
from isrlearn.paper.regimes.data import DATASETS, REGIMES, Task, tasks
from isrlearn.paper.tables import csv_of
from isrlearn.progress import progress, terminated_as_interrupted

#: Candidates for C, folds, and rows with the accuracy of its class that a group is shrunk by.
PENALTIES, _FOLDS, _SHRINKAGE = (1e-3, 1e-2, 1e-1, 1.0), 3, 5.0


@dataclass(frozen=True)
class Method:
    """An estimator, the settings that are searched, and what it needs to know."""

    estimator: Any
    grid: dict[str, Any] = field(default_factory=dict)  # candidates of its parameters
    infers: bool = False  # unknown environments are inferred before the fit
    told: bool = False  # it must be told the environment to predict
    only_unknown: bool = False  # it differs from another method if environments are unknown


_C = {"C": PENALTIES}
_WEIGHED = {**_C, "weights": ["class", "group"]}
METHODS: Mapping[str, Method] = {
    "ISRClassifierCV()": Method(ISRClassifierCV()),
    "ISRClassifier()": Method(ISRClassifier()),
    "plain": Method(rivals.WeightedLogistic(), _C),
    "class-balanced": Method(rivals.WeightedLogistic(weights="class"), _C),
    "group-balanced": Method(rivals.WeightedLogistic(weights="group"), _C),
    "group-balanced on inferred": Method(
        rivals.WeightedLogistic(weights="group"), _C, infers=True, only_unknown=True
    ),
    "DFR": Method(DFRClassifier(n_subsamples=10, random_state=0), infers=True),
    "DFR ridge": Method(rivals.SubsampledLogistic(), _C, infers=True),
    "CRM": Method(rivals.CRMClassifier(), _C, infers=True),
    "LEACE": Method(projections.LEACEClassifier(), _WEIGHED),
    "LEACE within classes": Method(projections.LEACEClassifier(condition="class"), _WEIGHED),
    "LEACE in complete class": Method(projections.LEACEClassifier(condition="complete"), _WEIGHED),
    "SPLINCE": Method(projections.SPLINCEClassifier(), _WEIGHED),
    "anchor": Method(rivals.AnchorClassifier(), {**_C, "gamma": [2.0, 10.0, 100.0]}, infers=True),
    "DARE": Method(projections.DAREClassifier(), _C, infers=True),
    "ISRClassifier() told": Method(ISRClassifier(), told=True),
    "CorrelationRemover": Method(
        rivals.EnvironmentMeansClassifier(), _WEIGHED, infers=True, told=True
    ),
}


@dataclass(frozen=True)
class Score:
    """One method on one data set in one regime with one seed; NaN, and a message, if it failed."""

    dataset: str
    regime: str
    method: str
    seed: int
    score: float
    average: float
    seconds: float
    settings: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What was run."""
        return self.dataset, self.regime, self.method, self.seed


@dataclass(frozen=True)
class RegimesPlan:
    """What is run, by default everything."""

    datasets: tuple[str, ...] = tuple(DATASETS)
    regimes: tuple[str, ...] = tuple(REGIMES)
    methods: tuple[str, ...] = tuple(METHODS)
    n_seeds: int = 5

    def __post_init__(self) -> None:
        check_names("data set", self.datasets, DATASETS)
        check_names("regime", self.regimes, REGIMES)
        check_names("method", self.methods, METHODS)


def run_regimes(plan: RegimesPlan, out: Path | str, *, again: bool = False) -> list[Score]:
    """All scores in a folder, after the planned ones that are missing or failed were computed."""
    path = Path(out) / "results.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = set() if again else {s.key for s in read_scores(path) if not np.isnan(s.score)}
    runs = product(range(plan.n_seeds), plan.datasets, plan.regimes, plan.methods)
    todo = [(d, r, m, seed) for seed, d, r, m in runs if (d, r, m, seed) not in done]
    bar = progress(len(todo), "methods × regimes", shown=True)
    with terminated_as_interrupted(), bar as advance:
        for key in todo:
            found = evaluate(*key)
            if found is not None:
                _append(path, found)
            advance(1)
    return read_scores(path)


def read_scores(path: Path | str) -> list[Score]:
    """Scores of a file; the last one counts of those that were computed again."""
    if not Path(path).exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    found = []
    for dataset, regime, method, seed, *numbers, settings in rows:
        score, average, seconds = (float(number or "nan") for number in numbers)
        found.append(Score(dataset, regime, method, int(seed), score, average, seconds, settings))
    return list({score.key: score for score in found}.values())


def _append(path: Path, score: Score) -> None:
    """Add a line by one write, so that two runs can share a file."""
    text = csv_of(Score, [score])
    with open(path, "ab") as file:
        file.write((text if not file.tell() else text.partition("\n")[2]).encode())
        os.fsync(file.fileno())


def evaluate(dataset: str, regime: str, method: str, seed: int) -> Score | None:
    """The score of one run; None if the regime does not apply to the data or the method."""
    chosen, parts = METHODS[method], tasks(dataset, regime, seed)
    complete = not any(is_missing(task.train.environments).any() for task in parts)
    if not parts or (regime == "unseen" and chosen.told) or (complete and chosen.only_unknown):
        return None
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [_fitted(chosen, task, seed) for task in parts]
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        return Score(dataset, regime, method, seed, np.nan, np.nan, 0.0, message)
    seconds = time.perf_counter() - begin
    score, average = np.mean([pair for *pair, _ in found], axis=0).tolist()
    return Score(dataset, regime, method, seed, score, average, seconds, found[0][2])


def _fitted(method: Method, task: Task, seed: int) -> tuple[float, float, str]:
    """Score and average accuracy in test, and the settings."""
    X, y, known = task.train.X, task.train.y, task.train.environments
    given = task.inferred if method.infers else known
    settings = _searched(method, X, y, given, known, seed) if method.grid else {}
    clf = clone(method.estimator).set_params(**settings)
    if isinstance(clf, DFRClassifier):
        count = Cells.of(y, given).count()
        if count[count > 0].min() < 2:
            clf.set_params(C=1.0)  # a group of one row leaves nothing to choose C on
    clf.fit(X, y, environments=given)
    settings = settings or getattr(clf, "best_params_", {})
    told = {"environments": task.test.environments} if method.told else {}
    predicted, truth = clf.predict(task.test.X, **told), task.test.y
    average = float((predicted == truth).mean())
    worst = worst_group_accuracy(truth, predicted, environments=task.test.environments)
    score = average if task.score == "average" else float(worst)
    return score, average, json.dumps(settings, default=str)


def _searched(
    method: Method, X: NDArray, y: NDArray, given: NDArray, known: NDArray, seed: int
) -> dict[str, Any]:
    """Settings with the best worst group of held-out rows; ties go to the first."""
    # Rows of a class with an unknown environment are a group; a group is shrunk to its class.
    cells = Cells.of(y, known)
    groups = rivals.group_codes(cells)
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    points = sorted(ParameterGrid(method.grid), key=lambda point: point["C"])
    right = np.zeros((len(points), len(y)))
    for train, test in folds.split(X, groups):
        told = {"environments": given[test]} if method.told else {}
        for i, point in enumerate(points):
            clf = clone(method.estimator).set_params(**point)
            clf.fit(X[train], y[train], environments=given[train])
            right[i, test] = clf.predict(X[test], **told) == y[test]
    by_class, by_group = rivals.one_hot(cells.k), rivals.one_hot(groups)
    of_class = right @ by_class / by_class.sum(axis=0)
    class_of = cells.k[np.argmax(by_group, axis=0)]
    shrunk = right @ by_group + _SHRINKAGE * of_class[:, class_of]
    shrunk /= by_group.sum(axis=0) + _SHRINKAGE
    return points[int(np.argmax(np.round(shrunk.min(axis=1), 9)))]
