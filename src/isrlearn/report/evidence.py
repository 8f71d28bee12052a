"""Scores of a model, of the same head with nothing removed, and of the settings in between."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_consistent_length

from isrlearn.core.labels import Cells
from isrlearn.estimators.selection import cell_folds
from isrlearn.metrics import GroupReport, PairedReport, group_report, paired_report

#: Which rows were scored: those of a "test" table, those of the "validation" table that chose the
#: settings, "folds" of the training rows ("chosen-folds" if folds chose the settings too), the
#: "training" rows themselves, or a "table" that may be any of these.
Kind = Literal["test", "validation", "folds", "chosen-folds", "training", "table"]
Setting = tuple[int, float]  # the number of directions removed, and how much of them is kept

N_FOLDS = 5
#: Values of the training rows that dozens of models are fitted on; more rows are sampled.
MOST_VALUES = 5e6
#: Rows that a cell keeps in a sample, if it has them.
_FEWEST = 25
_COUNTS = (0, 1, 2, 3, 5, 8)
#: A head compensates for a scale that is not small, so most candidates are small.
_SCALES = ((0.0, 0.05, 0.1, 0.2, 0.5, 1.0), (0.0, 0.1, 0.5, 1.0), (0.0, 0.2, 1.0), (0.0, 1.0))
#: Values × classes × fits that take about ten seconds.
_AFFORDABLE = 1.5e8
_NOTHING: Setting = (0, 1.0)


class LabelledRows(NamedTuple):
    """Features, labels and environments of the same rows."""

    X: NDArray  # (n, d)
    y: NDArray  # (n,)
    environments: NDArray  # (n,)

    @classmethod
    def of(cls, data: Any) -> LabelledRows:
        """Rows of a table, of a data set or of three arrays."""
        if hasattr(data, "environments"):
            data = (data.X, data.y, data.environments)
        if not isinstance(data, tuple | list) or len(data) != 3 or any(p is None for p in data):
            raise ValueError(
                "rows must be (X, y, environments) or an object with these attributes, none of "
                f"them None; got {type(data).__name__}"
            )
        X, y, environments = (p if hasattr(p, "dtype") else np.asarray(p) for p in data)
        check_consistent_length(X, y, environments)
        return cls(X, np.asarray(y), np.asarray(environments))

    def take(self, rows: NDArray[np.intp]) -> LabelledRows:
        """Some of the rows; the same object if these are all of them."""
        return self if len(rows) == len(self.y) else LabelledRows(*(part[rows] for part in self))

    def cells(self, metric: str) -> NDArray[np.intp]:
        """Code of the class × environment of each row, or of its environment for a regression."""
        return strata(Cells.of(self.y if metric == "accuracy" else None, self.environments))

    def at_most(self, n_values: float, metric: str) -> LabelledRows:
        """A sample with about that many values."""
        return self.take(thinned(self.cells(metric), int(n_values // self.X.shape[1])))


def strata(cells: Cells) -> NDArray[np.intp]:
    """Code of each row's class × environment; unknown environments count as one environment."""
    return cells.k * (len(cells.environments) + 1) + cells.e


def thinned(cells: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Sorted positions of about `most` rows, at most half as many more, the same every time.

    Cells keep their shares, but a small cell keeps enough rows to be seen.

    Examples
    --------
    >>> import numpy as np
    >>> rows = thinned(np.repeat([0, 1], [990, 10]), 100)
    >>> len(rows), int((rows >= 990).sum())
    (109, 10)
    """
    n = len(cells)
    if n <= most:
        return np.arange(n)
    rng = np.random.default_rng(0)
    kept, names = [], np.unique(cells)
    fewest = min(_FEWEST, most // (2 * len(names)))
    for cell in names:
        rows = np.flatnonzero(cells == cell)
        share = max(min(len(rows), fewest), int(len(rows) * most / n))
        kept.append(rng.choice(rows, share, replace=False))
    return np.sort(np.concatenate(kept))


def refit(estimator: Any, rows: LabelledRows, **parameters: Any) -> Any:
    """A clone of an estimator with other parameters, fitted without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin = clone(estimator).set_params(**parameters)
        return twin.fit(rows.X, rows.y, environments=rows.environments)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Scores of the model, of the same head with nothing removed, and of other settings."""

    kind: Kind
    chosen: Setting
    after: GroupReport  # of the model
    #: Of the same head with nothing removed; None without training rows.
    before: GroupReport | None = None
    #: Of every setting, empty without training rows. Those that remove nothing share one report.
    reports: Mapping[Setting, GroupReport] = field(default_factory=dict)
    change: PairedReport | None = None  # from before to after, on the same rows
    n_used: int = 0  # training rows that the other settings and the folds were fitted on
    reason: str = ""  # why cross-validation was not possible, for "training"

    @property
    def counts(self) -> list[int]:
        """Numbers of directions that were tried, 0 first."""
        return sorted({r for r, _ in self.reports})

    @property
    def scales(self) -> list[float]:
        """Scales that were tried, from 0 to 1."""
        return sorted({s for _, s in self.reports})


def evidence(
    estimator: Any, train: LabelledRows | None, held_out: LabelledRows | None, *, chosen: bool
) -> Evidence:
    """Scores on held-out rows where there are any, otherwise by cross-validation on `train`."""
    metric = metric_of(estimator)
    own = (int(estimator.n_spurious_), float(estimator.scale))
    if train is None:
        if held_out is None:
            raise ValueError("a report needs rows: give training rows, held-out rows or both")
        X, y, environments = held_out
        score = group_report(y, estimator.predict(X), environments, metric=metric)
        return Evidence("table", own, score)
    sample, reason = train.at_most(MOST_VALUES, metric), ""
    kind: Kind = "validation" if chosen else "test"
    if held_out is None:
        kind = "chosen-folds" if chosen else "folds"
        try:
            folds = cell_folds(sample.cells(metric), N_FOLDS, np.random.RandomState(0))
            pairs = [(sample.take(rows), sample.take(test)) for rows, test in folds]
            found = _trade_off(estimator, pairs, own, None)
        except (ValueError, np.linalg.LinAlgError) as error:
            kind, reason, held_out = "training", str(error), train
    if held_out is not None:
        found = _trade_off(estimator, [(sample, held_out)], own, train)
    reports, change = found
    after, before = reports[own], reports[_NOTHING]
    return Evidence(kind, own, after, before, reports, change, len(sample.y), reason)


def metric_of(estimator: Any) -> str:
    """The metric of an estimator's groups."""
    return "accuracy" if hasattr(estimator, "classes_") else "rmse"


def _trade_off(
    estimator: Any,
    pairs: Sequence[tuple[LabelledRows, LabelledRows]],
    own: Setting,
    train: LabelledRows | None,
) -> tuple[dict[Setting, GroupReport], PairedReport]:
    """Report of each setting, fitted on the first and scored on the second part of each pair.

    The second report compares the model with nothing removed on the same rows.
    """
    # With `train`, the rows that the estimator was fitted on, the model itself is scored and
    # nothing removed is fitted on all these rows; otherwise both are fitted in each pair.
    counts = _counts(estimator, own[0])
    scales = sorted({*_scales(estimator, pairs, len(counts)), own[1]})
    tried = [(r, s) for r in counts if r for s in scales if s < 1]
    predicted: dict[Setting, list[NDArray]] = {s: [] for s in (_NOTHING, *tried, own)}
    failed = set()
    for part, held_out in pairs:
        model = refit(estimator, part) if train is None else estimator
        plain = refit(estimator, part if train is None else train, n_spurious=0)
        known = {own: model, _NOTHING: plain}
        for r, s in predicted:
            try:
                # "auto" may find another number of directions in each fold.
                number = int(model.n_spurious_) if r == own[0] else r
                found = known.get((r, s)) or refit(estimator, part, n_spurious=number, scale=s)
            except (ValueError, np.linalg.LinAlgError):
                failed.add(r)  # these environments cannot show so many directions
            else:
                predicted[r, s].append(found.predict(held_out.X))
    y = np.concatenate([held_out.y for _, held_out in pairs])
    environments = np.concatenate([held_out.environments for _, held_out in pairs])
    metric = metric_of(estimator)
    whole = {s: np.concatenate(v) for s, v in predicted.items() if s[0] not in failed}
    reports = {s: group_report(y, v, environments, metric=metric) for s, v in whole.items()}
    change = paired_report(y, whole[_NOTHING], whole[own], environments, metric=metric)
    grid = [(r, s) for r in counts if r not in failed for s in scales]
    return {setting: reports.get(setting, reports[_NOTHING]) for setting in grid}, change


def _counts(estimator: Any, chosen: int) -> list[int]:
    """Numbers of directions to try, including the chosen one and its neighbours."""
    if len(estimator.environments_) < 2:
        return [0]
    spectrum, d = np.asarray(estimator.spectrum_), int(estimator.n_features_in_)
    most = np.count_nonzero(spectrum > 1e-9 * spectrum.max(initial=0.0)) or d - 1
    near = {*_COUNTS, chosen - 1, chosen, chosen + 1, 2 * chosen}
    every = range(min(max(most, chosen), d - 1) + 1)
    return [r for r in every if r in near or most <= _COUNTS[-1]]


def _scales(estimator: Any, pairs: Sequence[tuple], n_counts: int) -> tuple[float, ...]:
    """As many scales as can be tried in an acceptable time."""
    K = len(getattr(estimator, "classes_", ()))
    passes = 2 * K if K > 2 else 1  # a softmax takes more of them
    work = pairs[0][0].X.size * len(pairs) * n_counts * passes
    affordable = (s for s in _SCALES if work * (len(s) - 1) <= _AFFORDABLE)
    return next(affordable, _SCALES[-1])
