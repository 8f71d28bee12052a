"""Deep feature reweighting: a new last layer from held-out rows, as many of every cell."""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from isrlearn import validation as check
from isrlearn.core.labels import MISSING, encode

#: The penalties tried by the published code on Waterbirds.
_PUBLISHED_C = (1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)


class DFRClassifier(ClassifierMixin, BaseEstimator):
    """Average of logistic regressions on subsamples with as many rows of every cell.

    Deep feature reweighting (Kirichenko, Izmailov and Wilson, 2023) refits the last layer of a
    trained network on data in which the shortcut is of no use. Meant to be given the *held-out*
    (validation) features: every group there must be large enough to learn from. Half of the rows
    choose C by worst-group accuracy; with it, all rows are subsampled and fitted `n_subsamples`
    times, and the coefficients averaged.

    It spends the group labels of the validation set on training, where the ISR estimators use
    those of the training set, and validation labels at most to choose a setting. A comparison of
    the two should say so.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l1"
        Of the logistic regressions on standardised features. As published, the intercept is
        penalised too.
    C : float or sequence of float, default=(1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)
        Inverse penalties to choose from; a single one is taken as it is. The default is what was
        published for Waterbirds.
    n_subsamples : int, default=20
        Subsamples to average over.
    random_state : int, RandomState instance or None, default=None
        Splits the rows and draws the subsamples.
    missing_environments : {"raise", "single"}, default="raise"
        What ``fit`` does when environments are not passed: raise an error, or take all samples
        as one environment; only classes are balanced then.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features as they are. More than two classes are each fitted against the
        rest.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    C_ : float
        The chosen inverse penalty.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Published for two classes. Here the half that chooses C has its share of every group, so that
    small groups are never missing from it, and features are standardised by the rows given to
    ``fit``, not by the network's training data.

    Examples
    --------
    >>> from isrlearn.paper.baselines import DFRClassifier
    >>> from isrlearn.datasets import make_waterbirds_like
    >>> held_out = make_waterbirds_like(n_features=32, random_state=0).validation
    >>> dfr = DFRClassifier(n_subsamples=5, random_state=0)
    >>> dfr.fit(held_out.X, held_out.y, environments=held_out.environments).coef_.shape
    (1, 32)
    """

    __metadata_request__fit = {"environments": True}

    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    classes_: NDArray[Any]

    def __init__(
        self,
        penalty: str = "l1",
        *,
        C: Any = _PUBLISHED_C,
        n_subsamples: int = 20,
        random_state: int | np.random.RandomState | None = None,
        missing_environments: str = "raise",
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.n_subsamples = n_subsamples
        self.random_state = random_state
        self.missing_environments = missing_environments

    def fit(self, X: ArrayLike, y: ArrayLike, *, environments: ArrayLike | None = None) -> Self:
        """The estimator, fitted on held-out rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features, of rows that trained neither the network nor its head.
        y : array-like of shape (n_samples,)
        environments : array-like of shape (n_samples,)
            The environment of each row, known for all of them.
        """
        candidates = self._check_parameters()
        features, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}; a classifier needs two")
        groups = self._groups(codes, environments)
        rng = check_random_state(self.random_state)
        mean, scale = features.mean(axis=0), features.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        Z = (features - mean) / scale
        self.C_ = _chosen(Z, codes, groups, candidates, self.penalty, rng)
        rows = (_balanced(groups, rng) for _ in range(self.n_subsamples))
        heads = [_fitted(Z[i], codes[i], self.C_, self.penalty, rng) for i in rows]
        coef, intercept = (np.mean(part, axis=0) for part in zip(*heads, strict=True))
        self.coef_ = coef / scale
        self.intercept_ = intercept - self.coef_ @ mean
        return self

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """``X @ coef_.T + intercept_``: (n,) for two classes, else (n, n_classes)."""
        check_is_fitted(self)
        features: NDArray[np.float64] = validate_data(self, X, dtype=np.float64, reset=False)
        scores = features @ self.coef_.T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: ArrayLike) -> NDArray:
        """Class of each row. No environments needed."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of each class, at equally large groups."""
        p = expit(self.decision_function(X))
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        # The largest score keeps its p above zero, so that rows can be divided by their sum.
        p = np.maximum(p, np.finfo(float).tiny)
        return p / p.sum(axis=1, keepdims=True)

    def _check_parameters(self) -> list[float]:
        """Candidates for C, or a ValueError that names the first parameter out of range."""
        check.check_choice("penalty", self.penalty, ("l1", "l2"))
        check.check_between("n_subsamples", self.n_subsamples, 1, np.inf)
        candidates = [self.C] if np.ndim(self.C) == 0 else list(self.C)
        if not candidates:
            raise ValueError("C is empty; give one positive number or several to choose from")
        for C in candidates:
            check.check_between("C", C, np.finfo(float).tiny, np.inf)
        return candidates

    def _groups(self, codes: NDArray, environments: ArrayLike | None) -> NDArray[np.intp]:
        """Number of each row's cell, class by environment; there are no empty ones."""
        n = len(codes)
        labels = check.check_environments(environments, n, self.missing_environments, part=True)
        names, places = encode(labels)
        unknown = int((places == MISSING).sum())
        if unknown:
            raise ValueError(
                f"DFRClassifier needs the environment of every row, and {unknown} of {n} are "
                "missing: leave these rows out"
            )
        return np.unique(codes * len(names) + places, return_inverse=True)[1]


def _balanced(groups: NDArray, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Positions of as many rows of every group as the smallest has."""
    least = np.bincount(groups).min()
    members = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
    return np.concatenate([rng.choice(rows, least, replace=False) for rows in members])


def _chosen(
    Z: NDArray,
    codes: NDArray,
    groups: NDArray,
    candidates: list[float],
    penalty: str,
    rng: np.random.RandomState,
) -> float:
    """The C with the best worst-group accuracy on half of the rows, fitted on the others."""
    if len(candidates) == 1:
        return float(candidates[0])
    members = [rng.permutation(np.flatnonzero(groups == g)) for g in range(groups.max() + 1)]
    if min(map(len, members)) < 2:
        raise ValueError(
            "the smallest group, a class in an environment, has one row: too few to choose C on "
            "one half and score it on the other; give a single C"
        )
    held = np.concatenate([rows[: len(rows) // 2] for rows in members])
    rest = np.concatenate([rows[len(rows) // 2 :] for rows in members])
    rows = rest[_balanced(groups[rest], rng)]
    worst = []
    for C in candidates:
        coef, intercept = _fitted(Z[rows], codes[rows], C, penalty, rng)
        scores = Z[held] @ coef.T + intercept
        guess = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0)
        right = np.bincount(groups[held], weights=guess == codes[held])
        worst.append((right / np.bincount(groups[held])).min())
    return float(candidates[int(np.argmax(worst))])


def _fitted(
    Z: NDArray, codes: NDArray, C: float, penalty: str, rng: np.random.RandomState
) -> tuple[NDArray, NDArray]:
    """Coefficients (1, d) and intercept (1,) of two classes, or a row for each against the rest."""
    # One convergence for all: the default tolerance leaves coefficients that depend on the order
    # of the rows.
    model = LogisticRegression(C=C, solver="liblinear", tol=1e-5, max_iter=1000)
    model.set_params(random_state=rng.randint(2**31 - 1), **_PENALTY[penalty])
    n_classes = int(codes.max()) + 1
    picked = [1] if n_classes == 2 else range(n_classes)
    models = [clone(model).fit(Z, codes == k) for k in picked]
    coef = np.concatenate([model.coef_ for model in models])
    return coef, np.concatenate([model.intercept_ for model in models])


# scikit-learn 1.8 renamed the choice of penalty.
_RENAMED = inspect.signature(LogisticRegression).parameters["penalty"].default == "deprecated"
_PENALTY: dict[str, dict[str, Any]] = {
    name: {"l1_ratio": ratio} if _RENAMED else {"penalty": name}
    for name, ratio in (("l1", 1.0), ("l2", 0.0))
}
