"""What linear models share: fits from rows, parts of rows or moments, and predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from isrlearn import validation as check
from isrlearn.core.methods import METHODS
from isrlearn.core.moments import Moments
from isrlearn.engine import SparseRows, row_blocks
from isrlearn.estimators.heads import HEADS, MomentSample, Sample
from isrlearn.estimators.pipeline import Settings, fit

Estimator = TypeVar("Estimator", bound=type)

#: Rows of a cell that count as many as those it has, when an environment gets its own intercept.
_PRIOR = 10.0


def affine(X: Any, coef: NDArray, intercept: Any) -> NDArray[np.float64]:
    """``X @ coef + intercept`` (n, m), in float64: far from the origin, large terms cancel."""
    if isinstance(X, SparseRows):
        return X @ coef + intercept
    out = np.empty((X.shape[0], coef.shape[1]))
    for rows, block in row_blocks(X):
        out[rows] = block.astype(np.float64, copy=False) @ coef + intercept
    bad = np.flatnonzero(~np.isfinite(out).all(axis=1))
    if len(bad):
        raise ValueError(f"X contains NaN or infinity in row {bad[0]}; drop or impute such rows")
    return out


def own_intercepts(moments: Moments, coef: NDArray) -> NDArray[np.float64]:
    r"""What to add to the scores (m,) of rows of each environment, (E, m), where it is known.

    The mean score of a class in an environment differs from that of the class by
    :math:`w^\top (\mu_{ke} - \mu_k)`; the mean over the classes seen there is subtracted. A cell of
    n rows counts as n / (n + 10): one of a few rows says little.

    Examples
    --------
    >>> moments = Moments.population([[[0.0], [2.0]], [[1.0], [3.0]]], [[1.0]])
    >>> own_intercepts(moments, np.ones((1, 1))).ravel().tolist()
    [1.0, -1.0]
    """
    count, mean = moments.count, moments.mean[..., : coef.shape[1]]
    trust = count / (count + _PRIOR) if moments.ddof else count > 0  # a population is certain
    whole = np.einsum("ke,ked->kd", count, mean) / np.maximum(count.sum(axis=1), 1e-300)[:, None]
    shift = trust[..., None] * (mean - whole[:, None]) @ coef.T  # (K, E, m)
    return -shift.sum(axis=0) / np.maximum(np.count_nonzero(count, axis=0), 1)[:, None]


def check_precision(estimator: Any, coef: NDArray, intercept: NDArray, dtype: Any) -> None:
    """Raise if ``x @ coef.T + intercept`` in this precision differs from the estimator's scores."""
    # Far from the origin large terms cancel; a hundredth of a logit, or of the target's standard
    # deviation (as far as the moments show it), may be lost.
    terms = np.abs(coef) @ np.abs(estimator.eraser_.center) + np.abs(intercept)
    lost, size = float(np.finfo(dtype).eps * np.max(terms)), 1.0
    if not hasattr(estimator, "classes_"):
        moments = estimator.moments_
        shifts = moments.mean_shifts()[:, -1]
        spread = shifts @ shifts if moments.scatter is None else moments.total_scatter()[-1, -1]
        dof = len(shifts) - 1 if moments.scatter is None else moments.total[0]
        size = float(np.sqrt(spread / max(dof, 1)))
    if lost > 0.01 * size:
        raise ValueError(
            f"{np.dtype(dtype).name} weights would round the outputs by about {lost:.2g}: the "
            "features or the target lie too far from zero. Use float64, or subtract a constant"
        )


def _from_moments(self: Streaming) -> bool:
    """Whether the head needs moments alone, so that data may come in parts."""
    if isinstance(self.head, str):
        return self.head in HEADS and not HEADS[self.head].needs_rows
    return isinstance(self.head, tuple)


@dataclass_transform(eq_default=False)
def with_parameters(estimator: Estimator) -> Estimator:
    """The class with an `__init__` whose parameters are its annotated attributes.

    It is not a dataclass afterwards: a fit adds attributes that are not fields, and libraries such
    as Dask take dataclasses with equal fields for equal.
    """
    made: Any = dataclass(eq=False, repr=False)(estimator)
    del made.__dataclass_fields__, made.__dataclass_params__
    return made


class Streaming(check.SparseInput):
    """Fits: from rows, from rows that come in parts, or from moments that were summed elsewhere."""

    __metadata_request__fit = {"environments": True, "clusters": True}
    __metadata_request__partial_fit = {"environments": True}

    head: Any
    missing_environments: str
    variant: str
    moments_: Moments
    #: What y is, "classes" or "numbers", and the legal values of parameters that are words.
    _target: ClassVar[str]
    _choices: ClassVar[dict[str, Sequence[object]]]

    @check.all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        environments: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Find the spurious subspace and fit the head on the rest.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, or `isrlearn.engine.Rows` that are read block by block.
        y : array-like of shape (n_samples,)
            Classes, or the target of a regression.
        environments : array-like of shape (n_samples,)
            Environment of each row; None or NaN where it is unknown: such rows train the head only.
        sample_weight : array-like of shape (n_samples,), optional
            Frequency weights: a row of weight 3 counts as three rows, in the rank test too.
        clusters : array-like of shape (n_samples,), optional
            What rows have in common, such as their patient or video: the rank test then counts
            clusters, not rows.
        """
        settings = self._settings()
        rows, target, cells, weight = check.check_rows(
            self, X, y, environments, sample_weight, target=self._target, clusters=clusters
        )
        if self._target == "classes":
            check.check_classes(cells.classes, np.bincount(cells.k, weight))
        return fit(settings, Sample(rows, cells, target, weight)).store(self)

    def _settings(self) -> Settings:
        """The parameters, checked; those of the head in place of "auto"."""
        task = "classification" if self._target == "classes" else "regression"
        heads = [name for name, head in HEADS.items() if head.task == task]
        methods = [name for name, method in METHODS.items() if method.uses_classes]
        check.check_parameters(self, head=heads, method=methods, **self._choices)
        given: dict[str, Any] = self.get_params(deep=False)  # type: ignore[attr-defined]
        del given["missing_environments"]
        head, pooled = given["head"], given["variant"] == "pooled"
        named = HEADS[head] if pooled and isinstance(head, str) else None
        if given["weights"] == "auto":
            weighted = pooled and has_fit_parameter(head, "sample_weight")
            given["weights"] = named.weights if named else "group" if weighted else None
        if given["weights"] == "within" and named is not HEADS["logistic"]:
            raise ValueError(
                f"weights='within' needs head='logistic' and variant='pooled'; with head={head!r} "
                f"and variant={self.variant!r} use weights='group'"
            )
        C = given.pop("C", "auto")
        usual = named.penalty if named else 1.0
        penalty: Any = given.pop("alpha", usual if isinstance(C, str) else 1.0 / C)
        return Settings(penalty=penalty, **given)

    @available_if(_from_moments)
    @check.all_or_nothing
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        environments: ArrayLike | None = None,
        *,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add rows to those already seen; the result equals one `fit` on all of them.

        Available with heads that need moments only. The model can predict as soon as one class
        was seen in two environments, and in enough of them for `n_spurious`. `classes` is
        accepted as in scikit-learn, and not needed.
        """
        settings, first = self._settings(), not hasattr(self, "moments_")
        how: dict[str, Any] = {"target": self._target, "reset": first, "part": True}
        rows, target, cells, weight = check.check_rows(
            self, X, y, environments, sample_weight, **how
        )
        sample = Sample(rows, cells, target, weight)
        # How many rows the whole has is not known before its last part: keep a scatter.
        keep = settings.keep(np.inf, *sample.size[1:])
        moments = sample.moments("pooled" if keep == "mean" else keep)
        if not first and self.moments_.scatter is None:
            raise ValueError(
                "partial_fit needs second moments, and this model has means only: start with "
                "partial_fit instead of fit, and keep the model as a pickle, not as a model file"
            )
        moments = moments if first else self.moments_ + moments
        self.moments_, self.environments_ = moments, moments.environments
        self.__dict__.pop("coef_", None)
        if self._target == "classes":
            self.classes_ = moments.classes
        try:
            return self._fit_moments(settings, moments)
        except check.IncompleteDataError as error:
            self._missing_ = str(error)  # the moments are kept, without a head
        return self

    @available_if(_from_moments)
    @check.all_or_nothing
    def fit_moments(self, moments: Moments) -> Self:
        """Fit from moments computed elsewhere; of a regression with the target as last column."""
        check.know_features(self, moments.n_features - (self._target == "numbers"))
        return self._fit_moments(self._settings(), moments, few=True)

    def _fit_moments(self, settings: Settings, moments: Moments, *, few: bool = False) -> Self:
        """Fit from moments, which may be of a `few` environments only."""
        names = moments.environments.tolist()
        if self._target == "classes":
            check.check_classes(moments.classes, moments.by_class[0])
        if len(names) < 2 and not few and self.missing_environments != "single":
            raise check.IncompleteDataError(
                f"ISR compares environments and needs at least two; known so far: {names}"
            )
        d = moments.n_features - (self._target == "numbers")
        return fit(settings, MomentSample(moments, d)).store(self)


def scores(estimator: Any, X: Any, environments: Any) -> NDArray[np.float64]:
    """``X @ coef_.T + intercept_`` (n, m), and what the environments add that were in the fit."""
    if hasattr(estimator, "_missing_"):
        raise ValueError(f"the rows seen so far are not enough to predict: {estimator._missing_}")
    check_is_fitted(estimator, "coef_")
    coef = np.atleast_2d(estimator.coef_)
    found = affine(check.check_features(estimator, X), coef.T, estimator.intercept_)
    if environments is None:
        return found
    if not hasattr(estimator, "moments_"):
        raise ValueError(f"{type(estimator).__name__} has no intercepts of environments: omit them")
    given = check.check_environments(environments, len(found)).astype(object)
    moments = estimator.moments_
    if moments.n_features > coef.shape[1]:  # the last column is the target
        coef = np.column_stack([coef, -np.ones(len(coef))])
    added = np.vstack([own_intercepts(moments, coef), np.zeros(len(coef))])
    names = {name: i for i, name in enumerate(moments.environments.tolist())}
    return found + added[[names.get(name, -1) for name in given.tolist()]]


def _has_probabilities(self: LinearScores) -> bool:
    return isinstance(self.head, str | tuple | LogisticRegression)


class LinearScores(check.SparseInput):
    """Predictions of a classifier whose decision function is an affine map of the features."""

    head: Any
    classes_: NDArray

    def decision_function(self, X: Any, environments: Any = None) -> NDArray:
        """``X @ coef_.T + intercept_``: (n,) for two classes, else (n, n_classes).

        Environments are not needed. If they are given, a row of an environment that was seen in
        the fit gets the intercept of that environment; None and new environments do not.
        """
        found = scores(self, X, environments)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Any, environments: Any = None) -> NDArray:
        """Class of each row; `environments` as in `decision_function`, if they are known."""
        codes = self._logits(X, environments).argmax(axis=1)
        return self.classes_[codes]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any, environments: Any = None) -> NDArray:
        """Probability of each class."""
        return softmax(self._logits(X, environments), axis=1)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any, environments: Any = None) -> NDArray:
        """Logarithm of `predict_proba`, finite where that has underflowed to zero."""
        logits = self._logits(X, environments)
        probability = softmax(logits, axis=1)
        return np.log(probability, out=log_softmax(logits, axis=1), where=probability > 0)

    def _logits(self, X: Any, environments: Any = None) -> NDArray:
        """One score per class, (n, n_classes); that of the first of two classes is zero."""
        found = self.decision_function(X, environments)
        return found if found.ndim == 2 else np.column_stack([np.zeros(len(found)), found])
