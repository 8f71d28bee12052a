"""Scores before and after the removal, and how far they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from isrlearn.estimators.search._splits import Sample, Split, cell_folds, cells_of
from isrlearn.metrics import GroupReport, group_report
from isrlearn.report._rows import thinned
from isrlearn.report._tradeoff import TradeOff, trade_off

Kind = Literal["test", "validation", "folds", "chosen-folds", "training", "table"]

_FOLDS = 5
#: Most numbers of a training table that many heads are fitted on: it is copied a few times.
_MOST_VALUES = 1.5e7
_EVERYTHING = slice(None)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Scores of the model, of the same head with nothing removed, and of what lies between.

    Parameters
    ----------
    kind : str
        Which rows were scored: of a "test" table, of the "validation" table that chose the
        settings, of "folds" of the training rows ("chosen-folds" if folds chose the settings
        too), the "training" rows themselves, or of a "table" that may be any of these.
    after : GroupReport
        Of the model.
    before : GroupReport or None
        Of the same head with nothing removed; needs the training rows.
    trade_off : TradeOff or None
    n_used : int
        Training rows that took part in the trade-off, and in the folds; of very many, some.
    reason : str
        Why there are no folds, where there should have been.
    """

    kind: Kind
    after: GroupReport
    before: GroupReport | None = None
    trade_off: TradeOff | None = None
    n_used: int = 0
    reason: str = ""


def metric_of(estimator: Any) -> str:
    """The metric of an estimator's groups."""
    return "accuracy" if hasattr(estimator, "classes_") else "rmse"


def evidence(
    estimator: Any, train: Sample | None, held_out: Sample | None, *, chosen: bool
) -> Evidence:
    """Scores on held-out rows where there are any, else by cross-validation.

    Parameters
    ----------
    estimator : ISRClassifier or ISRRegressor
        Fitted, on `train` if that is given.
    train, held_out : Sample or None
        One of them at least.
    chosen : bool
        Whether the settings were chosen by the rows to be scored.
    """
    metric = metric_of(estimator)
    if held_out is None and train is not None:
        return _by_folds(estimator, train, metric, chosen=chosen)
    if held_out is None:
        raise ValueError("a report needs rows: give the training rows, held-out ones or both")
    after = _scored(estimator, held_out, metric)
    if train is None:
        return Evidence("table", after)
    some = _some(train, _cells(train, metric))[0]
    split = Split(some, _EVERYTHING, held_out, _EVERYTHING)
    found = _exact(trade_off(estimator, [split], metric), estimator, train, held_out)
    kind: Kind = "validation" if chosen else "test"
    return Evidence(kind, found.after, found.before, found, len(some.y))


def _by_folds(estimator: Any, train: Sample, metric: str, *, chosen: bool) -> Evidence:
    """Scores by cross-validation; of the training rows themselves where that cannot be done."""
    sample, cells = _some(train, _cells(train, metric))
    try:
        folds = cell_folds(cells, _FOLDS, np.random.RandomState(0))
        splits = [Split(sample, a, sample, b) for a, b in folds]
        found = trade_off(estimator, splits, metric)
    except (ValueError, np.linalg.LinAlgError) as error:
        split = Split(sample, _EVERYTHING, train, _EVERYTHING)
        found = _exact(trade_off(estimator, [split], metric), estimator, train, train)
        n = len(sample.y)
        return Evidence("training", found.after, found.before, found, n, reason=str(error))
    kind: Kind = "chosen-folds" if chosen else "folds"
    return Evidence(kind, found.after, found.before, found, len(sample.y))


def _cells(rows: Sample, metric: str) -> NDArray[np.intp]:
    return cells_of(rows.y if metric == "accuracy" else None, rows.environments)


def _some(rows: Sample, cells: NDArray[np.intp]) -> tuple[Sample, NDArray[np.intp]]:
    """Rows that dozens of heads can be fitted on, and their cells: all, unless there are many."""
    kept = thinned(cells, int(_MOST_VALUES // rows.X.shape[1]))
    return (rows, cells) if len(kept) == len(cells) else (rows.rows(kept), cells[kept])


def _exact(found: TradeOff, estimator: Any, train: Sample, held_out: Sample) -> TradeOff:
    """The same with the model's own predictions, which another solver may miss by a row."""
    metric = found.after.metric
    plain = clone(estimator).set_params(n_spurious=0)
    plain.fit(train.X, train.y, environments=train.environments)
    before, after = (_scored(each, held_out, metric) for each in (plain, estimator))
    nothing = {s for s in found.reports if s[0] == 0 or s[1] == 1.0}
    reports = {s: before if s in nothing else r for s, r in found.reports.items()}
    if found.chosen not in nothing:
        reports[found.chosen] = after
    return replace(found, reports=reports)


def _scored(estimator: Any, rows: Sample, metric: str) -> GroupReport:
    predicted = estimator.predict(rows.X)
    return group_report(rows.y, predicted, environments=rows.environments, metric=metric)
