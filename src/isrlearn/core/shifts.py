"""What changes between environments, in units of its sampling noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core._accumulate import between
from isrlearn.core.moments import Moments

_MAX_SWEEPS = 50


@dataclass(frozen=True, eq=False)
class Shifts:
    r"""Deviations of the cells' moments from their class's, weighted by their precision.

    In features with identity within-cell covariance, and with no shift at all, each row of
    `means` :math:`\sqrt{n}(m - \bar m)` is standard normal and each matrix of `covariances`
    :math:`\sqrt{n/2}(\Sigma - \bar\Sigma)` has squared Frobenius norm chi-square with p(p+1)/2
    degrees of freedom: the two can be added.

    Parameters
    ----------
    means : ndarray of shape (a, p)
        One row a cell; no rows where means are not to be used.
    covariances : ndarray of shape (a, p, p)
        One symmetric matrix a cell; none where covariances are not to be used.
    """

    means: NDArray[np.float64]  # (a, p)
    covariances: NDArray[np.float64]  # (a, p, p)

    def scatter(self) -> NDArray[np.float64]:
        """Sum of the squares of all the shifts, (p, p); its leading eigenvectors move most."""
        squares = np.einsum("aij,ajk->ik", self.covariances, self.covariances, optimize=True)
        return self.means.T @ self.means + squares

    def leading(self, rank: int) -> NDArray[np.float64]:
        r"""Orthonormal basis (p, rank) of the subspace that holds most of the shifts.

        Maximises :math:`\sum \|N^\top m\|^2 + \sum \|N^\top D N\|_F^2` over orthonormal N: a
        covariance shift has to lie in the subspace on both sides, which the eigenvectors of
        `scatter`, the starting point, do not ask for. Each sweep linearises the second term.
        """
        N = _top(self.scatter(), rank)
        if not len(self.covariances) or rank in (0, len(N)):
            return N
        best = self._held(N)
        for _ in range(_MAX_SWEEPS):
            half = self.covariances @ N
            slope = self.means.T @ self.means + 2 * np.einsum("aij,akj->ik", half, half)
            candidate = _top(slope, rank)
            held = self._held(candidate)
            if held <= best * (1 + 1e-12):
                break
            N, best = candidate, held
        return N

    def _held(self, N: NDArray) -> float:
        inside = N.T @ self.covariances @ N
        return float(np.sum((self.means @ N) ** 2) + np.sum(inside**2))

    def outside(self, N: NDArray) -> Shifts:
        """The shifts on the orthogonal complement of N, in coordinates of that complement."""
        if not N.shape[1]:
            return self
        rest = linalg.null_space(N.T)
        return Shifts(self.means @ rest, rest.T @ self.covariances @ rest)


def mean_shifts(moments: Moments, classes: NDArray | None = None) -> Shifts:
    """Shifts of the cell means from their class mean, weighted by root counts."""
    picked = slice(None) if classes is None else classes
    _, _, rows = between(moments.count[picked], moments.mean[picked], axis=1)
    d = moments.n_features
    return Shifts(rows.reshape(-1, d), np.zeros((0, d, d)))


def covariance_shifts(moments: Moments, classes: NDArray | None = None) -> Shifts:
    """Shifts of the cell covariances from their class's, weighted by their precision."""
    picked = slice(None) if classes is None else classes
    covariance, d = moments.covariance[picked], moments.n_features
    weight = (moments.count[picked] - moments.ddof)[..., None, None]
    mean = (weight * covariance).sum(axis=1, keepdims=True) / weight.sum(axis=1, keepdims=True)
    shifts = np.sqrt(weight / 2) * (covariance - mean)
    return Shifts(np.zeros((0, d)), shifts.reshape(-1, d, d))


def joint_shifts(moments: Moments, classes: NDArray | None = None) -> Shifts:
    """Shifts of means and covariances together; comparable in whitened features only."""
    return Shifts(
        mean_shifts(moments, classes).means, covariance_shifts(moments, classes).covariances
    )


def _top(matrix: NDArray, rank: int) -> NDArray[np.float64]:
    return np.ascontiguousarray(linalg.eigh(matrix)[1][:, ::-1][:, :rank])
