"""What the removal does on held-out rows: to labels, to environments and to linear heads."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

from isrlearn.diagnosis.sample import CellCounts, WhitenedSample
from isrlearn.estimators.heads import cell_weights
from isrlearn.metrics import group_report

WEIGHTS = (None, "class", "group")
#: Rows per coordinate of a cell from which a quadratic model of its environment is worthwhile.
_ROWS_PER_COORDINATE = 10
#: Most times that environments are left out in turn.
_MOST_LEFT_OUT = 10

#: Predictions for new rows: ``model(rows, values, weights, new)``.
Model = Callable[[NDArray, NDArray, NDArray, NDArray], NDArray]
#: Rows to predict, and masks of those to train on and to predict.
Split = tuple[NDArray, NDArray, NDArray]


@dataclass(frozen=True)
class Information:
    """How well labels and environments can be predicted before and after the removal.

    Everything is measured on rows that neither found the subspace nor trained the model.

    Examples
    --------
    >>> found = Information("balanced accuracy", 0.9, 0.8, 0.01, 0.9, 0.6, 0.5, False)
    >>> round(found.label_lost, 2), round(found.environment_left, 2)
    (0.1, 0.25)
    """

    score: str  #: The score of the labels: "balanced accuracy" or "R²".
    #: Score of a linear model trained and evaluated inside each environment, mean over
    #: environments; NaN if labels vary in none of them. Such a model may use whatever
    #: distinguishes classes in that environment, shortcuts included.
    label_before: float
    label_after: float
    label_error: float  #: Standard error of their difference.
    #: Balanced accuracy of predicting the environment of a row whose class is known.
    environment_before: float
    environment_after: float
    environment_chance: float  #: Balanced accuracy of guessing.
    quadratic: bool  #: Whether that prediction may use covariances as well as means.
    #: Score of a linear model in an environment that was left out, mean over those left out; None
    #: if the others cannot show as many dimensions as all of them do.
    unseen_before: float | None = None
    unseen_after: float | None = None

    @property
    def label_lost(self) -> float:
        """Decrease of the labels' score."""
        return self.label_before - self.label_after

    @property
    def environment_left(self) -> float:
        """Share of the environment's accuracy above chance that is left, in [0, 1]."""
        before = self.environment_before - self.environment_chance
        after = self.environment_after - self.environment_chance
        return float(np.clip(after / before, 0.0, 1.0)) if before > 0 else 0.0


def information(s: WhitenedSample, n_patterns: int) -> Information:
    """Information in a sample before and after the subspace is removed.

    A model trained on the rows in which the subspace was found would see cell means that were
    just made equal, and predict environments worse than chance. So half of the rows find the
    subspace, a quarter trains the model of the environment, and a quarter is predicted.
    """
    compared, e, E = s.compared, s.cells.e, len(s.cells.environments)
    regression = s.target is not None
    smallest = np.unique(s.cell[compared], return_counts=True)[1].min() // 4
    # Covariances of a regression change along invariant directions too: they do not count.
    quadratic = not regression and smallest >= _ROWS_PER_COORDINATE * s.rows.shape[1]
    by_label, by_place = _ridge if regression else _nearest_mean, _nearest_mean
    if quadratic:
        by_place = _gaussian
    labels, places = [], []
    for removed in (False, True):
        inside, probes = [], []
        for i in range(4):
            test, probe = s.quarter == i, s.quarter == (i + 1) % 4
            found = s.known & ~test & ~probe
            Z = s.erased(found) if removed and s.rank else s.rows
            inside.append((Z, found | probe, test))
            probes.append((Z, probe, test & compared))
        labels.append(_predicted(s, by_label, s.value, inside, e))
        places.append(_predicted(s, by_place, e, probes, s.cells.k))
    tried = s.varies & ~np.isnan(labels[0])
    score = (np.array(labels) == s.value).astype(float)
    if regression:
        spread = np.array([np.var(s.value[e == j]) for j in range(E)])
        score = 1 - (labels - s.value) ** 2 / np.where(tried, spread[e], 1.0)
    environment = (np.array(places) == e).astype(float)
    unseen_before, unseen_after = _unseen_scores(s, n_patterns)
    return Information(
        score="R²" if regression else "balanced accuracy",
        label_before=_cell_mean(s, score[0], tried)[0],
        label_after=_cell_mean(s, score[1], tried)[0],
        label_error=_cell_mean(s, score[1] - score[0], tried)[1],
        environment_before=_cell_mean(s, environment[0], compared)[0],
        environment_after=_cell_mean(s, environment[1], compared)[0],
        environment_chance=1 / E,
        quadratic=bool(quadratic),
        unseen_before=unseen_before,
        unseen_after=unseen_after,
    )


def _cell_mean(s: WhitenedSample, value: NDArray, rows: NDArray) -> tuple[float, float]:
    """Mean over cells of the mean inside each cell, and its standard error."""
    if not rows.any():
        return float("nan"), float("nan")
    cell = s.cell[rows]
    parts = [value[rows][cell == c] for c in np.unique(cell)]
    error = np.sqrt(sum(np.var(part) / len(part) for part in parts)) / len(parts)
    return float(np.mean([part.mean() for part in parts])), float(error)


def _unseen_scores(s: WhitenedSample, n_patterns: int) -> tuple[float | None, float | None]:
    """Scores without and with the removal in environments that are left out in turn."""
    places = np.unique(s.cells.e[s.known])
    folds = np.array_split(places, min(len(places), _MOST_LEFT_OUT))
    fewest = len(places) - len(folds[0])
    shown = n_patterns * (fewest - 1) if s.method == "mean" else np.inf
    if fewest < 2 or not 0 < s.rank <= shown or not s.varies.any():
        return None, None
    masks = [(s.known & ~out, out) for out in (np.isin(s.cells.e, fold) for fold in folds)]
    weight, scores = _row_weights(s, "class"), []
    model, metric = (_logistic, "accuracy") if s.target is None else (_ridge, "r2")
    for removed in (False, True):
        splits = [(s.erased(train) if removed else s.rows, train, out) for train, out in masks]
        report = group_report(
            s.value[s.varies],
            _predicted(s, model, s.value, splits, weight=weight)[s.varies],
            environments=s.cells.e[s.varies],
            metric=metric,
        )
        scores.append(report.balanced_average)
    return scores[0], scores[1]


@dataclass(frozen=True)
class HeadScore:
    """Accuracy on held-out rows of one logistic regression for all environments.

    Examples
    --------
    >>> HeadScore(True, "class", 0.95, 0.91, ("waterbird", "land"), 56).worst_group
    ('waterbird', 'land')
    """

    removed: bool  #: Whether the subspace was removed first.
    #: How rows are weighted: equally (None), with classes balanced ("class"), or with every class
    #: in every environment balanced ("group").
    weight: str | None
    average: float  #: Accuracy over all rows.
    worst: float  #: Accuracy in the worst group, a class in an environment.
    worst_group: tuple[Any, Any]  #: Its class and environment.
    n: int  #: Held-out rows of that group.

    @property
    def worst_error(self) -> float:
        """Standard error of the accuracy in the worst group, with a prior row on either side."""
        share = (self.worst * self.n + 1) / (self.n + 2)
        return float(np.sqrt(share * (1 - share) / (self.n + 2)))


def head_scores(s: WhitenedSample, cells: CellCounts) -> tuple[HeadScore, ...]:
    """Cross-validated scores of logistic regressions: without and with removal, by weights."""
    sizes = {cell: int(n) for cell, n in np.ndenumerate(s.moments.count)}
    quarters = [s.quarter == i for i in np.unique(s.quarter[s.known])]
    scores = []
    for removed in (False, True)[: 1 + (s.rank > 0)]:
        splits = [(s.erased(~test) if removed else s.rows, ~test, test) for test in quarters]
        for name in WEIGHTS:
            predicted = _predicted(s, _logistic, s.value, splits, weight=_row_weights(s, name))
            report = group_report(
                s.cells.k[s.known],
                predicted[s.known].astype(int),
                environments=s.cells.e[s.known],
                train_groups=sizes,
            )
            worst = report.by_rank[0]
            group = cells.classes[worst.label], cells.environments[worst.environment]
            average = report.weighted_average
            scores.append(HeadScore(removed, name, average, worst.value, group, worst.n))
    return tuple(scores)


def _row_weights(s: WhitenedSample, name: str | None) -> NDArray[np.float64]:
    """Weights of the rows, as the estimators weight them."""
    if name is None:
        return s.weight
    return s.weight * s.cells.weights(*cell_weights(s.moments, name))


def _predicted(
    s: WhitenedSample,
    model: Model,
    value: NDArray,
    splits: Sequence[Split],
    part: NDArray | None = None,
    weight: NDArray | None = None,
) -> NDArray[np.float64]:
    """Predictions for the test rows, in each part of the data by a model of its training rows."""
    part = np.zeros(len(value)) if part is None else part
    weight = s.weight if weight is None else weight
    found = np.full(len(value), np.nan)
    for Z, train, test in splits:
        for name in np.unique(part[test]):
            rows, asked = train & (part == name), test & (part == name)
            if rows.any():
                found[asked] = model(Z[rows], value[rows], weight[rows], Z[asked])
    return found


def _nearest_mean(Z: NDArray, labels: NDArray, weight: NDArray, new: NDArray) -> NDArray:
    """Label whose mean is nearest: Fisher's rule, as within-cell covariances are the identity."""
    names = np.unique(labels)
    means = np.stack([Z[labels == name].mean(axis=0) for name in names])
    return names[cdist(new, means, "sqeuclidean").argmin(axis=1)]


def _gaussian(Z: NDArray, labels: NDArray, weight: NDArray, new: NDArray) -> NDArray:
    """Label of the largest Gaussian density, all labels equally likely."""
    n = len(np.unique(labels))
    # A direction may have no variance in a cell; it has some in all the cells together.
    model = QuadraticDiscriminantAnalysis(priors=np.full(n, 1 / n), reg_param=1e-3)
    return model.fit(Z, labels).predict(new)


def _ridge(Z: NDArray, target: NDArray, weight: NDArray, new: NDArray) -> NDArray:
    """Ridge regression; its penalty shrinks whitened coordinates little unless rows are few."""
    return Ridge(alpha=Z.shape[1]).fit(Z, target).predict(new)


def _logistic(Z: NDArray, classes: NDArray, weight: NDArray, new: NDArray) -> NDArray:
    """Classes of new rows by logistic regression; a single class is predicted everywhere."""
    if classes.min() == classes.max():
        return np.full(len(new), classes[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(tol=1e-3).fit(Z, classes, sample_weight=weight / weight.mean())
    return model.predict(new)
