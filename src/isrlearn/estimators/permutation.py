"""The rank test without a distribution: environment labels permuted inside each class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core.labels import Cells
from isrlearn.core.methods import Method
from isrlearn.core.rank import RankTest, first_accepted, independent_shifts, smallest_cell
from isrlearn.core.shifts import Shifts
from isrlearn.core.whiten import reliable_coordinates
from isrlearn.engine import sum_cells

if TYPE_CHECKING:
    from isrlearn.estimators.heads import Sample

#: Exceedances that settle a step before the last permutation.
_SETTLED = 5


def permutation_rank(
    sample: Sample,
    method: Method,
    *,
    level: float = 0.01,
    n_permutations: int = 199,
    random_state: int = 0,
) -> RankTest:
    """Number of dimensions in which moments differ between environments, for any distribution.

    The sequence of the method's own rank test, but each step compares the squared shifts outside
    the leading directions with those of the same rows after their environments were permuted
    inside their class. It needs rows in memory, and a pass over them per permutation; a step ends
    as soon as its answer is certain. Rows of unknown environment are not used.

    Parameters
    ----------
    sample : Sample
    method : Method
        Which shifts are compared; of means and covariances, each is tested at half the level.
    level : float, default=0.01
        Level of each step.
    n_permutations : int, default=199
        At least ``2 / level - 1``, so that a p-value below half the level is possible; raised to
        that number for smaller levels.
    random_state : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.core import METHODS
    >>> from isrlearn.estimators.heads import Sample
    >>> rng = np.random.default_rng(0)
    >>> X, e = rng.standard_t(3, size=(600, 4)), np.arange(600) % 2
    >>> X[:, 0] += 2.0 * e
    >>> permutation_rank(Sample(X, Cells.of(None, e)), METHODS["mean"]).rank
    1
    """
    if not isinstance(getattr(sample, "X", None), np.ndarray):
        raise ValueError(
            "n_spurious='permutation' needs rows in memory, not moments or rows that are read "
            "block by block"
        )
    n_permutations = max(n_permutations, int(np.ceil(2 / level - 1)))
    known = sample.cells.e >= 0
    k, e = sample.cells.k[known], sample.cells.e[known]
    cells = Cells(sample.cells.classes, sample.cells.environments, k, e)
    moments = sum_cells(sample.X[known], cells, pooled=not method.second_order)
    smallest = smallest_cell(moments) if method.second_order else np.inf
    factor = reliable_coordinates(moments, smallest_cell=smallest).factor
    center = moments.total[1].astype(sample.X.dtype)
    Z = (sample.X[known] - center) @ factor.astype(sample.X.dtype)
    shifts = method.shifts(moments.map(factor), None)
    search = _Permutations(Z, cells, method, level, n_permutations, random_state)
    p = factor.shape[1]
    limit = p if method.second_order else min(p, independent_shifts(moments.count))
    rank, p_values = first_accepted(lambda r: search.p_value(shifts.leading(r)), limit, level)
    spectrum = shifts.principal(0)[1][:limit]
    return RankTest(rank, p_values, level, spectrum, search.noise, limit)


class _Permutations:
    """Squared shifts of permuted rows, compared with those of the rows as they are."""

    def __init__(
        self,
        Z: NDArray,
        cells: Cells,
        method: Method,
        level: float,
        n: int,
        random_state: int,
    ) -> None:
        self.Z, self.cells, self.method = Z, cells, method
        self.level, self.n = level, n
        self.rng = np.random.default_rng(random_state)
        self.members = [np.flatnonzero(cells.k == c) for c in range(len(cells.classes))]
        self.noise = 0.0

    def p_value(self, N: NDArray) -> float:
        """P-value of "no shift outside N", the smaller of both kinds' where both are tested."""
        rest = self.Z @ linalg.null_space(N.T).astype(self.Z.dtype) if N.shape[1] else self.Z
        observed = _squares(self._shifts(rest, self.cells.e))
        exceed = np.zeros(len(observed))
        tops: list[float] = []
        done = 0
        while done < self.n:
            done += 1
            permuted = self._shifts(rest, self._permuted())
            exceed += _squares(permuted) >= observed
            if not N.shape[1]:
                tops.append(float(permuted.principal(0)[1][0]))
            # Besag and Clifford's rule: stop early only if the remaining permutations cannot
            # bring the p-value below the level.
            fewest = exceed.min()
            if fewest >= _SETTLED and len(observed) * (fewest + 1) / (self.n + 1) > self.level:
                break
        if tops:
            self.noise = float(np.mean(tops))
        value = exceed.min() / done if done < self.n else (exceed.min() + 1) / (self.n + 1)
        return float(min(1.0, len(observed) * value))

    def _shifts(self, rows: NDArray, e: NDArray) -> Shifts:
        cells = Cells(self.cells.classes, self.cells.environments, self.cells.k, e)
        order = 2 if self.method.second_order else 1
        return self.method.shifts(sum_cells(rows, cells, order=order), None)

    def _permuted(self) -> NDArray:
        e = self.cells.e.copy()
        for members in self.members:
            e[members] = self.rng.permutation(e[members])
        return e


def _squares(shifts: Shifts) -> NDArray[np.float64]:
    """Sum of squares of each kind of shift there is."""
    sums = [np.sum(part**2) for part in (shifts.means, shifts.covariances) if len(part)]
    return np.array(sums)
