"""Deep feature reweighting: a new last layer, fitted on group-balanced held-out rows."""

import inspect
from dataclasses import KW_ONLY
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from isrlearn import validation as check
from isrlearn.core.labels import MISSING
from isrlearn.estimators.linear import LinearScores, with_parameters
from isrlearn.metrics import worst_group_accuracy

#: Candidates for C in the published code for Waterbirds.
_PUBLISHED_C = (1.0, 0.7, 0.3, 0.1, 0.07, 0.03, 0.01)


@with_parameters
class DFRClassifier(LinearScores, ClassifierMixin, BaseEstimator):
    """Average of logistic regressions on subsamples with equally many rows of every group.

    Deep feature reweighting (Kirichenko, Izmailov and Wilson, 2023) refits the last layer of a
    trained network on data in which the shortcut does not help. Fit it on *held-out* (validation)
    features, in which every group (a class in an environment) has enough rows to learn from. C is
    chosen by worst-group accuracy on one half of the rows; then all rows are subsampled and fitted
    `n_subsamples` times, and the coefficients are averaged. A comparison with ISR should mention
    that DFR trains on the groups of the validation set, and ISR on those of the training set.

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
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features; their names, if X was a data frame.

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

    penalty: str = "l1"
    _: KW_ONLY
    C: Any = _PUBLISHED_C
    n_subsamples: int = 20
    random_state: int | np.random.RandomState | None = None
    missing_environments: str = "raise"

    __metadata_request__fit = {"environments": True}

    #: `LinearScores` gives probabilities for heads of this kind.
    head = "logistic"

    @check.all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, environments: ArrayLike | None = None) -> Self:
        """The estimator, fitted on held-out rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features of rows on which neither the network nor its head was trained.
        y, environments : array-like of shape (n_samples,)
            Class and environment of each row; none may be missing.
        """
        check.check_choice("penalty", self.penalty, ("l1", "l2"))
        check.check_between("n_subsamples", self.n_subsamples, 1, np.inf)
        candidates = [self.C] if np.ndim(self.C) == 0 else list(self.C)
        if not candidates:
            raise ValueError("C is empty; give one positive number, or several to choose from")
        for C in candidates:
            check.check_between("C", C, np.finfo(float).tiny, np.inf)
        how: Any = {"target": "classes", "part": True}
        rows, _, cells, _ = check.check_rows(self, X, y, environments, None, **how)
        check.check_classes(cells.classes, np.bincount(cells.k))
        unknown = int((cells.e == MISSING).sum())
        if unknown:
            raise ValueError(
                f"DFRClassifier needs the environment of every row, and {unknown} of "
                f"{len(cells.e)} are missing: remove these rows"
            )
        codes, rng = cells.k, check_random_state(self.random_state)
        groups = np.unique(codes * len(cells.environments) + cells.e, return_inverse=True)[1]
        scaler = StandardScaler()
        Z = scaler.fit_transform(rows[:].astype(np.float64))
        model = _model(self.penalty, rng.randint(2**31 - 1))
        self.classes_, self.C_ = cells.classes, candidates[0]
        if len(candidates) > 1:
            self.C_ = _best(candidates, model, Z, codes, groups, rng)
        model.set_params(estimator__C=self.C_)
        subsamples = (_balanced(groups, rng) for _ in range(self.n_subsamples))
        heads = [model.fit(Z[i], codes[i]).estimators_ for i in subsamples]
        coef = np.mean([[part.coef_[0] for part in head] for head in heads], axis=0)
        intercept = np.mean([[part.intercept_[0] for part in head] for head in heads], axis=0)
        self.coef_ = coef / scaler.scale_
        self.intercept_ = intercept - self.coef_ @ scaler.mean_
        return self


def _model(penalty: str, seed: int) -> OneVsRestClassifier:
    """A logistic regression for two classes, else one per class."""
    # scikit-learn 1.8 deprecated `penalty` in favour of `l1_ratio`.
    renamed = inspect.signature(LogisticRegression).parameters["penalty"].default != "l2"
    kind = {"l1_ratio": float(penalty == "l1")} if renamed else {"penalty": penalty}
    # With liblinear's default tolerance the coefficients depend on the order of the rows.
    settings = {"solver": "liblinear", "tol": 1e-5, "max_iter": 1000, "random_state": seed}
    return OneVsRestClassifier(LogisticRegression(**settings, **kind))


def _balanced(groups: NDArray, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Rows of a subsample in which every group is as large as the smallest one."""
    least = np.bincount(groups).min()
    members = [np.flatnonzero(groups == g) for g in range(groups.max() + 1)]
    return np.concatenate([rng.choice(rows, least, replace=False) for rows in members])


def _best(
    candidates: list[float], model: Any, Z: NDArray, codes: NDArray, groups: NDArray, rng: Any
) -> float:
    """The C with the best worst-group accuracy on one half of the rows, fitted on the other."""
    if np.bincount(groups).min() < 2:
        raise ValueError(
            "the smallest group (a class in an environment) has one row, too few to fit on one "
            "half of the rows and choose C on the other; pass a single C"
        )
    rest, held = next(StratifiedKFold(2, shuffle=True, random_state=rng).split(Z, groups))
    rows = rest[_balanced(groups[rest], rng)]
    fits = (model.set_params(estimator__C=C).fit(Z[rows], codes[rows]) for C in candidates)
    scores = [worst_group_accuracy(codes[held], f.predict(Z[held]), groups[held]) for f in fits]
    return candidates[int(np.argmax(scores))]
