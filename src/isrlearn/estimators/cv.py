"""ISRClassifierCV and ISRRegressorCV: settings chosen by the worst group of held-out rows."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from isrlearn.estimators.classifier import ISRClassifier
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.linear import with_parameters
from isrlearn.estimators.pipeline import Fitter, Settings
from isrlearn.estimators.regressor import ISRRegressor
from isrlearn.estimators.search import Search, Split
from isrlearn.estimators.threshold import stand_ins, worst_group_shift


def _best_has(name: str) -> Any:
    """Whether the best estimator has a method; before the fit, whether it could."""
    return lambda self: hasattr(self.__dict__.get("best_estimator_", ISRClassifier()), name)


@with_parameters
class ISRClassifierCV(ClassifierMixin, Search):
    """ISRClassifier with the settings that do best in the worst group of held-out data.

    Every combination of the candidates is scored on the same splits; what the settings share on a
    split is computed once.

    Each of `method`, `n_spurious`, `scale`, `C`, `head` and `weights` is one value or a list of
    values to try. The other parameters are those of :class:`ISRClassifier` and are not varied.

    Parameters
    ----------
    method : str or list, default="mean"
        What is compared between environments, as in :class:`ISRClassifier`.
    n_spurious : int, "auto" or list, optional
        By default the tested number, and 1, 2, 4, 8 as far as the environments allow.
    scale : float or list, default=(0.0, 0.5, 1.0)
        1 removes nothing: the plain head is one of the candidates.
    C : float or list, default=(0.001, 0.01, 0.1, 1.0)
        Inverse penalty of the named heads. The features are whitened: a C far below 1 still
        leaves the coefficients nearly free.
    head : str, estimator, (coef, intercept) or list, default="logistic"
        Estimators and pairs are tried once, without C.
    weights : str, dict, None or list, default="auto"
        How the head treats classes and environments; "auto" compares classes inside environments
        and, if `scale` has 1 and the variant is "pooled", also tries class-balanced and
        group-balanced logistic regressions without removal.
    threshold : {"auto", "worst-group", None}, default="auto"
        "worst-group" adds to the intercepts what makes the worst group of the held-out rows do
        best: the smallest change within half a standard error of the best. "auto" does so if
        settings are selected by the worst group and every group has twenty rows or more; rows of
        other groups stand in for missing ones.
    n_components, variant, level, missing_environments
        As in `ISRClassifier`.
    selection : str, default="worst-group"
        What is compared: "worst-group", the accuracy of the class × environment where it is lowest;
        "average", that of all held-out rows; "leave-one-environment-out", that of each environment
        when it is held out and the others train (three are needed). Where a class has no row in an
        environment, or one row, which is never held out, its held-out rows of other environments
        stand in: their scores are moved as those of other classes are between the environments,
        and by a tenth of the way towards the other classes. If no class links the environments,
        only settings that remove everything found and give classes equal weight are compared.
        Groups of a few rows are shrunk to the accuracy of their class. The choice is the reference
        (half of what the test finds is removed, with the weights and the C of `ISRClassifier`)
        unless another setting is better by one standard error, or in any case where most
        environments are unknown. Where a removal would do harm (`held_out_` of `ISRClassifier`),
        settings that remove something are not tried. If settings differ in their penalty only, or
        none removes anything, the best one is the choice. Ties go to the setting that removes
        least, then to the one that weights rows least, then to the smallest C, then to the first.
    cv : int, splitter or iterable of (train, test), default=5
        Folds are stratified by class × environment. Not used with a validation set or with
        "leave-one-environment-out".
    n_jobs : int, optional
        Threads. The results are the same for any number of them.
    verbose : int, default=0
        1 draws a progress bar on a terminal, if rich is installed.
    random_state : int or RandomState, optional
        Shuffles the rows of each cell before they are assigned to folds; without it they are
        assigned in their order.

    Attributes
    ----------
    best_estimator_ : ISRClassifier
        With the best settings, fitted on all the rows given to `fit`.
    best_params_ : dict
        ``ISRClassifier(**best_params_)`` has these settings.
    best_score_ : float
        Score of the best setting by the selection rule on the held-out rows of all splits
        together. (A mean of the splits' worst groups would be too low.) It was chosen for its
        score, so evaluate it on new rows.
    best_index_ : int
        Row of `cv_results_`.
    cv_results_ : dict
        As in scikit-learn's searches, with `mean_worst_group` and `mean_average` of every
        setting and their values on each split. See also `trade_off`.
    n_splits_ : int
        Number of splits.
    selection_ : str
        The selection rule.
    threshold_ : ndarray of shape (1,) or (n_classes,)
        What was added to the intercepts of `best_estimator_`.
    classes_, coef_, intercept_ : ndarray
        Of the best estimator.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features; their names, if X was a data frame.

    Examples
    --------
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn import ISRClassifierCV
    >>> data = make_gaussian_environments(300, 4, n_invariant=3, n_spurious=2, random_state=0)
    >>> search = ISRClassifierCV(n_spurious=[0, 2], scale=0.0)
    >>> search.fit(data.X, data.y, data.environments).n_splits_
    5
    >>> len(search.cv_results_["params"]), sorted(search.best_params_)[:2]
    (8, ['C', 'head'])
    """

    _base = ISRClassifier
    _penalty, _target = "C", "classes"

    method: Any = "mean"
    _: KW_ONLY
    n_spurious: Any = None
    scale: Any = (0.0, 0.5, 1.0)
    C: Any = (0.001, 0.01, 0.1, 1.0)
    head: Any = "logistic"
    weights: Any = "auto"
    threshold: str | None = "auto"
    n_components: int | float | str | None = "auto"
    variant: str = "pooled"
    level: float = 0.01
    missing_environments: str = "raise"
    selection: str = "worst-group"
    cv: Any = 5
    n_jobs: int | None = None
    verbose: int = 0
    random_state: Any = None

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Any, environments: Any = None) -> NDArray:
        """Decision function of the best estimator; environments, if known, as in its own."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X, environments)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any, environments: Any = None) -> NDArray:
        """Probability of each class, by the best estimator; environments, if known, as there."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X, environments)

    @available_if(_best_has("predict_log_proba"))
    def predict_log_proba(self, X: Any, environments: Any = None) -> NDArray:
        """Logarithm of `predict_proba`."""
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X, environments)

    @property
    def classes_(self) -> NDArray:
        """Names of the classes, sorted."""
        return self.best_estimator_.classes_

    def _values(self, outputs: NDArray, held_out: Sample, classes: NDArray) -> NDArray:
        two = outputs.shape[1] == 1
        codes = (outputs[:, 0] > 0).astype(int) if two else outputs.argmax(axis=1)
        hits = classes[codes] == held_out.cells.classes[held_out.cells.k]
        return hits.astype(float)

    def _choose_threshold(
        self, splits: Sequence[Split], settings: Settings, missing: NDArray, *, reliable: bool
    ) -> None:
        """Add to the intercepts of the best estimator what the worst group gains by."""
        best = self.best_estimator_
        self.threshold_ = np.zeros(len(best.intercept_))
        names = splits[0][1].cells.classes
        whole = all(np.array_equal(train.cells.classes, names) for train, _ in splits)
        if self.threshold is None or not whole or (self.threshold == "auto" and not reliable):
            return
        scores, parts = [], []
        for train, held_out in splits:
            fitted: Any = Fitter(train, [settings], clip=True).fit(settings)
            scores.append(held_out.X @ fitted.coef.T + fitted.intercept)
            parts.append(held_out.cells)
        k, e = (np.concatenate([getattr(cells, name) for cells in parts]) for name in "ke")
        values, cells = np.vstack(scores), replace(parts[0], k=k, e=e)
        if missing.any():
            values, cells = stand_ins(values, cells, missing)
        self.threshold_ = worst_group_shift(values, cells)
        best.intercept_ = best.intercept_ + self.threshold_


@with_parameters
class ISRRegressorCV(RegressorMixin, Search):
    """ISRRegressor with the settings that do best in held-out environments.

    The search of :class:`ISRClassifierCV`, for regression. Each of `n_spurious`, `compare`,
    `scale`, `alpha`, `head` and `weights` is one value or a list of values to try. The best ridge
    regression without removal and weights is kept unless another setting is better by more than
    two standard errors over the splits (the best of many is better than one by chance).

    Parameters
    ----------
    n_spurious
        As in `ISRClassifierCV`.
    compare : {"means", "given-target"} or list, optional
        By default both; in the published variants, "means".
    scale : float or list, default=(0.0, 0.25, 0.5, 1.0)
        As in `ISRClassifierCV`.
    alpha : float or list, default=(0.1, 1.0, 10.0, 100.0, 1000.0)
        Penalty of the ridge head.
    head : str, estimator, (coef, intercept) or list, default="ridge"
        Estimators and pairs are tried once, without alpha.
    weights : str, None or list, default=(None, "group")
        Weights of the rows for the head.
    n_components, variant, level, missing_environments
        As in `ISRRegressor`.
    selection : str, default="auto"
        Root mean squared errors with a minus sign are compared: of the worst environment
        ("worst-group"), of all rows ("average"), or of each environment when it is held out and
        the others train ("leave-one-environment-out"; with more than twenty, a twentieth at a
        time). "auto" is the last one if there are three environments, no validation set and no
        splitter as `cv`, and else "worst-group". Ties are broken as in `ISRClassifierCV`, with
        the largest alpha instead of the smallest C.
    cv, n_jobs, verbose, random_state
        As in `ISRClassifierCV`; folds are stratified by environment.

    Attributes
    ----------
    best_estimator_ : ISRRegressor
        With the best settings, fitted on all the rows given to `fit`.
    best_params_, best_score_, best_index_, cv_results_, n_splits_
        As in `ISRClassifierCV`; scores are not positive.
    selection_ : str
        The selection rule that was used.
    coef_, intercept_ : ndarray and float
        Of the best estimator.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features; their names, if X was a data frame.

    Examples
    --------
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn import ISRRegressorCV
    >>> data = make_gaussian_environments(
    ...     300, 4, n_invariant=3, n_spurious=2, task="regression", random_state=0
    ... )
    >>> search = ISRRegressorCV(n_spurious=[0, 2]).fit(data.X, data.y, data.environments)
    >>> search.selection_, search.n_splits_
    ('leave-one-environment-out', 4)
    """

    _base = ISRRegressor
    _penalty, _target = "alpha", "numbers"

    n_spurious: Any = None
    _: KW_ONLY
    compare: Any = None
    scale: Any = (0.0, 0.25, 0.5, 1.0)
    alpha: Any = (0.1, 1.0, 10.0, 100.0, 1000.0)
    head: Any = "ridge"
    weights: Any = (None, "group")
    n_components: int | float | str | None = "auto"
    variant: str = "pooled"
    level: float = 0.01
    missing_environments: str = "raise"
    selection: str = "auto"
    cv: Any = 5
    n_jobs: int | None = None
    verbose: int = 0
    random_state: Any = None

    def _values(self, outputs: NDArray, held_out: Sample, classes: NDArray) -> NDArray:
        return -np.square(outputs - held_out.target, dtype=float)

    def _score(self, means: NDArray) -> NDArray:
        return -np.sqrt(-means)
