"""Worst-group accuracy in every regime: groups missing, tiny, unlabelled, or turned round."""

from __future__ import annotations

import csv
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import ParameterGrid, StratifiedKFold

from isrlearn import ISRClassifier, ISRClassifierCV
from isrlearn.core.labels import Cells, is_missing
from isrlearn.datasets import EnvironmentData, Splits, load_digits_on_paper, make_waterbirds_like
from isrlearn.estimators import DFRClassifier
from isrlearn.metrics import worst_group_accuracy
from isrlearn.paper import rivals
from isrlearn.paper.datasets import load_fashion_on_photos, load_mc_cmnist
from isrlearn.paper.datasets.tables import TABLES, load_table
from isrlearn.paper.plan import check_names
from isrlearn.progress import progress, terminated_as_interrupted

__all__ = ["DATASETS", "METHODS", "REGIMES", "RegimesPlan", "Score", "read_scores", "run_regimes"]

#: Share of the rows of a table that are tested on, most rows to train on, components of images.
_TEST_SHARE, _MOST_ROWS, _COMPONENTS = 0.4, 2000, 100
#: Candidates for C, folds, and rows with the accuracy of its class that a group is shrunk by.
PENALTIES, _FOLDS, _SHRINKAGE = (1e-3, 1e-2, 1e-1, 1.0), 3, 5.0
#: Most environments that are left out in turn.
_MOST_LEFT_OUT = 3
COLUMNS = ("dataset", "regime", "method", "seed", "score", "average", "seconds", "settings")


@dataclass(frozen=True)
class Task:
    """Rows to train on, whose environments may be unknown, and rows to test on."""

    train: EnvironmentData
    test: EnvironmentData
    score: str = "worst group"  # or "average"

    @cached_property
    def inferred(self) -> NDArray:
        """Environments to train on, the unknown ones inferred; the same for all methods."""
        return rivals.known_or_inferred(self.train.X, self.train.y, self.train.environments)


def _table(name: str, seed: int) -> Task:
    """A table split at random inside each cell."""
    data, rng = load_table(name), np.random.default_rng([seed, 0])
    held_out = np.zeros(len(data.y), dtype=bool)
    for rows in _members(data):
        held_out[rng.permutation(rows)[: max(1, round(_TEST_SHARE * len(rows)))]] = True
    return Task(_rows(data, np.flatnonzero(~held_out)), _rows(data, np.flatnonzero(held_out)))


def _simulated(make: Callable[..., Splits], seed: int, pool: int = 0, **options: Any) -> Task:
    """A data set that comes in splits; images become components of means of pool × pool pixels."""
    splits = make(random_state=seed, **options)
    train, test = splits.train, splits.test
    if not pool:
        return Task(train, test)
    features = [_pooled(part.X, pool) for part in (train, test)]
    pca = PCA(_COMPONENTS, random_state=0).fit(features[0])
    X, X_test = map(pca.transform, features)
    return Task(replace(train, X=X), replace(test, X=X_test))


def _pooled(images: NDArray, size: int) -> NDArray[np.float64]:
    """Means of square patches of images (n, channels, height, width), as features."""
    n, c, h, w = images.shape
    cut = images[:, :, : h // size * size, : w // size * size].astype(np.float32)
    patches = cut.reshape(n, c, h // size, size, w // size, size)
    return patches.mean(axis=(3, 5)).reshape(n, -1).astype(np.float64)


DATASETS: Mapping[str, Callable[[int], Task]] = {
    **{name: partial(_table, name) for name in TABLES},
    "digits-on-paper": partial(_simulated, load_digits_on_paper),
    "waterbirds-like": partial(_simulated, make_waterbirds_like, n_features=100),
    "garments-on-photos": partial(_simulated, load_fashion_on_photos, pool=8),
    "mc-cmnist": partial(_simulated, load_mc_cmnist, pool=2, n_samples=12_000),
}


@lru_cache(maxsize=1)
def _task(dataset: str, seed: int) -> Task:
    """The data of a seed, kept for the process."""
    return DATASETS[dataset](seed)


@lru_cache(maxsize=1)
def _tasks(dataset: str, regime: str, seed: int) -> list[Task]:
    """The tasks of a regime, the same for all methods."""
    rng = np.random.default_rng([seed, *map(ord, regime)])
    return list(REGIMES[regime](_task(dataset, seed), rng))


def _rows(data: EnvironmentData, rows: NDArray) -> EnvironmentData:
    return EnvironmentData(data.X[rows], data.y[rows], data.environments[rows])


def _members(data: EnvironmentData) -> list[NDArray[np.intp]]:
    """Rows of each cell that has any."""
    cells = Cells.of(data.y, data.environments)
    code = cells.k * len(cells.environments) + cells.e
    return [np.flatnonzero(code == c) for c in np.unique(code)]


def _over_represented(data: EnvironmentData) -> tuple[Cells, NDArray[np.intp]]:
    """Position of each environment's class whose share exceeds its overall share most."""
    cells = Cells.of(data.y, data.environments)
    count = cells.count()
    share = count / count.sum(axis=0)
    return cells, np.argmax(share / (count.sum(axis=1) / count.sum())[:, None], axis=0)


def all_groups(task: Task, rng: np.random.Generator) -> Iterator[Task]:
    """The data as they are, at most 2,000 rows to train on."""
    rows = rng.permutation(len(task.train.y))[:_MOST_ROWS]
    yield replace(task, train=_rows(task.train, rows))


def one_missing(task: Task, rng: np.random.Generator) -> Iterator[Task]:
    """Without the smallest cell whose class and whose environment have other cells."""
    (task,) = all_groups(task, rng)
    cells = Cells.of(task.train.y, task.train.environments)
    count = cells.count()
    seen = count > 0
    able = seen & (seen.sum(axis=1) > 1)[:, None] & (seen.sum(axis=0) > 1)
    if not able.any():
        return
    k, e = np.unravel_index(np.argmin(np.where(able, count, np.inf)), count.shape)
    kept = np.flatnonzero((cells.k != k) | (cells.e != e))
    yield replace(task, train=_rows(task.train, kept))


def one_class(task: Task, rng: np.random.Generator) -> Iterator[Task]:
    """Environments known for the most frequent class only."""
    (task,) = all_groups(task, rng)
    classes, count = np.unique(task.train.y, return_counts=True)
    yield _known(task, task.train.y == classes[np.argmax(count)])


def _known(task: Task, mask: NDArray) -> Task:
    known = task.train.environments.astype(object)
    known[~mask] = None
    return replace(task, train=replace(task.train, environments=known))


def few_known(fraction: float, task: Task, rng: np.random.Generator) -> Iterator[Task]:
    """Environments known for a fraction of each cell, at least one row."""
    (task,) = all_groups(task, rng)
    mask = np.zeros(len(task.train.y), dtype=bool)
    for rows in _members(task.train):
        mask[rng.permutation(rows)[: max(1, round(fraction * len(rows)))]] = True
    yield _known(task, mask)


def tiny(n: int, task: Task, rng: np.random.Generator) -> Iterator[Task]:
    """At most n rows in each cell but that of its environment's over-represented class."""
    (task,) = all_groups(task, rng)
    cells, common = _over_represented(task.train)
    kept = [
        rows if cells.k[rows[0]] == common[cells.e[rows[0]]] else rng.permutation(rows)[:n]
        for rows in _members(task.train)
    ]
    yield replace(task, train=_rows(task.train, rng.permutation(np.concatenate(kept))))


def unseen(task: Task, rng: np.random.Generator) -> Iterator[Task]:
    """One environment left out at a time, at most three of them; it is tested on."""
    (task,) = all_groups(task, rng)
    names = np.unique(task.test.environments)
    if len(names) < 3:
        return
    for name in rng.permutation(names)[:_MOST_LEFT_OUT]:
        parts = (task.train.environments != name, task.test.environments == name)
        train, test = map(_rows, (task.train, task.test), map(np.flatnonzero, parts))
        if len(np.unique(test.y)) > 1 and len(np.unique(train.y)) > 1:
            yield Task(train, test)


def reversed_shares(task: Task, rng: np.random.Generator) -> Iterator[Task]:
    """Over-represented classes are 90 % of their environment in training and 10 % in test."""
    parts = []
    _, common = _over_represented(task.train)
    for data, share in ((task.train, 0.9), (task.test, 0.1)):
        cells, kept = Cells.of(data.y, data.environments), []
        for e, k in enumerate(common):
            own = np.flatnonzero((cells.e == e) & (cells.k == k))
            other = np.flatnonzero((cells.e == e) & (cells.k != k))
            n = min(len(own) / share, len(other) / (1 - share))
            for rows, part in ((own, share), (other, 1 - share)):
                kept.append(rng.permutation(rows)[: max(1, round(part * n))])
        parts.append(_rows(data, rng.permutation(np.concatenate(kept))))
    yield from all_groups(Task(parts[0], parts[1], "average"), rng)


Regime = Callable[[Task, np.random.Generator], Iterator[Task]]
REGIMES: Mapping[str, Regime] = {
    "all groups": all_groups,
    "cell missing": one_missing,
    "one class known": one_class,
    **{f"{100 * f:g} % known": partial(few_known, f) for f in (0.1, 0.05, 0.01)},
    **{f"{n} rows": partial(tiny, n) for n in (5, 10, 20, 50)},
    "unseen": unseen,
    "reversed": reversed_shares,
}


@dataclass(frozen=True)
class Method:
    """An estimator, the settings that are searched, and what it needs to know.

    Parameters
    ----------
    estimator : estimator
    grid : dict
        Candidates of its parameters; nothing is searched if it is empty.
    infers : bool
        Whether unknown environments are inferred before the fit.
    told : bool
        Whether it must be told the environment to predict.
    only_unknown : bool
        Whether it differs from another method only if environments are unknown.
    """

    estimator: Any
    grid: dict[str, Any] = field(default_factory=dict)
    infers: bool = False
    told: bool = False
    only_unknown: bool = False


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
    "LEACE": Method(rivals.LEACEClassifier(), _WEIGHED),
    "LEACE within classes": Method(rivals.LEACEClassifier(condition="class"), _WEIGHED),
    "LEACE in complete class": Method(rivals.LEACEClassifier(condition="complete"), _WEIGHED),
    "SPLINCE": Method(rivals.SPLINCEClassifier(), _WEIGHED),
    "anchor": Method(rivals.AnchorClassifier(), {**_C, "gamma": [2.0, 10.0, 100.0]}, infers=True),
    "DARE": Method(rivals.DAREClassifier(), _C, infers=True),
    "CorrelationRemover": Method(
        rivals.EnvironmentMeansClassifier(), _WEIGHED, infers=True, told=True
    ),
}


@dataclass(frozen=True)
class Score:
    """A line of the records: one method on one data set in one regime with one seed.

    The score is NaN where the method failed; then `settings` holds the message.
    """

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
    """All scores recorded in a folder, after the planned ones that are missing were computed.

    With `again`, the planned ones are computed even if they are recorded. Failed runs are always
    tried again.
    """
    path = Path(out) / "results.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    done = set() if again else {s.key for s in read_scores(path) if not np.isnan(s.score)}
    runs = product(range(plan.n_seeds), plan.datasets, plan.regimes, plan.methods)
    todo = [(d, r, m, seed) for seed, d, r, m in runs if (d, r, m, seed) not in done]
    with (
        terminated_as_interrupted(),
        progress(len(todo), "methods × regimes", shown=True) as advance,
    ):
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
        lines = list(csv.DictReader(file))
    kinds = {"seed": int, "score": float, "average": float, "seconds": float}
    scores = [Score(**{k: kinds.get(k, str)(v) for k, v in line.items()}) for line in lines]
    return list({score.key: score for score in scores}.values())


def _append(path: Path, score: Score) -> None:
    """Add a line by one write, so that two runs can share a file."""
    new = not path.exists()
    values = (getattr(score, name) for name in COLUMNS)
    texts = [f"{v:.5g}" if isinstance(v, float) else str(v) for v in values]
    lines = [",".join(COLUMNS)] * new + [",".join(_quoted(t) for t in texts)]
    with open(path, "ab") as file:
        file.write("".join(line + "\n" for line in lines).encode())
        os.fsync(file.fileno())


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text


def evaluate(dataset: str, regime: str, method: str, seed: int) -> Score | None:
    """The score of one run; None if the regime does not apply to the data or the method."""
    chosen, tasks = METHODS[method], _tasks(dataset, regime, seed)
    complete = not any(is_missing(task.train.environments).any() for task in tasks)
    if not tasks or (regime == "unseen" and chosen.told) or (complete and chosen.only_unknown):
        return None
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [_fitted(chosen, task, seed) for task in tasks]
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
    if isinstance(clf, DFRClassifier) and _least(y, given) < 2:
        clf.set_params(C=0.1)  # a group of one row leaves nothing to choose C on
    clf.fit(X, y, environments=given)
    settings = settings or getattr(clf, "best_params_", {})
    told = {"environments": task.test.environments} if method.told else {}
    predicted, truth = clf.predict(task.test.X, **told), task.test.y
    average = float((predicted == truth).mean())
    worst = worst_group_accuracy(truth, predicted, environments=task.test.environments)
    score = average if task.score == "average" else float(worst)
    return score, average, json.dumps(settings, default=str)


def _least(y: NDArray, environments: NDArray) -> int:
    """Rows of the smallest cell that has any."""
    count = Cells.of(y, environments).count()
    return int(count[count > 0].min())


def _searched(
    method: Method, X: NDArray, y: NDArray, given: NDArray, known: NDArray, seed: int
) -> dict[str, Any]:
    """Settings with the best worst group of held-out rows; ties go to the first.

    The groups are those with a known environment, and the rows of a class without. A group's
    accuracy is shrunk to its class's, by five rows.
    """
    cells = Cells.of(y, known)
    groups = np.unique(cells.k * (len(cells.environments) + 1) + cells.e, return_inverse=True)[1]
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)
    points = sorted(ParameterGrid(method.grid), key=lambda point: point["C"])
    right = np.zeros((len(points), len(y)))
    for train, test in folds.split(X, groups):
        told = {"environments": given[test]} if method.told else {}
        for i, point in enumerate(points):
            clf = clone(method.estimator).set_params(**point)
            clf.fit(X[train], y[train], environments=given[train])
            right[i, test] = clf.predict(X[test], **told) == y[test]
    by_class, by_group = np.eye(cells.k.max() + 1)[cells.k], np.eye(groups.max() + 1)[groups]
    of_class = right @ by_class / by_class.sum(axis=0)
    class_of = cells.k[np.argmax(by_group, axis=0)]
    shrunk = (right @ by_group + _SHRINKAGE * of_class[:, class_of]) / (
        by_group.sum(axis=0) + _SHRINKAGE
    )
    return points[int(np.argmax(np.round(shrunk.min(axis=1), 9)))]
