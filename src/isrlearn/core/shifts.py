"""Differences of cell covariances (and means) between environments, in units of sampling noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core.moments import NO_CELL_SCATTERS, Moments

_MAX_SWEEPS = 50
#: Features up to which all eigenvalues are computed; beyond, the leading ones by iteration.
_DENSE = 512
#: Extra directions of the subspace iteration, and its number of steps.
_EXTRA, _STEPS = 16, 8


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
        One row per cell; no rows where means are not compared.
    covariances : ndarray of shape (b, p, p)
        One symmetric matrix per contrast of cells; none where covariances are not compared.
    """

    means: NDArray[np.float64]  # (a, p)
    covariances: NDArray[np.float64]  # (b, p, p)

    def stacked(self) -> NDArray[np.float64]:
        """All the shifts as rows (m, p); their Gram matrix is the scatter of the shifts."""
        p = self.means.shape[1]
        return np.concatenate([self.means, self.covariances.reshape(-1, p)])

    def principal(self, rank: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Leading eigenvectors (p, rank) of the scatter, and its largest eigenvalues, sorted."""
        p = self.means.shape[1]
        if p <= _DENSE:
            S = self.stacked()
            values, vectors = linalg.eigh(S.T @ S)
        else:
            # Subspace iteration: only products with p×k matrices, never a p×p decomposition.
            k = min(p, rank + _EXTRA)
            Q = np.linalg.qr(np.random.default_rng(0).standard_normal((p, k)))[0]
            for _ in range(_STEPS):
                image = self.means.T @ (self.means @ Q)
                image += sum(D @ (D @ Q) for D in self.covariances)
                Q = np.linalg.qr(image)[0]
            image = np.vstack([self.means @ Q, *(D @ Q for D in self.covariances)])
            values, inner = linalg.eigh(image.T @ image)
            vectors = Q @ inner
        return vectors[:, ::-1][:, :rank], np.maximum(values[::-1], 0.0)

    def leading(self, rank: int, start: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        r"""Orthonormal basis (p, rank) of the subspace that holds most of the shifts.

        Maximises :math:`\sum \|N^\top m\|^2 + \sum \|N^\top D N\|_F^2` over orthonormal N: a
        covariance shift must lie in the subspace on both sides, which the eigenvectors of the
        scatter (the default start) do not require. Each sweep linearises the second term.
        """
        N = self.principal(rank)[0] if start is None else start
        if not len(self.covariances) or rank in (0, len(N)):
            return N
        best = self._held(N)
        for _ in range(_MAX_SWEEPS):
            half = np.sqrt(2.0) * (self.covariances @ N)  # (a, p, r)
            gradient = np.hstack([self.means.T, *half])
            candidate = np.linalg.svd(gradient, full_matrices=False)[0][:, :rank]
            held = self._held(candidate)
            if held <= best * (1 + 1e-12):
                break
            N, best = candidate, held
        return N

    def _held(self, N: NDArray) -> float:
        inside = N.T @ self.covariances @ N
        return float(np.sum((self.means @ N) ** 2) + np.sum(inside**2))


def mean_shifts(moments: Moments, classes: NDArray | None = None) -> Shifts:
    """Shifts of the cell means from their class mean, weighted by root counts."""
    d = moments.n_features
    return Shifts(moments.mean_shifts(classes), np.zeros((0, d, d)))


def covariance_shifts(moments: Moments, classes: NDArray | None = None) -> Shifts:
    """Shifts of the cell covariances of a class, weighted by their precision.

    Each environment is compared with the mean of those before it: independent contrasts with the
    same sum of squares as the deviations from the mean of all, and one matrix fewer per class.
    """
    scatter, d = moments.scatter, moments.n_features
    if scatter is None or moments.pooled:
        raise ValueError(f"covariances are compared, and {NO_CELL_SCATTERS}")
    picked = range(len(scatter)) if classes is None else classes
    compared = [(k, np.flatnonzero(moments.cell_dof[k])) for k in picked]
    # A class seen once has nothing to compare; that there is no shift is a shift of zero.
    found = np.zeros((max(1, sum(max(0, len(cells) - 1) for _, cells in compared)), d, d))
    rest = iter(found)
    for k, cells in compared:
        total, seen = np.zeros((d, d)), 0.0
        for e in cells:
            dof = moments.cell_dof[k, e]
            if seen:
                weight = np.sqrt(seen * dof / (seen + dof) / 2)
                contrast = np.multiply(scatter[k, e], weight / dof, out=next(rest))
                contrast -= (weight / seen) * total
            total = total + scatter[k, e] if seen else scatter[k, e]
            seen += dof
    return Shifts(np.zeros((0, d)), found)


def joint_shifts(moments: Moments, classes: NDArray | None = None) -> Shifts:
    """Shifts of means and covariances together; comparable in whitened features only."""
    return Shifts(moments.mean_shifts(classes), covariance_shifts(moments, classes).covariances)
