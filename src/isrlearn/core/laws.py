"""Shifts of cells between environments, and their null distributions under sampling noise."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, stats

from isrlearn.core.moments import NO_CELL_SCATTERS, Moments

#: Rows of a class whose pairs are compared, and largest number of sweeps of `Shifts.leading`.
_PAIRED, _MAX_SWEEPS = 1_000, 50
#: Features up to which all eigenvalues are computed; beyond, the leading ones by iteration: its
#: extra directions, and its number of steps.
_DENSE, _EXTRA, _STEPS = 512, 16, 8


class RowSample(NamedTuple):
    """Some rows of every class, from which the fourth moments of the features are estimated."""

    X: NDArray  # (n, d)
    k: NDArray[np.intp]  # (n,) position of each row's class in the moments
    e: NDArray[np.intp]  # (n,) position of its environment


@dataclass(frozen=True, eq=False)
class Shifts:
    r"""Deviations of the cells' moments from their class's, weighted by their precision.

    In features with identity within-cell covariance, and with no shift at all, each row of
    `means` :math:`\sqrt{n}(m - \bar m)` is standard normal and each matrix of `covariances`
    :math:`\sqrt{n/2}(\Sigma - \bar\Sigma)` has squared Frobenius norm chi-square with p(p+1)/2
    degrees of freedom: the two can be added.
    """

    means: NDArray[np.float64]  #: (a, p): one row per cell; none where means are not compared.
    covariances: NDArray[np.float64]  #: (b, p, p): one symmetric matrix per cell.

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
        best, held = N, -np.inf
        for _ in range(_MAX_SWEEPS + 1):
            images = self.covariances @ N  # (a, p, r)
            before, held = held, float(np.sum((self.means @ N) ** 2) + np.sum((N.T @ images) ** 2))
            if held <= before * (1 + 1e-12):
                break
            best = N
            gradient = np.hstack([self.means.T, *(np.sqrt(2.0) * images)])
            N = np.linalg.svd(gradient, full_matrices=False)[0][:, :rank]
        return best


def mean_shifts(moments: Moments) -> Shifts:
    """Shifts of the cell means from their class mean, weighted by root counts."""
    d = moments.n_features
    return Shifts(moments.mean_shifts(), np.zeros((0, d, d)))


def covariance_shifts(moments: Moments, classes: NDArray | None = None) -> Shifts:
    """Shifts of the cell covariances from that of their class, weighted by their precision."""
    if moments.scatter is None or moments.pooled:
        raise ValueError(f"covariances are compared, and {NO_CELL_SCATTERS}")
    d, picked = moments.n_features, slice(None) if classes is None else classes
    found = moments.covariance[picked]
    for cells, dof in zip(found, moments.cell_dof[picked], strict=True):
        cells -= np.tensordot(dof / np.maximum(dof.sum(), 1e-300), cells, 1)
        cells *= np.sqrt(dof / 2)[:, None, None]
    return Shifts(np.zeros((0, d)), found.reshape(-1, d, d))


def joint_shifts(moments: Moments) -> Shifts:
    """Shifts of means and covariances together; comparable in whitened features only."""
    return replace(covariance_shifts(moments), means=moments.mean_shifts())


def complement(N: NDArray) -> NDArray[np.float64]:
    """Orthonormal basis (p, p - r) of what is orthogonal to the columns of N (p, r)."""
    return linalg.null_space(N.T) if N.shape[1] else np.eye(len(N))


def covariance_p_value(
    moments: Moments, axes: NDArray, classes: NDArray, rows: RowSample | None
) -> float:
    """Upper tail of the summed squared covariance shifts along the axes; `rows` are residuals."""
    statistic = mean = variance = noise = 0.0
    for k in classes:
        cells = np.flatnonzero(moments.count[k] > 1)
        if len(cells) < 2:
            continue
        n, S = moments.count[k, cells], axes.T @ moments.covariance[k, cells] @ axes
        v = n - 1
        average = np.tensordot(v / v.sum(), S, 1)
        if rows is None:
            law = _gaussian_law(v, axes.shape[1])
        else:
            used = (rows.k == k) & np.isin(rows.e, cells)
            law = _sampled_law(n, average, rows.X[used] @ axes, moments.count[k][rows.e[used]])
        if law[1] > 0:  # else the squares of the rows do not vary: nothing can be tested
            statistic += np.sum(v * np.sum((S - average) ** 2, axis=(1, 2))) / 2
            mean, variance, noise = mean + law[0], variance + law[1], noise + law[2]
    if mean <= 0:
        return 1.0
    degrees = 2 * mean**2 / variance
    if noise == 0:
        return float(stats.chi2.sf(statistic / mean * degrees, degrees))
    return float(stats.f.sf(statistic / mean, degrees, 2 * mean**2 / noise))


def _gaussian_law(v: NDArray, p: int) -> tuple[float, float, float]:
    """Mean and variance of a class's statistic under equal Gaussian covariances, v dof per cell."""
    share, a, t = v / v.sum(), v / 2, v.sum() / 2
    # E tr(B²) of the matrix beta B = share · S̄^(-1/2) S S̄^(-1/2), by zonal polynomials.
    square = a * (a + 1) / (t * (t + 1)) * p * (p + 2) / 3
    square = square - a * (a - 0.5) / (t * (t - 0.5)) * p * (p - 1) / 3
    mean = np.sum(v / 2 * (square / share**2 - p))
    return float(mean), float(np.sum((1 - share) * p * (p + 1) * (1 + 2 * p / v))), 0.0


def _sampled_law(
    n: NDArray, average: NDArray, Z: NDArray, size: NDArray
) -> tuple[float, float, float]:
    r"""Mean and variance of a class's statistic, and the variance of that mean, from rows.

    With u = zzᵀ the statistic is one of the means of u. Its variance is that under permutations of
    the environments (Kazi-Aoual et al., 1995), which needs the mean square of ⟨uᵢ, uⱼ⟩ only. Its
    mean allows for the estimated cell means: E‖S − Σ‖² = Q/n + (a + b)/(n − 1) with
    a = (tr Σ)², b = tr Σ² and the fourth cumulant Q, found from the residuals z.
    """
    v, N, m = n - 1, n.sum(), len(Z)
    if m < 4:
        return 0.0, 0.0, 0.0
    a, b = np.trace(average) ** 2, np.sum(average**2)
    fourth = np.sum(Z**2, axis=1) ** 2
    second, quartic = (size - 1) / size, (size - 1) * ((size - 1) ** 3 + 1) / size**4
    Q = np.sum(fourth - second**2 * (a + 2 * b)) / quartic.sum()
    own = (1 - v / v.sum()) * v / n
    mean = Q * own.sum() + (len(n) - 1) * (a + b)
    noise = (own.sum() / quartic.sum()) ** 2 * m * fourth.var()
    # Inner products of the centred u of pairs of rows, in the sample and then scaled to all rows.
    W = (Z / np.sqrt(second)[:, None])[:: -(-m // _PAIRED)]
    m = len(W)
    G = (W @ W.T) ** 2
    G -= G.mean(axis=0) + G.mean(axis=1)[:, None] - G.mean()
    diagonal = np.diag(G)
    one, two = diagonal.mean(), np.mean(diagonal**2)
    pairs = (np.sum(G**2) - m * two) / (m * (m - 1))
    T, T2, S2 = N * one, N * two + N * (N - 1) * pairs, N * two
    H, H2 = len(n) - 1.0, np.sum(n * (1 / n - 1 / N) ** 2)
    permuted = 2 * ((N - 1) * T2 - T**2) * ((N - 1) * H - H**2)
    permuted /= (N - 1) ** 2 * (N + 1) * (N - 2)
    kurtosis = (N * (N + 1) * S2 - (N - 1) * (T**2 + 2 * T2)) * (
        N * (N + 1) * H2 - (N - 1) * (H**2 + 2 * H)
    )
    permuted += kurtosis / ((N + 1) * N * (N - 1) * (N - 2) * (N - 3))
    if min(mean, T, permuted) <= 0:
        return 0.0, 0.0, 0.0
    variance = permuted * (mean / (T * H / (N - 1))) ** 2
    return float(mean / 2), float(variance / 4), float(noise / 4)
