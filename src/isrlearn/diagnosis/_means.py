"""Whether class means move between environments, along how many dimensions, and how far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.spatial.distance import cdist

from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest
from isrlearn.core.shifts import mean_shifts
from isrlearn.diagnosis._value import label

#: Share of the classes' shifts that may be left out when their patterns are counted.
_NEGLIGIBLE_SHARE = 0.02


@dataclass(frozen=True)
class MeanShift:
    """How the means of a class move between environments.

    Parameters
    ----------
    moved : bool
        Whether they do, by a test at the level of the diagnosis.
    p_value : float
        Of "they do not".
    n_dimensions : int
        Dimensions along which they move by more than chance.
    n_coordinates : int
        Coordinates they were compared along: features, or leading principal components.
    limit : int
        Most dimensions that these environments could show.
    n_patterns : int
        Classes that move in ways of their own. If all classes move in the same way, or mirror
        each other, they show no more dimensions than one of them.
    effect : float
        Largest distance between the means of a class in two environments, in within-cell
        standard deviations, with what sampling noise adds to it taken off.
    largest : tuple
        Class (None for a regression) and the two environments of that distance.
    p_values : tuple of float
        Of "0 dimensions are enough", "1 dimension is enough", …

    Examples
    --------
    >>> found = MeanShift(True, 1e-9, 2, 10, 2, 1, 3.1, (0, "land", "sea"), (1e-9, 1e-4))
    >>> found.limited
    True
    """

    moved: bool
    p_value: float
    n_dimensions: int
    n_coordinates: int
    limit: int
    n_patterns: int
    effect: float
    largest: tuple[Any, Any, Any]
    p_values: tuple[float, ...]

    @property
    def limited(self) -> bool:
        """Whether the number of environments, not the data, sets the number of dimensions."""
        return self.moved and self.n_dimensions >= self.limit


def mean_shift(
    test: RankTest,
    moments: Moments,
    classes: NDArray,
    *,
    n_coordinates: int,
    regression: bool = False,
) -> MeanShift:
    """Mean shift of whitened moments, measured along the dimensions that a test found.

    Parameters
    ----------
    test : RankTest
        Of the means, in all the coordinates that rows allow.
    moments : Moments
        In whitened coordinates, every given class in every environment.
    classes : ndarray of int
        Positions of the classes compared.
    n_coordinates : int
        Coordinates of the test.
    regression : bool, default=False
        Whether the one class is none.
    """
    N = leading_means(moments, classes, test.rank)
    patterns = _patterns(moments, classes, N, test.level)
    E = len(moments.environments)
    effect, k, a, b = _largest(moments, classes, N)
    names = moments.environments
    return MeanShift(
        moved=test.rank > 0,
        p_value=test.p_values[0] if test.p_values else 1.0,
        n_dimensions=test.rank,
        n_coordinates=n_coordinates,
        limit=min(patterns * (E - 1), moments.n_features),
        n_patterns=patterns,
        effect=effect,
        largest=(
            None if regression else label(moments.classes[k]),
            label(names[a]),
            label(names[b]),
        ),
        p_values=test.p_values,
    )


def leading_means(moments: Moments, classes: NDArray, rank: int) -> NDArray[np.float64]:
    """Orthonormal directions (p, rank) along which the means move most."""
    rows = mean_shifts(moments, classes).means
    return np.linalg.svd(rows, full_matrices=False)[2][:rank].T


def _patterns(moments: Moments, classes: NDArray, N: NDArray, level: float) -> int:
    """Number of classes whose shifts are not combinations of the others'.

    Each class's shifts along N are one row; the rank of these rows is tested against noise, and
    a small remainder is let pass: no two classes of real data move in exactly the same way.
    """
    if not N.shape[1] or len(classes) == 1:
        return 1
    count, mean = moments.count[classes], moments.mean[classes] @ N  # (K, E), (K, E, r)
    E = count.shape[1]
    contrasts = np.linalg.svd(np.eye(E) - 1 / E)[0][:, : E - 1]
    shifts = np.einsum("ec,ker->kcr", contrasts, mean).reshape(len(classes), -1)
    # Rows of the average noise level one: scaling a row does not change the rank.
    scale = np.sqrt(E / (1 / count).sum(axis=1))
    squares = np.linalg.svd(scale[:, None] * shifts, compute_uv=False) ** 2
    K, m = shifts.shape
    for c in range(1, len(squares)):
        rest = squares[c:].sum()
        p_value = stats.chi2.sf(rest, (K - c) * (m - c))
        if rest <= _NEGLIGIBLE_SHARE * squares.sum() or p_value > level:
            return c
    return len(squares)


def _largest(moments: Moments, classes: NDArray, N: NDArray) -> tuple[float, int, int, int]:
    """Largest shift of a class between two environments, less its noise; which class, which two."""
    mean = moments.mean @ N if N.shape[1] else moments.mean
    found = []
    for k in classes:
        noise = mean.shape[-1] / moments.count[k]
        squared = cdist(mean[k], mean[k], "sqeuclidean") - noise - noise[:, None]
        a, b = np.triu_indices(len(noise), 1)
        i = int(squared[a, b].argmax())
        found.append((float(squared[a[i], b[i]]), int(k), int(a[i]), int(b[i])))
    squares, k, first, second = max(found)
    return float(np.sqrt(max(squares, 0.0))), k, first, second
