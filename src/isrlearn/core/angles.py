"""Angles and distances between subspaces."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg


def principal_angles(A: ArrayLike, B: ArrayLike) -> NDArray[np.float64]:
    """Principal angles in radians between the column spans, largest first.

    Accurate for tiny angles too (by their sines), where the arc cosine of an inner product
    cannot distinguish 1e-9 from 0.

    Examples
    --------
    >>> import numpy as np
    >>> principal_angles([[1.0], [0.0]], [[1.0], [1.0]]).round(4).tolist()
    [0.7854]
    """
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    if min(A.shape[1], B.shape[1]) == 0:
        return np.zeros(0)
    return linalg.subspace_angles(A, B)


def chordal_distance(A: ArrayLike, B: ArrayLike) -> float:
    """Chordal distance between subspaces, in [0, 1]: 0 if equal, 1 if orthogonal.

    The root mean square of the sines of the principal angles; dimensions that only one of
    the subspaces has count as orthogonal.

    Examples
    --------
    >>> import numpy as np
    >>> round(chordal_distance(np.eye(3)[:, :2], np.eye(3)[:, :1]), 4)
    0.7071
    """
    A, B = np.asarray(A, dtype=float), np.asarray(B, dtype=float)
    larger = max(A.shape[1], B.shape[1])
    if larger == 0:
        return 0.0
    sines = np.sin(principal_angles(A, B))
    return float(np.sqrt((np.sum(sines**2) + abs(A.shape[1] - B.shape[1])) / larger))
