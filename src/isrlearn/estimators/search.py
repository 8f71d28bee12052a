"""What both searches share: every setting on every split, the choice, and its predictions."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
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
from isrlearn.estimators import selection as rules
from isrlearn.estimators.folds import empty_cells, folds_of
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.held_out import FEWEST, is_harmful, warn_of_harm
from isrlearn.estimators.pipeline import Fitter, Settings
from isrlearn.estimators.threshold import FEWEST_TO_MOVE, replaceable, stand_ins
from isrlearn.progress import progress

Split = tuple[Sample, Sample]


class Search(check.SparseInput, BaseEstimator):
    """Tries settings of an estimator and keeps the one that a selection rule prefers."""

    __metadata_request__fit = {"environments": True, "clusters": True}

    #: The estimator, the name of its penalty, and what y is.
    _base: Any
    _penalty: str
    _target: str

    n_spurious: Any
    compare: Any
    head: Any
    n_components: Any
    variant: str
    selection: str
    selection_: str
    cv: Any
    n_jobs: int | None
    verbose: int
    random_state: Any

    @abstractmethod
    def _values(self, outputs: NDArray, held_out: Sample, classes: NDArray) -> NDArray:
        """What each held-out row adds to a score, ``X @ coef + intercept`` given."""

    def _score(self, means: NDArray) -> NDArray:
        """Scores from means of these values."""
        return means

    def _choose_threshold(
        self, splits: Sequence[Split], settings: Settings, missing: NDArray, *, reliable: bool
    ) -> None:
        """Move the threshold between classes, where there are classes."""

    @check.all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        environments: ArrayLike | None = None,
        *,
        validation: Any = None,
        clusters: ArrayLike | None = None,
    ) -> Self:
        """Try all settings, then fit the best one on all of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        environments : array-like of shape (n_samples,)
            Environment of each row; None or NaN where it is unknown: such rows train the head and
            are scored as further groups, one per class.
        validation : (X, y, environments) or EnvironmentData, optional
            Rows to score the settings on, instead of cross-validation. They choose the settings,
            and the best one is not fitted on them.
        clusters : array-like of shape (n_samples,), optional
            What rows have in common, such as their patient or video: a cluster is never split
            between folds, and the rank test counts clusters, not rows.
        """
        choices = ("auto", "worst-group", None)
        check.check_choice("threshold", getattr(self, "threshold", None), choices)
        sample = self._sample(X, y, environments, reset=True, clusters=clusters)
        self.selection_ = self.selection
        if self.selection == "auto" and self._target == "numbers":
            self.selection_ = rules.default_selection(sample.cells, self.cv, validation)
        check.check_choice("selection", self.selection_, rules.SELECTIONS)
        points, splits = self._points(sample), self._splits(sample, validation)
        by_group = self.selection_ == "worst-group" and self._target == "classes"
        if by_group and len(sample.cells.environments) >= FEWEST:
            points = self._without_harm(points, sample)
        missing, count = self._missing(sample, splits, validation, by_group)
        shown = not missing.any() or bool(replaceable(count)[missing].all())
        if not shown:
            # Nothing shows what would happen in the empty cells: remove all that was found.
            points = [point for point in points if rules.removes(point)] or points
        settings = [self._estimator(**point)._settings() for point in points]
        try:
            sums, size = self._sums(splits, settings, missing)
        except check.IncompleteDataError:
            check.check_cells(sample.moments("cell"))  # its message counts all rows
            raise
        n_scored = len(missing) if by_group else 0
        self._choose(points, sums, size, sample.cells.count(), n_scored)
        self.n_splits_ = len(splits)
        self.best_estimator_ = self._estimator(**self.best_params_).fit(
            X, y, environments, clusters=clusters
        )
        enough = bool((count[count > 0] >= FEWEST_TO_MOVE).all())
        reliable = by_group and shown and enough
        self._choose_threshold(splits, settings[self.best_index_], missing, reliable=reliable)
        return self

    def _missing(
        self, sample: Sample, splits: Sequence[Split], validation: Any, by_group: bool
    ) -> tuple[NDArray, NDArray]:
        """Cells (K, E) that no held-out row shows though groups are compared; rows of the others.

        The only row of a cell is never held out.
        """
        cells = sample.cells if validation is None else splits[0][1].cells
        missing = empty_cells(cells, fewest=2 if validation is None else 1) & by_group
        return missing, np.where(missing, 0, cells.count())

    def _choose(
        self, points: list[dict], sums: NDArray, size: NDArray, count: NDArray, n_scored: int
    ) -> None:
        """Scores of the settings, and the best one, from sums of groups on every split.

        `n_scored` is the number of classes of the held-out rows, 0 if groups are not compared.
        """
        # With stand-ins for missing cells a setting is chosen; its scores are those of real rows.
        scores = self._score(rules.group_scores(sums[0], size[0]))
        (real, sums), (n_rows, size) = sums.sum(axis=2), size.sum(axis=1)
        pooled = self._score(rules.group_scores(real, n_rows))
        compared: Any = None
        margin = 0.0
        if n_scored:
            compared, error = rules.shrunk_worst(sums, size, n_scored)
            # Where most environments are unknown, groups are: nothing is chosen by them.
            unknown = n_rows[-n_scored - 1 : -1].sum() > n_rows[-1] / 2
            margin = np.inf if unknown else rules.MARGIN * error[compared.argmax()]
        self.cv_results_ = rules.results_of(points, scores, pooled, self.selection_, compared)
        efforts = [rules.effort(point, self._penalty) for point in points]
        kept = rules.reference_scale(count)
        first = rules.reference(points, self._penalty, len(count), kept)
        only_penalties = len({repr(point | {self._penalty: None}) for point in points}) == 1
        if only_penalties or not rules.removes(points[first], 1.0 - kept):
            margin = 0.0  # there is no removal to protect: the best setting is the choice
        scored = self.cv_results_["selection_score"]
        self.best_index_ = rules.best_of(scored, efforts, margin, first)
        if self._target == "numbers":
            self.best_index_ = rules.unless_in_doubt(self.cv_results_, efforts, self.best_index_)
        self.best_params_ = points[self.best_index_]
        self.best_score_ = rules.score_of(self.cv_results_, self.best_index_, self.selection_)

    def _estimator(self, **point: Any) -> Any:
        """An unfitted estimator with these settings."""
        fixed = ("n_components", "variant", "level", "missing_environments")
        return self._base(**point, **{name: getattr(self, name) for name in fixed})

    def _sample(
        self, X: Any, y: Any, environments: Any, *, reset: bool, clusters: Any = None
    ) -> Sample:
        """The rows, checked."""
        how = {"target": self._target, "reset": reset, "part": not reset, "clusters": clusters}
        X, y, cells, _ = check.check_rows(self, X, y, environments, None, **how)
        return Sample(X, cells, y if self._target == "numbers" else None)

    def _points(self, sample: Sample) -> list[dict]:
        """Every combination of the candidates; penalties only for the heads that have one."""
        points: list[dict] = []
        names = ("scale", "weights", "head", self._penalty)
        grid = {name: rules.candidates(name, getattr(self, name)) for name in names}
        if self._target == "numbers":
            grid["compare"] = rules.comparisons(self.compare, self.n_spurious, self.variant)
        heads, penalties = grid.pop("head"), grid.pop(self._penalty)
        for method in rules.candidates("method", getattr(self, "method", "regression")):
            check.check_choice("method", method, tuple(METHODS))
            grid["n_spurious"] = rules.counts(self.n_spurious, self._most(sample, method))
            if hasattr(self, "method"):
                grid["method"] = [method]
            for head in heads:
                penalty = {self._penalty: penalties} if isinstance(head, str) else {}
                points += ParameterGrid(grid | {"head": [head]} | penalty)
        if self.variant == "pooled" and isinstance(self.weights, str) and self.weights == "auto":
            # Balanced regressions, without removal, are what the others must beat.
            plain = [p for p in points if p["scale"] == 1 and p["head"] == "logistic"]
            plain = [p for p in plain if p == plain[0] | {"C": p["C"]}]
            points += [p | {"weights": weights} for weights in ("group", "class") for p in plain]
        return points

    def _without_harm(self, points: list[dict], sample: Sample) -> list[dict]:
        """Settings that remove nothing, where the tested removal is harmful; else all of them."""
        idle = [point for point in points if point["scale"] == 1 or point["n_spurious"] == 0]
        first = rules.reference(points, self._penalty, len(sample.cells.classes), 0.0)
        settings = self._estimator(**points[first])._settings()
        fitter = Fitter(sample, [settings]) if idle else None
        found = fitter.held_out(settings) if fitter else None
        if fitter is None or found is None or not is_harmful(found):
            return points
        warn_of_harm(found, fitter.fit(settings).subspace.tested)
        return idle

    def _most(self, sample: Sample, method: str) -> int:
        """Largest number of spurious dimensions that a method can find."""
        d = sample.size[1]
        if isinstance(self.n_components, Integral):
            d = min(d, int(self.n_components))
        if len(sample.cells.environments) < 2:
            return d - 1
        return check.dimension_limit(METHODS[method], sample.cells.count(), d, self.variant)[0]

    def _splits(self, sample: Sample, validation: Any) -> list[Split]:
        if validation is not None:
            held_out = self._held_out(validation)
            known, names = sample.cells.classes.tolist(), held_out.cells.classes.tolist()
            if unknown := [name for name in names if name not in known]:
                raise ValueError(
                    f"y of validation has a class {unknown[0]!r} that y does not have; the classes "
                    f"are {known}"
                )
            return [(sample, held_out)]
        rng = None if self.random_state is None else check_random_state(self.random_state)
        folds = folds_of(sample.X, sample.cells, self.selection_, self.cv, rng)
        return [(sample.rows(train), _named(sample, test)) for train, test in folds]

    def _held_out(self, validation: Any) -> Sample:
        """The validation rows, checked."""
        if self.selection_ == "leave-one-environment-out":
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

    def _sums(
        self, splits: Sequence[Split], settings: list[Settings], missing: NDArray
    ) -> tuple[NDArray, NDArray]:
        """Sums of values (2, settings, splits, groups + 1) and rows (2, splits, groups + 1).

        First without, then with rows that stand in for missing cells. Splits run side by side, each
        with one BLAS thread: the results do not depend on `n_jobs`, to the last bit.
        """
        total = len(splits) * len(settings)
        with (
            progress(total, "settings × splits", shown=self.verbose > 0) as advance,
            threadpool_limits(limits=1),
        ):
            # Threads: the rows are shared, and NumPy releases the interpreter lock.
            run = joblib.Parallel(n_jobs=self.n_jobs, require="sharedmem")
            columns = run(
                joblib.delayed(self._score_split)(*split, settings, missing, advance)
                for split in splits
            )
        sums, size = (np.stack(part, axis=-2) for part in zip(*columns, strict=True))
        return sums, size

    def _score_split(
        self,
        train: Sample,
        held_out: Sample,
        settings: list[Settings],
        missing: NDArray,
        advance: Any,
    ) -> tuple[NDArray, NDArray]:
        """Sums and rows of groups on one split; what the settings share is computed once."""
        if self._target == "classes":
            check.check_classes(train.cells.classes, np.bincount(train.cells.k))
        fitter = Fitter(train, settings, clip=True)
        own = held_out.cells
        sums = np.empty((2, len(settings), own.count().size + len(own.classes) + 1))
        size = np.tile(rules.cell_sums(np.ones(len(own.k)), own), (2, 1))
        for i, setting in enumerate(settings):
            fitted = fitter.fit(setting)
            outputs = held_out.X @ fitted.coef.T + fitted.intercept
            values = self._values(outputs, held_out, train.cells.classes)
            sums[:, i] = rules.cell_sums(values, own)
            if missing.any():
                outputs, cells = stand_ins(outputs, own, missing)
                values = self._values(outputs, replace(held_out, cells=cells), train.cells.classes)
                sums[1, i] = rules.cell_sums(values, cells)
                size[1] = rules.cell_sums(np.ones(len(cells.k)), cells)
            advance(1)
        return sums, size

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
        average, worst = results["mean_average"], results["mean_worst_group"]
        return pd.DataFrame(results["params"]).assign(
            average=average,
            worst_group=worst,
            rank=results["rank_test_score"],
            on_front=rules.on_front(average, worst),
            best=np.arange(len(average)) == self.best_index_,
        )

    def predict(self, X: Any, environments: Any = None) -> NDArray:
        """Predictions of the best estimator; environments, as in its `predict`, are optional."""
        check_is_fitted(self)
        return self.best_estimator_.predict(X, environments)

    @property
    def coef_(self) -> NDArray:
        """Coefficients of the best estimator, in the original features."""
        return self.best_estimator_.coef_

    @property
    def intercept_(self) -> Any:
        """Intercepts of the best estimator."""
        return self.best_estimator_.intercept_


def _named(sample: Sample, rows: NDArray) -> Sample:
    """Some of the rows, with the names of all classes and environments."""
    cells = replace(sample.cells, k=sample.cells.k[rows], e=sample.cells.e[rows])
    return replace(sample.rows(rows), cells=cells)
