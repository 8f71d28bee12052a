"""Scores of many classifiers on one split, from one set of moments and one projection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isrlearn import validation as check
from isrlearn.core.erase import Eraser
from isrlearn.core.heads import lda_head
from isrlearn.core.labels import encode
from isrlearn.core.logistic import fit_logistic
from isrlearn.core.moments import Moments
from isrlearn.estimators import ISRClassifier
from isrlearn.estimators._heads import cell_weights, fit_on_rows, row_weights
from isrlearn.estimators._reading import Keep, moments_for
from isrlearn.estimators.search._jobs import Job, by_weighting, jobs_of
from isrlearn.estimators.search._reduced import Erased, Reduced
from isrlearn.estimators.search._scores import Groups, Score
from isrlearn.estimators.search._splits import Sample, Split

Head = tuple[NDArray, NDArray]


@dataclass(frozen=True, eq=False)
class Classification:
    """A split made ready for all the classifiers of a grid.

    Parameters
    ----------
    estimators : sequence of ISRClassifier
        Not fitted: the settings.
    train, test : Sample
    moments : Moments
        Of the training rows in the original features.
    reduced : Reduced
    codes : ndarray of shape (n,)
        Classes of the training rows.
    truth : ndarray of shape (n',)
        Classes of the held-out rows; -1 for one that the training rows do not have.
    groups : Groups
        Of the held-out rows.
    """

    estimators: Sequence[ISRClassifier]
    train: Sample
    test: Sample
    moments: Moments
    reduced: Reduced
    codes: NDArray[np.intp]
    truth: NDArray[np.intp]
    groups: Groups

    @classmethod
    def of(cls, estimators: Sequence[ISRClassifier], split: Split) -> Classification:
        """Moments, components and projection of a split."""
        train, test = split.training, split.held_out
        n, d = train.X.shape
        kept = {e._keep(e._recovery(), n, d) for e in estimators}
        keep: Keep = "cell" if "cell" in kept else "pooled"
        moments = moments_for(train.X, train.y, train.environments, keep)
        check.check_classes(moments)
        reduced = Reduced.of(moments, estimators[0]._recovery(), train.X, test.X)
        known = np.isin(test.y, moments.classes)
        truth = np.full(len(test.y), -1)
        truth[known] = encode(test.y[known], moments.classes)[1]
        codes = encode(train.y, moments.classes)[1]
        groups = Groups.of(test.y, test.environments)
        return cls(estimators, train, test, moments, reduced, codes, truth, groups)

    def jobs(self) -> list[Job]:
        """What can be done independently."""
        return jobs_of(self.estimators, self.reduced, self.moments, self.train, self.train.y)

    def __call__(self, job: Job) -> list[tuple[int, Score]]:
        """Scores of the members of a job."""
        return [
            (i, Score.of_hits(predicted == self.truth, self.groups))
            for i, predicted in self._codes(job)
        ]

    def predictions(self, job: Job) -> Iterator[tuple[int, NDArray]]:
        """Class of each held-out row, for the members of a job."""
        for i, codes in self._codes(job):
            yield i, self.moments.classes[codes]

    def _codes(self, job: Job) -> Iterator[tuple[int, NDArray[np.intp]]]:
        """Predicted positions among the classes."""
        erased = self.reduced.erased(job.subspace, job.scale)
        for members in by_weighting(self.estimators, job.members).values():
            for i, outputs in self._outputs(members, job, erased):
                two = outputs.shape[1] == 1
                yield i, (outputs[:, 0] > 0).astype(int) if two else outputs.argmax(axis=1)

    def _outputs(
        self, members: list[int], job: Job, erased: Erased
    ) -> Iterator[tuple[int, NDArray]]:
        """Decision function of the held-out rows for settings that share head and weights."""
        first = self.estimators[members[0]]
        if isinstance(first.head, tuple):
            outputs = self._given(first, job)
            yield from ((i, outputs) for i in members)
            return
        weights = cell_weights(self.moments, first.class_weight, first.group_weight)
        if isinstance(first.head, str) and first.head == "lda":
            outputs = self._lda(first, erased, weights)
            yield from ((i, outputs) for i in members)
            return
        weight = row_weights(self.moments, self.train.y, self.train.environments, weights, None)
        if isinstance(first.head, str):
            heads = self._logistic(members, erased, weight)
        else:
            fitted = fit_on_rows(first.head, erased.train, self.train.y, weight)
            heads = ((i, (fitted.coef_, fitted.intercept_)) for i in members)
        for i, (coef, intercept) in heads:
            yield i, erased.test @ coef.T + intercept

    def _logistic(
        self, members: list[int], erased: Erased, weight: NDArray | None
    ) -> Iterator[tuple[int, Head]]:
        """Logistic heads from the strongest penalty to the weakest, each starting at the last."""
        K, (n, p) = len(self.moments.classes), erased.train.shape
        total = float(n) if weight is None else float(weight.sum())
        if erased.whitened:
            scatter = np.full(p, total)
        else:
            scatter = self.reduced.moments.map(erased.coordinates.matrix).total_scatter()
        fit = None
        for i in sorted(members, key=lambda i: self.estimators[i].C):
            C = self.estimators[i].C
            fit = fit_logistic(
                erased.train,
                self.codes,
                1 / C,
                n_classes=K,
                weight=weight,
                start=fit,
                scatter=scatter,
            )
            yield i, (fit.coef, fit.intercept)

    def _lda(
        self, first: ISRClassifier, erased: Erased, weights: tuple[NDArray, NDArray] | None
    ) -> NDArray:
        moments = self.reduced.moments
        weighted = moments if weights is None else moments.reweighted(*weights)
        coef, intercept = lda_head(weighted, erased.coordinates, shrinkage=first.shrinkage)
        return self.reduced.test @ coef.T + (intercept + coef @ moments.total()[1])

    def _given(self, first: ISRClassifier, job: Job) -> NDArray:
        """A head on the original features, with the removal folded into it."""
        K, d = len(self.moments.classes), self.moments.n_features
        components = self.reduced.components
        subspace = job.subspace if components is None else job.subspace.lift(components)
        eraser = Eraser.of(subspace, job.scale, self.moments.total()[1])
        coef, intercept = eraser.fold(*check.check_head(first.head, K, d))
        return self.test.X @ coef.T + intercept
