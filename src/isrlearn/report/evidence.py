"""Scores of a model, of the models it is compared with, and of the settings in between."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from isrlearn.estimators.compare import LabelledRows, compare_models
from isrlearn.estimators.verdict import Comparison
from isrlearn.metrics import GroupReport, group_report

#: Which rows were scored: those of a "test" table, those of the "validation" table that chose the
#: settings, "folds" of the training rows ("chosen-folds" if folds chose the settings too), the
#: "training" rows themselves, or a "table" that may be any of these.
Kind = Literal["test", "validation", "folds", "chosen-folds", "training", "table"]
Setting = tuple[int, float]  # the number of directions removed, and how much of them is kept

N_FOLDS = 5
#: Values of the training rows that dozens of models are fitted on; more rows are sampled.
MOST_VALUES = 2e6
_COUNTS = (0, 1, 2, 3, 5, 8)
#: A head compensates for a scale that is not small, so most candidates are small.
_SCALES = ((0.0, 0.05, 0.1, 0.2, 0.5, 1.0), (0.0, 0.1, 0.5, 1.0), (0.0, 0.2, 1.0), (0.0, 1.0))
#: Values × classes × fits that take about ten seconds.
_AFFORDABLE = 1.5e8
_NOTHING: Setting = (0, 1.0)


def refit(estimator: Any, rows: LabelledRows, **parameters: Any) -> Any:
    """A clone of an estimator with other parameters, fitted without warnings."""
    with warnings.catch_warnings(action="ignore"):
        twin = clone(estimator).set_params(**parameters)
        return twin.fit(rows.X, rows.y, environments=rows.environments, clusters=rows.clusters)


def refit_if_possible(estimator: Any, rows: LabelledRows, **parameters: Any) -> Any:
    """The same, or None where these rows do not allow it."""
    try:
        return refit(estimator, rows, **parameters)
    except (ValueError, np.linalg.LinAlgError):
        return None


@dataclass(frozen=True, eq=False)
class Evidence:
    """Scores of the model, of those it is compared with, and of other settings."""

    kind: Kind
    chosen: Setting
    report: GroupReport  # of the model
    comparison: Comparison | None = None  # None without training rows
    #: Of every setting, empty without training rows. Those that remove nothing share one report.
    reports: Mapping[Setting, GroupReport] = field(default_factory=dict)
    n_used: int = 0  # training rows that the other settings and the folds were fitted on
    reason: str = ""  # why cross-validation was not possible, for "training"

    @property
    def best(self) -> GroupReport | None:
        """Scores of the best alternative."""
        return None if self.comparison is None else self.comparison.reports[self.comparison.best]

    @property
    def counts(self) -> list[int]:
        """Numbers of directions that were tried, 0 first."""
        return sorted({r for r, _ in self.reports})

    @property
    def scales(self) -> list[float]:
        """Scales that were tried, from 0 to 1."""
        return sorted({s for _, s in self.reports})


def evidence(
    model: Any, train: LabelledRows | None, held_out: LabelledRows | None, *, chosen: bool
) -> Evidence:
    """Scores on held-out rows where there are any, otherwise by cross-validation on `train`.

    The model is an estimator or a search, fitted; in cross-validation it is fitted again.
    """
    estimator = getattr(model, "best_estimator_", model)
    own = (int(estimator.n_spurious_), float(estimator.scale))
    if train is None:
        if held_out is None:
            raise ValueError("a report needs rows: give training rows, held-out rows or both")
        return Evidence("table", own, scored(estimator, held_out))
    metric = metric_of(estimator)
    sample = train.at_most(MOST_VALUES // train.X.shape[1], metric)
    if held_out is not None:
        kind: Kind = "validation" if chosen else "test"
        comparison = compare_models(*train[:3], clusters=train.clusters, model=model, test=held_out)
        pairs = [(sample, held_out)]
    else:
        kind, known = "chosen-folds" if chosen else "folds", sample.clusters
        try:
            comparison = compare_models(*sample[:3], clusters=known, model=model, cv=N_FOLDS)
        except (ValueError, np.linalg.LinAlgError) as error:
            return Evidence("training", own, scored(estimator, train), reason=str(error))
        folds = sample.folds(N_FOLDS, metric)
        pairs = [(sample.take(rows), sample.take(test)) for rows, test in folds]
    reports = _trade_off(estimator, pairs, own, None if held_out is None else train)
    report = comparison.reports[comparison.name]
    # A search may choose other settings in each fold.
    reports = {s: report if s == own else each for s, each in reports.items()}
    return Evidence(kind, own, report, comparison, reports, len(sample.y))


def scored(
    estimator: Any, rows: Any, metric: str | None = None, sizes: Mapping[Any, int] | None = None
) -> GroupReport:
    """Scores of an estimator in every group of some rows, by default accuracy or rmse."""
    predicted, metric = estimator.predict(rows.X), metric or metric_of(estimator)
    how: dict[str, Any] = {"metric": metric, "train_groups": sizes, "clusters": rows.clusters}
    return group_report(rows.y, predicted, rows.environments, **how)


def metric_of(estimator: Any) -> str:
    """The metric of an estimator's groups."""
    return "accuracy" if hasattr(estimator, "classes_") else "rmse"


def real_shifts(spectrum: Any) -> NDArray[np.float64]:
    """The squared shifts that are not rounding."""
    values = np.asarray(spectrum, dtype=float)
    return values[values > 1e-9 * values.max(initial=0.0)]


def _trade_off(
    estimator: Any,
    pairs: Sequence[tuple[LabelledRows, LabelledRows]],
    own: Setting,
    train: LabelledRows | None,
) -> dict[Setting, GroupReport]:
    """Report of each setting, fitted on the first and scored on the second part of each pair."""
    # With `train`, the rows that the estimator was fitted on, the model itself is scored and
    # nothing removed is fitted on all these rows; otherwise both are fitted in each pair.
    counts = _counts(estimator, own[0])
    scales = sorted({*_scales(estimator, pairs, len(counts)), own[1]})
    tried = [(r, s) for r in counts if r for s in scales if s < 1]
    predicted: dict[Setting, list[NDArray]] = {s: [] for s in (_NOTHING, *tried, own)}
    failed, compared = set(), getattr(estimator, "compared_", "nothing")
    same = {} if compared == "nothing" else {"compare": compared}
    for part, held_out in pairs:
        model = refit(estimator, part) if train is None else estimator
        plain = refit(estimator, part if train is None else train, n_spurious=0)
        known = {own: model, _NOTHING: plain}
        for r, s in predicted:
            # "auto" may find another number of directions in each fold.
            count = int(model.n_spurious_) if r == own[0] else r
            other = {"n_spurious": count, "scale": s, **same}
            found = known.get((r, s)) or refit_if_possible(estimator, part, **other)
            if found is None:
                failed.add(r)  # these environments cannot show so many directions
            else:
                predicted[r, s].append(found.predict(held_out.X))
    y, environments = (np.concatenate([rows[i] for _, rows in pairs]) for i in (1, 2))
    metric = metric_of(estimator)
    reports = {
        s: group_report(y, np.concatenate(v), environments, metric=metric)
        for s, v in predicted.items()
        if s[0] not in failed
    }
    grid = [(r, s) for r in counts if r not in failed for s in scales]
    return {setting: reports.get(setting, reports[_NOTHING]) for setting in grid}


def _counts(estimator: Any, chosen: int) -> list[int]:
    """Numbers of directions to try, including the chosen one and its neighbours."""
    if len(estimator.environments_) < 2:
        return [0]
    d = int(estimator.n_features_in_)
    most = len(real_shifts(estimator.spectrum_)) or d - 1
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
