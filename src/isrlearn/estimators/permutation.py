"""The rank test without a distribution: environment labels permuted inside each class."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.laws import complement
from isrlearn.core.methods import Method
from isrlearn.core.rank import RankTest, first_accepted, independent_shifts, smallest_cell
from isrlearn.core.whiten import equalised, reliable_coordinates
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

    The sequence of the method's own rank test, but the p-value of each step is compared with those
    of the same rows after their environments were permuted inside their class: whitening, scales
    and the test are computed anew from every permutation. Where only covariances are compared,
    rows are centred on their cell first. It needs rows in memory, and two passes over them per
    permutation; a step ends as soon as its answer is certain. Rows of unknown environment are not
    used. There are at least ``1 / level - 1`` permutations, so that a p-value below the level is
    possible.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.core import METHODS
    >>> from isrlearn.core.labels import Cells
    >>> from isrlearn.estimators.heads import Sample
    >>> rng = np.random.default_rng(0)
    >>> X, e = rng.standard_t(3, size=(600, 4)), np.arange(600) % 2
    >>> X[:, 0] += 2.0 * e
    >>> permutation_rank(Sample(X, Cells.of(None, e)), METHODS["mean"]).rank
    1
    """
    if not isinstance(getattr(sample, "X", None), np.ndarray):
        raise ValueError("n_spurious='permutation' needs rows in memory; use 'auto' or a number")
    n_permutations = max(n_permutations, int(np.ceil(1 / level - 1)))
    known = sample.rows(np.flatnonzero(sample.cells.e >= 0))
    X, cells, weight = known.X.astype(np.float64), known.cells, known.weight
    moments = sum_cells(X, cells, weight=weight)
    smallest = smallest_cell(moments) if method.second_order else np.inf
    factor = reliable_coordinates(moments, smallest_cell=smallest).factor
    shifts = method.shifts(equalised(moments, factor).map(factor))
    X -= moments.mean[cells.k, cells.e] if not len(shifts.means) else moments.total[1]
    rng = np.random.default_rng(random_state)
    members = [np.flatnonzero(cells.k == c) for c in range(len(cells.classes))]

    def statistic(rows: NDArray, e: NDArray) -> float:
        """The test's own p-value of "no shift at all"."""
        moments = sum_cells(rows, replace(cells, e=e), weight=weight)
        return next(iter(method.rank(moments, level=0.0).p_values), 1.0)

    def p_value(r: int) -> float:
        rows = X @ factor @ complement(shifts.leading(r))
        observed, smaller = statistic(rows, cells.e), 0
        for done in range(1, n_permutations + 1):
            permuted = cells.e.copy()
            for rows_of_class in members:
                permuted[rows_of_class] = rng.permutation(cells.e[rows_of_class])
            smaller += statistic(rows, permuted) <= observed
            # Besag and Clifford's rule: stop early only if the remaining permutations cannot
            # bring the p-value below the level.
            if smaller >= _SETTLED and (smaller + 1) / (n_permutations + 1) > level:
                return smaller / done
        return (smaller + 1) / (n_permutations + 1)

    p = factor.shape[1]
    limit = p if method.second_order else min(p, independent_shifts(moments.count))
    rank, p_values = first_accepted(p_value, limit, level)
    test = method.rank(moments, level=level)
    return RankTest(rank, p_values, level, test.spectrum[:limit], test.noise, limit)
