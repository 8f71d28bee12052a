"""ISRTransformer: features without what changes between environments."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from isrlearn import validation as check
from isrlearn.core.moments import Moments
from isrlearn.core.rows import Rows
from isrlearn.estimators._reading import Reduction, read
from isrlearn.estimators._recovery import Recovered, Recovery

_METHODS = ("mean", "cov", "multiclass", "joint", "regression")


class ISRTransformer(Recovered, TransformerMixin, BaseEstimator):
    """Features with their spurious part scaled down or left out.

    Parameters
    ----------
    method : {"mean", "cov", "multiclass", "joint", "regression"}, default="mean"
        What is compared between environments: class means, class covariances, the means of all
        classes (Algorithm 3), means and covariances together (ours), or plain means
        ("regression": y is ignored and may be None).
    n_spurious : int or "auto", default="auto"
        Number of spurious dimensions; "auto" tests for it at level 0.01.
    rank_test : {"moments", "permutation"}, default="moments"
        How "auto" tests: against the Gaussian law, from moments alone, or against the
        environments permuted inside each class, for heavy-tailed features: covariances vary more
        there than the Gaussian law allows for.
    scale : float, default=0.0
        What is kept of the spurious part, from 0 (nothing) to 1 (all).
    n_components : int, float, "auto" or None, default="auto"
        Look for the subspace among that many principal components, or as many as hold that
        fraction of the variance. "auto": all features where there are twenty rows for each, else
        one component for twenty rows, 200 at most (none below 50), and all features with
        ``variant="paper"``. None: always all features.
    condition_on : label, optional
        The class whose moments "mean" and "cov" compare. Default: all classes; with
        ``variant="paper"`` and "mean", the last class.
    variant : {"pooled", "paper"}, default="pooled"
        Our pooled forms, or the published algorithms to the letter.
    output : {"same", "invariant"}, default="same"
        "same": all columns, spurious part scaled. "invariant": only the coordinates that are left
        (`scale` must be 0).
    missing_environments : {"raise", "single"}, default="raise"
        What to do when `fit` gets no environments: raise, or take all rows as one environment
        and remove nothing.

    Attributes
    ----------
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
    >>> from isrlearn import ISRTransformer
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(500, 3, n_invariant=3, n_spurious=2, random_state=0)
    >>> isr = ISRTransformer().fit(data.X, data.y, environments=data.environments)
    >>> isr.n_spurious_, isr.transform(data.X).shape == data.X.shape
    (2, True)
    """

    __metadata_request__fit = {"environments": True}

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
        output: str = "same",
        missing_environments: str = "raise",
    ) -> None:
        self.method = method
        self.n_spurious = n_spurious
        self.rank_test = rank_test
        self.scale = scale
        self.n_components = n_components
        self.condition_on = condition_on
        self.variant = variant
        self.output = output
        self.missing_environments = missing_environments

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        environments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the spurious subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Or :class:`isrlearn.core.Rows`, which are read some at a time, such as the X of
            ``isrlearn.io.read_table(path, stream=True)``.
        y : array-like of shape (n_samples,)
            Classes; ignored by ``method="regression"``.
        environments : array-like of shape (n_samples,)
            Environment of each row; None or NaN where unknown.
        sample_weight : array-like of shape (n_samples,), optional
            Frequency weights.
        """
        recovery = self._recovery()
        check.refuse_path(X)
        rows, y = self._rows(X, y, reset=True)
        n, d = rows.shape
        environments = check.check_environments(environments, n, self.missing_environments)
        weight = check.check_sample_weight(sample_weight, n)
        keep = recovery.least(n if weight is None else weight.sum(), d)
        moments, reduction = read(recovery, rows, y, environments, keep, weight)
        return self._set(recovery.settled(moments, rows, y, environments), moments, reduction)

    def fit_moments(self, moments: Moments) -> Self:
        """Find the spurious subspace from moments made elsewhere."""
        self._know_features(moments.n_features)
        return self._set(self._recovery(), moments)

    def transform(self, X: Any) -> NDArray:
        """X with its spurious part scaled, or its invariant coordinates."""
        check_is_fitted(self)
        check.refuse_path(X)
        if isinstance(X, Rows):
            check.check_source(self, X, None, reset=False)
            X = check_array(X[:], dtype=[np.float64, np.float32], input_name="X")
        else:
            X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        if self._invariant is None:
            return self.eraser_(X)
        return X @ self._invariant.astype(X.dtype)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names of the columns that `transform` returns."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self._invariant is None:
            return names
        return np.array([f"invariant{i}" for i in range(self._invariant.shape[1])], dtype=object)

    def _recovery(self) -> Recovery:
        check.check_choice("output", self.output, ("same", "invariant"))
        if self.output == "invariant" and self.scale != 0:
            raise ValueError(
                f"output='invariant' keeps nothing of the spurious part: scale must be 0, got "
                f"{self.scale!r}"
            )
        return Recovery.of(self, _METHODS)

    def _rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, NDArray | None]:
        """Checked rows; without classes where the method compares plain means."""
        if isinstance(X, Rows):
            classes = None if self.method == "regression" else [] if y is None else y
            labels = check.check_source(self, X, classes, reset=reset)
            if labels is not None:
                check.check_labels(labels)
                check_classification_targets(labels)
            return X, labels
        if self.method == "regression":
            return validate_data(self, X, reset=reset, dtype=[np.float64, np.float32]), None
        X, y = validate_data(self, X, y, reset=reset, dtype=[np.float64, np.float32])
        check.check_labels(y)
        check_classification_targets(y)
        return X, y

    def _set(
        self, recovery: Recovery, moments: Moments, reduction: Reduction | None = None
    ) -> Self:
        subspace, eraser, components = recovery(moments, reduction)
        self._store(moments, subspace, eraser)
        self._invariant = None
        if self.output == "invariant":
            span = np.eye(moments.n_features) if components is None else components
            # Functionals that vanish on the spurious basis: the complement is orthogonal to it
            # even where the erasure is oblique.
            spurious = subspace.basis.T @ span
            self._invariant = span @ linalg.null_space(spurious) if subspace.rank else span
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.method != "regression"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
