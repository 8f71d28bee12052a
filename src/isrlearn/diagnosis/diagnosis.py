"""`diagnose`: a prediction of whether ISR helps, and the facts that explain it."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isrlearn import markup
from isrlearn import validation as check
from isrlearn.core.moments import Moments
from isrlearn.diagnosis.shares import ColumnShare, fitted_shares, origins
from isrlearn.diagnosis.shifts import (
    CellCounts,
    Shift,
    coordinates,
    covariance_shift,
    mean_shift,
    target_shift,
)
from isrlearn.diagnosis.stability import Stability, subspace_stability
from isrlearn.diagnosis.text import answers, cell_rows, findings, unseen_rows, wrapped
from isrlearn.estimators import (
    Comparison,
    ISRClassifier,
    ISRClassifierCV,
    ISRRegressor,
    ISRRegressorCV,
    compare_models,
)
from isrlearn.estimators.compare import LabelledRows, left_out, task_of
from isrlearn.estimators.heads import Sample
from isrlearn.estimators.pipeline import Fitter, Settings
from isrlearn.estimators.preparation import prepared
from isrlearn.metrics.groups import aligned

#: Most rows, and most values, that models are compared on; of more rows a sample is compared.
_MOST_ROWS, _MOST_VALUES, _ENOUGH_ROWS = 20_000, 1_500_000, 5_000
#: Folds inside folds: more of them take much longer.
_N_FOLDS = 3
#: Spread, as a share of the mean, that rounding can explain.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Recommendation:
    """What to do.

    Examples
    --------
    >>> Recommendation("no difference", "ISRClassifier", {"n_spurious": 0}).summary
    'No difference is expected from ISR: use ISRClassifier(n_spurious=0), which removes nothing.'
    """

    prediction: str  #: ISR "helps", makes "no difference" or "hurts", against the best alternative.
    estimator: str  #: "ISRClassifier" or "ISRRegressor".
    parameters: dict[str, Any]  #: Its parameters, except those left at their defaults.

    @property
    def summary(self) -> str:
        """What to do in a sentence."""
        given = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        use = f"use {self.estimator}({given})"
        if self.prediction == "unknown":
            return "The models were not compared."
        if self.prediction == "helps":
            return f"ISR is expected to help: {use}."
        expected = "Harm" if self.prediction == "hurts" else "No difference"
        return f"{expected} is expected from ISR: {use}, which removes nothing."

    def __str__(self) -> str:
        """What to do in a sentence."""
        return self.summary

    def _repr_html_(self) -> str:
        return markup.block(markup.paragraph(self.summary, strong=True))


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis:
    """What `isrlearn.diagnose` found; ``print(diagnosis)`` shows it in words.

    Examples
    --------
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.diagnosis import diagnose
    >>> data = make_gaussian_environments(500, 4, n_spurious=2, random_state=0)
    >>> diagnosis = diagnose(data.X, data.y, data.environments)
    >>> diagnosis.means.n_dimensions, diagnosis.recommendation.prediction
    (2, 'no difference')
    """

    task: str  #: "classification" or "regression".
    n_samples: int  #: Number of rows.
    n_features: int  #: Number of features.
    level: float  #: Level of every test.
    cells: CellCounts  #: Rows of every class in every environment.
    means: Shift | None = None  #: Do class means shift? None if nothing can be compared.
    #: Do class covariances differ? None for a regression, where that says nothing.
    covariances: Shift | None = None
    target: Shift | None = None  #: Does the target of a regression itself shift?
    stability: Stability | None = None  #: How far the subspace would rotate in data drawn again.
    comparison: Comparison | None = None  #: ISR and its alternatives, by cross-validation.
    n_compared: int = 0  #: Rows that the models were compared on.
    #: Scores of the best alternative and of ISR in every environment when it is left out.
    unseen: dict[str, dict[Any, float]] | None = None
    #: Columns that carry the shifts of the means, and those predictions follow; None without names.
    columns: tuple[ColumnShare, ...] | None = None

    @property
    def recommendation(self) -> Recommendation:
        """What to do: a prediction, and the parameters of the estimator that won."""
        kind = ISRClassifier if self.task == "classification" else ISRRegressor
        if self.comparison is None:
            alone = {} if self.means is not None else {"missing_environments": "single"}
            return Recommendation(
                "unknown" if self.means else "no difference", kind.__name__, alone
            )
        answer = "helps" if self.has_gap else self.comparison.answer
        helps = answer == "helps"
        found = self.comparison.models[self.comparison.name if helps else self.comparison.best]
        settings = dict(found.settings)
        if settings.pop("scale") == 1:
            settings |= {"n_spurious": 0} | ({"compare": "auto"} if "compare" in settings else {})
        default = {name: p.default for name, p in signature(kind).parameters.items()}
        changed = {name: v for name, v in settings.items() if v != default[name]}
        return Recommendation(answer, kind.__name__, changed)

    @property
    def has_gap(self) -> bool:
        """Whether a class was never seen in an environment, and means shift between environments.

        A model without removal may then take what shifts for a sign of the class, and no weights
        can correct that. No row of such a cell can be scored, so this decides the prediction.
        """
        return bool(self.cells.empty) and self.means is not None and self.means.shifted

    @property
    def findings(self) -> tuple[str, ...]:
        """What a user should know about the data, in sentences."""
        return tuple(findings(self))

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """The questions that could be answered, each with its answer in words."""
        return tuple(answers(self))

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON; NaN becomes None."""
        record = asdict(replace(self, comparison=None))
        advice = self.recommendation
        record |= {
            "comparison": None if self.comparison is None else self.comparison.to_dict(),
            "recommendation": {**asdict(advice), "summary": advice.summary},
            "findings": list(self.findings),
        }
        return json.loads(json.dumps(record, default=str), parse_constant=lambda _: None)

    def __repr__(self) -> str:
        return f"<{self._title}: {self.recommendation.prediction}>"

    def _repr_html_(self) -> str:
        """The recommendation, the findings and the answers; the comparison is folded."""
        found = [markup.paragraph(self.recommendation.summary, strong=True)]
        found += map(markup.paragraph, self.findings)
        rows = cell_rows(self.cells)
        found.append(markup.table(rows, "<" + ">" * len(rows[0])))
        found.append(markup.table([("question", "answer"), *self.answers], "<<"))
        if self.unseen is not None:
            found.append(markup.folded("Environments left out", markup.table(*unseen_rows(self))))
        if self.comparison is not None:
            found.append(markup.folded(self.comparison.headline, self.comparison._repr_html_()))
        about = f"{self._title} ({self.task}; tests at level {self.level:g})"
        return markup.block(markup.paragraph(about), *found)

    @property
    def _title(self) -> str:
        n_classes = f"{len(self.cells.classes)} classes, " if self.task == "classification" else ""
        return (
            f"Diagnosis of {self.n_samples:,} rows, {self.n_features:,} features, {n_classes}"
            f"{len(self.cells.environments)} environments"
        )

    def __str__(self) -> str:
        """The whole diagnosis as plain text."""
        rows = cell_rows(self.cells)
        lines = [
            self._title,
            f"({self.task}; tests at level {self.level:g})",
            "",
            *wrapped(self.recommendation.summary),
            *(line for text in self.findings for line in wrapped(text, "- ")),
            "",
            *aligned(rows, "<" + ">" * len(rows[0])),
            "",
        ]
        for question, answer in self.answers:
            lines += wrapped(answer, f"{question:<28}")
        if self.comparison is not None:
            sampled = f", on {self.n_compared:,} rows" if self.n_compared < self.n_samples else ""
            lines += ["", f"By cross-validation{sampled}", *self.comparison.lines(96)]
        if self.unseen is not None:
            lines += ["", *aligned(*unseen_rows(self))]
        return "\n".join(lines)


def diagnose(
    X: Any,
    y: ArrayLike,
    environments: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    prepare: Any = None,
    feature_names: Sequence[str] | None = None,
    task: str = "auto",
    level: float = 0.01,
    n_bootstrap: int = 100,
    compare: bool = True,
    random_state: int = 0,
) -> Diagnosis:
    """Whether ISR is expected to help with these data, why, and what to use.

    Parameters
    ----------
    X : array-like or sparse array of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Classes, or the target of a regression.
    environments : array-like of shape (n_samples,)
        Environment of each row; None or NaN where it is unknown.
    clusters : array-like of shape (n_samples,), optional
        What rows have in common, such as their patient or video. Tests count clusters, a cluster
        is never split between folds, and intervals account for clusters.
    prepare : transformer or Pipeline, optional
        Prepares X, such as :class:`isrlearn.TablePreparer`, or a pipeline that ends in an
        estimator, which is left out. It is fitted on X, as a copy, unless it is fitted already.
    feature_names : sequence of str, optional
        For each feature the column it comes from. Default: those of a data frame or of `prepare`.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" treats a y of numbers that are not whole as the target of a regression.
    level : float, default=0.01
        Level of every test: how often it may find a shift where there is none.
    n_bootstrap : int, default=100
        Draws of the means from which the stability of the subspace is judged; 0 for none.
    compare : bool, default=True
        Whether to compare models, which takes most of the time; without, there is no prediction.
    random_state : int, default=0
        Seed of draws and folds.

    Returns
    -------
    Diagnosis
        ``print(...)`` shows it in words, ``.to_dict()`` gives numbers, and
        ``.recommendation.parameters`` are those of the estimator to use.

    Notes
    -----
    The prediction is the answer of :func:`isrlearn.compare_models` by nested cross-validation on
    these rows, between a search over ISR's settings and the best of the models that remove
    nothing. ISR compares means, and covariances as well if these are found to differ along more
    dimensions. Where a class was never seen in an environment, and means shift, the prediction is
    "helps": the rows that it is about cannot be scored. Of more than 20,000 rows, or 1.5 million
    values, a sample is compared; of many features, the principal components that a default fit
    would use.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.diagnosis import diagnose
    >>> rng = np.random.default_rng(0)
    >>> X, y, e = rng.normal(size=(400, 3)), np.arange(400) % 2, np.arange(400) // 2 % 2
    >>> diagnose(X, y, e).means.shifted
    False
    """
    if prepare is not None:
        X, prepare = prepared(prepare, X)
    names = origins(prepare, X) if feature_names is None else feature_names
    check.check_between("level", level, 1e-6, 0.5)
    check.check_between("n_bootstrap", n_bootstrap, 0, np.inf)
    task = task_of(task, None, y)
    classes = task == "classification"
    kind, target = (ISRClassifier(), "classes") if classes else (ISRRegressor(), "numbers")
    rows, values, cells, _ = check.check_rows(
        kind, X, y, environments, None, target=target, clusters=clusters
    )
    if classes:
        check.check_classes(cells.classes, np.bincount(cells.k))
    counts = CellCounts.of(cells, regression=not classes)
    n, d = rows.shape
    found = Diagnosis(task, n, d, level, counts)
    if not counts.compared:
        return found
    # The coordinates in which an estimator with default settings would search.
    fitter = Fitter(Sample(rows, cells), [Settings("mean" if classes else "regression")])
    moments, sample = _checked(fitter), fitter.sample
    if clusters is not None:
        moments = sample.independent(average=True).moments("cell")
        sample = sample.independent(average=False)
    means = mean_shift(moments, counts, level)
    found = replace(found, means=means)
    if means.shifted and n_bootstrap:
        whitened = moments.map(coordinates(moments))
        draws = {"n_bootstrap": int(n_bootstrap), "random_state": random_state}
        stability = subspace_stability(whitened, means.n_dimensions, **draws)
        found = replace(found, stability=stability)
    if classes:
        spread = moments if clusters is None else sample.moments("cell")
        covariances = covariance_shift(spread, sample.row_sample(), counts, level)
        found = replace(found, covariances=covariances)
    else:
        shift = target_shift(np.asarray(values, dtype=float), cells, counts, level)
        found = replace(found, target=shift)
    if names is not None:
        labelled = LabelledRows.of((X, y, environments))
        found = replace(found, columns=_columns(kind, labelled, names, means.n_dimensions))
    if not compare:
        return found
    if fitter.components is not None:
        X = fitter.sample.X  # models would find the same components in every fold
    return _compared(found, LabelledRows.of((X, y, environments), clusters), random_state)


def _columns(
    kind: Any, rows: LabelledRows, names: Sequence[str], n_spurious: int
) -> tuple[ColumnShare, ...] | None:
    """Shares of the columns in the directions along which means shift, and in a default head."""
    try:
        fitted = kind.set_params(n_spurious=n_spurious).fit(*rows[:3])
        return fitted_shares(fitted, rows, names)
    except (ValueError, np.linalg.LinAlgError):
        return None  # shifts can be found where no head can be fitted


def _checked(fitter: Fitter) -> Moments:
    """The moments in which shifts are tested, unless there is nothing to diagnose."""
    moments, given = fitter.features, fitter.moments
    if moments.dof < 1:
        raise ValueError(
            f"the {int(moments.count.sum())} rows with an environment are in as many cells, one "
            "row each: their spread is unknown. Merge environments."
        )
    given = moments if given.scatter is None else given
    n, mean, scatter = given.total
    if (np.sqrt(np.diag(scatter) / n) <= _ROUNDING * np.abs(mean)).all():
        raise ValueError(
            f"all {given.n_features} features are constant: there is nothing to diagnose. Check "
            "which columns are features."
        )
    return moments


def _compared(found: Diagnosis, rows: LabelledRows, random_state: int) -> Diagnosis:
    """The diagnosis with a comparison of ISR and its alternatives on a sample of the rows."""
    most = min(_MOST_ROWS, max(_ENOUGH_ROWS, _MOST_VALUES // found.n_features))
    rows = rows.at_most(most, "accuracy" if found.task == "classification" else "rmse")
    # What a gap needs is removed even if the other groups would do without.
    scale = 0.0 if found.has_gap else (0.0, 1.0)
    model: Any = ISRRegressorCV(scale=scale)
    if found.means and found.covariances:
        more = found.covariances.n_dimensions > found.means.n_dimensions
        model = ISRClassifierCV(["mean", "joint"] if more else "mean", scale=scale)
    how: dict[str, Any] = {"clusters": rows.clusters, "task": found.task, "name": "ISR"}
    how |= {"cv": _N_FOLDS, "random_state": random_state}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        comparison = compare_models(*rows[:3], model=model, **how)
        unseen = left_out(comparison, rows)
    return replace(found, comparison=comparison, n_compared=len(rows.y), unseen=unseen)
