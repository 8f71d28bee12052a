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
#: Ratio of the largest to the smallest weight up to which weights change next to nothing.
_ALIKE = 1.2
#: Rows per coordinate of a cell from which a quadratic model of its environment is worthwhile.
_ROWS_PER_COORDINATE = 10
#: Most times that environments are left out in turn.
_MOST_LEFT_OUT = 10


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


def information(s: WhitenedSample) -> Information:
    """Information in a sample before and after the subspace is removed.

    A model trained on the rows in which the subspace was found would see cell means that were
    just made equal, and predict environments worse than chance. So half of the rows find the
    subspace, a quarter trains the model of the environment, and a quarter is predicted.
    """
    compared, quarter, e = s.compared, s.quarter, s.cells.e
    regression = s.target is not None
    smallest = np.unique(s.cell[compared], return_counts=True)[1].min() // 4
    # Covariances of a regression change along invariant directions too: they do not count.
    quadratic = not regression and smallest >= _ROWS_PER_COORDINATE * s.rows.shape[1]
    by_label = _ridge if regression else _nearest_mean
    by_place = _gaussian if quadratic else _nearest_mean
    label, place = np.full((2, 2, len(s.rows)), np.nan)  # predictions before and after
    for i in range(4):
        test, probe = quarter == i, quarter == (i + 1) % 4
        found, asked = s.known & ~test & ~probe, test & compared
        train = found | probe
        for after in (0, 1):
            Z = s.erased(found) if after and s.rank else s.rows
            label[after, test] = _inside(by_label, Z, s.value, e, train, test)
            place[after, asked] = _inside(by_place, Z, e, s.cells.k, probe, asked)
    E = len(s.cells.environments)
    tried = s.varies & ~np.isnan(label[0])
    score = (label == s.value).astype(float)
    if regression:
        spread = np.array([np.var(s.value[e == j]) for j in range(E)])
        score = 1 - (label - s.value) ** 2 / np.where(tried, spread[e], 1.0)
    environment = (place == e).astype(float)
    return Information(
        score="R²" if regression else "balanced accuracy",
        label_before=_cell_mean(s, score[0], tried)[0],
        label_after=_cell_mean(s, score[1], tried)[0],
        label_error=_cell_mean(s, score[1] - score[0], tried)[1],
        environment_before=_cell_mean(s, environment[0], compared)[0],
        environment_after=_cell_mean(s, environment[1], compared)[0],
        environment_chance=1 / E,
        quadratic=bool(quadratic),
    )


def _cell_mean(s: WhitenedSample, value: NDArray, rows: NDArray) -> tuple[float, float]:
    """Mean over cells of the mean inside each cell, and its standard error."""
    if not rows.any():
        return float("nan"), float("nan")
    cell = s.cell[rows]
    parts = [value[rows][cell == c] for c in np.unique(cell)]
    error = np.sqrt(sum(np.var(part) / len(part) for part in parts)) / len(parts)
    return float(np.mean([part.mean() for part in parts])), float(error)


def _inside(
    model: Callable[[NDArray, NDArray, NDArray], NDArray],
    Z: NDArray,
    value: NDArray,
    part: NDArray,
    train: NDArray,
    test: NDArray,
) -> NDArray[np.float64]:
    """Predictions for the test rows, in each part of the data by a model of its training rows."""
    found = np.full(len(Z), np.nan)
    for name in np.unique(part[test]):
        rows, asked = train & (part == name), test & (part == name)
        if rows.any():
            found[asked] = model(Z[rows], value[rows], Z[asked])
    return found[test]


def _nearest_mean(Z: NDArray, labels: NDArray, new: NDArray) -> NDArray:
    """Label whose mean is nearest: Fisher's rule, as within-cell covariances are the identity."""
    names = np.unique(labels)
    means = np.stack([Z[labels == name].mean(axis=0) for name in names])
    return names[cdist(new, means, "sqeuclidean").argmin(axis=1)]


def _gaussian(Z: NDArray, labels: NDArray, new: NDArray) -> NDArray:
    """Label of the largest Gaussian density, all labels equally likely."""
    n = len(np.unique(labels))
    # A direction may have no variance in a cell; it has some in all the cells together.
    model = QuadraticDiscriminantAnalysis(priors=np.full(n, 1 / n), reg_param=1e-3)
    return model.fit(Z, labels).predict(new)


def _ridge(Z: NDArray, target: NDArray, new: NDArray) -> NDArray:
    """Ridge regression; its penalty shrinks whitened coordinates little unless rows are few."""
    return Ridge(alpha=Z.shape[1]).fit(Z, target).predict(new)


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
    splits = [(s.quarter != i, s.quarter == i) for i in np.unique(s.quarter[s.known])]
    sizes = {cell: int(n) for cell, n in np.ndenumerate(s.moments.count)}
    weights = {name: _row_weights(s, name) for name in WEIGHTS}
    relative = {name: weight / s.weight for name, weight in weights.items()}
    distinct = [n for n in WEIGHTS if not n or relative[n].max() > _ALIKE * relative[n].min()]
    scores = []
    for removed in (False, True)[: 1 + (s.rank > 0)]:
        rows = _predicted(s, splits, [weights[name] for name in distinct], removed)
        predicted = dict(zip(distinct, rows[:, s.known].astype(int), strict=True))
        for name in WEIGHTS:
            report = group_report(
                s.cells.k[s.known],
                predicted.get(name, predicted[None]),
                environments=s.cells.e[s.known],
                train_groups=sizes,
            )
            worst = report.by_rank[0]
            group = cells.classes[worst.label], cells.environments[worst.environment]
            average = report.weighted_average
            scores.append(HeadScore(removed, name, average, worst.value, group, worst.n))
    return tuple(scores)


def _predicted(
    s: WhitenedSample,
    splits: Sequence[tuple[NDArray, NDArray]],
    weights: Sequence[NDArray],
    removed: bool,
) -> NDArray[np.float64]:
    """Predictions, one row per weighting, for the test rows of splits given as pairs of masks."""
    found = np.full((len(weights), len(s.rows)), np.nan)
    for train, test in splits:
        Z = s.erased(train) if removed else s.rows
        for row, weight in zip(found, weights, strict=True):
            if s.target is None:
                row[test] = _logistic(Z[train], s.cells.k[train], weight[train], Z[test])
            else:
                row[test] = _ridge(Z[train], s.target[train], Z[test])
    return found


def _logistic(Z: NDArray, classes: NDArray, weight: NDArray, new: NDArray) -> NDArray:
    """Classes of new rows by logistic regression; a single class is predicted everywhere."""
    if classes.min() == classes.max():
        return np.full(len(new), classes[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(tol=1e-3).fit(Z, classes, sample_weight=weight / weight.mean())
    return model.predict(new)


def _row_weights(s: WhitenedSample, name: str | None) -> NDArray[np.float64]:
    """Weights of the rows, as the estimators weight them."""
    if name is None:
        return s.weight
    return s.weight * s.cells.weights(*cell_weights(s.moments, name))


@dataclass(frozen=True)
class Unseen:
    """Score in an environment that was left out of training, mean over those left out.

    Examples
    --------
    >>> round(Unseen("balanced accuracy", 0.6, 0.9).gain, 2)
    0.3
    """

    score: str  #: "balanced accuracy" or "R²".
    #: Without and with the removal of the subspace found in the other environments.
    before: float
    after: float

    @property
    def gain(self) -> float:
        """What the removal adds."""
        return self.after - self.before


def unseen_score(s: WhitenedSample, n_patterns: int) -> Unseen | None:
    """Score in environments that are left out in turn.

    None if the remaining environments cannot show as many dimensions as all of them do: their
    smaller subspace would say little about the one found.
    """
    places = np.unique(s.cells.e[s.known])
    folds = np.array_split(places, min(len(places), _MOST_LEFT_OUT))
    fewest = len(places) - len(folds[0])
    shown = n_patterns * (fewest - 1) if s.method == "mean" else np.inf
    if fewest < 2 or s.rank > shown or not s.varies.any():
        return None
    left_out = [np.isin(s.cells.e, fold) for fold in folds]
    splits = [(s.known & ~out, out) for out in left_out]
    before, after = (
        group_report(
            s.value[s.varies],
            _predicted(s, splits, [_row_weights(s, "class")], removed)[0, s.varies],
            environments=s.cells.e[s.varies],
            metric="accuracy" if s.target is None else "r2",
        ).balanced_average
        for removed in (False, True)
    )
    return Unseen("balanced accuracy" if s.target is None else "R²", before, after)
