"""Data sets and regimes: groups missing, tiny, partly labelled, unseen, or turned round."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from isrlearn.core.labels import Cells
from isrlearn.datasets import EnvironmentData, Splits, load_digits_on_paper, make_waterbirds_like
from isrlearn.paper.datasets import load_fashion_on_photos, load_mc_cmnist
from isrlearn.paper.datasets.images import COLOURS
from isrlearn.paper.datasets.tables import TABLES, load_table
from isrlearn.paper.rivals import group_members, known_or_inferred

#: Share of the rows of a table that are tested on, most rows to train on, components of images.
_TEST_SHARE, _MOST_ROWS, _COMPONENTS = 0.4, 2000, 100
#: Most environments that are left out in turn; fewest rows of which shares can be reversed.
_MOST_LEFT_OUT, _FEWEST_ROWS = 3, 50


@dataclass(frozen=True)
class Task:
    """Rows to train on, whose environments may be unknown, and rows to test on."""

    train: EnvironmentData
    test: EnvironmentData
    score: str = "worst group"  # or "average"

    @cached_property
    def inferred(self) -> NDArray:
        """Environments to train on, the unknown ones inferred; the same for all methods."""
        return known_or_inferred(self.train.X, self.train.y, self.train.environments)


def _table(name: str, seed: int) -> Task:
    """A table split at random inside each cell."""
    data, rng = load_table(name), np.random.default_rng([seed, 0])
    held_out = np.zeros(len(data.y), dtype=bool)
    for rows in group_members(data.y, data.environments):
        held_out[rng.permutation(rows)[: max(1, round(_TEST_SHARE * len(rows)))]] = True
    return Task(_rows(data, ~held_out), _rows(data, held_out))


def _simulated(make: Callable[..., Splits], seed: int, pool: int = 0, **options: Any) -> Task:
    """A data set that comes in splits; images become components of means of pool × pool pixels."""
    splits = make(random_state=seed, **options)
    train, test = splits.train, splits.test
    if not pool:
        return Task(train, test)
    X, X_test = (_pooled(part.X, pool) for part in (train, test))
    pca = PCA(_COMPONENTS, random_state=0).fit(X)
    return Task(replace(train, X=pca.transform(X)), replace(test, X=pca.transform(X_test)))


def _three_digits(random_state: int) -> Splits:
    """MC-CMNIST's digits 0 to 2 in their three colours: 9 groups that can be measured, not 100."""
    splits = load_mc_cmnist(correlations=(0.9, 0.8), random_state=random_state)
    parts = (splits.train, splits.validation, splits.test)
    few = [(p.y < 3) & np.isin(p.environments, list(COLOURS)[:3]) for p in parts]
    return Splits(*map(_rows, parts, few))


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
    "mc-cmnist": partial(_simulated, _three_digits, pool=2),
}


@lru_cache(maxsize=1)
def _task(dataset: str, seed: int) -> Task:
    """The data of a seed, kept for the process."""
    return DATASETS[dataset](seed)


def _rows(data: EnvironmentData, rows: NDArray) -> EnvironmentData:
    """Some rows, given by their numbers or a mask."""
    return EnvironmentData(data.X[rows], data.y[rows], data.environments[rows])


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
    yield replace(task, train=_rows(task.train, (cells.k != k) | (cells.e != e)))


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
    for rows in group_members(task.train.y, task.train.environments):
        mask[rng.permutation(rows)[: max(1, round(fraction * len(rows)))]] = True
    yield _known(task, mask)


def tiny(n: int, task: Task, rng: np.random.Generator) -> Iterator[Task]:
    """At most n rows in each cell but that of its environment's over-represented class."""
    (task,) = all_groups(task, rng)
    cells, common = _over_represented(task.train)
    kept = [
        rows if cells.k[rows[0]] == common[cells.e[rows[0]]] else rng.permutation(rows)[:n]
        for rows in group_members(task.train.y, task.train.environments)
    ]
    yield replace(task, train=_rows(task.train, rng.permutation(np.concatenate(kept))))


def unseen(task: Task, rng: np.random.Generator) -> Iterator[Task]:
    """One environment left out at a time, at most three of them; it is tested on."""
    (task,) = all_groups(task, rng)
    names = np.unique(task.test.environments)
    if len(names) < 3:
        return
    for name in rng.permutation(names)[:_MOST_LEFT_OUT]:
        train = _rows(task.train, task.train.environments != name)
        test = _rows(task.test, task.test.environments == name)
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
    if min(len(part.y) for part in parts) >= _FEWEST_ROWS:
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


@lru_cache(maxsize=1)
def tasks(dataset: str, regime: str, seed: int) -> tuple[Task, ...]:
    """What is trained and tested on; empty if the regime does not apply to the data."""
    rng = np.random.default_rng([seed, *map(ord, regime)])
    return tuple(REGIMES[regime](_task(dataset, seed), rng))
