"""The spurious subspace: each method is a function from moments to a subspace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest, mean_rank
from isrlearn.core.shifts import mean_shifts
from isrlearn.core.whiten import Whitening, well_sampled, whitening, without_rounding

Variant = Literal["pooled", "paper"]
Rank = int | Literal["auto"]

#: Relative size below which a singular value is rounding, not signal.
NEGLIGIBLE = 1e-10
#: Ratio of the scales of two features from which on the smaller needs care.
_WILD = 1e6


@dataclass(frozen=True, eq=False)
class Subspace:
    """A spurious subspace, and how to take it out.

    Parameters
    ----------
    basis : ndarray of shape (d, r)
        Orthonormal basis of the directions that change between environments.
    dual : ndarray of shape (d, r)
        ``dual.T @ x`` are the coordinates of x on `basis`, so ``x - basis @ dual.T @ x`` has no
        spurious part. The same as `basis` where that projection is orthogonal; else orthogonal
        in whitened coordinates.
    spectrum : ndarray of shape (m,)
        Strength of every direction found, strongest first.
    rank_test : RankTest or None
        How the rank was chosen, where it was.
    """

    basis: NDArray[np.float64]  # (d, r)
    dual: NDArray[np.float64]  # (d, r)
    spectrum: NDArray[np.float64]  # (m,)
    rank_test: RankTest | None = None

    @property
    def rank(self) -> int:
        """Number of spurious dimensions."""
        return self.basis.shape[1]

    def lift(self, components: NDArray) -> Subspace:
        """The same subspace seen from x when this one lives in ``x @ components`` (a PCA)."""
        return replace(self, basis=components @ self.basis, dual=components @ self.dual)


def mean_subspace(
    moments: Moments,
    n_spurious: Rank = "auto",
    *,
    classes: ArrayLike | None = None,
    variant: Variant = "pooled",
    level: float = 0.01,
) -> Subspace:
    r"""Span of the differences of the cell means between environments (ISR-Mean, Algorithm 1).

    ``variant="paper"``: the leading eigenvectors of the covariance of the environments' means in
    one class, all weighing the same. ``variant="pooled"``, ours: of one scatter over all the
    given classes,

    .. math:: \sum_{k,e} n_{ke} (m_{ke} - \bar m_k)(m_{ke} - \bar m_k)^\top,

    whitened by the pooled within-cell covariance when there are rows enough to estimate it.

    Parameters
    ----------
    moments : Moments
    n_spurious : int or "auto", default="auto"
        Dimensions to find, at most as many as the means can span (E−1 a class); "auto" tests
        for them (`mean_rank`) and needs a scatter.
    classes : array-like of int, optional
        Positions of the classes to use. Default: all ("pooled"), the last one ("paper").
    variant : {"pooled", "paper"}, default="pooled"
    level : float, default=0.01
        Level of the rank test.

    Examples
    --------
    >>> import numpy as np
    >>> mean = np.array([[[0.0, 0.0, 1.0], [2.0, 0.0, 1.0]]])  # one class, two environments
    >>> found = mean_subspace(Moments.population(mean), n_spurious=1)
    >>> np.abs(found.basis.ravel()).tolist()
    [1.0, 0.0, 0.0]
    """
    picked: NDArray | None
    if variant == "paper":
        picked = np.atleast_1d([-1] if classes is None else classes)
        rows = np.concatenate([_centred(moments.mean[k]) for k in picked])
        coordinates = None
    else:
        picked = None if classes is None else np.atleast_1d(classes)
        rows = mean_shifts(moments, picked).means
        coordinates = coordinates_of(moments)
    test = mean_rank(moments, picked, level=level) if n_spurious == "auto" else None
    limit = _spannable(moments, picked)
    return row_space(rows, _rank(n_spurious, test, limit), coordinates, test)


def multiclass_subspace(
    moments: Moments,
    n_spurious: Rank = "auto",
    *,
    classes: ArrayLike | None = None,
    variant: Variant = "pooled",
    level: float = 0.01,
) -> Subspace:
    """Span of the mean differences of all classes together (ISR-Multiclass, Algorithm 3).

    ``variant="paper"``: E−1 principal directions of each class's means, stacked as unit vectors;
    the leading left singular vectors of the stack. Every direction votes with the same weight
    there, noise included once E−1 exceeds the true rank. ``variant="pooled"`` weighs each by
    the size of its shift: it is `mean_subspace` over all the classes.

    Parameters are those of `mean_subspace`; `classes` are all by default in both variants.

    Examples
    --------
    >>> import numpy as np
    >>> mean = np.zeros((2, 2, 3))
    >>> mean[0, 1, 0] = mean[1, 1, 1] = 1.0  # class 0 moves along x, class 1 along y
    >>> moments = Moments.population(mean)
    >>> found = multiclass_subspace(moments, n_spurious=2, variant="paper")
    >>> (found.basis @ found.basis.T).round(12).diagonal().tolist()
    [1.0, 1.0, 0.0]
    """
    every = np.arange(len(moments.classes)) if classes is None else np.atleast_1d(classes)
    if variant == "pooled":
        return mean_subspace(moments, n_spurious, classes=every, level=level)
    test = mean_rank(moments, every, level=level) if n_spurious == "auto" else None
    directions = [row_space(_centred(moments.mean[k]), None).basis.T for k in every]
    rank = _rank(n_spurious, test, _spannable(moments, every))
    return row_space(np.concatenate(directions), rank, None, test)


def regression_subspace(
    moments: Moments,
    n_spurious: Rank = "auto",
    *,
    variant: Variant = "pooled",
    level: float = 0.01,
) -> Subspace:
    """Span of the differences of the environments' means (ISR-Regression, Algorithm 4).

    `mean_subspace` with nothing to condition on: the moments must have one class. Second moments
    play no part: under the regression model they change along invariant directions too.

    Examples
    --------
    >>> import numpy as np
    >>> moments = Moments.population(np.array([[[0.0, 0.0], [0.0, 3.0]]]))
    >>> np.abs(regression_subspace(moments, n_spurious=1).basis.ravel()).round(12).tolist()
    [0.0, 1.0]
    """
    if len(moments.classes) != 1:
        raise ValueError(
            f"regression conditions on no class, but the moments have {len(moments.classes)}; "
            "make them with y=None"
        )
    return mean_subspace(moments, n_spurious, variant=variant, level=level)


def _centred(mean: NDArray) -> NDArray:
    return mean - mean.mean(axis=0)


def coordinates_of(moments: Moments) -> Whitening | None:
    """Whitening where the moments have a scatter and rows enough for it."""
    return whitening(moments) if moments.scatter is not None and well_sampled(moments) else None


def _spannable(moments: Moments, classes: NDArray | None) -> int:
    """Most directions the cell means can span: a class's environments less one, summed."""
    cells = np.count_nonzero(moments.count if classes is None else moments.count[classes], axis=1)
    return int(min(np.maximum(cells - 1, 0).sum(), moments.n_features))


def _rank(n_spurious: Rank, test: RankTest | None, limit: int) -> int:
    wanted = test.rank if test is not None else int(n_spurious)
    return min(wanted, limit)


def row_space(
    rows: NDArray,
    rank: int | None,
    coordinates: Whitening | None = None,
    test: RankTest | None = None,
) -> Subspace:
    """Subspace of the leading right singular vectors of rows; of all nonzero ones without rank."""
    z = rows if coordinates is None else rows @ coordinates.factor
    _, s, Vt = np.linalg.svd(z, full_matrices=False)
    real = int(np.count_nonzero(s > s.max(initial=0.0) * NEGLIGIBLE))
    rank = real if rank is None else min(rank, real)
    return oblique(Vt[:rank].T, coordinates, s**2, test)


def oblique(
    Q: NDArray, coordinates: Whitening | None, spectrum: NDArray, test: RankTest | None
) -> Subspace:
    """Subspace spanned by orthonormal Q of the coordinates, seen from the original features."""
    if coordinates is None:
        Q = without_rounding(Q)
        return Subspace(Q, Q, spectrum, test)
    basis, triangle = _orthonormal((Q.T @ coordinates.inverse).T)
    # basis @ dual.T = inverse.T Q Qᵀ factor.T: the projector of the coordinates, mapped back.
    return Subspace(basis, coordinates.factor @ Q @ triangle.T, spectrum, test)


def _orthonormal(vectors: NDArray) -> tuple[NDArray, NDArray]:
    """Orthonormal columns (d, r) and the triangle that takes them to the given ones."""
    size = np.abs(vectors).max(axis=1, initial=0.0)
    if not size.any() or size.max() <= _WILD * size[size > 0].min():
        return np.linalg.qr(vectors)
    # Beside large features the rows of small ones would be rounding. The largest rows first keep
    # the triangle exact; it then gives each small row by itself, and the large ones need no more.
    order = np.argsort(-size)
    Q, triangle = np.linalg.qr(vectors[order])
    Q = Q[np.argsort(order)]
    regular = triangle + np.diag(np.diag(triangle) == 0)
    exact = linalg.solve_triangular(regular, vectors.T, trans="T").T
    return np.where(np.abs(exact - Q) < NEGLIGIBLE, exact, Q), triangle
