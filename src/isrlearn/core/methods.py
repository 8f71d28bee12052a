"""The registry of methods: how a spurious subspace is found, and what that needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from numpy.typing import NDArray

from isrlearn.core.covariance import covariance_subspace, joint_subspace
from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest, covariance_rank, joint_rank, mean_rank
from isrlearn.core.shifts import Shifts, covariance_shifts, joint_shifts, mean_shifts
from isrlearn.core.subspace import (
    Subspace,
    mean_subspace,
    multiclass_subspace,
    regression_subspace,
)


@dataclass(frozen=True)
class Method:
    """Everything the package knows about a method.

    Parameters
    ----------
    find : callable
        ``find(moments, n_spurious, variant=..., level=...)`` is the `Subspace`.
    rank : callable
        ``rank(moments, level=...)`` is the `RankTest` that ``n_spurious="auto"`` uses.
    shifts : callable
        ``shifts(moments)`` are the `Shifts` that the permutation test compares.
    second_order : bool, default=False
        Whether covariances are compared: a scatter per cell, and two rows in each, are needed.
    uses_classes : bool, default=True
        Whether classes are compared with themselves; else y is ignored.
    one_class : bool, default=False
        Whether the published variant compares one class only.
    variants : tuple of str, default=("pooled", "paper")

    Examples
    --------
    >>> sorted(METHODS)
    ['cov', 'joint', 'mean', 'multiclass', 'regression']
    >>> METHODS["cov"].second_order
    True
    """

    find: Callable[..., Subspace]
    rank: Callable[..., RankTest] = mean_rank
    shifts: Callable[[Moments, NDArray | None], Shifts] = mean_shifts
    second_order: bool = False
    uses_classes: bool = True
    one_class: bool = False
    variants: tuple[str, ...] = ("pooled", "paper")


#: Every method, by its name in the estimators and on the command line.
METHODS: dict[str, Method] = {
    "mean": Method(mean_subspace, one_class=True),
    "cov": Method(covariance_subspace, covariance_rank, covariance_shifts, second_order=True),
    "multiclass": Method(multiclass_subspace),
    "joint": Method(
        joint_subspace, joint_rank, joint_shifts, second_order=True, variants=("pooled",)
    ),
    "regression": Method(regression_subspace, uses_classes=False),
}
