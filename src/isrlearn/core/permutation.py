"""The rank test for heavy-tailed features: environment labels permuted inside each class."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from isrlearn.core.labels import encode
from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest, first_accepted, independent_shifts
from isrlearn.core.shifts import Shifts, covariance_shifts, joint_shifts, mean_shifts
from isrlearn.core.whiten import reliable_coordinates

_SHIFTS: dict[str, Callable[[Moments], Shifts]] = {
    "mean": mean_shifts,
    "cov": covariance_shifts,
    "joint": joint_shifts,
}


def permutation_rank(
    X: NDArray,
    y: ArrayLike | None,
    environments: ArrayLike,
    *,
    method: str = "mean",
    level: float = 0.01,
    n_permutations: int = 199,
    random_state: int = 0,
) -> RankTest:
    """Number of dimensions in which moments differ between environments, whatever their law.

    The sequence of `mean_rank`, `covariance_rank` or `joint_rank`, but each step compares the
    squared shifts outside the leading directions with those of the same rows after their
    environments are permuted inside their class. Needs the data, and a pass over them for each
    permutation; a step ends as soon as its answer is certain. Rows of unknown environment play
    no part.

    Parameters
    ----------
    X : ndarray of shape (n, d)
    y : array-like of shape (n,) or None
        Classes.
    environments : array-like of shape (n,)
    method : {"mean", "cov", "joint"}, default="mean"
        Which moments are compared; "joint" tests both, each at half the level.
    level : float, default=0.01
        Level of each step.
    n_permutations : int, default=199
        At least ``2 / level - 1``, for a p-value below half the level to exist.
    random_state : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, e = rng.standard_t(3, size=(600, 4)), np.arange(600) % 2
    >>> X[:, 0] += 2.0 * e
    >>> permutation_rank(X, None, e).rank
    1
    """
    if n_permutations < 2 / level - 1:
        raise ValueError(
            f"n_permutations={n_permutations} cannot show a level of {level:g}; at least "
            f"{int(np.ceil(2 / level - 1))} needed"
        )
    k = encode(np.zeros(len(X), dtype=int) if y is None else y)[1]
    e = encode(environments)[1]
    known = e >= 0
    k, e, rows = k[known], e[known], X[known]
    order = 1 if method == "mean" else 2
    moments = Moments.from_data(rows, k, e, pooled=order == 1)
    smallest = np.inf if order == 1 else float(moments.count.min() - 1)
    factor = reliable_coordinates(moments, smallest_cell=smallest).factor
    Z = (rows - moments.total()[1].astype(rows.dtype)) @ factor.astype(rows.dtype)
    shifts = _SHIFTS[method](moments.map(factor))
    search = _Permutations(Z, k, e, order, method, level, n_permutations, random_state)
    p = factor.shape[1]
    limit = min(p, independent_shifts(moments, None)) if order == 1 else p
    rank, p_values = first_accepted(lambda r: search.p_value(shifts.leading(r)), limit, level)
    spectrum = np.linalg.eigvalsh(shifts.scatter())[::-1][:limit]
    return RankTest(rank, p_values, level, spectrum, search.noise, limit)


class _Permutations:
    """Squared shifts of permuted rows, compared with those of the rows as they are."""

    def __init__(
        self,
        Z: NDArray,
        k: NDArray,
        e: NDArray,
        order: int,
        method: str,
        level: float,
        n: int,
        random_state: int,
    ) -> None:
        self.Z, self.k, self.e, self.order = Z, k, e, order
        self.shifts_of, self.level, self.n = _SHIFTS[method], level, n
        self.rng = np.random.default_rng(random_state)
        self.members = [np.flatnonzero(k == c) for c in range(int(k.max()) + 1)]
        self.noise = 0.0

    def p_value(self, N: NDArray) -> float:
        """P-value of "no shift outside N", the smaller of both kinds' where both are tested."""
        rest = self.Z @ linalg.null_space(N.T).astype(self.Z.dtype) if N.shape[1] else self.Z
        observed = _squares(self._shifts(rest, self.e))
        exceed = np.zeros(len(observed))
        tops: list[float] = []
        done = 0
        while done < self.n:
            done += 1
            permuted = self._shifts(rest, self._permuted())
            exceed += _squares(permuted) >= observed
            if not N.shape[1]:
                tops.append(float(np.linalg.eigvalsh(permuted.scatter())[-1]))
            # Besag and Clifford: five exceedances settle a step before the last permutation, as
            # long as they are too many for the level whatever is still to come.
            fewest = exceed.min()
            if fewest >= 5 and len(observed) * (fewest + 1) / (self.n + 1) > self.level:
                break
        if tops:
            self.noise = float(np.mean(tops))
        value = exceed.min() / done if done < self.n else (exceed.min() + 1) / (self.n + 1)
        return float(min(1.0, len(observed) * value))

    def _shifts(self, rows: NDArray, e: NDArray) -> Shifts:
        return self.shifts_of(Moments.from_data(rows, self.k, e, order=self.order))

    def _permuted(self) -> NDArray:
        e = self.e.copy()
        for members in self.members:
            e[members] = self.rng.permutation(e[members])
        return e


def _squares(shifts: Shifts) -> NDArray[np.float64]:
    """Sum of squares of each kind of shift there is."""
    sums = [np.sum(part**2) for part in (shifts.means, shifts.covariances) if len(part)]
    return np.array(sums)
