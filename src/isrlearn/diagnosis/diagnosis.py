"""`diagnose`: a prediction of whether ISR helps, and the facts that explain it."""

import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isrlearn import validation as check
from isrlearn.core.moments import Moments
from isrlearn.diagnosis import shifts
from isrlearn.diagnosis.findings import Diagnosis
from isrlearn.diagnosis.shares import column_shares, origins
from isrlearn.estimators import (
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

#: Most rows, and most values, that models are compared on; of more rows a sample is compared.
_MOST_ROWS, _MOST_VALUES, _ENOUGH_ROWS = 20_000, 1_500_000, 5_000
#: Folds inside folds: more of them take much longer.
_N_FOLDS = 3
#: Spread, as a share of the mean, that rounding can explain.
_ROUNDING = 1e-12


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
    counts = shifts.CellCounts.of(cells, regression=not classes)
    n, d = rows.shape
    if not counts.compared:
        return Diagnosis(task, n, d, level, counts)
    # The coordinates in which an estimator with default settings would search.
    fitter = Fitter(Sample(rows, cells), [Settings("mean" if classes else "regression")])
    tested = shifts.with_scatter(fitter)
    moments, sample = _checked(tested), tested.sample
    if clusters is not None:
        moments = sample.independent(average=True).moments("cell")
        sample = sample.independent(average=False)
    means = shifts.mean_shift(moments, counts, level)
    covariances = target_shift = stability = columns = None
    if means.shifted and n_bootstrap:
        whitened = moments.map(shifts.coordinates(moments))
        draws = {"n_bootstrap": int(n_bootstrap), "random_state": random_state}
        stability = shifts.subspace_stability(whitened, means.n_dimensions, **draws)
    if classes:
        spread = moments if clusters is None else sample.moments("cell")
        covariances = shifts.covariance_shift(spread, sample.row_sample(), counts, level)
    else:
        # With no class to condition on, the target must have the same mean in every environment.
        own = Sample(np.asarray(values, float)[:, None], cells)
        own = own if clusters is None else own.independent(average=True)
        target_shift = shifts.mean_shift(own.moments("cell"), counts, level)
    if names is not None:
        labelled = LabelledRows.of((X, y, environments))[:3]
        # Shifts can be found where no head can be fitted.
        with suppress(ValueError, np.linalg.LinAlgError):
            fitted = kind.set_params(n_spurious=means.n_dimensions).fit(*labelled)
            columns = column_shares(fitted, names, *labelled)
    facts = means, covariances, target_shift, stability
    found = Diagnosis(task, n, d, level, counts, *facts, columns=columns)
    if not compare:
        return found
    if fitter.components is not None:
        X = fitter.sample.X  # models would find the same components in every fold
    return _compared(found, LabelledRows.of((X, y, environments), clusters), random_state)


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
    with warnings.catch_warnings(action="ignore"):
        comparison = compare_models(*rows[:3], model=model, **how)
        unseen = left_out(comparison, rows)
    return replace(found, comparison=comparison, n_compared=len(rows.y), unseen=unseen)
