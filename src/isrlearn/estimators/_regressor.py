"""ISRRegressor: linear regression on what stays the same between environments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from isrlearn import validation as check
from isrlearn.core.heads import head_coordinates, ridge_head
from isrlearn.core.moments import Moments
from isrlearn.core.rows import Rows
from isrlearn.estimators._heads import (
    cell_weights,
    check_weights,
    fit_on_rows,
    in_memory,
    row_weights,
)
from isrlearn.estimators._reading import Keep, affine, moments_for
from isrlearn.estimators._recovery import Recovered, Recovery


def _from_moments(self: ISRRegressor) -> bool:
    """Whether the head needs moments alone, so that data may come in parts."""
    return isinstance(self.head, str | tuple)


class ISRRegressor(Recovered, RegressorMixin, BaseEstimator):
    """Linear regression that leaves out what changes between environments.

    Finds the directions along which the mean of the features moves between environments
    (ISR-Regression), takes them out, and fits a linear head on the rest. Means only: under the
    regression model covariances change along invariant directions too.

    Parameters
    ----------
    n_spurious : int or "auto", default="auto"
        Number of spurious dimensions; "auto" tests for it at level 0.01.
    rank_test : {"moments", "permutation"}, default="moments"
        How "auto" tests: against the Gaussian law, from moments alone, or against permuted
        environments, for heavy-tailed features.
    scale : float, default=0.0
        What is kept of the spurious part, from 0 (nothing) to 1 (all).
    n_components : int, float, "auto" or None, default="auto"
        Reduce to that many principal components first, or as many as hold that fraction of the
        variance. "auto": all features where there are twenty rows for each, else one component for
        twenty rows, 200 at most (none below 50), and all features with ``variant="paper"``. None:
        always all features.
    variant : {"pooled", "paper"}, default="pooled"
        Our pooled form, or the published algorithm to the letter.
    head : "ridge", linear estimator or (coef, intercept), default="ridge"
        What is fitted on the rest; "ridge" needs no second pass over the data. A pair adapts a
        trained model's last layer.
    alpha : float, default=1.0
        Penalty of the "ridge" head, on whitened (or, with few rows a feature, standardised)
        features.
    group_weight : "balanced", optional
        Weigh every environment the same for the head.
    missing_environments : {"raise", "single"}, default="raise"
        What to do when `fit` gets no environments: raise, or take all rows as one environment
        and remove nothing.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Head in the original features, everything folded in.
    intercept_ : float
    environments_ : ndarray
        Names of the environments seen.
    spurious_basis_ : ndarray of shape (n_features, n_spurious)
        Orthonormal basis of the spurious subspace.
    n_spurious_ : int
    spectrum_ : ndarray
        Strength of every direction, strongest first.
    rank_test_ : RankTest or None
        How ``n_spurious="auto"`` was decided.
    eraser_ : Eraser
    moments_ : Moments
        Of the features and, as last column, the target.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(
    ...     500, 4, n_invariant=3, n_spurious=2, task="regression", random_state=0
    ... )
    >>> reg = ISRRegressor().fit(data.X, data.y, environments=data.environments)
    >>> reg.n_spurious_, reg.coef_.shape
    (2, (5,))
    """

    __metadata_request__fit = {"environments": True}
    __metadata_request__partial_fit = {"environments": True}

    def __init__(
        self,
        n_spurious: int | str = "auto",
        *,
        rank_test: str = "moments",
        scale: float = 0.0,
        n_components: int | float | str | None = "auto",
        variant: str = "pooled",
        head: Any = "ridge",
        alpha: float = 1.0,
        group_weight: str | None = None,
        missing_environments: str = "raise",
    ) -> None:
        self.n_spurious = n_spurious
        self.rank_test = rank_test
        self.scale = scale
        self.n_components = n_components
        self.variant = variant
        self.head = head
        self.alpha = alpha
        self.group_weight = group_weight
        self.missing_environments = missing_environments

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        environments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the spurious subspace and fit the head on the rest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or :class:`isrlearn.core.Rows`, which are read some at a time, such as the X of
            ``isrlearn.io.read_table(path, stream=True)``.
        y : array-like of shape (n_samples,)
        environments : array-like of shape (n_samples,)
            Environment of each row; None or NaN where unknown: such rows train the head only.
        sample_weight : array-like of shape (n_samples,), optional
            Frequency weights.
        """
        recovery = self._recovery()
        X, y, environments, weight = self._rows(X, y, environments, sample_weight, reset=True)
        recovery.least(len(X), X.shape[1])
        moments = moments_for(X, None, environments, self._keep(), targets=y, sample_weight=weight)
        components = self._set(recovery.settled(moments, X, None, environments), moments)
        if _from_moments(self):
            return self._fold_moments(components)
        features = moments.columns(X.shape[1])
        coordinates = head_coordinates(features, self.eraser_, components)
        weights = cell_weights(moments, None, self.group_weight)
        weight = row_weights(moments, None, environments, weights, weight)
        fitted = fit_on_rows(self.head, in_memory(X, coordinates), y, weight)
        coef, intercept = coordinates.fold(np.ravel(fitted.coef_), np.ravel(fitted.intercept_)[0])
        self.coef_, self.intercept_ = coef, float(intercept)
        return self

    @available_if(_from_moments)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        environments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to those already seen; the same as one `fit` on all of them.

        With the "ridge" head or a given one. The model can predict as soon as two environments
        have been seen, and enough of them for `n_spurious`.
        """
        recovery = self._recovery()
        first = not hasattr(self, "moments_")
        X, y, environments, weight = self._rows(
            X, y, environments, sample_weight, reset=first, part=True
        )
        part = moments_for(X, None, environments, self._keep(), targets=y, sample_weight=weight)
        moments = part if first else self.moments_ + part
        self.moments_ = moments
        alone = len(moments.environments) < 2 and self.missing_environments == "single"
        if alone or recovery.ready(moments.columns(X.shape[1])):
            self._fold_moments(self._set(recovery, moments))
        return self

    @available_if(_from_moments)
    def fit_moments(self, moments: Moments) -> Self:
        """Fit from moments made elsewhere, the target their last column."""
        self._know_features(moments.n_features - 1)
        return self._fold_moments(self._set(self._recovery(), moments))

    def predict(self, X: Any) -> NDArray:
        """``X @ coef_ + intercept_``. No environments needed."""
        if hasattr(self, "moments_") and not hasattr(self, "coef_"):
            # Says which environments are still missing.
            self._recovery()(self.moments_.columns(self.n_features_in_))
        check_is_fitted(self, "coef_")
        return affine(self, X, self.coef_[:, None], np.array([self.intercept_]))[:, 0]

    def _recovery(self) -> Recovery:
        if isinstance(self.head, str):
            check.check_choice("head", self.head, ("ridge",))
        elif not isinstance(self.head, tuple) and not hasattr(self.head, "fit"):
            raise ValueError(
                "head must be 'ridge', a scikit-learn linear estimator or a pair "
                f"(coef, intercept); got {self.head!r}"
            )
        check.check_between("alpha", self.alpha, 0.0, np.inf)
        check_weights(None, self.group_weight)
        return Recovery.of(self, ("regression",), method="regression")

    def _keep(self) -> Keep:
        return "cell" if self.head == "ridge" and self.group_weight else "pooled"

    def _rows(
        self,
        X: Any,
        y: Any,
        environments: Any,
        sample_weight: Any,
        *,
        reset: bool,
        part: bool = False,
    ) -> tuple[NDArray, NDArray, NDArray, NDArray | None]:
        check.refuse_path(X)
        if isinstance(X, Rows):
            y = check.check_source(self, X, [] if y is None else y, reset=reset)
            y = check_array(y, ensure_2d=False, dtype="numeric", input_name="y")
        else:
            X, y = validate_data(
                self, X, y, reset=reset, dtype=[np.float64, np.float32], y_numeric=True
            )
        environments = check.check_environments(
            environments, len(X), self.missing_environments, part=part
        )
        return X, y, environments, check.check_sample_weight(sample_weight, len(X))

    def _set(self, recovery: Recovery, moments: Moments) -> NDArray | None:
        """Store what the moments say of the subspace; return the principal directions."""
        subspace, eraser, components = recovery(moments.columns(moments.n_features - 1))
        self._store(moments, subspace, eraser)
        return components

    def _fold_moments(self, components: NDArray | None) -> Self:
        """Set the head from the moments alone."""
        moments, d = self.moments_, self.moments_.n_features - 1
        if isinstance(self.head, tuple):
            coef, intercept = self.eraser_.fold(*check.check_head(self.head, None, d))
            self.coef_, self.intercept_ = coef, float(intercept[0])
            return self
        weights = cell_weights(moments, None, self.group_weight)
        weighted = moments if weights is None else moments.reweighted(*weights)
        coordinates = head_coordinates(moments.columns(d), self.eraser_, components)
        self.coef_, self.intercept_ = ridge_head(weighted, coordinates, alpha=self.alpha)
        return self
