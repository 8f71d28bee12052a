"""Every number of directions with every scale, scored on the same held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from isrlearn.core.labels import encode
from isrlearn.estimators.search._classification import Classification
from isrlearn.estimators.search._regression import Regression
from isrlearn.estimators.search._splits import Sample, Split
from isrlearn.metrics import GroupReport, group_report

#: Counts tried where the environments could show more than these.
_COUNTS = (0, 1, 2, 3, 5, 8)
#: A head makes up for a scale that is not small, so most of them are.
_SCALES = (
    (0.0, 0.05, 0.1, 0.2, 0.5, 1.0),
    (0.0, 0.1, 0.5, 1.0),
    (0.0, 0.2, 1.0),
    (0.0, 1.0),
)
#: Rows × coordinates × classes × fits that are worth waiting for: about ten seconds.
_AFFORDABLE = 1e8

Setting = tuple[int, float]


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Scores of the model's head for each number of directions and each scale.

    Parameters
    ----------
    counts : tuple of int
        Numbers of directions, 0 first.
    scales : tuple of float
        What is kept of them, from 0 to 1.
    reports : mapping from (count, scale) to GroupReport
        Of all combinations; those that remove nothing share one report.
    chosen : (int, float)
        The model's own.
    """

    counts: tuple[int, ...]
    scales: tuple[float, ...]
    reports: Mapping[Setting, GroupReport]
    chosen: Setting

    @property
    def before(self) -> GroupReport:
        """With nothing removed."""
        return self.reports[0, 1.0]

    @property
    def after(self) -> GroupReport:
        """With the model's own settings."""
        return self.reports[self.chosen]


def trade_off(estimator: Any, splits: Sequence[Split], metric: str) -> TradeOff:
    """Trade-off of a fitted estimator's settings, its other ones held fixed.

    A split needs one set of moments and one projection of its rows for all the settings. Rows
    that several splits hold out (folds of one sample) are scored together.

    Parameters
    ----------
    estimator : ISRClassifier or ISRRegressor
        Fitted.
    splits : sequence of Split
        Which hold out each row once at most.
    metric : {"accuracy", "rmse"}
    """
    chosen = (int(estimator.n_spurious_), float(estimator.scale))
    counts = _counts(_most(estimator, splits[0].sample), chosen[0])
    scales = tuple(sorted({*_scales(estimator, splits, len(counts)), chosen[1]}))
    every = [(r, s) for r in counts for s in scales]
    # All that remove nothing are one; the own number may be another one in each fold.
    once = {s: s if s == chosen or (s[0] and s[1] < 1) else (0, 1.0) for s in every}
    settings = list(dict.fromkeys(once.values()))
    predicted = _predictions([_with(estimator, *s, chosen[0]) for s in settings], splits)
    held_out = splits[0].other
    rows = np.sort(np.concatenate([np.arange(len(held_out.y))[split.test] for split in splits]))
    y, environments = held_out.y[rows], held_out.environments[rows]
    reports = {
        setting: group_report(y, values[rows], environments=environments, metric=metric)
        for setting, values in zip(settings, predicted, strict=True)
    }
    return TradeOff(counts, scales, {s: reports[once[s]] for s in every}, chosen)


def _predictions(members: Sequence[Any], splits: Sequence[Split]) -> list[NDArray]:
    """Predictions of each member for the rows that a split holds out."""
    kind: Any = Classification if hasattr(members[0], "class_weight") else Regression
    dtype = float if kind is Regression else splits[0].sample.y.dtype
    found = [np.empty(len(splits[0].other.y), dtype=dtype) for _ in members]
    with warnings.catch_warnings():
        # What a number of directions that nobody asked for is warned of is no news.
        warnings.simplefilter("ignore", UserWarning)
        for split in splits:
            prepared = kind.of(members, split)
            jobs = prepared.jobs()
            with threadpool_limits(limits=1):
                for job in jobs:
                    for i, values in prepared.predictions(job):
                        found[i][split.test] = values
    return found


def _with(estimator: Any, count: int, scale: float, own: int) -> Any:
    """The estimator, not fitted, with another number of directions and another scale."""
    twin = clone(estimator)
    if count != own:
        # Its own number stays as it was asked for: "auto" is tested again in every fold.
        twin.set_params(n_spurious=count)
    return twin.set_params(scale=scale)


def _most(estimator: Any, sample: Sample) -> int:
    """Most directions that a method can be asked for on these rows."""
    recovery = estimator._recovery()
    E, d = len(encode(sample.environments)[0]), int(estimator.n_features_in_)
    if E < 2:
        return 0
    if isinstance(estimator.n_components, int | np.integer):
        d = min(d, int(estimator.n_components))
    K = len(recovery.positions(estimator.moments_.classes))
    return int(recovery.bound(K, E, d)[0])


def _scales(estimator: Any, splits: Sequence[Split], n_counts: int) -> tuple[float, ...]:
    """As many scales as can be tried in the time that a reader would wait."""
    n, d = splits[0].sample.X.shape
    K = len(getattr(estimator, "classes_", ()))
    one = n * min(d, max(200, n // 20)) * (K if K > 2 else 1)
    for scales in _SCALES:
        if one * len(splits) * n_counts * (len(scales) - 1) <= _AFFORDABLE:
            break
    return scales


def _counts(most: int, chosen: int) -> tuple[int, ...]:
    """Numbers of directions to try, the chosen one and its neighbours among them.

    Examples
    --------
    >>> _counts(3, 2), _counts(100, 12)
    ((0, 1, 2, 3), (0, 1, 2, 3, 5, 8, 11, 12, 13, 24))
    """
    most = max(most, chosen)
    if most <= _COUNTS[-1]:
        return tuple(range(most + 1))
    wanted = {*_COUNTS, chosen - 1, chosen, chosen + 1, 2 * chosen}
    return tuple(sorted(r for r in wanted if 0 <= r <= most))
