"""Deep feature reweighting: a new last layer, fitted on group-balanced held-out rows."""

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

#: Candidates for C in the published code for Waterbirds.
_PUBLISHED_C = (1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)


class DFRClassifier(ClassifierMixin, BaseEstimator):
    """Average of logistic regressions on subsamples with equally many rows of every group.

    Deep feature reweighting (Kirichenko, Izmailov and Wilson, 2023) refits the last layer of a
    trained network on data in which the shortcut does not help. Fit it on *held-out* (validation)
    features, in which every group (a class in an environment) has enough rows to learn from. C is
    chosen by worst-group accuracy on one half of the rows; then all rows are subsampled and fitted
    `n_subsamples` times, and the coefficients are averaged.

    DFR trains on the group labels of the validation set. The ISR estimators train on those of the
    training set and use validation labels, if at all, to choose settings. A comparison of the two
    should mention this.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l1"
        Penalty of the logistic regressions on standardised features. As published, it also
        applies to the intercept.
    C : float or sequence of float, default=(1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)
        Inverse strengths of the penalty to choose from; a single value is used as it is. The
        default is the list published for Waterbirds.
    n_subsamples : int, default=20
        Number of subsamples to average over.
    random_state : int, RandomState instance or None, default=None
        Splits the rows and draws the subsamples.
    missing_environments : {"raise", "single"}, default="raise"
        What ``fit`` does when environments are not passed: raise an error, or treat all samples
        as one environment, so that only classes are balanced.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the features on their original scale. With more than two classes, one
        row per class, fitted against the rest.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    C_ : float
        The chosen C.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    The published method has two classes. Here the split that chooses C is stratified by group, so
    that it never misses a small group, and features are standardised with the rows passed to
    ``fit``, not with the network's training data.

    Examples
    --------
    >>> from isrlearn.estimators import DFRClassifier
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
            Features of rows on which neither the network nor its head was trained.
        y : array-like of shape (n_samples,)
            Labels.
        environments : array-like of shape (n_samples,)
            Environment of each row; none may be missing.
        """
        candidates = self._check_parameters()
        features, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y has only one class, {self.classes_[0]!r}; give at least two")
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
        """Predicted class of each row; environments are not needed."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probability of each class, as if all groups were equally large."""
        p = expit(self.decision_function(X))
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        # All probabilities of a row may underflow to zero, which would make their sum zero.
        p = np.maximum(p, np.finfo(float).tiny)
        return p / p.sum(axis=1, keepdims=True)

    def _check_parameters(self) -> list[float]:
        """Candidates for C; a ValueError names the first parameter out of range."""
        check.check_choice("penalty", self.penalty, ("l1", "l2"))
        check.check_between("n_subsamples", self.n_subsamples, 1, np.inf)
        candidates = [self.C] if np.ndim(self.C) == 0 else list(self.C)
        if not candidates:
            raise ValueError("C is empty; give one positive number, or several to choose from")
        for C in candidates:
            check.check_between("C", C, np.finfo(float).tiny, np.inf)
        return candidates

    def _groups(self, codes: NDArray, environments: ArrayLike | None) -> NDArray[np.intp]:
        """Index of each row's group, a class in an environment; no group is empty."""
        n = len(codes)
        labels = check.check_environments(environments, n, self.missing_environments)
        names, places = encode(labels)
        unknown = int((places == MISSING).sum())
        if unknown:
            raise ValueError(
                f"DFRClassifier needs the environment of every row, and {unknown} of {n} are "
                "missing: remove these rows"
            )
        return np.unique(codes * len(names) + places, return_inverse=True)[1]


def _balanced(groups: NDArray, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Rows of a subsample in which every group is as large as the smallest one."""
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
    """The C with the best worst-group accuracy on one half of the rows, fitted on the other."""
    if len(candidates) == 1:
        return float(candidates[0])
    members = [rng.permutation(np.flatnonzero(groups == g)) for g in range(groups.max() + 1)]
    if min(map(len, members)) < 2:
        raise ValueError(
            "the smallest group (a class in an environment) has one row, too few to fit on one "
            "half of the rows and choose C on the other; pass a single C"
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
    """Coefficients and intercepts: one row for two classes, else one row per class."""
    # With liblinear's default tolerance the coefficients depend on the order of the rows.
    model = LogisticRegression(C=C, solver="liblinear", tol=1e-5, max_iter=1000)
    model.set_params(random_state=rng.randint(2**31 - 1), **_PENALTY[penalty])
    n_classes = int(codes.max()) + 1
    picked = [1] if n_classes == 2 else range(n_classes)
    models = [clone(model).fit(Z, codes == k) for k in picked]
    coef = np.concatenate([model.coef_ for model in models])
    return coef, np.concatenate([model.intercept_ for model in models])


# scikit-learn 1.8 deprecated `penalty` in favour of `l1_ratio`.
_RENAMED = inspect.signature(LogisticRegression).parameters["penalty"].default == "deprecated"
_PENALTY: dict[str, dict[str, Any]] = {
    name: {"l1_ratio": ratio} if _RENAMED else {"penalty": name}
    for name, ratio in (("l1", 1.0), ("l2", 0.0))
}
