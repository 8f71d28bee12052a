"""What heads are fitted on, and the registry of heads."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.class_weight import compute_class_weight

from isrlearn.core.heads import lda_head, ridge_head
from isrlearn.core.labels import MISSING, Cells
from isrlearn.core.laws import RowSample
from isrlearn.core.moments import Moments
from isrlearn.core.subspace import Eraser
from isrlearn.core.whiten import Coordinates, standardised
from isrlearn.engine import (
    LogisticFit,
    LogisticLoss,
    Rows,
    SparseRows,
    column_squares,
    fit_intercept,
    fit_logistic,
    project,
    row_components,
    sum_cells,
)
from isrlearn.estimators.infer import drawn_environments

#: Most rows from which fourth moments are estimated.
_MOST_ROWS = 20_000
#: Rows that show which feature varies most, and share of rows whose repetition is worth a warning.
_PROBED, _REPEATED = 200, 0.01

#: Largest dense rows from which unknown environments are predicted, the share of rows from which
#: that is worth its time, and rows of two classes in an environment from which it compares them.
_MOST_BYTES, _FEWEST_UNKNOWN, _FEWEST_COMPARED = 1 << 30, 0.01, 5

#: Subsamples that heads are averaged over, and rows of a group that they have if there are.
_SUBSAMPLES, _FEWEST_DRAWN = 10, 5

#: Weights with which classes are compared inside environments, where every two share one.
INSIDE = ("auto", "within")

Weights = tuple[NDArray, NDArray] | None


@dataclass(frozen=True, eq=False)
class Sample:
    """Checked rows, and what the pipeline reads from them."""

    X: Any  #: Features (n, d): an array or `Rows`.
    cells: Cells  #: Class and environment of each row.
    target: NDArray | None = None  #: Of a regression (n,).
    weight: NDArray | None = None  #: Frequency weights of the rows (n,).
    has_rows = True

    @property
    def size(self) -> tuple[float, int, int]:
        """Number of rows (or their total weight), of features, and of cells, with empty ones."""
        n, d = self.X.shape
        cells = len(self.cells.classes) * len(self.cells.environments)
        return float(n if self.weight is None else self.weight.sum()), int(d), cells

    def rows(self, rows: NDArray) -> Sample:
        """Some of the rows, with the classes and environments that occur among them."""
        target = None if self.target is None else self.target[rows]
        weight = None if self.weight is None else self.weight[rows]
        return Sample(self.X[rows], self.cells.rows(rows), target, weight)

    def independent(self, *, average: bool) -> Sample:
        """One row per cluster and cell: the mean of its rows, or one of them.

        Means of clusters vary less than rows; only rows have the covariances of the rows.
        """
        weight = np.ones(len(self.cells.e)) if self.weight is None else self.weight
        known = np.random.default_rng(0).permutation(np.flatnonzero((self.cells.e >= 0) * weight))
        cells, X, target = self.cells.rows(known), self.X[known][:], self.target
        key = np.column_stack([np.asarray(cells.cluster), cells.k, cells.e])
        _, first, own = np.unique(key, axis=0, return_index=True, return_inverse=True)
        if average:
            members = sparse.csr_array((weight[known], (own.ravel(), np.arange(len(X)))))
            X = members @ X.astype(np.float64) / members.sum(axis=1)[:, None]
            target = None if target is None else members @ target[known] / members.sum(axis=1)
        else:
            X, target = X[first], None if target is None else target[known][first]
        return Sample(X, replace(cells.rows(first), cluster=None), target)

    def row_sample(self) -> RowSample | None:
        """Rows with a known environment, at most 20,000 evenly spread; None if not in memory."""
        if not isinstance(self.X, np.ndarray | SparseRows):
            return None
        # A row of weight 2 is there twice, and one of weight 0 or of unknown environment is not.
        last = np.cumsum((self.cells.e >= 0) * (1.0 if self.weight is None else self.weight))
        places = np.arange(0.0, last[-1], max(1.0, -(-last[-1] // _MOST_ROWS)))
        used = np.searchsorted(last, places, side="right")
        return RowSample(self.X[used][:], self.cells.k[used], self.cells.e[used])

    def moments(self, keep: str) -> Moments:
        """Moments of the rows, with "mean", "pooled" or "cell" scatters, the target appended."""
        order, pooled = (1 if keep == "mean" else 2), keep == "pooled"
        return sum_cells(self.X, self.cells, order, pooled, self.target, self.weight)

    def components(self, p: int, moments: Moments) -> NDArray:
        """Leading principal directions (d, p) of the rows."""
        _, center, scatter = moments.total
        d = self.X.shape[1]
        scatter = None if scatter is None else scatter[:d, :d]
        return row_components(self.X, p, center=center[:d], weight=self.weight, scatter=scatter)

    def project(self, components: NDArray, center: NDArray) -> Sample:
        """The same sample with centred rows on directions (d, p)."""
        return replace(self, X=project(self.X, components, center))

    def standardised(self, eraser: Eraser) -> Coordinates:
        """Coordinates of a head on the erased features, without their scatter."""
        squares, cross = column_squares(self.X, eraser.dual, eraser.center, self.weight)
        return standardised(eraser, squares, cross, max(self.size[0] - 1.0, 1.0))

    def row_weights(self, weights: tuple[NDArray, NDArray]) -> NDArray:
        """Weight of each row: its cell's times its own."""
        k, e = self.cells.k, self.cells.e
        weight = np.where(e == MISSING, weights[1][k], weights[0][k, e])
        return weight if self.weight is None else weight * self.weight

    def loss_terms(self, weights: Weights, within: Within | None) -> dict[str, Any]:
        """Weights of the rows, and groups that are compared, for the logistic loss."""
        weight = self.weight if weights is None else self.row_weights(weights)
        if within is None:
            return {"weight": weight}
        groups, seen = within.group[self.cells.e if within.e is None else within.e], within.compared
        if groups.min(initial=0) < 0:
            weight = (groups >= 0) * (1.0 if weight is None else weight)
        compared = None if len(seen) == 2 or seen.all() else seen
        return {"groups": np.maximum(groups, 0), "compared": compared, "weight": weight}

    def subsamples(self) -> list[Sample]:
        """Ten samples with equally many rows of every group, at least five where there are.

        Classes have equal weight even if one was seen in fewer environments. A class of which no
        environment is known is one group.
        """
        k, e, weight = self.cells.k, self.cells.e, 1.0 if self.weight is None else self.weight
        known = np.bincount(k, (e != MISSING) * weight)[k] > 0
        used = np.flatnonzero(((e != MISSING) | ~known) * weight)
        codes = k[used] * (len(self.cells.environments) + 1) + e[used] + 1
        groups = np.unique(codes, return_inverse=True)[1]
        size = np.bincount(groups)
        least, rng, found = max(int(size.min()), _FEWEST_DRAWN), np.random.default_rng(0), []
        for _ in range(_SUBSAMPLES):
            order = rng.permutation(len(used))
            # Position of each row among those of its group, in a random order.
            by_group = order[np.argsort(groups[order], kind="stable")]
            place = np.arange(len(used)) - np.repeat(np.cumsum(size) - size, size)
            rows = np.sort(used[by_group[place < least]])
            share = 1 / np.bincount(k[rows])[k[rows]]
            weight = share * len(rows) / share.sum()
            part = self.rows(rows)
            found.append(replace(part, weight=weight * (1 if self.weight is None else part.weight)))
        return found

    def logistic(self, problem: Problem) -> tuple[LogisticFit, NDArray]:
        """A logistic regression of the class in a head's coordinates, and its intercepts."""
        k, weight = self.cells.k, self.weight
        fit = fit_logistic(
            self.X,
            k,
            n_classes=len(self.cells.classes),
            penalty=problem.penalty,
            coordinates=problem.coordinates,
            scatter=problem.moments.total[2],
            tol=problem.tol,
            **self.loss_terms(problem.weights, problem.within),
        )
        if problem.within is None:
            return fit, fit.intercept[:, 0]
        alike = 1 / np.bincount(k, weight)[k] * (1 if weight is None else weight)
        loss = LogisticLoss(self.X, k, alike, problem.coordinates)
        return fit, fit_intercept(loss, fit.coef, float(alike.sum()))

    def in_memory(
        self, coordinates: Coordinates, weights: Weights
    ) -> tuple[NDArray, NDArray, NDArray | None]:
        """Rows in a head's coordinates, labels or target, and weights, for scikit-learn."""
        if isinstance(self.X, Rows) and not isinstance(self.X, SparseRows):
            raise ValueError(
                "a scikit-learn head needs rows in memory, and these are read block by block: use "
                f"one of our heads, {', '.join(map(repr, HEADS))}"
            )
        y = self.cells.classes[self.cells.k] if self.target is None else self.target
        weight = self.weight if weights is None else self.row_weights(weights)
        return coordinates(self.X[:]), y, weight


def n_repeated(X: NDArray) -> int:
    """Number of rows that repeat another row exactly; 0 where features are discrete.

    Rows of discrete features may agree by chance. Those of a feature that takes a different value
    in nearly every other row do not.
    """
    some = np.sort(X[:: max(1, len(X) // _PROBED)], axis=0)
    feature = X[:, np.count_nonzero(np.diff(some, axis=0), axis=0).argmax()]
    order = np.argsort(feature, kind="stable")
    tied = np.flatnonzero(np.diff(feature[order]) == 0)
    if len(tied) < _REPEATED * len(X):
        return 0
    same = int((X[order[tied]] == X[order[tied + 1]]).all(axis=1).sum())
    return same if len(tied) - same < _REPEATED * (len(X) - same) else 0


@dataclass(frozen=True, eq=False)
class Within:
    """How a head compares classes inside environments: each has intercepts of its own.

    Coefficients then cannot use what distinguishes environments. Rows of an environment with one
    class have nothing to be compared with.
    """

    #: Position of each environment (E + 1,), the last one unknown, among those with two classes or
    #: more; -1 for others.
    group: NDArray[np.intp]
    compared: NDArray[np.bool_]  #: Which classes were seen in each of these G environments (K, G).
    #: Environments of the rows (n,), unknown ones drawn; by default those of the cells. A few
    #: unknown ones are an environment of their own.
    e: NDArray[np.intp] | None = None

    @classmethod
    def among(cls, sample: Any) -> Within | None:
        """For these rows; None if two classes have no environment with five rows of each."""
        cells, drawn = sample.cells, None
        n, d = sample.X.shape
        many = np.count_nonzero(cells.e == MISSING) > _FEWEST_UNKNOWN * n
        if many and sample.has_rows and n * d * 8 <= _MOST_BYTES:
            drawn = drawn_environments(sample.X[:], cells, sample.weight)
        K, E, e = len(cells.classes), len(cells.environments), cells.e if drawn is None else drawn
        codes = cells.k * (E + 1) + np.where(e == MISSING, E, e)
        count = np.bincount(codes, sample.weight, K * (E + 1)).reshape(K, E + 1)
        seen, enough = count > 0, count >= _FEWEST_COMPARED
        used = seen.sum(axis=0) > 1
        # The penalty would shrink the difference of two classes twice if a third one linked them.
        if not (enough @ enough.T).all():
            return None
        return cls(np.where(used, np.cumsum(used) - 1, -1), seen[:, used], drawn)


@dataclass(frozen=True, eq=False)
class MomentSample:
    """Moments that were computed elsewhere, in place of rows."""

    given: Moments
    n_features: int
    has_rows = False

    def row_sample(self) -> None:
        """No rows: the moments are all there is."""

    @property
    def size(self) -> tuple[float, int, int]:
        """Number of rows, of features and of cells."""
        return self.given.total[0], self.n_features, self.given.count.size

    def moments(self, keep: str) -> Moments:
        """The given moments, whatever they keep."""
        return self.given

    def project(self, components: NDArray, center: NDArray) -> MomentSample:
        """The same with fewer features."""
        return MomentSample(self.given, components.shape[1])


@dataclass(frozen=True, eq=False)
class Problem:
    """What a head is fitted on."""

    sample: Any  #: The `Sample`, if the head needs rows.
    moments: Moments  #: Of the same features; for a regression with the target as last column.
    coordinates: Coordinates  #: In which the penalty applies.
    penalty: float  #: L2 penalty.
    #: Weight of a row of each cell (K, E), and of each class whose environment is unknown (K,).
    weights: Weights = None
    tol: float | None = None  #: How precise an iterative head must be; None for its own default.
    #: Classes are compared inside environments, and the intercept weights them alike.
    within: Within | None = None

    def weighted_moments(self) -> Moments:
        """The moments with the weights applied."""
        return self.moments if self.weights is None else self.moments.reweighted(*self.weights)


@dataclass(frozen=True)
class Head:
    """Everything the package knows about a head."""

    #: ``fit(problem)`` returns coefficients and intercepts on the problem's features.
    fit: Callable[[Problem], tuple[NDArray, NDArray]]
    needs_rows: bool  #: Whether moments are not enough.
    task: str = "classification"  #: Or "regression".
    #: Its L2 penalty, on whitened features, where it is "auto": with two classes, and with more. A
    #: strong one leaves the direction between two classes as it is, but of several classes those
    #: that lie between others are hardly predicted any more.
    penalty: tuple[float, float] = (1.0, 1.0)
    weights: str | None = "group"  #: Its weights of rows where they are "auto".


def _logistic(problem: Problem) -> tuple[NDArray, NDArray]:
    p = problem
    fit, intercept = p.sample.logistic(p)
    if not fit.converged:
        warnings.warn(
            f"the logistic head stopped after {fit.n_passes} passes over the rows, about "
            f"{fit.gradient_norm:.1g} from its minimum. If the features separate the classes, "
            f"there is no minimum without a penalty: try a smaller C than {1 / p.penalty:g}",
            ConvergenceWarning,
            stacklevel=7,
        )
    return p.coordinates.fold(fit.coef, intercept)


def _lda(problem: Problem) -> tuple[NDArray, NDArray]:
    moments = problem.weighted_moments()
    return lda_head(moments, problem.coordinates, penalty=problem.penalty)


def _ridge(problem: Problem) -> tuple[NDArray, NDArray]:
    moments = problem.weighted_moments()
    coef, intercept = ridge_head(moments, problem.coordinates, alpha=problem.penalty)
    return coef, np.array([intercept])


#: Every head, by its name in the estimators and on the command line.
HEADS: dict[str, Head] = {
    "logistic": Head(_logistic, needs_rows=True, penalty=(10.0, 1.0), weights="auto"),
    "lda": Head(_lda, needs_rows=False),
    "ridge": Head(_ridge, needs_rows=False, task="regression"),
}


def cell_weights(moments: Moments, weights: Any) -> tuple[NDArray, NDArray]:
    """Weight of a row of each cell (K, E), and of an unlabelled row of each class (K,).

    "group", and "within" where it cannot be used, give every class the same total weight, and every
    environment in which a class was seen the same share of it: the paper's reweighting where no
    cell is empty. A row whose environment is unknown then has its class's weight.
    """
    count, unlabelled = moments.count, moments.unlabelled
    totals = count.sum(axis=1) + (0.0 if unlabelled is None else unlabelled.count[:, 0])
    by_class = totals.sum() / (len(totals) * totals)
    if weights in ("group", *INSIDE):
        seen = np.maximum(np.count_nonzero(count, axis=1), 1)
        share = by_class * count.sum(axis=1) / seen
        return share[:, None] / np.where(count > 0, count, np.inf), by_class
    if isinstance(weights, dict):
        unknown = [name for name in weights if name not in moments.classes.tolist()]
        if unknown:
            raise ValueError(
                f"weights has a class {unknown[0]!r} that y does not have; the classes are "
                f"{moments.classes.tolist()}"
            )
        by_class = compute_class_weight(weights, classes=moments.classes, y=moments.classes)
    return np.repeat(by_class[:, None], count.shape[1], axis=1), by_class
