"""Scores of many regressors on one split, from one set of moments and one projection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn import validation as check
from isrlearn.core.erase import Eraser
from isrlearn.core.heads import Coordinates
from isrlearn.core.moments import Moments
from isrlearn.estimators import ISRRegressor
from isrlearn.estimators._heads import cell_weights, fit_on_rows, row_weights
from isrlearn.estimators._reading import Keep, moments_for
from isrlearn.estimators.search._jobs import Job, by_weighting, jobs_of
from isrlearn.estimators.search._reduced import Erased, Reduced
from isrlearn.estimators.search._scores import Groups, Score
from isrlearn.estimators.search._splits import Sample, Split


@dataclass(frozen=True, eq=False)
class Regression:
    """A split made ready for all the regressors of a grid.

    Parameters
    ----------
    estimators : sequence of ISRRegressor
        Not fitted: the settings.
    train, test : Sample
    moments : Moments
        Of the training rows on the components and, as last column, the target.
    features : Moments
        Of the training rows in the original features.
    reduced : Reduced
    groups : Groups
        Of the held-out rows.
    """

    estimators: Sequence[ISRRegressor]
    train: Sample
    test: Sample
    moments: Moments
    features: Moments
    reduced: Reduced
    groups: Groups

    @classmethod
    def of(cls, estimators: Sequence[ISRRegressor], split: Split) -> Regression:
        """Moments, components and projection of a split."""
        train, test = split.training, split.held_out
        keep: Keep = "cell" if any(e._keep() == "cell" for e in estimators) else "pooled"
        moments = moments_for(train.X, None, train.environments, keep, targets=train.y)
        features = moments.columns(train.X.shape[1])
        reduced = Reduced.of(features, estimators[0]._recovery(), train.X, test.X)
        if reduced.components is not None:
            moments = moments.map(linalg.block_diag(reduced.components, 1.0))
        groups = Groups.of(None, test.environments)
        return cls(estimators, train, test, moments, features, reduced, groups)

    def jobs(self) -> list[Job]:
        """What can be done independently."""
        return jobs_of(self.estimators, self.reduced, self.features, self.train, None)

    def __call__(self, job: Job) -> list[tuple[int, Score]]:
        """Scores of the members of a job."""
        return [
            (i, Score.of_errors(predicted - self.test.y, self.groups))
            for i, predicted in self.predictions(job)
        ]

    def predictions(self, job: Job) -> Iterator[tuple[int, NDArray]]:
        """Target of each held-out row, for the members of a job."""
        erased = self.reduced.erased(job.subspace, job.scale)
        for members in by_weighting(self.estimators, job.members).values():
            yield from self._predicted(members, job, erased)

    def _predicted(
        self, members: list[int], job: Job, erased: Erased
    ) -> Iterator[tuple[int, NDArray]]:
        """Predictions for the held-out rows, of settings that share head and weights."""
        first = self.estimators[members[0]]
        weights = cell_weights(self.moments, None, first.group_weight)
        if isinstance(first.head, str):
            weighted = self.moments if weights is None else self.moments.reweighted(*weights)
            alphas = [self.estimators[i].alpha for i in members]
            heads = ridge_path(weighted, erased.coordinates, alphas)
            center = self.reduced.moments.total()[1]
            for i, (coef, intercept) in zip(members, heads, strict=True):
                yield i, self.reduced.test @ coef + (intercept + coef @ center)
            return
        if isinstance(first.head, tuple):
            predicted = self._given(first, job)
        else:
            weight = row_weights(self.moments, None, self.train.environments, weights, None)
            fitted = fit_on_rows(first.head, erased.train, self.train.y, weight)
            predicted = erased.test @ np.ravel(fitted.coef_) + np.ravel(fitted.intercept_)
        yield from ((i, predicted) for i in members)

    def _given(self, first: ISRRegressor, job: Job) -> NDArray:
        """A head on the original features, with the removal folded into it."""
        components = self.reduced.components
        subspace = job.subspace if components is None else job.subspace.lift(components)
        eraser = Eraser.of(subspace, job.scale, self.features.total()[1])
        head = check.check_head(first.head, None, self.features.n_features)
        coef, intercept = eraser.fold(*head)
        return self.test.X @ coef + intercept


def ridge_path(
    moments: Moments, coordinates: Coordinates, alphas: Sequence[float]
) -> list[tuple[NDArray, float]]:
    """Ridge heads (coef, intercept) for many penalties, from one eigendecomposition.

    The same as `isrlearn.core.heads.ridge_head` for each of them.
    """
    d = moments.n_features - 1
    mean, scatter = moments.total()[1], moments.total_scatter()
    factor = coordinates.matrix
    values, vectors = linalg.eigh(factor.T @ scatter[:d, :d] @ factor)
    target = vectors.T @ (factor.T @ scatter[:d, d])
    heads = []
    for alpha in alphas:
        shifted = values + alpha
        real = shifted > shifted[-1] * np.finfo(float).eps * len(shifted)
        coef = factor @ (vectors[:, real] @ (target[real] / shifted[real]))
        heads.append((coef, float(mean[d] - coef @ mean[:d])))
    return heads
