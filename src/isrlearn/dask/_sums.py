"""What tasks compute: moments of their rows, and sums of the logistic loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from threadpoolctl import threadpool_limits

from isrlearn.core.labels import Cells, encode
from isrlearn.core.moments import Moments
from isrlearn.core.whiten import Coordinates
from isrlearn.dask._parts import Part, Parts, joined
from isrlearn.dask._run import computed
from isrlearn.engine import LogisticFit, LogisticLoss, cell_moments, leading_metric, minimise

Weights = tuple[NDArray, NDArray] | None


@dataclass(frozen=True, eq=False)
class DaskSample:
    """Rows in parts, with what the pipeline reads from a sample.

    Parameters
    ----------
    parts : Parts
    target : {"classes", "numbers"} or None
        What the labels are.
    reduction : (components, center), optional
        Directions (d, p) that the rows are projected on, once centred.
    """

    parts: Parts
    target: str | None
    reduction: tuple[NDArray, NDArray] | None = None
    has_rows = False

    @property
    def size(self) -> tuple[float, int]:
        """Number of rows, or their total weight, and of features."""
        d = self.parts.n_features if self.reduction is None else self.reduction[0].shape[1]
        return self._n_rows, d

    @cached_property
    def _n_rows(self) -> float:
        if not self.parts.weighted:
            return float(self.parts.n_rows)
        return float(self.moments("mean").class_count.sum())

    def moments(self, keep: str) -> Moments:
        """Moments of all the parts, merged in the order of the rows."""
        order, pooled = (1 if keep == "mean" else 2), keep == "pooled"
        groups = self.parts.groups(moments=order > 1)
        settings = (self.target, order, pooled)
        tasks = [dask.delayed(_group_moments)(self.parts.read, g, settings) for g in groups]
        # Pairs of neighbours, again and again: the same sums wherever they are computed, and never
        # more than two of them in one place.
        while len(tasks) > 1:
            pairs = [tasks[i : i + 2] for i in range(0, len(tasks), 2)]
            tasks = [dask.delayed(_merged)(*pair) if len(pair) == 2 else pair[0] for pair in pairs]
        moments = computed(tasks)[0]
        if not isinstance(moments, Moments):
            raise ValueError("there are no rows")
        if self.target == "classes":
            check_classification_targets(moments.classes)
        return moments

    def project(self, components: NDArray, center: NDArray) -> DaskSample:
        """The same sample with centred rows on directions (d, p)."""
        return replace(self, reduction=(components, center))

    def logistic(
        self,
        moments: Moments,
        coordinates: Coordinates,
        penalty: float,
        weights: Weights,
        start: Any = None,
    ) -> LogisticFit:
        """A logistic regression of the class in a head's coordinates."""
        count = moments.class_count
        if weights is not None:
            inside, outside = weights
            count = (moments.count * inside).sum(axis=1)
            if moments.unlabelled is not None:
                count = count + moments.unlabelled.count[:, 0] * outside
        metric = None
        if coordinates.linear.ndim == 1:
            T, share = coordinates.matrix, count.sum() / moments.total[0]
            scatter = share * (T.T @ moments.total_scatter() @ T)
            p = coordinates.n_coordinates
            metric = leading_metric(lambda V: scatter @ V, float(np.trace(scatter)), p)
        loss = DaskLoss(
            self.parts, moments.classes, moments.environments, weights, coordinates, self.reduction
        )
        tol = 1e-6 if self.parts.dtype == np.float32 else 1e-11
        return minimise(loss, coordinates.n_coordinates, count, penalty, metric, start, tol)

    def in_memory(self, coordinates: Coordinates, weights: Weights) -> Any:
        """Raise: rows in parts are never in memory together."""
        raise ValueError(
            "a scikit-learn head needs rows in memory, and these are in parts: use 'logistic', "
            "'lda', 'ridge' or a pair (coef, intercept)"
        )


def _group_moments(read: Any, group: Sequence[Any], settings: tuple) -> Moments:
    target, order, pooled = settings
    total: Any = 0
    with threadpool_limits(limits=1):
        for part in joined([part for part in map(read, group) if len(part.y)]):
            environments = part.environments
            total = total + cell_moments(
                part.X,
                part.y if target == "classes" else None,
                np.zeros(len(part.y), dtype=int) if environments is None else environments,
                order=order,
                pooled=pooled,
                targets=part.y if target == "numbers" else None,
                sample_weight=part.weight,
            )
    return total


def _merged(a: Any, b: Any) -> Any:
    # A group without rows has the neutral element, which only adds from the left.
    return a if isinstance(b, int) else a + b


@dataclass(frozen=True, eq=False)
class DaskLoss:
    """The logistic loss, summed over rows in parts where they are.

    Parameters
    ----------
    parts : Parts
    classes, environments : ndarray
        Names that codes refer to.
    weights : (ndarray, ndarray) or None
        Weight of a row of each cell, and of a row of each class without an environment.
    coordinates : Coordinates
        Coordinates that the rows are mapped to inside the tasks.
    reduction : (components, center) or None
        Directions that the rows are projected on before.
    """

    parts: Parts
    classes: NDArray
    environments: NDArray
    weights: Weights
    coordinates: Coordinates
    reduction: tuple[NDArray, NDArray] | None

    def loss_and_gradient(
        self, coef: NDArray, intercept: NDArray
    ) -> tuple[float, NDArray, NDArray]:
        """Loss, and its derivatives by coef (m, p) and by intercept (m,), in the rows' order."""
        rest = dask.delayed((self, coef, intercept), traverse=False, pure=False)
        groups = self.parts.groups(moments=False)
        tasks = [dask.delayed(_group_loss)(self.parts.read, group, rest) for group in groups]
        return _added(computed(tasks))

    def __getstate__(self) -> dict[str, Any]:
        # The parts are the tasks' own arguments: they must not be sent twice.
        return {**self.__dict__, "parts": None}

    def __call__(self, X: NDArray) -> NDArray:
        """Rows of X in the head's coordinates."""
        if self.reduction is not None:
            components, center = self.reduction
            X = (X - center) @ components
        return self.coordinates(X)

    def of_part(self, part: Part) -> LogisticLoss:
        """The loss of the rows of a part."""
        codes, weight = encode(part.y, self.classes)[1], part.weight
        if self.weights is not None:
            names = part.environments
            names = np.zeros(len(part.y), dtype=int) if names is None else names
            e = encode(names, self.environments)[1]
            own = Cells(self.classes, self.environments, codes, e).weights(*self.weights)
            weight = own if weight is None else own * weight
        return LogisticLoss(part.X, codes, weight, self)


def _group_loss(read: Any, group: Sequence[Any], rest: Any) -> tuple[float, NDArray, NDArray]:
    loss, coef, intercept = rest
    with threadpool_limits(limits=1):
        return _added(
            [loss.of_part(read(part)).loss_and_gradient(coef, intercept) for part in group]
        )


def _added(sums: list[tuple[float, NDArray, NDArray]]) -> tuple[float, NDArray, NDArray]:
    """Sums of losses and their derivatives, added in order."""
    first, *others = sums
    for other in others:
        first = (first[0] + other[0], first[1] + other[1], first[2] + other[2])
    return first
