"""ISRTransformer: features without what shifts between environments."""

from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, check_array
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from isrlearn import validation as check
from isrlearn.core.methods import METHODS
from isrlearn.core.moments import Moments
from isrlearn.engine import Rows
from isrlearn.estimators.heads import MomentSample, Sample
from isrlearn.estimators.linear import affine, with_parameters
from isrlearn.estimators.pipeline import Fitted, Settings, fit

#: Most numbers in a dense array made of sparse rows, or of rows that are read block by block.
_MOST = 1 << 30


@with_parameters
class ISRTransformer(TransformerMixin, check.SparseInput, BaseEstimator):
    """Features with their spurious part scaled down or removed.

    Parameters
    ----------
    method : {"mean", "cov", "multiclass", "joint", "regression"}, default="mean"
        What is compared between environments: class means, class covariances, the means of all
        classes (Algorithm 3), means and covariances together (ours), or the means of all rows
        ("regression": y is ignored and may be None).
    n_spurious, level, scale, n_components, variant
        As in `ISRClassifier`.
    output : {"same", "invariant"}, default="same"
        "same": all columns, with the spurious part scaled; in the published variants with
        `n_components`, the principal components instead. "invariant": only the coordinates that
        are left (`scale` must be 0).
    missing_environments
        As in `ISRClassifier`.

    Attributes
    ----------
    environments_, spurious_basis_, n_spurious_, spectrum_, rank_test_, eraser_, moments_
        As in `ISRClassifier`.
    n_features_in_, feature_names_in_
        As in `ISRClassifier`.

    Examples
    --------
    >>> from isrlearn import ISRTransformer
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> data = make_gaussian_environments(500, 3, n_invariant=3, n_spurious=2, random_state=0)
    >>> isr = ISRTransformer().fit(data.X, data.y, environments=data.environments)
    >>> isr.n_spurious_, isr.transform(data.X).shape == data.X.shape
    (2, True)
    """

    method: str = "mean"
    _: KW_ONLY
    n_spurious: int | str = "auto"
    level: float = 0.01
    scale: float = 0.0
    n_components: int | float | str | None = "auto"
    variant: str = "pooled"
    output: str = "same"
    missing_environments: str = "raise"

    __metadata_request__fit = {"environments": True, "clusters": True}

    @check.all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None = None,
        environments: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Find the spurious subspace.

        Parameters
        ----------
        X, y, environments, sample_weight, clusters
            As in `ISRClassifier.fit`; y is ignored by ``method="regression"``.
        """
        settings = self._settings()
        target = "classes" if METHODS[self.method].uses_classes else None
        X, _, cells, weight = check.check_rows(
            self, X, y, environments, sample_weight, target=target, clusters=clusters
        )
        return self._store(fit(settings, Sample(X, cells, weight=weight)))

    @check.all_or_nothing
    def fit_moments(self, moments: Moments) -> Self:
        """Find the spurious subspace from moments computed elsewhere."""
        check.know_features(self, moments.n_features)
        return self._store(fit(self._settings(), MomentSample(moments, moments.n_features)))

    def transform(self, X: Any) -> NDArray:
        """X with its spurious part scaled, or its invariant coordinates."""
        check_is_fitted(self)
        X = check.check_features(self, X)
        if self._map is not None:
            return affine(X, *self._map).astype(X.dtype)
        if isinstance(X, Rows):
            if X.shape[0] * X.shape[1] > _MOST:
                raise ValueError(
                    f"the result is dense, {X.shape[0]} × {X.shape[1]} numbers: transform fewer "
                    "rows at a time, or use output='invariant' with n_components"
                )
            X = check_array(X[:], dtype=check.FLOATS, input_name="X")
        return self.eraser_(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Names of the columns that `transform` returns."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self._map is None:
            return names
        name = "invariant" if self.output == "invariant" else "component"
        return np.array([f"{name}{i}" for i in range(self._map[0].shape[1])], dtype=object)

    def affine_map(self) -> tuple[NDArray, NDArray]:
        """Coefficients (m, d) and intercepts (m,) of what `transform` does to a row."""
        check_is_fitted(self)
        if self._map is None:
            return self.eraser_.fold(np.eye(self.n_features_in_), 0.0)
        return np.ascontiguousarray(self._map[0].T), self._map[1]

    def _settings(self) -> Settings:
        """The parameters, checked."""
        check.check_parameters(self, method=tuple(METHODS))
        if self.output == "invariant" and self.scale != 0:
            raise ValueError(
                f"output='invariant' keeps nothing of the spurious part: scale must be 0, got "
                f"{self.scale!r}"
            )
        given = self.get_params(deep=False)
        del given["output"], given["missing_environments"]
        return Settings(**given)

    def _store(self, fitted: Fitted) -> Self:
        components, basis = fitted.components, fitted.subspace.basis
        columns, center = None, np.zeros(len(basis))
        if components is not None and self.variant != "pooled":
            center = fitted.eraser.center
            columns = fitted.eraser.fold(components.T, 0.0)[0].T
        if self.output == "invariant":
            span = np.eye(len(basis)) if components is None else components
            # Functionals that vanish on the spurious basis: the complement is orthogonal to it
            # even where the erasure is oblique.
            columns = span @ linalg.null_space(basis.T @ span) if basis.shape[1] else span
        self._map = None if columns is None else (columns, -center @ columns)
        return fitted.store(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.method != "regression"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
