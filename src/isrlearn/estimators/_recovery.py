"""From an estimator's parameters and moments to the eraser: what all estimators share."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn import validation as check
from isrlearn.core.covariance import covariance_subspace, joint_subspace
from isrlearn.core.erase import Eraser
from isrlearn.core.moments import Moments
from isrlearn.core.permutation import permutation_rank
from isrlearn.core.rank import RankTest, covariance_rank
from isrlearn.core.rows import Rows
from isrlearn.core.subspace import (
    Subspace,
    mean_subspace,
    multiclass_subspace,
    regression_subspace,
)
from isrlearn.core.whiten import ROWS_PER_FEATURE, default_components, principal_components
from isrlearn.estimators._reading import Keep, Reduction

#: Methods that compare covariances: they need a scatter, and two rows, in each cell.
_SECOND_ORDER = ("cov", "joint")


@dataclass(frozen=True)
class Recovery:
    """Parameters of the search for the spurious subspace, checked.

    The estimators make one of these from their own parameters; it knows which moments are the
    least that will do, and turns moments into a subspace of the original features.
    """

    method: str
    n_spurious: Any
    scale: float
    n_components: Any
    condition_on: Any
    variant: str
    rank_test: str
    test: RankTest | None = None

    @classmethod
    def of(cls, estimator: Any, methods: tuple[str, ...], method: str | None = None) -> Recovery:
        """Recovery of an estimator that has parameters of these names."""
        method = estimator.method if method is None else method
        check.check_choice("method", method, methods)
        check.check_choice("variant", estimator.variant, ("pooled", "paper"))
        if method == "joint" and estimator.variant == "paper":
            raise ValueError("method='joint' is not in the paper: it has no variant='paper'")
        check.check_n_spurious(estimator.n_spurious)
        check.check_between("scale", estimator.scale, 0.0, 1.0)
        check.check_choice("rank_test", estimator.rank_test, ("moments", "permutation"))
        condition_on = getattr(estimator, "condition_on", None)
        if condition_on is not None and method not in ("mean", "cov"):
            raise ValueError(
                f"condition_on={condition_on!r} goes with method 'mean' or 'cov'; {method!r} "
                "uses all the rows"
            )
        return cls(
            method,
            estimator.n_spurious,
            float(estimator.scale),
            estimator.n_components,
            condition_on,
            estimator.variant,
            estimator.rank_test,
        )

    def least(self, n: float, n_features: int) -> Keep:
        """The least the moments must keep of the scatter, for the subspace alone."""
        check.check_n_components(self.n_components, n_features)
        if self.method in _SECOND_ORDER:
            return "cell"
        whitened = n >= ROWS_PER_FEATURE * n_features or self.n_components == "auto"
        reduced = self.n_components not in (None, "auto")
        if self.n_spurious == "auto" or reduced or (self.variant == "pooled" and whitened):
            return "pooled"
        return "mean"

    def settled(
        self, moments: Moments, X: Any, y: NDArray | None, environments: NDArray
    ) -> Recovery:
        """The same with its rank tested on the rows, where the test needs them."""
        if self.n_spurious != "auto" or self.rank_test == "moments":
            return self
        if isinstance(X, Rows):
            raise ValueError(
                "rank_test='permutation' needs rows in memory; these are read some at a time"
            )
        classes = self.positions(moments.classes)
        check.check_cells(moments, classes, least=self._rows_a_cell)
        method = self.method if self.method in _SECOND_ORDER else "mean"
        if y is not None and len(classes) < len(moments.classes):
            rows = np.flatnonzero(np.isin(y, moments.classes[classes]))
            X, y, environments = X[rows], y[rows], environments[rows]
        test = permutation_rank(X, y, environments, method=method)
        return replace(self, n_spurious=test.rank, test=test)

    def __call__(
        self, moments: Moments, reduction: Reduction | None = None
    ) -> tuple[Subspace, Eraser, NDArray | None]:
        """Subspace and eraser in the original features, and the principal directions if any."""
        if self.n_spurious == "auto" and self.rank_test == "permutation":
            raise ValueError("rank_test='permutation' needs the data: moments alone will not do")
        check.check_n_components(self.n_components, moments.n_features)
        classes = self.positions(moments.classes)
        check.check_cells(moments, classes, least=self._rows_a_cell)
        if reduction is None:
            reduction = self._reduction(moments)
        components, reduced = reduction.components, reduction.moments
        subspace = self._find(reduced, classes)
        if self.test is not None:
            subspace = replace(subspace, rank_test=self.test)
        if components is not None:
            subspace = subspace.lift(components)
        return subspace, Eraser.of(subspace, self.scale, moments.total()[1]), components

    def looked_at(self, moments: Moments) -> int | float | None:
        """Principal components to look at, or the fraction of variance they hold; None: all."""
        if self.n_components != "auto":
            return self.n_components
        # The published algorithms know no default reduction: to the letter is all features.
        return default_components(moments) if self.variant == "pooled" else None

    def _reduction(self, moments: Moments) -> Reduction:
        n_components = self.looked_at(moments)
        if n_components is None:
            return Reduction(None, moments)
        components, _ = principal_components(moments, n_components)
        return Reduction(components, moments.map(components))

    def _find(self, moments: Moments, classes: NDArray) -> Subspace:
        E, d = len(moments.environments), moments.n_features
        if E < 2:
            nothing = np.zeros((d, 0))
            return Subspace(nothing, nothing, np.zeros(0))
        if self.test is None:
            check.check_n_spurious(self.n_spurious, *self.bound(len(classes), E, d))
        if self.method == "cov" and self.n_spurious != "auto":
            _warn_if_equal(moments, classes)
        subspace = _METHODS[self.method](moments, self.n_spurious, classes, self.variant)
        if subspace.rank < d:
            return subspace
        warnings.warn(
            f"all {d} dimensions shift between environments; the one that shifts least is kept",
            UserWarning,
            stacklevel=4,
        )
        return _METHODS[self.method](moments, d - 1, classes, self.variant)

    def ready(self, moments: Moments) -> bool:
        """Whether all that is to be compared was seen; if not, more rows may bring it."""
        if len(moments.environments) < 2:
            return False
        if self.condition_on is not None and not (moments.classes == self.condition_on).any():
            return False
        classes, d = self.positions(moments.classes), moments.n_features
        if (moments.count[classes] < self._rows_a_cell).any():
            return False
        bound, _ = self.bound(len(classes), len(moments.environments), d)
        return self.n_spurious == "auto" or not bound < self.n_spurious < d

    @property
    def _rows_a_cell(self) -> int:
        return 2 if self.method in _SECOND_ORDER else 1

    def positions(self, names: NDArray) -> NDArray:
        """Positions, among the sorted names of the classes, of those whose cells are compared."""
        if self.condition_on is not None:
            found = np.flatnonzero(names == self.condition_on)
            if not len(found):
                raise ValueError(
                    f"condition_on={self.condition_on!r} is not a class; the classes are "
                    f"{names.tolist()}"
                )
            return found
        last_only = self.method == "mean" and self.variant == "paper"
        return np.array([len(names) - 1]) if last_only else np.arange(len(names))

    def bound(self, K: int, E: int, d: int) -> tuple[int, str]:
        """Most spurious dimensions that can be asked for, and what sets that number."""
        if self.method in _SECOND_ORDER or d - 1 < K * (E - 1):
            return d - 1, f"one of the {d} dimensions at least must stay"
        classes = "" if K == 1 else f" in {K} classes"
        return K * (E - 1), f"the means of {E} environments{classes} span no more"


def _warn_if_equal(moments: Moments, classes: NDArray) -> None:
    """Warn where covariances differ no more than sampling noise would make them."""
    if moments.ddof == 0:
        return
    test = covariance_rank(moments, classes, most=1)
    if test.rank == 0:
        warnings.warn(
            f"covariances do not differ between environments beyond sampling noise (p = "
            f"{test.p_values[0]:.2g}): method='cov' has nothing to go by; compare means",
            UserWarning,
            stacklevel=6,
        )


class Recovered:
    """What every fitted estimator knows of the subspace it took out."""

    n_features_in_: int
    moments_: Moments
    eraser_: Eraser
    environments_: NDArray
    spurious_basis_: NDArray
    n_spurious_: int
    spectrum_: NDArray
    rank_test_: RankTest | None

    def _store(self, moments: Moments, subspace: Subspace, eraser: Eraser) -> None:
        self.moments_, self.eraser_ = moments, eraser
        self.environments_ = moments.environments
        self.spurious_basis_, self.spectrum_ = subspace.basis, subspace.spectrum
        self.n_spurious_, self.rank_test_ = subspace.rank, subspace.rank_test

    def _know_features(self, n_features: int) -> None:
        """Take the number of features from moments, which know no names."""
        self.n_features_in_ = n_features
        self.__dict__.pop("feature_names_in_", None)


def _cov(moments: Moments, r: Any, classes: NDArray, variant: Any) -> Subspace:
    return covariance_subspace(moments, r, classes=classes, variant=variant)


def _joint(moments: Moments, r: Any, classes: NDArray, variant: Any) -> Subspace:
    return joint_subspace(moments, r, classes=classes)


def _mean(moments: Moments, r: Any, classes: NDArray, variant: Any) -> Subspace:
    return mean_subspace(moments, r, classes=classes, variant=variant)


def _multiclass(moments: Moments, r: Any, classes: NDArray, variant: Any) -> Subspace:
    return multiclass_subspace(moments, r, classes=classes, variant=variant)


def _regression(moments: Moments, r: Any, classes: NDArray, variant: Any) -> Subspace:
    return regression_subspace(moments, r, variant=variant)


_METHODS: dict[str, Callable[[Moments, Any, NDArray, Any], Subspace]] = {
    "mean": _mean,
    "cov": _cov,
    "joint": _joint,
    "multiclass": _multiclass,
    "regression": _regression,
}
