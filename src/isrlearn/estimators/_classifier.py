"""ISRClassifier: a linear classifier on what stays the same between environments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from isrlearn import validation as check
from isrlearn.core._range import CentredRows
from isrlearn.core.heads import head_coordinates, lda_head, standardising_coordinates
from isrlearn.core.moments import Moments
from isrlearn.core.rows import Rows
from isrlearn.estimators._heads import (
    cell_weights,
    check_weights,
    fit_head,
    is_lean,
    row_weights,
)
from isrlearn.estimators._reading import Keep, Reduction, moments_for, read
from isrlearn.estimators._recovery import Recovered, Recovery
from isrlearn.estimators._scores import LinearScores

_METHODS = ("mean", "cov", "multiclass", "joint")


def _from_moments(self: ISRClassifier) -> bool:
    """Whether the head needs moments alone, so that data may come in parts."""
    return isinstance(self.head, tuple) or self.head == "lda"


class ISRClassifier(LinearScores, Recovered, ClassifierMixin, BaseEstimator):
    """Linear classifier that leaves out what changes between environments.

    Finds the directions along which the features of a class move between environments, takes
    them out, and fits a linear head on the rest. Everything folds into one affine map of the
    original features: ``X @ coef_.T + intercept_`` is the decision function.

    Parameters
    ----------
    method : {"mean", "cov", "multiclass", "joint"}, default="mean"
        What is compared between environments: the means of a class (ISR-Mean), its covariances
        (ISR-Cov), the means of all classes (ISR-Multiclass; the same as "mean" in the pooled
        variant), or means and covariances together (ours, "joint").
    n_spurious : int or "auto", default="auto"
        Number of spurious dimensions. "auto" tests for it at level 0.01.
    rank_test : {"moments", "permutation"}, default="moments"
        How "auto" tests: against the Gaussian law, from moments alone, or against the
        environments permuted inside each class, for heavy-tailed features: covariances vary more
        there than the Gaussian law allows for.
    scale : float, default=0.0
        What is kept of the spurious part, from 0 (nothing) to 1 (all).
    n_components : int, float, "auto" or None, default="auto"
        Reduce to that many principal components first, or as many as hold that fraction of the
        variance. "auto": all features where there are twenty rows for each, else one component for
        twenty rows, 200 at most (none below 50), and all features with ``variant="paper"``. None:
        always all features.
    condition_on : label, optional
        The class whose moments "mean" and "cov" compare. Default: all classes; with
        ``variant="paper"`` the last class for "mean", all in the flag mean for "cov".
    variant : {"pooled", "paper"}, default="pooled"
        Our pooled forms, or the published algorithms to the letter.
    head : {"logistic", "lda"}, linear estimator or (coef, intercept), default="logistic"
        What is fitted on the rest. A pair adapts a trained network's last layer: nothing is
        fitted, the removal is folded into it; its rows follow the sorted classes.
    C : float, default=1.0
        Inverse penalty of the logistic head, on whitened (or, with few rows a feature,
        standardised) features.
    shrinkage : float, default=0.0
        Of the "lda" head's covariance, in [0, 1].
    class_weight : "balanced" or dict, optional
        Weights of the classes for the head.
    group_weight : "balanced", optional
        Weigh every class in every environment the same for the head, as the paper's reweighting.
    missing_environments : {"raise", "single"}, default="raise"
        What to do when `fit` gets no environments: raise, or take all rows as one environment
        and remove nothing.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Head in the original features, everything folded in.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
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
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(500, 4, n_invariant=3, n_spurious=2, random_state=0)
    >>> clf = ISRClassifier().fit(data.X, data.y, environments=data.environments)
    >>> clf.n_spurious_, clf.coef_.shape
    (2, (1, 5))
    """

    __metadata_request__fit = {"environments": True}
    __metadata_request__partial_fit = {"environments": True}

    def __init__(
        self,
        method: str = "mean",
        *,
        n_spurious: int | str = "auto",
        rank_test: str = "moments",
        scale: float = 0.0,
        n_components: int | float | str | None = "auto",
        condition_on: Any = None,
        variant: str = "pooled",
        head: Any = "logistic",
        C: float = 1.0,
        shrinkage: float = 0.0,
        class_weight: Any = None,
        group_weight: str | None = None,
        missing_environments: str = "raise",
    ) -> None:
        self.method = method
        self.n_spurious = n_spurious
        self.rank_test = rank_test
        self.scale = scale
        self.n_components = n_components
        self.condition_on = condition_on
        self.variant = variant
        self.head = head
        self.C = C
        self.shrinkage = shrinkage
        self.class_weight = class_weight
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
        n = float(len(X) if weight is None else weight.sum())
        keep = self._keep(recovery, n, X.shape[1])
        if _from_moments(self):
            moments = moments_for(X, y, environments, keep, sample_weight=weight)
            components = self._set(recovery.settled(moments, X, y, environments), moments)
            return self._fold_moments(components)
        lean = is_lean(self.head, self.C, n, X.shape[1])
        moments, reduction = read(recovery, X, y, environments, keep, weight, lean=lean)
        recovery = recovery.settled(moments, X, y, environments)
        components = self._set(recovery, moments, reduction)
        weights = cell_weights(moments, self.class_weight, self.group_weight)
        own = row_weights(moments, y, environments, weights, weight)
        if reduction is not None:
            return self._fit_on_components(*reduction, y, own)
        if moments.scatter is None:
            rows, dof = CentredRows(X, self.eraser_.center, weight), moments.total()[0] - 1
            coordinates = standardising_coordinates(rows, max(dof, 1.0), self.eraser_)
        else:
            coordinates = head_coordinates(moments, self.eraser_, components)
        self.coef_, self.intercept_ = fit_head(self.head, X, y, moments, coordinates, self.C, own)
        return self

    def _fit_on_components(
        self, components: Any, moments: Moments, rows: Any, y: NDArray, weight: NDArray | None
    ) -> Self:
        """Fit the head on rows that are reduced already."""
        coordinates = head_coordinates(moments, self.eraser_.on(components))
        coef, intercept = fit_head(self.head, rows, y, moments, coordinates, self.C, weight)
        self.coef_ = coef @ components.T
        self.intercept_ = intercept - self.coef_ @ self.eraser_.center
        return self

    @available_if(_from_moments)
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        *,
        environments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to those already seen; the same as one `fit` on all of them.

        With the "lda" head or a given one. The model can predict as soon as the classes that are
        compared were seen in every environment, and environments enough for `n_spurious`.
        `classes` is accepted as scikit-learn does and not needed.
        """
        recovery = self._recovery()
        first = not hasattr(self, "moments_")
        X, y, environments, weight = self._rows(
            X, y, environments, sample_weight, reset=first, part=True
        )
        # Which scatter the whole will need is not known before its last part: keep the most that
        # any size could ask for.
        keep: Keep = "cell" if self._keep(recovery, np.inf, X.shape[1]) == "cell" else "pooled"
        if not first and self.moments_.scatter is None:
            keep = "mean"  # all that a `fit` before this one needed
        part = moments_for(X, y, environments, keep, sample_weight=weight)
        moments = part if first else self.moments_ + part
        if moments.scatter is None and self._keep(recovery, moments.total()[0], X.shape[1]) != keep:
            raise ValueError(
                f"the {moments.total()[0]:g} rows together need second moments, and those of the "
                "fit before kept means only; begin with partial_fit instead of fit"
            )
        self.moments_ = moments
        self.classes_, self.environments_ = moments.classes, moments.environments
        alone = len(moments.environments) < 2 and self.missing_environments == "single"
        if len(moments.classes) > 1 and (alone or recovery.ready(moments)):
            return self._fold_moments(self._set(recovery, moments))
        self.__dict__.pop("coef_", None)  # of fewer classes or environments than are known now
        return self

    @available_if(_from_moments)
    def fit_moments(self, moments: Moments) -> Self:
        """Fit from moments made elsewhere, with the "lda" head or a given one."""
        self._know_features(moments.n_features)
        return self._fold_moments(self._set(self._recovery(), moments))

    def _recovery(self) -> Recovery:
        if isinstance(self.head, str):
            check.check_choice("head", self.head, ("logistic", "lda"))
        elif not isinstance(self.head, tuple) and not hasattr(self.head, "fit"):
            raise ValueError(
                "head must be 'logistic', 'lda', a scikit-learn linear estimator or a pair "
                f"(coef, intercept); got {self.head!r}"
            )
        check.check_between("C", self.C, np.finfo(float).tiny, np.inf)
        check.check_between("shrinkage", self.shrinkage, 0.0, 1.0)
        check_weights(self.class_weight, self.group_weight)
        return Recovery.of(self, _METHODS)

    def _keep(self, recovery: Recovery, n: float, n_features: int) -> Keep:
        """The least the moments must keep, for the subspace and the head together."""
        least = recovery.least(n, n_features)
        if self.head == "lda" and (self.class_weight or self.group_weight):
            return "cell"
        return "pooled" if least == "mean" and not isinstance(self.head, tuple) else least

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
            y = np.asarray(check.check_source(self, X, [] if y is None else y, reset=reset))
        else:
            X, y = validate_data(self, X, y, reset=reset, dtype=[np.float64, np.float32])
        check.check_labels(y)
        check_classification_targets(y)
        environments = check.check_environments(
            environments, len(X), self.missing_environments, part=part
        )
        return X, y, environments, check.check_sample_weight(sample_weight, len(X))

    def _set(
        self, recovery: Recovery, moments: Moments, reduction: Reduction | None = None
    ) -> NDArray | None:
        """Store what the moments say of the subspace; return the principal directions."""
        check.check_classes(moments)
        subspace, eraser, components = recovery(moments, reduction)
        self._store(moments, subspace, eraser)
        self.classes_ = moments.classes
        return components

    def _fold_moments(self, components: NDArray | None) -> Self:
        """Set the head from the moments alone."""
        moments = self.moments_
        if isinstance(self.head, tuple):
            head = check.check_head(self.head, len(self.classes_), moments.n_features)
            self.coef_, self.intercept_ = self.eraser_.fold(*head)
            return self
        weights = cell_weights(moments, self.class_weight, self.group_weight)
        weighted = moments if weights is None else moments.reweighted(*weights)
        coordinates = head_coordinates(moments, self.eraser_, components)
        self.coef_, self.intercept_ = lda_head(weighted, coordinates, shrinkage=self.shrinkage)
        return self

    def _check_fitted(self) -> None:
        if hasattr(self, "moments_") and not hasattr(self, "coef_"):
            self._recovery()(self.moments_)  # says which rows are still missing
        super()._check_fitted()
