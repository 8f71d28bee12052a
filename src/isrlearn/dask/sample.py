"""A sample in parts: its moments and its logistic loss, summed by tasks where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from threadpoolctl import threadpool_limits

from isrlearn.core.labels import Cells, encode
from isrlearn.core.moments import Moments
from isrlearn.core.whiten import Coordinates
from isrlearn.dask.cluster import computed
from isrlearn.dask.parts import Part, Parts
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
        Directions (d, p) that the centred rows are projected on.
    """

    parts: Parts
    target: str | None
    reduction: tuple[NDArray, NDArray] | None = None
    has_rows = False

    @cached_property
    def size(self) -> tuple[float, int]:
        """Number of rows, or their total weight, and of features."""
        d = self.parts.n_features if self.reduction is None else self.reduction[0].shape[1]
        weighted = self.parts.weighted
        return self.moments("mean").class_count.sum() if weighted else float(self.parts.n_rows), d

    def moments(self, keep: str) -> Moments:
        """Moments of all parts, merged in the order of the rows."""
        if not self.parts.n_rows:
            raise ValueError("there are no rows")
        order, pooled = (1 if keep == "mean" else 2), keep == "pooled"
        of_part = partial(_part_moments, target=self.target, order=order, pooled=pooled)
        tasks = _tasks(self.parts, of_part, moments=order > 1)
        # Merge neighbours pairwise: the same sums wherever they are computed, and never more than
        # two of them on one worker.
        while len(tasks) > 1:
            tasks = [dask.delayed(sum)(tasks[i : i + 2]) for i in range(0, len(tasks), 2)]
        moments = computed(tasks)[0]
        if self.target == "classes":
            check_classification_targets(moments.classes)
        return moments

    def project(self, components: NDArray, center: NDArray) -> DaskSample:
        """The same sample with centred rows projected on directions (d, p)."""
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
        count, p = moments.class_count, coordinates.n_coordinates
        if weights is not None:
            inside, outside = weights
            count = (moments.count * inside).sum(axis=1)
            if moments.unlabelled is not None:
                count = count + moments.unlabelled.count[:, 0] * outside
        metric = None
        if coordinates.linear.ndim == 1:
            T, share = coordinates.matrix, count.sum() / moments.total[0]
            scatter = share * (T.T @ moments.total_scatter() @ T)
            metric = leading_metric(lambda V: scatter @ V, float(np.trace(scatter)), p)
        of_part = partial(
            _part_loss,
            names=(moments.classes, moments.environments),
            weights=weights,
            transform=partial(_transform, reduction=self.reduction, coordinates=coordinates),
        )
        tol = 1e-6 if self.parts.dtype == np.float32 else 1e-11
        return minimise(_DaskLoss(self.parts, of_part), p, count, penalty, metric, start, tol)

    def in_memory(self, coordinates: Coordinates, weights: Weights) -> Any:
        """Raise: the parts are never in memory together."""
        raise ValueError(
            "a scikit-learn head needs rows in memory, and these are in parts: use 'logistic', "
            "'lda', 'ridge' or a pair (coef, intercept)"
        )


@dataclass(frozen=True, eq=False)
class _DaskLoss:
    """The logistic loss, summed over the parts in their order."""

    parts: Parts
    of_part: Callable[..., NDArray]

    def loss_and_gradient(
        self, coef: NDArray, intercept: NDArray
    ) -> tuple[float, NDArray, NDArray]:
        """Loss, and its derivatives by coef (m, p) and by intercept (m,)."""
        of_part = partial(self.of_part, coef=coef, intercept=intercept)
        total = np.sum(computed(_tasks(self.parts, of_part, moments=False)), axis=0)
        m = len(intercept)
        return float(total[0]), total[1:-m].reshape(coef.shape), total[-m:]


def _tasks(parts: Parts, of_part: Callable[[Part], Any], *, moments: bool) -> list[Any]:
    """One task per group of parts: the sum of a function of its parts."""
    function = dask.delayed(of_part, traverse=False, pure=False)  # sent once, not with every task
    groups = parts.groups(moments=moments)
    return [dask.delayed(_group_sum)(parts.read, group, function) for group in groups]


def _group_sum(read: Callable[[Any], Part], group: list[Any], of_part: Any) -> Any:
    with threadpool_limits(limits=1):
        return sum(of_part(read(part)) for part in group)


def _part_moments(part: Part, target: str | None, order: int, pooled: bool) -> Moments:
    return cell_moments(
        part.X,
        part.y if target == "classes" else None,
        part.environments,
        order=order,
        pooled=pooled,
        targets=part.y if target == "numbers" else None,
        sample_weight=part.weight,
    )


def _part_loss(
    part: Part,
    names: tuple[NDArray, NDArray],
    weights: Weights,
    transform: Callable[[NDArray], NDArray],
    coef: NDArray,
    intercept: NDArray,
) -> NDArray:
    """Loss of the rows of a part and its derivatives, in one vector."""
    k, weight = encode(part.y, names[0])[1], part.weight
    if weights is not None:
        e = encode(part.environments, names[1])[1]
        own = Cells(*names, k, e).weights(*weights)
        weight = own if weight is None else own * weight
    loss = LogisticLoss(part.X, k, weight, transform)
    value, by_coef, by_intercept = loss.loss_and_gradient(coef, intercept)
    return np.concatenate([[value], by_coef.ravel(), by_intercept])


def _transform(
    X: NDArray, reduction: tuple[NDArray, NDArray] | None, coordinates: Coordinates
) -> NDArray:
    """Rows in the head's coordinates."""
    if reduction is not None:
        X = (X - reduction[1]) @ reduction[0]
    return coordinates(X)
