"""Environments nobody labelled, or only for some of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from isrlearn import validation as check
from isrlearn.core.labels import MISSING, encode

#: Inverse penalties to choose from when environments are told by those known.
_PENALTIES = (0.001, 0.01, 0.1, 1.0)
_CLASS_WEIGHT = 10.0


def infer_environments(
    X: ArrayLike,
    y: ArrayLike,
    *,
    environments: ArrayLike | None = None,
    strategy: str | None = None,
    n_environments: int = 2,
    n_components: int = 1,
    C: float | None = None,
    cv: int = 5,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[Any]:
    """A guess at the environment of each row where nobody wrote it down.

    A heuristic. With labels for *some* of the rows it learns from them, and is as good as the
    environment can be told from features and class. With none, environments cannot be told from
    other variation inside a class without assumptions: the strategies "errors" and "clusters" look
    for what a model trained on the classes leans on, and are right as far as that is the
    shortcut. Check the guess where you can: look at rows of each environment, label a few by
    hand, compare ``isrlearn.metrics`` on held-out groups.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Features of the training rows.
    y : array-like of shape (n_samples,)
        Their classes.
    environments : array-like of shape (n_samples,), optional
        What is known of them; None or NaN where it is not. Known ones are kept.
    strategy : {"labels", "errors", "clusters"}, optional
        By default "labels" if `environments` is given, and "errors" if not.

        "labels": logistic regression of the environment on standardised features and the class,
        its penalty chosen by cross-validation, from the rows whose environment is known.

        "errors": rows that a strongly penalised, class-balanced logistic regression gets "wrong"
        against those it gets "right", each predicted by a fit on other rows. A head kept simple
        takes the easiest cue, so what it gets wrong are rows where that cue misleads: the error
        set of JTT (Liu et al., 2021), and the partition EIIL (Creager et al., 2021) starts from.

        "clusters": the components of a Gaussian mixture inside each class, in the direction, or
        few directions, that partial least squares finds for the label: the linear stand-in for
        the representation of a trained network, which GEORGE (Sohoni et al., 2020) clusters.
        Clusters of different classes are matched by the direction in which they lie.
    n_environments : int, default=2
        How many clusters a class has; "errors" always makes two environments.
    n_components : int, default=1
        Directions for "clusters".
    C : float, optional
        Inverse penalty for "labels" and "errors", on standardised features; default: the best of
        0.001, 0.01, 0.1 and 1 for "labels", one over the number of rows for "errors".
    cv : int, default=5
        Folds for "labels" and "errors".
    random_state : int, RandomState instance or None, default=None
        Deals the rows to folds, or starts the mixtures.

    Returns
    -------
    ndarray of shape (n_samples,)
        Names of environments for "labels", "right" or "wrong" for "errors", 0, …,
        n_environments - 1 for "clusters". Every class has rows in every environment, unless the
        labels show none. Environments made from errors mean the same in all classes only in the
        sense of a cue that helps or misleads; ISR compares inside a class, where that is enough.

    Examples
    --------
    >>> from isrlearn.datasets import load_digits_on_paper
    >>> from isrlearn.estimators.infer import infer_environments
    >>> train = load_digits_on_paper().train
    >>> guess = infer_environments(train.X, train.y, random_state=0)
    >>> odd = train.y == "odd"
    >>> wrong_paper = train.environments[odd] == "blue paper"
    >>> float(((guess[odd] == "wrong") == wrong_paper).mean()) > 0.97
    True

    With one label in ten:

    >>> known = train.environments.astype(object)
    >>> known[np.arange(len(known)) % 10 > 0] = None
    >>> filled = infer_environments(train.X, train.y, environments=known, random_state=0)
    >>> float((filled == train.environments).mean()) > 0.97
    True
    """
    if strategy is None:
        strategy = "errors" if environments is None else "labels"
    check.check_choice("strategy", strategy, ("labels", *_STRATEGIES))
    if (strategy == "labels") != (environments is not None):
        raise ValueError(
            f"strategy={strategy!r} "
            + ("needs environments" if environments is None else "takes no environments")
            + "; 'labels' learns from known ones, 'errors' and 'clusters' do without"
        )
    features, labels = check_X_y(X, y, dtype=np.float64)
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes[0]!r}; there is no label to lean on")
    rng = check_random_state(random_state)
    if environments is not None:
        known = check.check_environments(environments, len(features), "raise")
        return _filled(features, codes, known, C, cv, rng)
    guess = _STRATEGIES[strategy](
        features,
        codes,
        n_environments=n_environments,
        n_components=n_components,
        C=C,
        cv=cv,
        rng=rng,
    )
    _check_guess(classes, codes, guess)
    return guess


def _filled(
    X: NDArray,
    codes: NDArray,
    environments: NDArray,
    C: float | None,
    cv: int,
    rng: np.random.RandomState,
) -> NDArray[Any]:
    """Environments with the unknown ones told from features and class."""
    names, e = encode(environments)
    known = e != MISSING
    if known.all():
        return names[e]
    least = int(np.bincount(e[known], minlength=1).min())
    if len(names) < 2 or (C is None and least < max(cv, 2)):
        counts = ", ".join(
            f"{n} of {v!r}" for v, n in zip(names.tolist(), np.bincount(e[known]), strict=True)
        )
        raise ValueError(
            f"too few rows with an environment to tell the others by ({counts or 'none at all'}): "
            f"at least two environments are needed, with {max(cv, 2)} rows each (cv={cv!r}) to "
            "choose the penalty by; label more rows, or give fewer folds or a C"
        )
    # Classes weigh much and are hardly penalised: the share of an environment goes with them.
    indicators = _CLASS_WEIGHT * LabelBinarizer().fit_transform(codes)
    A = np.hstack([StandardScaler().fit_transform(X), indicators])
    if C is None:
        folds = StratifiedKFold(cv, shuffle=True, random_state=rng)
        C = _best_penalty(A[known], e[known], folds)
    check.check_between("C", C, np.finfo(float).tiny, np.inf)
    e[~known] = LogisticRegression(C=C, max_iter=1000).fit(A[known], e[known]).predict(A[~known])
    return names[e]


def _best_penalty(A: NDArray, e: NDArray, folds: StratifiedKFold) -> float:
    """Inverse penalty with the best cross-validated likelihood."""
    losses = [
        cross_val_score(
            LogisticRegression(C=C, max_iter=1000), A, e, cv=folds, scoring="neg_log_loss"
        ).mean()
        for C in _PENALTIES
    ]
    return _PENALTIES[int(np.argmax(losses))]


def _errors(
    X: NDArray, codes: NDArray, *, C: float | None, cv: int, rng: np.random.RandomState, **_: Any
) -> NDArray[np.str_]:
    """Whether a simple head, fitted on other rows, gets each row right."""
    # With C = 1/n the penalty weighs as much as the mean loss: coefficients stay small, and
    # follow the directions in which the class means differ most.
    C = 1.0 / len(X) if C is None else C
    check.check_between("C", C, np.finfo(float).tiny, np.inf)
    least = int(np.bincount(codes).min())
    if not 2 <= cv <= least:
        raise ValueError(
            f"cv={cv!r} must be at least 2 and at most {least}, the rows of the smallest class"
        )
    head = LogisticRegression(C=C, class_weight="balanced", max_iter=1000)
    folds = StratifiedKFold(cv, shuffle=True, random_state=rng)
    predicted = cross_val_predict(make_pipeline(StandardScaler(), head), X, codes, cv=folds)
    return np.where(predicted == codes, "right", "wrong")


def _clusters(
    X: NDArray,
    codes: NDArray,
    *,
    n_environments: int,
    n_components: int,
    rng: np.random.RandomState,
    **_: Any,
) -> NDArray[np.intp]:
    """Cluster of each row inside its class, clusters of all classes in the same order."""
    check.check_between("n_environments", n_environments, 2, np.bincount(codes).min())
    check.check_between("n_components", n_components, 1, min(X.shape[1], len(X) - 1))
    T = _label_directions(X, codes, n_components)
    guess = np.empty(len(codes), dtype=np.intp)
    reference = None
    for k in np.argsort(-np.bincount(codes), kind="stable"):
        rows = np.flatnonzero(codes == k)
        mixture = GaussianMixture(
            n_environments, covariance_type="tied", n_init=5, max_iter=500, random_state=rng
        )
        found = mixture.fit_predict(T[rows])
        centres = mixture.means_ - mixture.means_.mean(axis=0)
        if reference is None:
            order = np.argsort(-np.bincount(found, minlength=n_environments), kind="stable")
            reference = centres[order]
        else:
            order = linear_sum_assignment(reference @ centres.T, maximize=True)[1]
        guess[rows] = np.argsort(order)[found]
    return guess


def _label_directions(X: NDArray, codes: NDArray, n_components: int) -> NDArray[np.float64]:
    """Rows (n, n_components) in the directions partial least squares finds for the label."""
    target = LabelBinarizer().fit_transform(codes).astype(float)
    pls = PLSRegression(n_components, scale=True, max_iter=2000)
    T = pls.fit(StandardScaler().fit_transform(X), target).x_scores_
    return np.asarray(StandardScaler().fit_transform(T))


def _check_guess(classes: NDArray, codes: NDArray, guess: NDArray) -> None:
    """Raise unless every class has rows in every guessed environment."""
    names, places = np.unique(guess, return_inverse=True)
    count = np.bincount(codes * len(names) + places, minlength=len(classes) * len(names))
    count = count.reshape(len(classes), len(names))
    if len(names) == 1:
        raise ValueError(
            f"all rows are {names[0].item()!r}: the head makes no mistake, so its errors say "
            "nothing of a shortcut; give a smaller C or strategy='clusters'"
        )
    empty = np.argwhere(count == 0)
    if len(empty):
        k, e = empty[0]
        raise ValueError(
            f"no row of class {classes[k].item()!r} is in guessed environment "
            f"{names[e].item()!r}; try another C, strategy or n_environments"
        )


_STRATEGIES: dict[str, Callable[..., NDArray[Any]]] = {"errors": _errors, "clusters": _clusters}
