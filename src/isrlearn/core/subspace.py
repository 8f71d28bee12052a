"""The spurious subspace: functions from moments that find it, and the eraser that removes it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from isrlearn.core.moments import NEGLIGIBLE, Moments
from isrlearn.core.rank import RankTest, independent_shifts, mean_rank
from isrlearn.core.whiten import ROWS_PER_FEATURE, Whitening, equalised, whitening, without_rounding

Variant = Literal["pooled", "paper", "authors"]
Rank = int | Literal["auto"] | RankTest

#: Entries of a dual up to which float32 has enough range on either side, and the ratio of scales of
#: two features above which the smaller one needs care.
_LARGE, _WILD = 1e12, 1e6


@dataclass(frozen=True, eq=False)
class Subspace:
    """A spurious subspace, and how to remove it.

    ``dual.T @ x`` are the coordinates of x on `basis`, so ``x - basis @ dual.T @ x`` has no
    spurious part. The two are the same where that projection is orthogonal; else it is orthogonal
    in whitened coordinates.
    """

    #: Orthonormal basis (d, r) of the directions that shift between environments.
    basis: NDArray[np.float64]
    dual: NDArray[np.float64]  #: (d, r)
    spectrum: NDArray[np.float64]  #: Strength of the directions found (m,), strongest first.
    rank_test: RankTest | None = None  #: How the rank was chosen, unless it was given.

    @property
    def rank(self) -> int:
        """Number of spurious dimensions."""
        return self.basis.shape[1]

    @property
    def tested(self) -> int:
        """Number of dimensions that a test found to shift, removed or not; one always stays."""
        shifting = self.rank if self.rank_test is None else self.rank_test.rank
        return min(shifting, len(self.basis) - 1)

    def lift(self, components: NDArray) -> Self:
        """The same subspace in the features x, if this one is in ``x @ components`` (a PCA)."""
        return replace(self, basis=components @ self.basis, dual=components @ self.dual)


@dataclass(frozen=True, eq=False)
class Eraser:
    r"""Scales the part of x that lies in a subspace, leaving the rest as it is.

    .. math:: x \mapsto x - (1 - s)\, U V^\top (x - c)

    Thin factors, never a d×d matrix. The centre c keeps an average sample where it is, so that a
    head trained before the erasure keeps its intercept; a head fitted afterwards is not affected.

    Examples
    --------
    >>> import numpy as np
    >>> axis = np.array([[1.0], [0.0]])
    >>> Eraser(axis, axis, 0.0, np.zeros(2))(np.array([[3.0, 4.0]])).tolist()
    [[0.0, 4.0]]
    """

    basis: NDArray[np.float64]  #: U (d, r): what is erased.
    dual: NDArray[np.float64]  #: V (d, r), with ``V.T @ U`` the identity.
    scale: float  #: s in [0, 1]: the share that is kept.
    center: NDArray[np.float64]  #: c (d,): the point that is not changed.

    @classmethod
    def of(cls, subspace: Subspace, scale: float, center: NDArray) -> Self:
        """Eraser of a subspace."""
        return cls(subspace.basis, subspace.dual, scale, center)

    def __call__(self, X: NDArray) -> NDArray:
        """Rows of X with the spurious part scaled, in X's own precision."""
        return X + self._change((X - self.center).astype(X.dtype, copy=False))

    def centred(self, X: NDArray) -> NDArray:
        """Erased rows of X less the centre, in X's own precision."""
        Z = (X - self.center).astype(X.dtype, copy=False)
        Z += self._change(Z)
        return Z

    def _change(self, Z: NDArray) -> NDArray:
        # Rows are centred first: far from the origin the difference of two products would be all
        # rounding error.
        size, unit = np.abs(self.dual), np.ones(self.dual.shape[1])
        if size.max(initial=0.0) > _LARGE:
            # Features of very different scales have a dual that float32 could not hold.
            least = np.where(size > 0, size, np.inf).min(axis=0)
            unit = 2.0 ** np.round(np.log2(size.max(axis=0)) / 2 + np.log2(least) / 2)
        basis, dual = (self.basis * unit).astype(Z.dtype), (self.dual / unit).astype(Z.dtype)
        return ((Z @ dual) * Z.dtype.type(self.scale - 1.0)) @ basis.T

    def fold(self, coef: ArrayLike, intercept: ArrayLike) -> tuple[NDArray, NDArray]:
        """Head on x that equals (coef, intercept) on the erased x."""
        coef = np.asarray(coef, dtype=float)
        weight = (1.0 - self.scale) * (coef @ self.basis)
        shift = weight @ (self.dual.T @ self.center)
        return coef - weight @ self.dual.T, np.asarray(intercept, dtype=float) + shift


def mean_subspace(
    moments: Moments,
    n_spurious: Rank = "auto",
    *,
    classes: ArrayLike | None = None,
    variant: Variant = "pooled",
    level: float = 0.01,
    shared: bool = True,
) -> Subspace:
    r"""Span of the differences of the cell means between environments (ISR-Mean, Algorithm 1).

    ``variant="paper"``: the leading eigenvectors of the covariance of the environments' means in
    one class, all with the same weight. ``variant="authors"``: the same, filled up with directions
    that do not shift where E−1 are fewer than asked for: appendix A.1's other way to deal with few
    environments. ``variant="pooled"``, ours: those of one scatter over all the given classes,

    .. math:: \sum_{k,e} n_{ke} (m_{ke} - \bar{m_k})(m_{ke} - \bar{m_k})^\top,

    whitened by the pooled within-cell covariance when there are enough rows to estimate it, with
    each class divided by its own scale there (`equalised`). Each class contributes the
    environments in which it was seen.

    Parameters
    ----------
    moments : Moments
    n_spurious : int, "auto" or RankTest, default="auto"
        Dimensions to find, at most as many as the means can span (E−1 per class); "auto" tests
        for them (`mean_rank`) and needs a scatter; a test computed elsewhere is used. Of what a
        test finds, the E−1 dimensions that shift most are taken, unless `shared` is false.
    classes : array-like of int, optional
        Positions of the classes to use. Default: all ("pooled"), the last one that was seen in
        two environments ("paper").
    variant : {"pooled", "paper", "authors"}, default="pooled"
    level : float, default=0.01
        Level of the rank test.
    shared : bool, default=True
        Whether classes shift along the same directions, as ISR-Mean assumes: E environments then
        show at most E−1 of them, and what else a test finds is specific to a class.

    Examples
    --------
    >>> import numpy as np
    >>> mean = np.array([[[0.0, 0.0, 1.0], [2.0, 0.0, 1.0]]])  # one class, two environments
    >>> found = mean_subspace(Moments.population(mean), n_spurious=1)
    >>> np.abs(found.basis.ravel()).tolist()
    [1.0, 0.0, 0.0]
    """
    picked, coordinates = None if classes is None else np.atleast_1d(classes), None
    if variant != "pooled":
        picked = last_compared(moments) if picked is None else picked
        shifts = np.concatenate([_centred(moments, k) for k in picked])
    else:
        exact, enough = moments.ddof == 0, ROWS_PER_FEATURE * moments.n_features
        if moments.scatter is not None and (exact or moments.dof >= enough):
            coordinates = whitening(moments)
            moments = equalised(moments, coordinates.factor)
        shifts = moments.mean_shifts(picked)
    auto, axes = n_spurious == "auto", None
    shifts = shifts if coordinates is None else shifts @ coordinates.factor
    fill = variant == "authors"
    _, s, Vt = np.linalg.svd(shifts, full_matrices=fill or (auto and coordinates is not None))
    if auto:
        # One whitening and one decomposition for the rank test and the subspace.
        axes = None if coordinates is None else (s**2, coordinates.factor @ Vt.T)
        n_spurious = mean_rank(moments, picked, level=level, axes=axes)
    test = n_spurious if isinstance(n_spurious, RankTest) else None
    rank = n_spurious.rank if isinstance(n_spurious, RankTest) else int(n_spurious)
    if test is not None and shared:
        n_seen = int(np.count_nonzero(moments.count.any(axis=0)))
        rank = min(rank, max(n_seen - 1, 0))
    limit = min(independent_shifts(moments.count, picked), np.count_nonzero(s > s[:1] * NEGLIGIBLE))
    return oblique(Vt[: rank if fill else min(rank, limit)].T, coordinates, s**2, test)


def multiclass_subspace(
    moments: Moments,
    n_spurious: Rank = "auto",
    *,
    variant: Variant = "pooled",
    level: float = 0.01,
) -> Subspace:
    """Span of the mean differences of all classes together (ISR-Multiclass, Algorithm 3).

    ``variant="paper"``: E−1 principal directions of each class's means, stacked as unit vectors;
    the leading left singular vectors of the stack. Every direction has the same weight there,
    noise included once E−1 exceeds the true rank. ``variant="authors"`` stacks min(E−1,
    `n_spurious`) of each class, as the authors' code. ``variant="pooled"`` weights each by the
    size of its shift: it is `mean_subspace` over all the classes, whose shifts need not be shared.

    Parameters are those of `mean_subspace`, without `classes` and `shared`.

    Examples
    --------
    >>> import numpy as np
    >>> mean = np.zeros((2, 2, 3))
    >>> mean[0, 1, 0] = mean[1, 1, 1] = 1.0  # class 0 shifts along x, class 1 along y
    >>> moments = Moments.population(mean)
    >>> found = multiclass_subspace(moments, n_spurious=2, variant="paper")
    >>> (found.basis @ found.basis.T).round(12).diagonal().tolist()
    [1.0, 1.0, 0.0]
    """
    if variant == "pooled":
        return mean_subspace(moments, n_spurious, level=level, shared=False)
    rank, test = tested(n_spurious, lambda: mean_rank(moments, level=level))
    rank = min(rank, independent_shifts(moments.count))
    each = rank if variant == "authors" else None
    directions = [row_space(_centred(moments, k), each).basis.T for k in range(len(moments.mean))]
    return row_space(np.concatenate(directions), rank, test)


def regression_subspace(
    moments: Moments,
    n_spurious: Rank = "auto",
    *,
    variant: Variant = "pooled",
    level: float = 0.01,
) -> Subspace:
    """Span of the differences of the environments' means (ISR-Regression, Algorithm 4).

    `mean_subspace` with nothing to condition on: the moments must have one class. Second moments
    are not compared: under the regression model they shift along invariant directions too.

    Examples
    --------
    >>> import numpy as np
    >>> moments = Moments.population(np.array([[[0.0, 0.0], [0.0, 3.0]]]))
    >>> np.abs(regression_subspace(moments, n_spurious=1).basis.ravel()).round(12).tolist()
    [0.0, 1.0]
    """
    if len(moments.classes) != 1:
        found = f"the moments have {len(moments.classes)}; compute them with y=None"
        raise ValueError(f"regression does not condition on classes, but {found}")
    return mean_subspace(moments, n_spurious, variant=variant, level=level)


def _centred(moments: Moments, k: Any) -> NDArray:
    """Unweighted deviations of a class's cell means from their average, one row per cell."""
    mean = moments.mean[k][moments.count[k] > 0]
    mean = mean - mean[:1]  # the sum of large means could overflow
    return mean - mean.mean(axis=0) if len(mean) else mean


def last_compared(moments: Moments) -> NDArray[np.intp]:
    """Position of the last class that was seen in two environments, or of the last class."""
    seen = np.flatnonzero(np.count_nonzero(moments.count, axis=1) > 1)
    return np.array([seen[-1] if len(seen) else len(moments.classes) - 1])


def tested(n_spurious: Rank, make: Callable[[], RankTest]) -> tuple[int, RankTest | None]:
    """The rank to find, and its test: a new one for "auto", the given one, none for a number."""
    if n_spurious == "auto":
        n_spurious = make()
    if isinstance(n_spurious, RankTest):
        return n_spurious.rank, n_spurious
    return int(n_spurious), None


def row_space(rows: NDArray, rank: int | None, test: RankTest | None = None) -> Subspace:
    """Subspace of the leading right singular vectors of rows; of all nonzero ones by default."""
    _, s, Vt = np.linalg.svd(rows, full_matrices=False)
    rank = len(s) if rank is None else rank
    return oblique(Vt[: min(rank, np.count_nonzero(s > s[:1] * NEGLIGIBLE))].T, None, s**2, test)


def oblique(
    Q: NDArray, coordinates: Whitening | None, spectrum: NDArray, test: RankTest | None
) -> Subspace:
    """Subspace of the original features that orthonormal Q spans in the coordinates."""
    if coordinates is None:
        Q = without_rounding(Q)
        return Subspace(Q, Q, spectrum, test)
    vectors = (Q.T @ coordinates.inverse).T
    size = np.abs(vectors).max(axis=1, initial=0.0)
    # Largest rows first: the triangle is then exact however different the scales of features are.
    order = np.argsort(-size, kind="stable")
    basis, triangle = np.linalg.qr(vectors[order])
    basis = basis[np.argsort(order)]
    if size.any() and size.max() > _WILD * size[size > 0].min():
        # Beside large features, the rows of small ones would be rounding errors: they follow from
        # the triangle by substitution.
        regular = triangle + np.diag(np.diag(triangle) == 0)
        exact = linalg.solve_triangular(regular, vectors.T, trans="T").T
        basis = np.where(np.abs(exact - basis) < NEGLIGIBLE, exact, basis)
    # basis @ dual.T = inverse.T Q Qᵀ factor.T: the projector of the coordinates, mapped back.
    return Subspace(basis, coordinates.factor @ Q @ triangle.T, spectrum, test)


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
