"""The one path from settings and rows to a linear map: moments, subspace, eraser, head."""

import warnings
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.base import is_classifier, is_regressor

from isrlearn import validation as check
from isrlearn.core.methods import METHODS, Method
from isrlearn.core.moments import Moments, given_target
from isrlearn.core.rank import RankTest, covariance_rank, smallest_cell
from isrlearn.core.subspace import Eraser, Subspace, last_compared
from isrlearn.core.whiten import (
    ROWS_PER_FEATURE,
    head_coordinates,
    principal_components,
    reliable_components,
)
from isrlearn.engine import SparseRows
from isrlearn.estimators.given_heads import (
    check_head,
    fit_estimator,
    published_coordinates,
    published_head,
)
from isrlearn.estimators.heads import HEADS, INSIDE, Problem, Within, cell_weights, n_repeated
from isrlearn.estimators.held_out import (
    FEWEST,
    compared_moments,
    held_out_accuracy,
    helpful,
    is_harmful,
    warn_of_harm,
)
from isrlearn.estimators.permutation import permutation_rank

Keep = Literal["mean", "pooled", "cell"]

#: How precise heads must be that a search compares, or that are averaged over subsamples.
_ROUGH = 1e-6
#: Features from which a d×d matrix is avoided where rows are few.
_WIDE = 512
#: Entries of all cells' scatters up to which every cell keeps its own: half a gigabyte.
MOST_ENTRIES = 2**26
#: Largest and smallest number of principal components used by default.
_MOST, _FEWEST = 200, 50
#: Features per principal component from which components are computed from rows, not moments.
_THIN = 16
#: Rows per direction among which means are compared, and fewest such directions.
_ROWS_PER_DIRECTION, _FEWEST_DIRECTIONS = 10, 5


@dataclass(frozen=True)
class Settings:
    """Everything a fit depends on besides the rows, checked: as in `ISRClassifier`, but for these.

    `compare` is as in `ISRRegressor`.
    """

    method: str = "mean"  #: A name in `METHODS`.
    n_spurious: Any = "auto"
    level: float = 0.01
    scale: float = 0.0
    n_components: Any = "auto"
    variant: str = "pooled"
    #: A name in `HEADS`, a linear scikit-learn estimator, a head (coef, intercept) that is only
    #: adapted, or no head at all.
    head: Any = None
    #: L2 penalty of the head, 1/C or alpha; a pair: with two classes, and with more.
    penalty: Any = 1.0
    weights: Any = None
    compare: str = "means"

    def keep(self, n: float, d: int, n_cells: float = np.inf) -> Keep:
        """What the moments of n rows of d features keep of the scatter of their cells.

        Every cell keeps its own where a scatter is needed at all and memory allows: classes and
        environments may spread differently. Without `n_cells`, the least that must be kept.
        """
        closed_form = isinstance(self.head, str) and not HEADS[self.head].needs_rows
        weighted = self.weights is not None and self.weights != "subsample"
        if METHODS[self.method].second_order or (weighted and closed_form):
            return "cell"
        pooled, fitted = self.variant == "pooled", not isinstance(self.head, tuple | None)
        fitted = fitted or self.compare != "means"
        reduced = self.n_components is not None and (self.n_components != "auto" or pooled)
        if not (isinstance(self.n_spurious, str) or fitted or reduced or pooled):
            return "mean"
        return "cell" if n_cells * d**2 <= MOST_ENTRIES else "pooled"


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of a fit, in the original features."""

    moments: Moments  #: Of the rows; of a regression with the target as last column.
    subspace: Subspace  #: What shifts between environments.
    eraser: Eraser  #: Its removal.
    components: NDArray | None  #: Principal directions (d, p) that the fit was confined to.
    coef: Any = None  #: Of the head, with the removal folded in.
    intercept: Any = None
    compared: str = "means"  #: What a regression compared.
    #: Errors, or accuracies, on held-out environments, if they decided what was removed.
    held_out: dict[str, NDArray] | None = None

    def store(self, estimator: Any) -> Any:
        """The estimator with these results as its attributes."""
        vars(estimator).pop("_missing_", None)
        moments, subspace = self.moments, self.subspace
        estimator.moments_, estimator.eraser_ = moments, self.eraser
        estimator.environments_ = moments.environments
        estimator.spurious_basis_, estimator.spectrum_ = subspace.basis, subspace.spectrum
        estimator.n_spurious_ = subspace.basis.shape[1]
        estimator.rank_test_ = subspace.rank_test
        if is_classifier(estimator):
            estimator.classes_ = moments.classes
        if self.coef is not None and self.intercept is not None:
            flat = is_regressor(estimator)
            estimator.coef_ = self.coef
            estimator.intercept_ = float(self.intercept[0]) if flat else self.intercept
            estimator.held_out_ = self.held_out
            if flat:
                estimator.compared_ = self.compared if estimator.n_spurious_ else "nothing"
        return estimator


def fit(settings: Settings, sample: Any) -> Fitted:
    """Moments, subspace, eraser and head of a sample.

    Examples
    --------
    >>> from isrlearn.core.labels import Cells
    >>> from isrlearn.estimators.heads import Sample
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(500, 4, n_invariant=3, n_spurious=2, random_state=0)
    >>> sample = Sample(data.X, Cells.of(data.y, data.environments))
    >>> fitted = fit(Settings(head="logistic"), sample)
    >>> fitted.subspace.rank, fitted.coef.shape
    (2, (1, 5))
    """
    in_parts = getattr(getattr(sample, "X", None), "in_parts", None)
    if in_parts is not None:  # rows on a cluster, of isrlearn.dask
        sample = in_parts(sample)
    return Fitter(sample, [settings]).fit(settings)


class Fitter:
    """A sample prepared for one or many settings: what they share is computed once.

    All settings have the same `n_components` and `variant`. With `clip`, as a search needs it, a
    number of dimensions that the environments cannot show is lowered to what they can (else it is
    an error), and heads are less precise.
    """

    def __init__(self, sample: Any, settings: Sequence[Settings], *, clip: bool = False) -> None:
        self.clip = clip
        self.components: NDArray | None = None
        self.sample = sample
        self._subspaces: dict[Hashable, Subspace] = {}
        self._directions: dict[Hashable, NDArray] = {}
        self._heads: dict[Hashable, tuple[NDArray, NDArray]] = {}
        self._parts: list[tuple[Any, Moments]] = []
        n, d, n_cells = sample.size
        first = settings[0]
        order: tuple[Keep, ...] = ("mean", "pooled", "cell")
        most = max(settings, key=lambda s: order.index(s.keep(n, d)))
        keep = most.keep(n, d, n_cells)
        wide = d >= _WIDE and sample.has_rows
        self.moments = sample.moments("mean" if wide else keep)
        p = first.n_components
        if p == "auto":
            spare = self.moments.total[0] - np.count_nonzero(self.moments.count)
            enough = int(spare // ROWS_PER_FEATURE)
            # All features where rows are enough to whiten them, or where so few components would
            # lose the invariant signal. The published algorithms have no default reduction.
            whole = first.variant != "pooled" or enough >= self.moments.n_features
            p = None if whole or enough < _FEWEST else min(_MOST, enough)
        elif p is not None:
            check.check_n_components(p, d)
        if wide and isinstance(p, Integral) and p * _THIN <= d:
            # Principal components of wide rows are computed from the rows, without a d×d matrix.
            self._reduce(sample, sample.components(int(p), self.moments))
            self.reduced = self.sample.moments(most.keep(n, int(p), n_cells))
        else:
            # With few rows the head can do without a d×d matrix, and so can a mean method.
            lean = p is None and most.keep(n, d) == "pooled" and n < ROWS_PER_FEATURE * d / 2
            lean = lean and not any(
                (isinstance(s.head, str) and not HEADS[s.head].needs_rows) or s.compare != "means"
                for s in settings
            )
            if wide and keep != "mean" and not lean:
                self.moments = sample.moments(keep)
            self.sample, self.reduced = sample, self.moments
            if p is not None:
                features = self.moments if self.moments.n_features == d else self.moments.columns(d)
                self._reduce(sample, principal_components(features, p)[0])
        d = self.sample.size[1]
        self.features = self.reduced
        if self.reduced.n_features > d:
            self.features = self.reduced.columns(d)  # without the target
        inside = any(isinstance(s.weights, str) and s.weights in INSIDE for s in settings)
        self.within = Within.among(self.sample) if inside else None

    def _reduce(self, sample: Any, components: NDArray) -> None:
        """Continue with centred rows on principal directions, and with their moments."""
        d = components.shape[0]
        center = self.moments.total[1][:d]
        self.components, self.sample = components, sample.project(components, center)
        extra = self.moments.n_features - d
        matrix = linalg.block_diag(components, np.eye(extra)) if extra else components
        shift = np.append(-center @ components, np.zeros(extra))
        self.reduced = self.moments.map(matrix, shift)

    def fit(self, settings: Settings) -> Fitted:
        """Subspace, eraser and head for these settings, in the original features."""
        s, P, held_out = settings, self.components, None
        if isinstance(s.penalty, tuple):
            s = replace(s, penalty=s.penalty[len(self.moments.classes) > 2])
        if s.compare == "auto":
            s, held_out = self._chosen(s)
        found = self._subspace(s)
        enough = len(self.moments.environments) >= FEWEST
        if enough and not (self.clip or isinstance(s.head, tuple | None)):
            held_out = held_out or self.held_out(s)
        if held_out and "removal" in held_out and is_harmful(held_out):
            warn_of_harm(held_out, found.tested)
            found = replace(found, basis=found.basis[:, :0], dual=found.dual[:, :0])
            s = replace(s, weights="class" if s.weights == "auto" else s.weights)
        subspace = found if P is None else found.lift(P)
        center = self.moments.total[1][: len(subspace.basis)]
        if P is None and s.variant != "pooled":
            center = np.zeros(len(center))  # as published: the spurious part is that of x itself
        eraser = Eraser(subspace.basis, subspace.dual, s.scale, center)
        coef = intercept = None
        if isinstance(s.head, tuple):
            n_classes = len(self.moments.classes) if METHODS[s.method].uses_classes else None
            coef, intercept = eraser.fold(*check_head(s.head, n_classes, len(center)))
        elif s.head is not None:
            coef, intercept = self._head(s, found)
            if P is not None:
                coef = coef @ P.T
                intercept = intercept - coef @ center
        return Fitted(self.moments, subspace, eraser, P, coef, intercept, s.compare, held_out)

    def held_out(self, s: Settings) -> dict[str, NDArray] | None:
        """Accuracy in environments left out, without and with the removal of all that was found.

        All directions that the test found, removed or not: harm shows most clearly there. None
        where the scatter of every cell is not there, or where the number of directions was given:
        then they are removed.
        """
        moments, method, tested = self.features, METHODS[s.method], isinstance(s.n_spurious, str)
        removes = tested and method.uses_classes and s.variant == "pooled" and s.scale < 1
        if not removes or moments.n_features >= _WIDE:
            return None
        rank, penalty = self._subspace(s).tested, s.penalty
        if moments.scatter is None or moments.pooled or not rank:
            return None
        if isinstance(penalty, tuple):
            penalty = penalty[len(moments.classes) > 2]
        P = self._leading(s, moments)
        moments = moments if P is None else moments.map(P)
        return held_out_accuracy(moments, method, rank, penalty=penalty, scale=s.scale)

    def _chosen(self, s: Settings) -> tuple[Settings, dict[str, NDArray] | None]:
        """Settings that compare what helps on held-out environments, and the errors there."""
        options = ("means", "given-target") if s.n_spurious == "auto" else ("means",)
        found = {how: self._subspace(replace(s, compare=how), quiet=True) for how in options}
        found["nothing"] = replace(
            found["means"], basis=found["means"].basis[:, :0], dual=found["means"].dual[:, :0]
        )
        self._subspaces[s.method, "nothing", s.n_spurious, s.level] = found["nothing"]
        warn = self.sample.has_rows and not self.clip
        best, held_out = helpful(self.reduced, found, s, warn=warn)
        return replace(s, compare=best), held_out

    def _subspace(self, s: Settings, *, quiet: bool = False) -> Subspace:
        """The spurious subspace, on the principal components if there are any, found once."""
        key = (s.method, s.compare, s.n_spurious, s.level)
        if key in self._subspaces:
            return self._subspaces[key]
        method, moments, rank = METHODS[s.method], self.features, s.n_spurious
        d = moments.n_features
        if s.compare == "given-target" and len(moments.environments) > 1:
            moments = given_target(self.reduced)
        if len(moments.environments) < 2:
            return Subspace(np.zeros((d, 0)), np.zeros((d, 0)), np.zeros(0))
        check.check_cells(moments, second_order=method.second_order)
        rows = self.sample
        if getattr(getattr(rows, "cells", None), "cluster", None) is not None:
            rows = rows.independent(average=not method.second_order)
        X = getattr(rows, "X", None)
        if isinstance(rank, str) and type(X) is np.ndarray and not (self.clip or self._subspaces):
            repeated = n_repeated(X)
            if repeated:
                warnings.warn(
                    f"{repeated} of {len(X)} rows repeat another one, but the tests assume "
                    "independent rows: remove the copies, or pass clusters= (--clusters)",
                    UserWarning,
                    stacklevel=6,
                )
        many = moments.total[0] >= _ROWS_PER_DIRECTION * d
        P = None if many else self._leading(s, moments)
        if rank == "permutation":
            if isinstance(X, np.ndarray | SparseRows):
                rows = replace(rows, X=X[:])
                if method.one_class and s.variant != "pooled":
                    rows = rows.rows(np.flatnonzero(rows.cells.k == last_compared(moments)))
            rank = permutation_rank(rows, method, level=s.level)
        elif rank == "auto":
            # Mean shifts of few features are tested where the subspace is found.
            if method.second_order or d >= _WIDE or moments.pooled or rows is not self.sample:
                rank = self._tested(s, method, rows, P)
        else:
            limit, why = check.dimension_limit(method, moments.count, d, s.variant)
            if not self.clip:
                check.check_n_spurious(rank, limit, why, d)
                _warn_if_equal(s, moments, self.sample)
            rank = min(rank, limit)
        compared = moments if P is None else moments.map(P)
        found = method.find(compared, rank, variant=s.variant, level=s.level)
        found = found if P is None else found.lift(P)
        if found.basis.shape[1] == d:
            kept = method.find(moments, d - 1, variant=s.variant, level=s.level)
            found = replace(kept, rank_test=found.rank_test)
            shift = f"all {d} dimensions shift between environments"
            if not quiet:
                message = f"{shift}; the one that shifts least is kept"
                warnings.warn(message, UserWarning, stacklevel=6)
        self._subspaces[key] = found
        return found

    def _leading(self, s: Settings, moments: Moments) -> NDArray | None:
        """Principal directions (d, p) among which means are compared; None for all features.

        With few rows per feature most of a shift is the noise of the smallest cells, which a head
        fitted on the same rows has learnt with the opposite sign: removing both would add the
        shift to the head.
        """
        most = int(moments.total[0]) // _ROWS_PER_DIRECTION
        p = max(min(_MOST, most), _FEWEST_DIRECTIONS)
        p = max(p, int(s.n_spurious)) if isinstance(s.n_spurious, Integral) else p
        known = moments.scatter is not None
        enough = max(p, most) >= moments.n_features or moments.ddof == 0 or s.n_spurious == 0
        other = s.variant != "pooled" or METHODS[s.method].second_order
        if enough or other or not (known or self.sample.has_rows):
            return None
        key = s.compare, p
        if key not in self._directions and known:
            self._directions[key] = principal_components(moments, p)[0]
        elif key not in self._directions:
            self._directions[key] = self.sample.components(p, moments)
        return self._directions[key]

    def _tested(self, s: Settings, method: Method, sample: Any, P: Any) -> RankTest | str:
        """The rank test where it needs more than the moments have; else "auto"."""
        moments, p, clustered = self.features, None, sample is not self.sample
        if clustered:
            moments = sample.moments("cell")
        given = s.compare == "given-target"
        if given or moments.n_features > self.features.n_features:
            moments = compared_moments(moments if clustered else self.reduced, s.compare)
        if sample.has_rows and not given and (moments.n_features >= _WIDE or moments.pooled):
            smallest = smallest_cell(moments) if method.second_order else np.inf
            p = reliable_components(moments, smallest)
        if p is not None:
            # Among principal components of wide rows, without a d×d matrix.
            found = P if P is not None and not clustered else sample.components(p, moments)
            sample = sample.project(found[:, :p], moments.total[1])
            reduced = sample.moments("cell")
            moments = reduced if reduced.n_features == p else reduced.columns(p)
        elif not (method.second_order or clustered):
            return "auto"
        return method.rank(moments, level=s.level, rows=sample.row_sample())

    def _head(self, s: Settings, subspace: Subspace) -> tuple[NDArray, NDArray]:
        """Coefficients and intercepts on the (reduced) features."""
        rank = subspace.basis.shape[1]
        idle = rank == 0 or s.scale == 1
        if s.variant == "pooled" and not idle and s.scale:
            # Between the two heads, as `Eraser.fold` is for a given one. A head that is fitted on
            # scaled features would undo the scale, the more rows there are.
            erased, whole = (self._head(replace(s, scale=end), subspace) for end in (0.0, 1.0))
            coef, intercept = (
                (1 - s.scale) * a + s.scale * b for a, b in zip(erased, whole, strict=True)
            )
            return coef, intercept
        removed = None if idle else (s.method, s.compare, rank, s.scale)
        name = s.head if isinstance(s.head, str) else id(s.head)
        key = (removed, name, repr(s.weights), s.penalty)
        if key in self._heads:
            return self._heads[key]
        head, pooled = s.head, s.variant == "pooled"
        if not pooled:
            head = published_head(head, s.penalty, self.sample)
        # Scikit-learn's heads get published features as they are; ours do not depend on the origin.
        raw = not (pooled or isinstance(head, str))
        center = np.zeros(self.features.n_features) if raw else self.features.total[1]
        eraser = Eraser(subspace.basis, subspace.dual, 1.0 if idle else s.scale, center)
        if not pooled:
            coordinates = published_coordinates(eraser)
        elif self.features.scatter is None:
            coordinates = self.sample.standardised(eraser)
        else:
            coordinates = head_coordinates(self.features, eraser)
        weights, within, samples = None, None, [(self.sample, self.reduced)]
        if isinstance(s.weights, str) and s.weights == "subsample":
            samples = self._subsamples()
        elif isinstance(s.weights, str) and s.weights in INSIDE and self.within:
            within = self.within
        elif s.weights is not None:
            weights = cell_weights(self.moments, s.weights)
        heads: list[Any] = []
        for sample, moments in samples:
            tol = _ROUGH if self.clip or len(samples) > 1 else None
            problem = Problem(sample, moments, coordinates, s.penalty, weights, tol, within)
            if isinstance(head, str):
                heads.append(HEADS[head].fit(problem))
            else:
                heads.append(fit_estimator(head, problem, clean=pooled))
        coef, intercept = (np.mean(part, axis=0) for part in zip(*heads, strict=True))
        self._heads[key] = coef, intercept
        return coef, intercept

    def _subsamples(self) -> list[tuple[Any, Moments]]:
        """Subsamples with equally many rows of every group, and their moments."""
        if not hasattr(self.sample, "subsamples"):
            raise ValueError("weights='subsample' needs rows in memory; use weights='group'")
        if not self._parts:
            keep = "mean" if self.reduced.scatter is None else "pooled"
            self._parts = [(part, part.moments(keep)) for part in self.sample.subsamples()]
        return self._parts


def _warn_if_equal(settings: Settings, moments: Moments, sample: Any) -> None:
    """Warn where covariances differ no more than sampling noise."""
    if settings.method != "cov" or moments.ddof == 0:
        return
    rows = sample.row_sample()
    test = covariance_rank(moments, level=settings.level, most=1, rows=rows)
    if test.rank == 0:
        warnings.warn(
            f"covariances do not differ between environments beyond sampling noise (p = "
            f"{test.p_values[0]:.2g}): method='cov' has nothing to compare; compare means",
            UserWarning,
            stacklevel=7,
        )
