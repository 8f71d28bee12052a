"""ISRClassifierCV: an ISRClassifier whose settings are chosen by its worst group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from isrlearn import validation as check
from isrlearn.core.labels import encode
from isrlearn.estimators import ISRClassifier
from isrlearn.estimators.search._base import Search
from isrlearn.estimators.search._classification import Classification
from isrlearn.estimators.search._grid import candidates, counts, dimensions, points_of
from isrlearn.estimators.search._splits import Sample, Split, cells_of

_SECOND_ORDER = ("cov", "joint")


def _best_has(name: str) -> Any:
    """Whether the best estimator has a method; before the fit, whether it could."""
    return lambda self: hasattr(self.__dict__.get("best_estimator_", ISRClassifier()), name)


class ISRClassifierCV(ClassifierMixin, Search):
    """ISRClassifier with the settings that do best in the worst group of held-out data.

    Every combination of the candidates is scored on the same splits. A split needs one set of
    moments and one projection of its rows for all of them: what is erased changes the rows by a
    matrix of low rank, and the penalties are a path on which each fit starts at the last one.

    Each of `method`, `n_spurious`, `scale`, `C`, `head` and `weighting` is one value or a list of
    values to try. The other parameters are those of :class:`ISRClassifier` and are not varied.

    Parameters
    ----------
    method : str or list, default="mean"
    n_spurious : int, "auto" or list, optional
        By default the tested number, and 1, 2, 3, 5, 8 as far as the environments allow.
    scale : float or list, default=(0.0, 0.25, 0.5, 1.0)
        1 removes nothing: the plain head is one of the candidates.
    C : float or list, default=(0.001, 0.01, 0.1, 1.0)
        Of the logistic head. The features it sees are whitened: a C far below 1 leaves it free.
    head : str, estimator, (coef, intercept) or list, default="logistic"
        Heads other than "logistic" are tried once, without C.
    weighting : str or list, default=(None, "class", "group")
        Weights of the rows for the head: None, all the same; "class",
        ``class_weight="balanced"``; "group", ``group_weight="balanced"``.
    n_components : int, float, "auto" or None, default="auto"
        As in :class:`ISRClassifier`, like the next four.
    condition_on : label, optional
    variant : {"pooled", "paper"}, default="pooled"
    rank_test : {"moments", "permutation"}, default="moments"
    shrinkage : float, default=0.0
    selection : str, default="worst-group"
        What is compared: "worst-group", the accuracy of the class × environment where it is
        lowest; "average", that of all held-out rows; "leave-one-environment-out", that of each
        environment when it is held out and the others train (three are needed). Ties go to the
        setting that removes least, then to the one that weighs rows least, then to the smallest
        C, then to the first.
    cv : int, splitter or iterable of (train, test), default=5
        Folds are stratified by class × environment. Not used with a validation set or with
        "leave-one-environment-out".
    n_jobs : int, optional
        Threads. The results are the same for any number of them.
    verbose : int, default=0
        1 draws a progress bar on a terminal, if rich is installed.
    random_state : int or RandomState, optional
        Shuffles the rows of each cell before they are dealt to the folds. Without it they are
        dealt in their order.
    missing_environments : {"raise", "single"}, default="raise"
        As in :class:`ISRClassifier`.

    Attributes
    ----------
    best_estimator_ : ISRClassifier
        With the best settings, fitted on all the rows given to `fit`.
    best_params_ : dict
        ``ISRClassifier(**best_params_)`` has these settings.
    best_score_ : float
        Mean over splits of the score by the selection rule.
    best_index_ : int
        Row of `cv_results_`.
    cv_results_ : dict
        As in scikit-learn's searches, with `mean_worst_group` and `mean_average` of every
        setting and their values on each split. See also `trade_off`.
    n_splits_ : int
    classes_, coef_, intercept_ : ndarray
        Of the best estimator.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn import ISRClassifierCV
    >>> data = make_gaussian_environments(300, 4, n_invariant=3, n_spurious=2, random_state=0)
    >>> search = ISRClassifierCV(n_spurious=[0, 2], scale=0.0)
    >>> search.fit(data.X, data.y, environments=data.environments).n_splits_
    5
    >>> len(search.cv_results_["params"]), sorted(search.best_params_)[:2]
    (24, ['C', 'class_weight'])
    """

    _penalty = "C"

    def __init__(
        self,
        method: Any = "mean",
        *,
        n_spurious: Any = None,
        scale: Any = (0.0, 0.25, 0.5, 1.0),
        C: Any = (0.001, 0.01, 0.1, 1.0),
        head: Any = "logistic",
        weighting: Any = (None, "class", "group"),
        n_components: int | float | str | None = "auto",
        condition_on: Any = None,
        variant: str = "pooled",
        rank_test: str = "moments",
        shrinkage: float = 0.0,
        selection: str = "worst-group",
        cv: Any = 5,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
        missing_environments: str = "raise",
    ) -> None:
        self.method = method
        self.n_spurious = n_spurious
        self.scale = scale
        self.C = C
        self.head = head
        self.weighting = weighting
        self.n_components = n_components
        self.condition_on = condition_on
        self.variant = variant
        self.rank_test = rank_test
        self.shrinkage = shrinkage
        self.selection = selection
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.missing_environments = missing_environments

    @available_if(_best_has("decision_function"))
    def decision_function(self, X: Any) -> NDArray:
        """Decision function of the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X)

    @available_if(_best_has("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray:
        """Probability of each class, by the best estimator."""
        check_is_fitted(self)
        return self.best_estimator_.predict_proba(X)

    @available_if(_best_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> NDArray:
        """Logarithm of `predict_proba`."""
        check_is_fitted(self)
        return self.best_estimator_.predict_log_proba(X)

    @property
    def classes_(self) -> NDArray:
        """Classes, sorted."""
        return self.best_estimator_.classes_

    def _sample(self, X: Any, y: Any, environments: Any, *, reset: bool) -> Sample:
        X, y = validate_data(self, X, y, reset=reset, dtype=[np.float64, np.float32])
        check_classification_targets(y)
        return Sample(
            X,
            y,
            check.check_environments(
                environments, len(X), self.missing_environments, part=not reset
            ),
        )

    def _cells(self, sample: Sample) -> NDArray[np.intp]:
        return cells_of(sample.y, sample.environments)

    def _points(self, sample: Sample) -> list[dict]:
        points = []
        for method in candidates("method", self.method):
            most = self._most(sample, method)
            settings = {
                "method": [method],
                "n_spurious": counts(self.n_spurious, most),
                "scale": candidates("scale", self.scale),
            }
            points += points_of(
                settings,
                candidates("head", self.head),
                candidates("weighting", self.weighting),
                ("C", candidates("C", self.C)),
                by="logistic",
            )
        return points

    def _most(self, sample: Sample, method: Any) -> int:
        """Most spurious dimensions that a method can find."""
        n_environments = len(encode(sample.environments)[0])
        d = dimensions(sample.X.shape[1], self.n_components)
        if n_environments < 2 or method in _SECOND_ORDER:
            return d - 1
        one = self.condition_on is not None or (method == "mean" and self.variant == "paper")
        n_classes = 1 if one else len(encode(sample.y)[0])
        return min(d - 1, n_classes * (n_environments - 1))

    def _estimator(self, **point: Any) -> ISRClassifier:
        return ISRClassifier(
            **point,
            n_components=self.n_components,
            condition_on=self.condition_on,
            variant=self.variant,
            rank_test=self.rank_test,
            shrinkage=self.shrinkage,
            missing_environments=self.missing_environments,
        )

    def _prepare(self, estimators: Sequence[ISRClassifier], split: Split) -> Classification:
        return Classification.of(estimators, split)
