"""`diagnose`: from data to a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from isrlearn import validation as check
from isrlearn.core.labels import encode
from isrlearn.core.moments import Moments
from isrlearn.core.rank import RankTest, mean_rank
from isrlearn.diagnosis._cells import Cells
from isrlearn.diagnosis._covariances import (
    CovarianceShift,
    comparable,
    covariance_shift,
    no_comparison,
)
from isrlearn.diagnosis._diagnosis import Diagnosis
from isrlearn.diagnosis._findings import NOTABLE
from isrlearn.diagnosis._folds import folds
from isrlearn.diagnosis._frame import Frame
from isrlearn.diagnosis._heads import head_scores
from isrlearn.diagnosis._information import information
from isrlearn.diagnosis._means import mean_shift
from isrlearn.diagnosis._needs import requirements
from isrlearn.diagnosis._stability import stability
from isrlearn.diagnosis._target import target_shift
from isrlearn.diagnosis._unseen import unseen_score
from isrlearn.engine import cell_moments

#: Share of what can be told about labels that a removal must leave to be worth recommending.
_KEPT = 0.25


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
    """Which assumptions of ISR the data meet, what removing would do, and what to do.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features.
    y : array-like of shape (n_samples,)
        Classes, or the target of a regression.
    environments : array-like of shape (n_samples,)
        Environment of each row; None or NaN where unknown.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" takes a y of numbers that are not whole for the target of a regression.
    level : float, default=0.01
        Level of every test: how often one may see a shift where there is none.
    n_bootstrap : int, default=100
        Draws of the moments by which the stability of the subspace is judged; 0 for none.
    random_state : int, default=0
        Seed of draws, splits and permutations.

    Returns
    -------
    Diagnosis
        ``print(...)`` says it in words, ``.to_dict()`` in numbers, and
        ``.recommendation.parameters`` are those of the estimator to use.

    Examples
    --------
    >>> import numpy as np
    >>> from isrlearn.diagnosis import diagnose
    >>> rng = np.random.default_rng(0)
    >>> X, y, e = rng.normal(size=(800, 5)), np.arange(800) % 2, np.arange(800) // 2 % 2
    >>> print(diagnose(X, y, e).recommendation.summary)
    Remove nothing: there is no reason to use ISR on these data.
    >>> X[:, 0] += 3 * e  # now something moves
    >>> print(diagnose(X, y, e).recommendation.summary)
    Use ISRClassifier(method='mean', n_spurious=1).
    """
    data = _checked(X, y, environments, task)
    check.check_between("level", level, 1e-6, 0.5)
    check.check_between("n_bootstrap", n_bootstrap, 0, np.inf)
    frame = Frame.of(data.X, data.moments, data.classes, data.environments, random_state)
    cells = Cells.of(frame.moments, regression=data.regression, level=level)
    found = Diagnosis(
        task="regression" if data.regression else "classification",
        n_samples=len(data.X),
        n_features=data.X.shape[1],
        level=level,
        cells=cells,
    )
    if not cells.comparable:
        return found
    if cells.left_out:
        data = data.without(cells.left_out)
        frame = Frame.of(data.X, data.moments, data.classes, data.environments, random_state)
    return _examined(found, data, frame, n_bootstrap, random_state)


@dataclass(frozen=True, eq=False)
class _Data:
    """Checked input, and its pooled moments."""

    X: NDArray  # (n, d)
    classes: NDArray | None  # (n,); None for a regression
    target: NDArray | None  # (n,); None for a classification
    environments: NDArray  # (n,)
    moments: Moments

    @classmethod
    def of(
        cls, X: NDArray, classes: NDArray | None, target: NDArray | None, environments: NDArray
    ) -> _Data:
        moments = cell_moments(X, classes, environments, pooled=True)
        if moments.dof < 1:
            raise ValueError(
                f"the {int(moments.count.sum())} rows with an environment are in as many cells, "
                "one row each: their spread cannot be known. Merge environments."
            )
        return cls(X, classes, target, environments, moments)

    @property
    def regression(self) -> bool:
        return self.target is not None

    def without(self, left_out: tuple[Any, ...]) -> _Data:
        """The same with the environment of some rows unknown."""
        names, known = self.environments.astype(object), self.moments.environments
        unwanted = encode(np.array(left_out), known)[1]
        names[np.isin(encode(names, known)[1], unwanted)] = None
        return _Data.of(self.X, self.classes, self.target, names)


def _checked(X: Any, y: Any, environments: Any, task: str) -> _Data:
    check.check_choice("task", task, ("auto", "classification", "regression"))
    X = check_array(X, dtype=[np.float64, np.float32])
    y = column_or_1d(y)
    check_consistent_length(X, y)
    environments = check.check_environments(environments, len(X), "raise")
    if task == "auto":
        task = "regression" if type_of_target(y).startswith("continuous") else "classification"
    if task == "regression":
        return _Data.of(X, None, y.astype(float), environments)
    data = _Data.of(X, y, None, environments)
    check.check_classes(data.moments.classes, data.moments.class_count)
    return data


def _examined(
    found: Diagnosis, data: _Data, frame: Frame, n_bootstrap: int, seed: int
) -> Diagnosis:
    """The diagnosis with everything that can be measured."""
    compared = found.cells.compared_classes
    picked = np.array([i for i, k in enumerate(found.cells.classes) if k in compared])
    test = mean_rank(data.moments, picked, level=found.level)
    means = mean_shift(
        test,
        frame.moments,
        picked,
        n_coordinates=frame.n_tested,
        regression=data.regression,
    )
    covariances, per_cell, target = None, None, None
    if data.target is not None:
        target = target_shift(data.target[frame.index], frame.environments, found.level)
    else:
        covariances, per_cell = _covariances(frame, data, picked, test, seed)
    E = len(found.cells.compared_environments)
    found = replace(
        found,
        means=means,
        covariances=covariances,
        target=target,
        requirements=requirements(means, covariances, E, len(compared)),
    )
    # One dimension at least must stay for a head to be fitted on.
    rank = min(means.n_dimensions, found.n_features - 1)
    by_means = _Subject(frame, frame.moments, picked, "mean", rank, None)
    by_covariances = _by_covariances(found, frame, per_cell)
    if by_covariances is not None:
        chosen = _measured(found, by_covariances, data, n_bootstrap, seed)
        if _keeps_labels(chosen):
            return chosen
    return _measured(found, by_means, data, n_bootstrap, seed)


@dataclass(frozen=True, eq=False)
class _Subject:
    """A subspace to examine: the method that finds it, and where."""

    frame: Frame
    moments: Moments
    classes: NDArray
    method: str
    rank: int
    n_components: int | None


def _covariances(
    frame: Frame, data: _Data, picked: NDArray, means: RankTest, seed: int
) -> tuple[CovarianceShift, Moments | None]:
    """What covariances say, and the moments they were compared by."""
    enough, p, short = comparable(frame.moments, picked, frame.n_coordinates)
    if not len(enough) or data.classes is None:
        return no_comparison(short), None
    part = frame.first(p)
    moments = part.cell_moments(data.X, data.classes, data.environments)
    shift = covariance_shift(
        part, moments, enough, short, n_means=means.rank, level=means.level, random_state=seed
    )
    return shift, moments


def _by_covariances(found: Diagnosis, frame: Frame, moments: Moments | None) -> _Subject | None:
    """The subspace of covariances, or of both, if it shows more than that of means."""
    means, covariances = found.means, found.covariances
    if moments is None or means is None or covariances is None or not covariances.moved:
        return None
    method = "joint" if means.moved else "cov"
    rank = covariances.n_dimensions_joint
    # "joint" compares all the classes, "cov" all or one.
    compared = covariances.compared
    complete = len(compared) == len(found.cells.classes) or (method == "cov" and len(compared) == 1)
    p = moments.n_features
    # More than two thirds of all dimensions is no longer a subspace that could be spared, and a
    # faint difference no reason to give up the features that were not compared.
    doubtful = 3 * rank > 2 * p or (covariances.weak and p < frame.n_tested)
    if not complete or rank <= means.n_dimensions or doubtful:
        return None
    classes = [i for i, k in enumerate(found.cells.classes) if k in covariances.compared]
    n_components = p if p < frame.n_coordinates else None
    return _Subject(frame.first(p), moments, np.array(classes), method, rank, n_components)


def _keeps_labels(found: Diagnosis) -> bool:
    """Whether classes can still be told after the removal, well above chance."""
    if found.information is None or np.isnan(found.information.label_before):
        return True
    chance = 1 / len(found.cells.classes)
    before = found.information.label_before - chance
    return before < NOTABLE or found.information.label_after - chance >= _KEPT * before


def _measured(
    found: Diagnosis, subject: _Subject, data: _Data, n_bootstrap: int, seed: int
) -> Diagnosis:
    """The diagnosis with one subspace examined."""
    frame, picked, method, rank = subject.frame, subject.classes, subject.method, subject.rank
    target = None if data.target is None else data.target[frame.index]
    splits = list(folds(frame, picked, method, rank, random_state=seed))
    steady = unseen = None
    if rank and found.means is not None:
        if n_bootstrap:
            noise = 1.0 if method == "mean" else _noise_of(found)
            steady = stability(
                subject.moments,
                picked,
                method,
                rank,
                noise=noise,
                n_bootstrap=int(n_bootstrap),
                random_state=seed,
            )
        unseen = unseen_score(
            frame,
            subject.moments,
            picked,
            method,
            rank,
            n_patterns=found.means.n_patterns,
            target=target,
        )
    return replace(
        found,
        method=method,
        n_spurious=rank,
        n_components=subject.n_components,
        stability=steady,
        information=information(frame, splits, picked, target),
        heads=() if data.regression else head_scores(frame, splits, after=rank > 0),
        unseen=unseen,
    )


def _noise_of(found: Diagnosis) -> float:
    return 1.0 if found.covariances is None else found.covariances.noise
