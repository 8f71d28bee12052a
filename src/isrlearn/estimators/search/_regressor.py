"""ISRRegressorCV: an ISRRegressor whose settings are chosen by its worst environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from isrlearn import validation as check
from isrlearn.core.labels import encode
from isrlearn.estimators import ISRRegressor
from isrlearn.estimators.search._base import Search
from isrlearn.estimators.search._grid import candidates, counts, dimensions, points_of
from isrlearn.estimators.search._regression import Regression
from isrlearn.estimators.search._splits import Sample, Split, cells_of


class ISRRegressorCV(RegressorMixin, Search):
    """ISRRegressor with the settings that do best in the worst environment of held-out data.

    Every combination of the candidates is scored on the same splits. A split needs one set of
    moments for all of them, and one eigendecomposition for all the penalties.

    Each of `n_spurious`, `scale`, `alpha`, `head` and `weighting` is one value or a list of values
    to try. The other parameters are those of :class:`ISRRegressor` and are not varied.

    Parameters
    ----------
    n_spurious : int, "auto" or list, optional
        By default the tested number, and 1, 2, 3, 5, 8 as far as the environments allow.
    scale : float or list, default=(0.0, 0.25, 0.5, 1.0)
        1 removes nothing: the plain head is one of the candidates.
    alpha : float or list, default=(0.1, 1.0, 10.0, 100.0, 1000.0)
        Of the ridge head.
    head : str, estimator, (coef, intercept) or list, default="ridge"
        Heads other than "ridge" are tried once, without alpha.
    weighting : str or list, default=(None, "group")
        Weights of the rows for the head: None, all the same; "group",
        ``group_weight="balanced"``.
    n_components : int, float, "auto" or None, default="auto"
        As in :class:`ISRRegressor`, like the next two.
    variant : {"pooled", "paper"}, default="pooled"
    rank_test : {"moments", "permutation"}, default="moments"
    selection : str, default="worst-group"
        What is compared, each with a minus sign: "worst-group", the root mean squared error of
        the environment where it is highest; "average", that of all held-out rows;
        "leave-one-environment-out", that of each environment when it is held out and the others
        train (three are needed). Ties go to the setting that removes least, then to the one that
        weighs rows least, then to the largest alpha, then to the first.
    cv : int, splitter or iterable of (train, test), default=5
        Folds are stratified by environment. Not used with a validation set or with
        "leave-one-environment-out".
    n_jobs : int, optional
        Threads. The results are the same for any number of them.
    verbose : int, default=0
        1 draws a progress bar on a terminal, if rich is installed.
    random_state : int or RandomState, optional
        Shuffles the rows of each environment before they are dealt to the folds. Without it
        they are dealt in their order.
    missing_environments : {"raise", "single"}, default="raise"
        As in :class:`ISRRegressor`.

    Attributes
    ----------
    best_estimator_ : ISRRegressor
        With the best settings, fitted on all the rows given to `fit`.
    best_params_ : dict
        ``ISRRegressor(**best_params_)`` has these settings.
    best_score_ : float
        Mean over splits of the score by the selection rule, not positive.
    best_index_ : int
        Row of `cv_results_`.
    cv_results_ : dict
        As in scikit-learn's searches, with `mean_worst_group` and `mean_average` of every
        setting and their values on each split. See also `trade_off`.
    n_splits_ : int
    coef_ : ndarray of shape (n_features,)
        Of the best estimator.
    intercept_ : float
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn import ISRRegressorCV
    >>> data = make_gaussian_environments(
    ...     300, 4, n_invariant=3, n_spurious=2, task="regression", random_state=0
    ... )
    >>> search = ISRRegressorCV(n_spurious=[0, 2], selection="leave-one-environment-out")
    >>> search.fit(data.X, data.y, environments=data.environments).n_splits_
    4
    """

    _penalty = "alpha"

    def __init__(
        self,
        n_spurious: Any = None,
        *,
        scale: Any = (0.0, 0.25, 0.5, 1.0),
        alpha: Any = (0.1, 1.0, 10.0, 100.0, 1000.0),
        head: Any = "ridge",
        weighting: Any = (None, "group"),
        n_components: int | float | str | None = "auto",
        variant: str = "pooled",
        rank_test: str = "moments",
        selection: str = "worst-group",
        cv: Any = 5,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
        missing_environments: str = "raise",
    ) -> None:
        self.n_spurious = n_spurious
        self.scale = scale
        self.alpha = alpha
        self.head = head
        self.weighting = weighting
        self.n_components = n_components
        self.variant = variant
        self.rank_test = rank_test
        self.selection = selection
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.missing_environments = missing_environments

    def _sample(self, X: Any, y: Any, environments: Any, *, reset: bool) -> Sample:
        X, y = validate_data(
            self, X, y, reset=reset, dtype=[np.float64, np.float32], y_numeric=True
        )
        environments = check.check_environments(
            environments, len(X), self.missing_environments, part=not reset
        )
        return Sample(X, y, environments)

    def _cells(self, sample: Sample) -> NDArray[np.intp]:
        return cells_of(None, sample.environments)

    def _points(self, sample: Sample) -> list[dict]:
        weightings = candidates("weighting", self.weighting)
        if "class" in weightings:
            raise ValueError("weighting='class' needs classes; a regression has None and 'group'")
        n_environments = len(encode(sample.environments)[0])
        d = dimensions(sample.X.shape[1], self.n_components)
        most = d - 1 if n_environments < 2 else min(d, n_environments) - 1
        settings = {
            "n_spurious": counts(self.n_spurious, most),
            "scale": candidates("scale", self.scale),
        }
        heads, alphas = candidates("head", self.head), candidates("alpha", self.alpha)
        return points_of(settings, heads, weightings, ("alpha", alphas), by="ridge")

    def _estimator(self, **point: Any) -> ISRRegressor:
        return ISRRegressor(
            **point,
            n_components=self.n_components,
            variant=self.variant,
            rank_test=self.rank_test,
            missing_environments=self.missing_environments,
        )

    def _prepare(self, estimators: Sequence[ISRRegressor], split: Split) -> Regression:
        return Regression.of(estimators, split)
