"""The one path from settings and rows to a linear map: moments, subspace, eraser, head."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.base import is_classifier, is_regressor

from isrlearn import validation as check
from isrlearn.core.methods import METHODS, Method
from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest, covariance_rank, smallest_cell
from isrlearn.core.subspace import Eraser, Subspace
from isrlearn.core.whiten import (
    ROWS_PER_FEATURE,
    default_components,
    principal_components,
    reliable_components,
)
from isrlearn.estimators.heads import (
    HEADS,
    MomentSample,
    Problem,
    Sample,
    cell_weights,
    fit_estimator,
)
from isrlearn.estimators.permutation import permutation_rank

#: Features from which a d×d matrix is avoided where rows are few.
_WIDE = 512
#: Features per principal component from which components are computed from rows, not moments.
_THIN = 16


@dataclass(frozen=True)
class Settings:
    """Everything a fit depends on besides the rows, checked.

    Parameters
    ----------
    method : str, default="mean"
        A name in `METHODS`.
    n_spurious, level, scale, n_components, variant, weights
        As in `ISRClassifier`.
    head : str, estimator, (coef, intercept) or None
        A name in `HEADS`, a linear scikit-learn estimator, a head that is only adapted, or no
        head at all.
    penalty : float, default=1.0
        L2 penalty of the head: 1/C, or alpha.
    """

    method: str = "mean"
    n_spurious: Any = "auto"
    level: float = 0.01
    scale: float = 0.0
    n_components: Any = "auto"
    variant: str = "pooled"
    head: Any = None
    penalty: float = 1.0
    weights: Any = None

    def __post_init__(self) -> None:
        check.check_choice("method", self.method, tuple(METHODS))
        check.check_choice("variant", self.variant, ("pooled", "paper"))
        if self.variant not in METHODS[self.method].variants:
            raise ValueError(f"method={self.method!r} is not in the paper: no variant='paper'")
        check.check_n_spurious(self.n_spurious)
        check.check_between("level", self.level, np.finfo(float).tiny, 1.0)
        check.check_between("scale", self.scale, 0.0, 1.0)

    @property
    def _closed_form(self) -> bool:
        return isinstance(self.head, str) and not HEADS[self.head].needs_rows

    @property
    def _no_fit(self) -> bool:
        return self.head is None or isinstance(self.head, tuple)

    @property
    def from_moments(self) -> bool:
        """Whether moments are enough for the head and the rank test."""
        return (self._closed_form or self._no_fit) and self.n_spurious != "permutation"

    def keep(self, n: float, d: int) -> Literal["mean", "pooled", "cell"]:
        """The least that the moments of n rows of d features must keep of the scatter."""
        weighted = self._closed_form and self.weights is not None
        if METHODS[self.method].second_order or weighted:
            return "cell"
        if not self._no_fit:
            return "pooled"
        all_features = self.n_components is None or (
            self.n_components == "auto" and self.variant == "paper"
        )
        whitened = self.variant == "pooled" and n >= ROWS_PER_FEATURE * d
        counted = isinstance(self.n_spurious, Integral)
        return "mean" if all_features and counted and not whitened else "pooled"


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of a fit, in the original features.

    Parameters
    ----------
    moments : Moments
        Of the rows; of a regression with the target as last column.
    subspace : Subspace
    eraser : Eraser
    components : ndarray of shape (d, p) or None
        Principal directions that the fit was confined to.
    coef, intercept : ndarray or None
        The head with the removal folded in.
    """

    moments: Moments
    subspace: Subspace
    eraser: Eraser
    components: NDArray | None
    coef: NDArray | None = None
    intercept: NDArray | None = None

    def store(self, estimator: Any) -> Any:
        """The estimator with these results as its attributes."""
        moments, subspace = self.moments, self.subspace
        estimator.moments_, estimator.eraser_ = moments, self.eraser
        estimator.environments_ = moments.environments
        estimator.spurious_basis_, estimator.spectrum_ = subspace.basis, subspace.spectrum
        estimator.n_spurious_, estimator.rank_test_ = subspace.rank, subspace.rank_test
        if is_classifier(estimator):
            estimator.classes_ = moments.classes
        if self.coef is not None and self.intercept is not None:
            flat = is_regressor(estimator)
            estimator.coef_ = self.coef
            estimator.intercept_ = float(self.intercept[0]) if flat else self.intercept
        return estimator


def fit(settings: Settings, sample: Sample | MomentSample) -> Fitted:
    """Moments, subspace, eraser and head of a sample.

    Examples
    --------
    >>> from isrlearn.core.labels import Cells
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(500, 4, n_invariant=3, n_spurious=2, random_state=0)
    >>> sample = Sample(data.X, Cells.of(data.y, data.environments))
    >>> fitted = fit(Settings(head="logistic"), sample)
    >>> fitted.subspace.rank, fitted.coef.shape
    (2, (1, 5))
    """
    return Fitter(sample, [settings]).fit(settings)


class Fitter:
    """A sample prepared for one or many settings: what they share is computed once.

    All settings have the same `n_components` and `variant`. With `clip`, more dimensions than the
    environments can show are as many as they can; else they are an error.
    """

    def __init__(self, sample: Sample, settings: Sequence[Settings], *, clip: bool = False) -> None:
        n, d = sample.n_rows, sample.n_features
        self.clip = clip
        self.components: NDArray | None = None
        self._subspaces: dict[Hashable, Subspace] = {}
        self._heads: dict[Hashable, tuple[NDArray, NDArray]] = {}
        self._starts: dict[Hashable, Any] = {}
        check.check_n_components(settings[0].n_components, d)
        kept = [s.keep(n, d) for s in settings]
        keep = "cell" if "cell" in kept else "pooled" if "pooled" in kept else "mean"
        few = sample.has_rows and d >= _WIDE
        means = sample.moments("mean") if few or keep == "mean" else None
        p = None if means is None else _n_components(settings[0], means)
        if few and means is not None and isinstance(p, Integral) and p * _THIN <= d:
            self.moments = means
            self._reduce(sample, sample.components(int(p), self._center(means, d)), keep)
            return
        lean = few and p is None and keep == "pooled" and all(not s.from_moments for s in settings)
        # Without a d×d matrix features cannot be whitened, nor a test be made of all of them.
        if means is not None and (keep == "mean" or (lean and reliable_components(means))):
            self.moments = means
        else:
            self.moments = sample.moments(keep)
            p = _n_components(settings[0], self.moments)
        self.sample, self.reduced = sample, self.moments
        if p is not None:
            components, _ = principal_components(self._features(self.moments, d), p)
            self._reduce(sample, components, None)

    def _center(self, moments: Moments, d: int) -> NDArray:
        return moments.total()[1][:d]

    def _features(self, moments: Moments, d: int) -> Moments:
        """Moments of the features alone, without an appended target."""
        return moments if moments.n_features == d else moments.columns(d)

    def _reduce(self, sample: Sample, components: NDArray, keep: Any) -> None:
        """Go on with centred rows on principal directions; `keep` reads their moments from rows."""
        d = components.shape[0]
        center = self._center(self.moments, d)
        self.components = components
        self.sample = sample.project(components, center)
        if keep is not None:
            self.reduced = self.sample.moments(keep)
            return
        extra = self.moments.n_features - d
        matrix = linalg.block_diag(components, np.eye(extra)) if extra else components
        shift = np.append(-center @ components, np.zeros(extra))
        self.reduced = self.moments.map(matrix).moved(shift)

    def fit(self, settings: Settings) -> Fitted:
        """Subspace, eraser and head for these settings, in the original features."""
        found = self.subspace(settings)
        subspace = found if self.components is None else found.lift(self.components)
        center = self._center(self.moments, subspace.basis.shape[0])
        eraser = Eraser.of(subspace, settings.scale, center)
        head: tuple[Any, Any] = (None, None)
        if isinstance(settings.head, tuple):
            n_classes = None if settings.method == "regression" else len(self.moments.classes)
            head = eraser.fold(*check.check_head(settings.head, n_classes, len(center)))
        elif settings.head is not None:
            head = self._head(settings, found)
            if self.components is not None:
                coef = head[0] @ self.components.T
                head = coef, head[1] - coef @ center
        return Fitted(self.moments, subspace, eraser, self.components, *head)

    def subspace(self, settings: Settings) -> Subspace:
        """The spurious subspace, on the principal components if there are any."""
        s = settings
        key = (s.method, s.n_spurious, s.level)
        if key not in self._subspaces:
            self._subspaces[key] = self._find(s)
        return self._subspaces[key]

    def _find(self, s: Settings) -> Subspace:
        method, moments = METHODS[s.method], self._features(self.reduced, self.sample.n_features)
        d = moments.n_features
        if len(moments.environments) < 2:
            return Subspace(np.zeros((d, 0)), np.zeros((d, 0)), np.zeros(0))
        check.check_cells(moments, second_order=method.second_order)
        limit, why = dimension_limit(method, moments.count, d, s.variant)
        rank = s.n_spurious
        if isinstance(rank, str):
            rank = self._tested(s, method, moments)
        elif self.clip:
            rank = min(rank, limit)
        else:
            check.check_n_spurious(rank, limit, why, d)
            _warn_if_equal(s, moments)
        found = method.find(moments, rank, variant=s.variant, level=s.level)
        if found.rank < d:
            return found
        warnings.warn(
            f"all {d} dimensions shift between environments; the one that shifts least is kept",
            UserWarning,
            stacklevel=6,
        )
        return method.find(moments, d - 1, variant=s.variant, level=s.level)

    def _tested(self, s: Settings, method: Method, moments: Moments) -> RankTest | str:
        """A rank test that needs rows, or "auto" where the moments are enough."""
        if s.n_spurious == "permutation":
            return permutation_rank(self.sample, method, level=s.level)
        smallest = smallest_cell(moments) if method.second_order else np.inf
        p = reliable_components(moments, smallest)
        if not self.sample.has_rows or moments.n_features < _WIDE or p is None:
            return "auto"
        # Principal components of wide rows are computed from the rows.
        center = self._center(moments, moments.n_features)
        rows = self.sample.project(self.sample.components(p, center), center)
        reduced = rows.moments("cell" if method.second_order else "pooled")
        return method.rank(self._features(reduced, p), level=s.level)

    def _head(self, s: Settings, subspace: Subspace) -> tuple[NDArray, NDArray]:
        """Coefficients and intercepts on the (reduced) features."""
        idle = subspace.rank == 0 or s.scale == 1
        erased = None if idle else (s.method, subspace.rank, s.scale)
        head = s.head if isinstance(s.head, str) else id(s.head)
        shared = (erased, head, repr(s.weights))
        key = (*shared, s.penalty)
        if key in self._heads:
            return self._heads[key]
        d = self.sample.n_features
        eraser = Eraser.of(subspace, 1.0 if idle else s.scale, self._center(self.reduced, d))
        coordinates = self.sample.coordinates(self._features(self.reduced, d), eraser)
        problem = Problem(
            self.sample,
            self.reduced,
            coordinates,
            s.penalty,
            cell_weights(self.moments, s.weights),
            self._starts.get(shared),
        )
        if isinstance(s.head, str):
            coef, intercept, self._starts[shared] = HEADS[s.head].fit(problem)
        else:
            coef, intercept = fit_estimator(s.head, problem)
        self._heads[key] = coef, intercept
        return coef, intercept


def _n_components(settings: Settings, moments: Moments) -> int | float | None:
    """Principal components to keep, or the fraction of variance they hold; None: all features."""
    if settings.n_components != "auto":
        return settings.n_components
    # The published algorithms have no default reduction.
    return default_components(moments) if settings.variant == "pooled" else None


def dimension_limit(method: Method, count: NDArray, d: int, variant: str) -> tuple[int, str]:
    """Largest number of spurious dimensions for cells of these counts, and what limits it."""
    spanned = np.maximum(np.count_nonzero(count, axis=1) - 1, 0)
    if method.one_class and variant == "paper":
        spanned = spanned[spanned > 0][-1:]
    if method.second_order or d - 1 < spanned.sum():
        return d - 1, f"at least one of the {d} dimensions must stay"
    E, K = count.shape[1], len(spanned)
    classes = "" if K == 1 else f" in {K} classes"
    return int(spanned.sum()), f"the means of {E} environments{classes} span no more"


def _warn_if_equal(settings: Settings, moments: Moments) -> None:
    """Warn where covariances differ no more than sampling noise."""
    if settings.method != "cov" or moments.ddof == 0:
        return
    test = covariance_rank(moments, level=settings.level, most=1)
    if test.rank == 0:
        warnings.warn(
            f"covariances do not differ between environments beyond sampling noise (p = "
            f"{test.p_values[0]:.2g}): method='cov' has nothing to compare; compare means",
            UserWarning,
            stacklevel=7,
        )
