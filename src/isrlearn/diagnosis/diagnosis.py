"""`diagnose`: from data to a diagnosis."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target
from threadpoolctl import threadpool_limits

from isrlearn import validation as check
from isrlearn.core.labels import Cells
from isrlearn.core.rank import mean_rank
from isrlearn.core.whiten import reliable_components
from isrlearn.diagnosis import findings, held_out, shifts, text
from isrlearn.diagnosis.sample import CellCounts, WhitenedSample, whitened_sample
from isrlearn.diagnosis.stability import Stability, subspace_stability
from isrlearn.engine import sum_cells
from isrlearn.estimators import ISRClassifier, ISRRegressor
from isrlearn.estimators.pipeline import MOST_ENTRIES

#: Share of the labels' score above chance that a removal by covariances must leave.
_KEPT = 0.25


@dataclass(frozen=True)
class Diagnosis:
    """What `isrlearn.diagnose` found; ``print(diagnosis)`` shows it in words.

    Examples
    --------
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.diagnosis import diagnose
    >>> data = make_gaussian_environments(500, 4, n_spurious=2, random_state=0)
    >>> diagnosis = diagnose(data.X, data.y, data.environments)
    >>> diagnosis.means.n_dimensions, diagnosis.recommendation.parameters
    (2, {'method': 'mean', 'n_spurious': 2})
    """

    task: str  #: "classification" or "regression".
    n_samples: int
    n_features: int
    level: float  #: Level of every test.
    cells: CellCounts  #: Rows of every class in every environment.
    means: shifts.MeanShift | None = None  #: Do class means shift? None if nothing is compared.
    #: Do class covariances differ? None for a regression, where that says nothing.
    covariances: shifts.CovarianceShift | None = None
    target: shifts.MeanShift | None = None  #: Does the target of a regression itself shift?
    method: str = "mean"  #: What is compared in all that follows: "mean", "cov" or "joint".
    n_spurious: int = 0  #: Dimensions to remove; 0 if nothing shifts.
    n_components: int | None = None  #: Components in which covariances were compared, if not all.
    stability: Stability | None = None  #: How far it would rotate in data drawn again.
    information: held_out.Information | None = None  #: Prediction of labels and environments.
    heads: tuple[held_out.HeadScore, ...] = ()  #: Accuracy of linear heads; empty for a regression.

    @cached_property
    def recommendation(self) -> findings.Recommendation:
        """What to do: parameters of an estimator, and reasons in words."""
        return findings.recommend(self)

    @property
    def answers(self) -> tuple[tuple[str, str], ...]:
        """The questions that could be answered, each with its answer in words."""
        return tuple(text.answers(self))

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON; NaN becomes None."""
        advice = self.recommendation
        record = asdict(self)
        record["recommendation"] = {**asdict(advice), "sentences": advice.sentences}
        return json.loads(json.dumps(record, default=str), parse_constant=lambda _: None)

    def __str__(self) -> str:
        """The whole diagnosis as plain text."""
        return text.render(self)


def diagnose(
    X: ArrayLike,
    y: ArrayLike,
    environments: ArrayLike,
    *,
    task: str = "auto",
    level: float = 0.01,
    n_bootstrap: int = 100,
    random_state: int = 0,
) -> Diagnosis:
    """Which assumptions of ISR the data meet, what a removal would do, and what to do.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Classes, or the target of a regression.
    environments : array-like of shape (n_samples,)
        Environment of each row; None or NaN where it is unknown.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" treats a y of numbers that are not whole as the target of a regression.
    level : float, default=0.01
        Level of every test: how often it may find a shift where there is none.
    n_bootstrap : int, default=100
        Draws of the moments from which the stability of the subspace is judged; 0 for none.
    random_state : int, default=0
        Seed of draws and splits.

    Returns
    -------
    Diagnosis
        ``print(...)`` shows it in words, ``.to_dict()`` gives numbers, and
        ``.recommendation.parameters`` are those of the estimator to use.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.diagnosis import diagnose
    >>> rng = np.random.default_rng(0)
    >>> X, y, e = rng.normal(size=(800, 5)), np.arange(800) % 2, np.arange(800) // 2 % 2
    >>> print(diagnose(X, y, e).recommendation.summary)
    Remove nothing: there is no reason to use ISR on these data.
    >>> X[:, 0] += 3 * e  # now one feature shifts
    >>> print(diagnose(X, y, e).recommendation.summary)
    Use ISRClassifier(method='mean', n_spurious=1).
    """
    check.check_between("level", level, 1e-6, 0.5)
    check.check_between("n_bootstrap", n_bootstrap, 0, np.inf)
    X, cells, target = _checked(X, y, environments, task)
    entries = len(cells.classes) * len(cells.environments) * X.shape[1] ** 2
    moments = sum_cells(X, cells, pooled=entries > MOST_ENTRIES)
    if moments.dof < 1:
        raise ValueError(
            f"the {int(moments.count.sum())} rows with an environment are in as many cells, one "
            "row each: their spread is unknown. Merge environments."
        )
    counts = CellCounts.of(cells, regression=target is not None)
    task = "classification" if target is None else "regression"
    found = Diagnosis(task, len(X), X.shape[1], level, counts)
    if not counts.compared:
        return found
    test = mean_rank(moments, level=level)
    Z, sample = whitened_sample(X, cells, target, moments, test.rank, random_state)
    if not sample.rows.shape[1]:
        raise ValueError(
            f"all {found.n_features} features are constant: there is nothing to diagnose. Check "
            "which columns are features."
        )
    n_tested = reliable_components(moments) or found.n_features
    # Matrices of at most 200 columns are too small to share among threads.
    with threadpool_limits(1, "blas"):
        means = shifts.mean_shift(test, sample.moments, counts, n_tested)
        found = replace(found, means=means)
        if target is not None:
            found = replace(found, target=shifts.target_shift(target, cells, counts, level))
        else:
            cov, part = shifts.covariance_shift(sample, Z, cells, counts, test)
            found = replace(found, covariances=cov)
            if _shows_more(means, cov, counts, n_tested):
                chosen = _measured(found, part, n_bootstrap, random_state)
                if _keeps_labels(chosen):
                    p, every = part.rows.shape[1], sample.rows.shape[1]
                    return replace(chosen, n_components=p if p < every else None)
        # At least one dimension must stay for the head.
        sample = replace(sample, rank=min(test.rank, found.n_features - 1))
        return _measured(found, sample, n_bootstrap, random_state)


def _checked(
    X: Any, y: Any, environments: Any, task: str
) -> tuple[NDArray, Cells, NDArray[np.float64] | None]:
    """Checked features, cells, and the target of a regression."""
    check.check_choice("task", task, ("auto", "classification", "regression"))
    if task == "auto":
        task = "regression" if type_of_target(y).startswith("continuous") else "classification"
    if task == "regression":
        given = check.check_rows(ISRRegressor(), X, y, environments, None, target="numbers")
        return given[0][:], given[2], np.asarray(given[1], dtype=float)
    X, _, cells, _ = check.check_rows(ISRClassifier(), X, y, environments, None, target="classes")
    check.check_classes(cells.classes, np.bincount(cells.k))
    return X[:], cells, None


def _shows_more(
    means: shifts.MeanShift, cov: shifts.CovarianceShift, counts: CellCounts, n_tested: int
) -> bool:
    """Whether the subspace of covariances (and means) is worth trying instead of that of means."""
    rank, p = cov.n_dimensions_joint, cov.n_coordinates
    # Too many dimensions cannot be spared, and a faint difference is no reason to give up the
    # features that were not compared.
    doubtful = 3 * rank > 2 * p or (cov.weak and p < n_tested)
    partial = means.shifted and len(cov.compared) < len(counts.compared)
    return cov.shifted and rank > means.n_dimensions and not doubtful and not partial


def _keeps_labels(found: Diagnosis) -> bool:
    """Whether classes can still be predicted after the removal, well above chance."""
    if found.information is None or np.isnan(found.information.label_before):
        return True
    chance = 1 / len(found.cells.classes)
    before = found.information.label_before - chance
    return before < findings.NOTABLE or found.information.label_after - chance >= _KEPT * before


def _measured(found: Diagnosis, s: WhitenedSample, n_bootstrap: int, seed: int) -> Diagnosis:
    """The diagnosis with the subspace of one method examined."""
    stability, n_patterns = None, found.means.n_patterns if found.means else 1
    if s.rank and n_bootstrap:
        noise = 1.0 if found.covariances is None else found.covariances.noise
        draws = {"n_bootstrap": int(n_bootstrap), "random_state": seed}
        stability = subspace_stability(s.moments, s.method, s.rank, noise=noise, **draws)
    return replace(
        found,
        method=s.method,
        n_spurious=s.rank,
        stability=stability,
        information=held_out.information(s, n_patterns),
        heads=held_out.head_scores(s, found.cells) if found.task == "classification" else (),
    )
