"""Subspaces from covariances, alone or together with means, and the registry of all methods."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from isrlearn.core.laws import Shifts, covariance_shifts, joint_shifts, mean_shifts
from isrlearn.core.moments import NEGLIGIBLE, Moments
from isrlearn.core.rank import RankTest, covariance_rank, mean_rank
from isrlearn.core.subspace import (
    Rank,
    Subspace,
    Variant,
    mean_subspace,
    multiclass_subspace,
    oblique,
    regression_subspace,
    row_space,
    tested,
)
from isrlearn.core.whiten import ROWS_PER_FEATURE, equalised, reliable_coordinates, whitening

_joint_rank = partial(covariance_rank, means=True)
_ALL_EQUAL = "no two environments have different covariances; compare means instead"


def covariance_subspace(
    moments: Moments,
    n_spurious: Rank = "auto",
    *,
    classes: ArrayLike | None = None,
    variant: Variant = "pooled",
    level: float = 0.01,
) -> Subspace:
    r"""Span of the differences of the cell covariances between environments (ISR-Cov, Algorithm 2).

    ``variant="paper"``: for a pair of environments the eigenvectors of
    :math:`\Sigma_a - \Sigma_b` with the largest absolute eigenvalues; over several pairs and
    classes, the flag mean of these subspaces (the paper's robust form; the flag mean of the
    invariant complements is its complement). Pairs whose covariances are equal are left out.
    ``variant="pooled"``, ours: the orthonormal N with the largest

    .. math:: \sum_{k,e} \tfrac{n_{ke}}{2} \| N^\top (\Sigma_{ke} - \bar{\Sigma_k}) N \|_F^2

    in coordinates whitened by the pooled within-cell covariance where there are enough rows. Cells
    with fewer than two rows are not compared.

    Parameters
    ----------
    moments : Moments
        With a scatter per cell (``order=2``).
    n_spurious : int, "auto" or RankTest, default="auto"
        Dimensions to find; "auto" tests for them (`covariance_rank`).
    classes : array-like of int, optional
        Positions of the classes to use; all by default.
    variant : {"pooled", "paper"}, default="pooled"
    level : float, default=0.01
        Level of the rank test.

    Examples
    --------
    >>> import numpy as np
    >>> covariance = np.stack([np.diag([1.0, 1.0]), np.diag([1.0, 4.0])])[None]
    >>> moments = Moments.population(np.zeros((1, 2, 2)), covariance)
    >>> np.abs(covariance_subspace(moments, 1).basis.ravel()).round(12).tolist()
    [0.0, 1.0]
    """
    picked = np.arange(len(moments.classes)) if classes is None else np.atleast_1d(classes)
    rank, test = tested(n_spurious, lambda: covariance_rank(moments, picked, level=level))
    if variant == "paper":
        return _flag_mean(moments, picked, rank, test)
    coordinates, mapped = None, moments
    enough = moments.ddof == 0 or moments.dof >= ROWS_PER_FEATURE * moments.n_features
    if moments.scatter is not None and enough:
        coordinates = whitening(moments)
        mapped = equalised(moments, coordinates.factor).map(coordinates.factor)
    shifts = covariance_shifts(mapped, picked)
    variance = np.diag(mapped.within()).max() / np.sqrt(mapped.dof)
    # A shift as large as Σ would be about as large as this; rounding is far smaller.
    if max(shifts.covariances.max(), -shifts.covariances.min()) <= NEGLIGIBLE * variance:
        raise ValueError(_ALL_EQUAL)
    start, spectrum = shifts.principal(rank)
    return oblique(shifts.leading(rank, start), coordinates, spectrum, test)


def joint_subspace(
    moments: Moments,
    n_spurious: Rank = "auto",
    *,
    variant: Variant = "pooled",
    level: float = 0.01,
) -> Subspace:
    """Span of what shifts between environments, in means or in covariances (ours).

    One objective for both, each shift in units of its sampling noise (`Shifts.leading`), in
    features whitened by the pooled within-cell covariance: whichever moment carries the signal
    is used. With too few rows for whitening, it is found among leading principal components.

    Parameters are those of `mean_subspace`, without `classes`; the moments need a scatter per cell.

    Examples
    --------
    >>> import numpy as np
    >>> mean = np.zeros((1, 2, 3))
    >>> mean[0, 1, 0] = 1.0  # the mean shifts along the first axis, the variance along the second
    >>> covariance = np.stack([np.eye(3), np.diag([1.0, 4.0, 1.0])])[None]
    >>> found = joint_subspace(Moments.population(mean, covariance), n_spurious=2)
    >>> (found.basis @ found.basis.T).round(9).diagonal().tolist()
    [1.0, 1.0, 0.0]
    """
    if variant != "pooled":
        raise ValueError(f"joint_subspace has the variant 'pooled' only; got {variant!r}")
    rank, test = tested(n_spurious, lambda: _joint_rank(moments, level=level))
    coordinates = reliable_coordinates(moments)
    moments = equalised(moments, coordinates.factor)
    shifts = joint_shifts(moments.map(coordinates.factor))
    start, spectrum = shifts.principal(rank)
    return oblique(shifts.leading(rank, start), coordinates, spectrum, test)


def _flag_mean(moments: Moments, classes: NDArray, rank: int, test: RankTest | None) -> Subspace:
    """Flag mean over classes and pairs of the leading eigenvectors of covariance differences."""
    covariance, dof = moments.covariance, moments.cell_dof
    found: list[tuple[NDArray, NDArray]] = []
    for k in classes:
        cells = covariance[k]
        for a, b in combinations(np.flatnonzero(dof[k] > 0), 2):
            difference = cells[a] - cells[b]
            if np.abs(difference).max() <= NEGLIGIBLE * np.abs(cells[a]).max():
                continue
            values, vectors = linalg.eigh(difference)
            order = np.argsort(-np.abs(values))
            found.append((np.abs(values[order]), vectors[:, order[:rank]]))
    if not found:
        raise ValueError(_ALL_EQUAL)
    if len(found) == 1:
        return Subspace(found[0][1], found[0][1], found[0][0], test)
    return row_space(np.concatenate([v.T for _, v in found]), rank, test)


@dataclass(frozen=True)
class Method:
    """Everything the package knows about a method.

    Examples
    --------
    >>> sorted(METHODS)
    ['cov', 'joint', 'mean', 'multiclass', 'regression']
    >>> METHODS["cov"].second_order
    True
    """

    #: ``find(moments, n_spurious, variant=..., level=...)`` is the `Subspace`.
    find: Callable[..., Subspace]
    #: ``rank(moments, level=...)`` is the `RankTest` that ``n_spurious="auto"`` uses.
    rank: Callable[..., RankTest] = mean_rank
    #: ``shifts(moments)`` are the `Shifts` that the permutation test compares.
    shifts: Callable[[Moments], Shifts] = mean_shifts
    #: Whether covariances are compared: a scatter per cell, and two rows in each, are needed.
    second_order: bool = False
    uses_classes: bool = True  #: Whether classes are compared with themselves; else y is ignored.
    one_class: bool = False  #: Whether the published variant compares one class only.
    variants: tuple[str, ...] = ("pooled", "paper")


#: Every method, by its name in the estimators and on the command line.
METHODS: dict[str, Method] = {
    "mean": Method(mean_subspace, one_class=True),
    "cov": Method(covariance_subspace, covariance_rank, covariance_shifts, second_order=True),
    "multiclass": Method(multiclass_subspace),
    "joint": Method(
        joint_subspace, _joint_rank, joint_shifts, second_order=True, variants=("pooled",)
    ),
    "regression": Method(regression_subspace, uses_classes=False),
}
