"""What both searches share: fit, predictions of the best, the table of the trade-off."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isrlearn import validation as check
from isrlearn.estimators.search._grid import effort
from isrlearn.estimators.search._results import best_of, on_front, results_of
from isrlearn.estimators.search._run import Prepared, score_all
from isrlearn.estimators.search._scores import SELECTIONS
from isrlearn.estimators.search._splits import Sample, Split, splits_of


class Search(BaseEstimator):
    """Tries settings of an estimator and keeps the one that a selection rule likes best."""

    __metadata_request__fit = {"environments": True}

    #: Name of the head's penalty.
    _penalty: str

    selection: str
    cv: Any
    n_jobs: int | None
    verbose: int
    random_state: Any
    missing_environments: str

    best_estimator_: Any
    best_params_: dict
    best_score_: float
    best_index_: int
    cv_results_: dict[str, Any]

    @abstractmethod
    def _sample(self, X: Any, y: Any, environments: Any, *, reset: bool) -> Sample:
        """Rows, checked."""

    @abstractmethod
    def _cells(self, sample: Sample) -> NDArray[np.intp]:
        """What folds are stratified by."""

    @abstractmethod
    def _points(self, sample: Sample) -> list[dict]:
        """The settings to try."""

    @abstractmethod
    def _estimator(self, **point: Any) -> Any:
        """An estimator with these settings, not fitted."""

    @abstractmethod
    def _prepare(self, estimators: Sequence[Any], split: Split) -> Prepared:
        """A split made ready for these estimators."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        environments: ArrayLike | None = None,
        validation: Any = None,
    ) -> Self:
        """Try all settings, then fit the best one on all of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        environments : array-like of shape (n_samples,)
            Environment of each row; None or NaN where unknown: such rows train the head and
            count in the average score.
        validation : (X, y, environments) or EnvironmentData, optional
            Rows to score the settings on, instead of cross-validation. They choose the
            settings, and the best one is not fitted on them.
        """
        sample = self._sample(X, y, environments, reset=True)
        points = self._points(sample)
        splits = self._splits(sample, validation)
        scores = score_all(
            lambda split: self._prepare([self._estimator(**point) for point in points], split),
            splits,
            len(points),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.cv_results_ = results_of(points, scores, self.selection)
        efforts = [effort(point, self._penalty) for point in points]
        self.best_index_ = best_of(self.cv_results_, efforts)
        self.best_params_ = points[self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.n_splits_ = len(splits)
        best = self._estimator(**self.best_params_)
        self.best_estimator_ = best.fit(X, y, environments=environments)
        return self

    def trade_off(self) -> Any:
        """A pandas data frame of all settings: average against worst group.

        One row a setting, in the order of `cv_results_`: its parameters, `average` and
        `worst_group` (means over splits; root mean squared errors carry a minus sign), `rank` by
        the selection rule, `on_front` (no other setting is better in one score and at least as
        good in the other) and `best` (the one that was chosen).
        """
        check_is_fitted(self)
        try:
            import pandas as pd
        except ImportError:
            raise ImportError(
                "trade_off() needs pandas: pip install pandas, or use cv_results_"
            ) from None
        results = self.cv_results_
        frame = pd.DataFrame(list(results["params"]))
        frame["average"] = results["mean_average"]
        frame["worst_group"] = results["mean_worst_group"]
        frame["rank"] = results["rank_test_score"]
        frame["on_front"] = on_front(results["mean_average"], results["mean_worst_group"])
        frame["best"] = np.arange(len(frame)) == self.best_index_
        return frame

    def predict(self, X: Any) -> NDArray:
        """Predictions of the best estimator. No environments needed."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X)

    @property
    def coef_(self) -> NDArray:
        """Coefficients of the best estimator, in the original features."""
        return self.best_estimator_.coef_

    @property
    def intercept_(self) -> Any:
        """Intercepts of the best estimator."""
        return self.best_estimator_.intercept_

    def _splits(self, sample: Sample, validation: Any) -> list[Split]:
        check.check_choice("selection", self.selection, SELECTIONS)
        seed = self.random_state
        return splits_of(
            sample,
            None if validation is None else self._held_out(validation),
            self._cells(sample),
            selection=self.selection,
            cv=self.cv,
            random_state=None if seed is None else check_random_state(seed),
        )

    def _held_out(self, validation: Any) -> Sample:
        """The validation rows, checked."""
        if self.selection == "leave-one-environment-out":
            raise ValueError(
                "selection='leave-one-environment-out' holds out environments of the training "
                "rows: give no validation set, or select by 'worst-group' or 'average'"
            )
        if hasattr(validation, "environments"):
            validation = (validation.X, validation.y, validation.environments)
        if not isinstance(validation, tuple | list) or len(validation) != 3:
            raise ValueError(
                "validation must be (X, y, environments) or an EnvironmentData; got "
                f"{type(validation).__name__}"
            )
        return self._sample(*validation, reset=False)
