"""What both searches share: every setting on every split, the choice, and its predictions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from isrlearn import validation as check
from isrlearn.core.methods import METHODS
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.pipeline import Fitter, Settings, dimension_limit
from isrlearn.estimators.selection import (
    SELECTIONS,
    Score,
    best_of,
    candidates,
    counts,
    effort,
    folds_of,
    on_front,
    results_of,
)
from isrlearn.progress import progress

Split = tuple[Sample, Sample]


class Search(BaseEstimator):
    """Tries settings of an estimator and keeps the one that a selection rule prefers."""

    __metadata_request__fit = {"environments": True}

    #: Name of the head's penalty, and what y is.
    _penalty: str
    _target: str

    n_spurious: Any
    scale: Any
    head: Any
    weights: Any
    n_components: Any
    variant: str
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
    def _estimator(self, **point: Any) -> Any:
        """An unfitted estimator with these settings."""

    @abstractmethod
    def _score(self, outputs: NDArray, held_out: Sample, classes: NDArray) -> Score:
        """Score of the outputs ``X @ coef + intercept`` for held-out rows."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        environments: ArrayLike | None = None,
        *,
        validation: Any = None,
    ) -> Self:
        """Try all settings, then fit the best one on all of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        environments : array-like of shape (n_samples,)
            Environment of each row; None or NaN where it is unknown: such rows train the head and
            count in the average score.
        validation : (X, y, environments) or EnvironmentData, optional
            Rows to score the settings on, instead of cross-validation. They choose the settings,
            and the best one is not fitted on them.
        """
        check.check_choice("selection", self.selection, SELECTIONS)
        sample = self._sample(X, y, environments, reset=True)
        points = self._points(sample)
        settings = [self._estimator(**point)._settings() for point in points]
        splits = self._splits(sample, validation)
        scores = self._scores(splits, settings)
        self.cv_results_ = results_of(points, scores, self.selection)
        efforts = [effort(point, self._penalty) for point in points]
        self.best_index_ = best_of(self.cv_results_, efforts)
        self.best_params_ = points[self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])
        self.n_splits_ = len(splits)
        best = self._estimator(**self.best_params_)
        self.best_estimator_ = best.fit(X, y, environments)
        return self

    def _sample(self, X: Any, y: Any, environments: Any, *, reset: bool) -> Sample:
        """The rows, checked."""
        X, y, cells, _ = check.check_rows(
            self, X, y, environments, None, target=self._target, reset=reset, part=not reset
        )
        return Sample(X, cells, y if self._target == "numbers" else None)

    def _points(self, sample: Sample) -> list[dict]:
        """Every combination of the candidates; penalties only for the heads that have one."""
        points: list[dict] = []
        shared = {name: candidates(name, getattr(self, name)) for name in ("scale", "weights")}
        for method in candidates("method", getattr(self, "method", "regression")):
            check.check_choice("method", method, tuple(METHODS))
            grid = shared | {"n_spurious": counts(self.n_spurious, self._most(sample, method))}
            if hasattr(self, "method"):
                grid["method"] = [method]
            for head in candidates("head", self.head):
                penalties = candidates(self._penalty, getattr(self, self._penalty))
                penalty = {self._penalty: penalties} if isinstance(head, str) else {}
                points += ParameterGrid(grid | {"head": [head]} | penalty)
        return points

    def _most(self, sample: Sample, method: str) -> int:
        """Largest number of spurious dimensions that a method can find."""
        d = sample.size[1]
        if isinstance(self.n_components, Integral):
            d = min(d, int(self.n_components))
        if len(sample.cells.environments) < 2:
            return d - 1
        return dimension_limit(METHODS[method], sample.cells.count(), d, self.variant)[0]

    def _splits(self, sample: Sample, validation: Any) -> list[Split]:
        if validation is not None:
            return [(sample, self._held_out(validation))]
        seed = self.random_state
        folds = folds_of(
            sample.X,
            sample.cells,
            by_class=self._target == "classes",
            selection=self.selection,
            cv=self.cv,
            random_state=None if seed is None else check_random_state(seed),
        )
        return [(sample.rows(train), sample.rows(test)) for train, test in folds]

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

    def _scores(self, splits: Sequence[Split], settings: list[Settings]) -> list[list[Score]]:
        """Scores of every setting on every split, ``scores[setting][split]``.

        Splits run side by side, each with one BLAS thread: the results do not depend on `n_jobs`,
        to the last bit.
        """
        total = len(splits) * len(settings)
        with (
            progress(total, "settings × splits", shown=self.verbose > 0) as advance,
            threadpool_limits(limits=1),
        ):
            # Threads: the rows are shared, and NumPy releases the interpreter lock.
            run = joblib.Parallel(n_jobs=self.n_jobs, require="sharedmem")
            columns = run(
                joblib.delayed(self._score_split)(*split, settings, advance) for split in splits
            )
        return [list(row) for row in zip(*columns, strict=True)]

    def _score_split(
        self, train: Sample, held_out: Sample, settings: list[Settings], advance: Any
    ) -> list[Score]:
        """Scores of every setting on one split, what they share computed once."""
        if self._target == "classes":
            check.check_classes(train.cells.classes, np.bincount(train.cells.k))
        fitter = Fitter(train, settings, clip=True)
        scores: dict[int, Score] = {}
        # Strong penalties first: each head starts from the one before.
        for i in sorted(range(len(settings)), key=lambda i: -settings[i].penalty):
            fitted = fitter.fit(settings[i])
            outputs = held_out.X @ fitted.coef.T + fitted.intercept
            scores[i] = self._score(outputs, held_out, train.cells.classes)
            advance(1)
        return [scores[i] for i in range(len(settings))]

    def trade_off(self) -> Any:
        """A pandas data frame of all settings: average against worst group.

        One row per setting, in the order of `cv_results_`: its parameters, `average` and
        `worst_group` (means over splits; root mean squared errors have a minus sign), `rank` by
        the selection rule, `on_front` (no other setting is better in one score and at least as
        good in the other) and `best` (the chosen one).
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
        """Predictions of the best estimator. Environments are not needed."""
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
