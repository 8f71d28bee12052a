"""Rivals of ISR that project the features: LEACE, SPLINCE and domain-adjusted regression."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from isrlearn.core.labels import MISSING, Cells
from isrlearn.paper.rivals import ROUNDING, Rival, logistic, one_hot, row_weights


@dataclass(eq=False, repr=False)
class LEACEClassifier(Rival):
    r"""Logistic regression after least-squares concept erasure (Belrose et al., 2023).

    The features lose all linear information about the environment:
    :math:`x - W^+ U U^\top W (x - \mu)`, with W a whitening and U a basis of
    :math:`W \Sigma_{xz}`. Covariances are those of all rows, of rows centred in their class
    (``condition="class"``), or of the one class that was seen in most environments ("complete").
    The latter two are not in the paper: they compare a class with itself.
    """

    weights: str | None = "class"
    condition: str | None = None

    def _solve(self, Z: NDArray, cells: Cells) -> tuple[NDArray, NDArray]:
        P = self._kept(Z, cells)
        coef, intercept = logistic(Z @ P.T, cells.k, self.C, row_weights(cells, self.weights))
        return coef @ P, intercept

    def _kept(self, Z: NDArray, cells: Cells) -> NDArray[np.float64]:
        """The projection (d, d) of centred features that is left after erasure."""
        used, k = np.ones(len(Z), dtype=bool), np.zeros(len(Z), dtype=int)
        if self.condition == "complete":
            count = cells.count()
            order = np.lexsort([count.sum(axis=1), np.count_nonzero(count, axis=1)])
            used = cells.k == order[-1]
        elif self.condition == "class":
            k = cells.k
        known = used & (cells.e != MISSING)
        W, inverse = _whitening(_centred(Z[used], k[used]))
        U = _basis(W @ _cross(Z[known], one_hot(cells.e[known]), k[known]))
        return np.eye(Z.shape[1]) - inverse @ U @ U.T @ W


class SPLINCEClassifier(LEACEClassifier):
    r"""Logistic regression after erasure that keeps the covariance with the label.

    Holstege, Ravfogel and Wouters (2025): the oblique projection whose kernel is
    :math:`\Sigma_{xz}` and whose range contains :math:`\Sigma_{xy}`. Directions that both share
    are erased.
    """

    def __init__(self, C: float = 1.0, weights: str | None = "class") -> None:
        super().__init__(C, weights)

    def _kept(self, Z: NDArray, cells: Cells) -> NDArray[np.float64]:
        known, one = cells.e != MISSING, np.zeros(len(Z), dtype=int)
        W, inverse = _whitening(_centred(Z, one))
        A = _basis(W @ _cross(Z[known], one_hot(cells.e[known]), one[known]))
        B = _basis(W @ _cross(Z, one_hot(cells.k), one))
        # The part of A outside B: it vanishes on B and on what is orthogonal to both.
        M = A - B @ (B.T @ A)
        erased = A @ np.linalg.pinv(M.T @ A, rcond=1e-6) @ M.T
        return np.eye(Z.shape[1]) - inverse @ erased @ W


@dataclass(eq=False, repr=False)
class DAREClassifier(Rival):
    r"""Domain-adjusted regression (Rosenfeld, Ravikumar and Risteski, 2022).

    Every environment is whitened by its own covariance, shrunk to the identity, and coefficients
    vanish on the whitened means of all environments. New rows are whitened by the average of the
    environments' :math:`\Sigma_e^{-1/2}`. Departure from the paper: classes have equal weight and
    there is an intercept, because classes may have different sizes.
    """

    shrinkage: float = 0.1  # weight of the identity in each covariance of standardised features
    _infers = True

    def _solve(self, Z: NDArray, cells: Cells) -> tuple[NDArray, NDArray]:
        roots, means = [], []
        adjusted = np.empty_like(Z)
        for e in range(len(cells.environments)):
            rows = cells.e == e
            S = np.cov(Z[rows].T, bias=True).reshape(Z.shape[1], -1)
            values, vectors = linalg.eigh((1 - self.shrinkage) * S)
            root = vectors / np.sqrt(np.maximum(values, 0) + self.shrinkage) @ vectors.T
            adjusted[rows] = Z[rows] @ root
            roots.append(root)
            means.append(adjusted[rows].mean(axis=0))
        Q = _basis(np.transpose(means))
        P = np.eye(Z.shape[1]) - Q @ Q.T
        coef, intercept = logistic(adjusted @ P, cells.k, self.C, row_weights(cells, "class"))
        return coef @ P @ np.mean(roots, axis=0), intercept


def _centred(Z: NDArray, k: NDArray) -> NDArray:
    """Rows less the mean of their class."""
    A = one_hot(k)
    return Z - A @ ((A.T @ Z) / np.maximum(A.sum(axis=0), 1)[:, None])


def _cross(Z: NDArray, T: NDArray, k: NDArray) -> NDArray:
    """Covariance (d, m) of features and indicators inside classes."""
    return _centred(Z, k).T @ _centred(T, k) / max(len(Z), 1)


def _whitening(Z: NDArray) -> tuple[NDArray, NDArray]:
    """Whitening (r, d) of centred rows, and its pseudo-inverse (d, r)."""
    values, vectors = linalg.eigh(Z.T @ Z / len(Z))
    kept = values > ROUNDING * values[-1]
    values, vectors = np.sqrt(values[kept]), vectors[:, kept]
    return vectors.T / values[:, None], vectors * values


def _basis(A: NDArray) -> NDArray:
    """Orthonormal basis of the columns' span."""
    U, s, _ = linalg.svd(A, full_matrices=False)
    return U[:, s > 1e-6 * max(s[0], 1e-6)] if len(s) else U
