"""Guesses at environments that are unknown for all rows, or for some of them."""

from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.sparse import issparse
from sklearn.cross_decomposition import PLSRegression
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import LabelBinarizer, StandardScaler
from sklearn.utils import check_random_state, check_X_y
from sklearn.utils.multiclass import check_classification_targets

from isrlearn import validation as check
from isrlearn.core.labels import MISSING, Cells, encode
from isrlearn.markup import listed

#: Inverse penalties to choose from when known environments predict the others.
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
    """A guess at the environment of each row where it is unknown.

    This is a heuristic. If *some* environments are known, the others are predicted from features
    and class. If none is known, environments cannot be distinguished from other variation inside
    a class without assumptions: the strategies "errors" and "clusters" look for what a model of
    the classes relies on, and are right as far as that is the shortcut. Check the guess where you
    can: look at rows of each environment, label a few by hand, compare ``isrlearn.metrics`` on
    held-out groups.

    Parameters
    ----------
    X, y : array-like of shape (n_samples, n_features) and (n_samples,)
        Features and classes of the training rows.
    environments : array-like of shape (n_samples,), optional
        Known environments, which are kept; None or NaN where they are unknown.
    strategy : {"labels", "errors", "clusters"}, optional
        By default "labels" if `environments` is given, and "errors" if not.

        "labels": logistic regression of the environment on standardised features and the class,
        fitted on the rows whose environment is known.

        "errors": rows that a strongly penalised, class-balanced logistic regression, fitted on
        other rows, gets "wrong" or "right". A simple head uses the easiest cue, so it is wrong
        where that cue misleads: the error set of JTT (Liu et al., 2021), from which EIIL (Creager
        et al., 2021) starts.

        "clusters": the components of a Gaussian mixture inside each class, in the directions that
        partial least squares finds for the label, a linear stand-in for the representation that
        GEORGE (Sohoni et al., 2020) clusters. Clusters are matched between the classes by the
        direction in which they lie.
    n_environments : int, default=2
        Number of clusters of each class; "errors" always makes two environments.
    n_components : int, default=1
        Directions for "clusters".
    C : float, optional
        Inverse penalty for "labels" and "errors", on standardised features. Default: the best of
        0.001, 0.01, 0.1 and 1 for "labels", one over the number of rows for "errors".
    cv : int, default=5
        Folds for "labels" and "errors".
    random_state : int, RandomState instance or None, default=None
        Assigns the rows to folds, or initialises the mixtures.

    Returns
    -------
    ndarray of shape (n_samples,)
        Names of environments for "labels", "right" or "wrong" for "errors", 0, …,
        n_environments - 1 for "clusters". Guesses without labels have rows of every class in every
        environment. "right" and "wrong" mean that a cue helps or misleads, which may be another
        cue in another class; ISR compares inside a class, where that is enough.

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
    check.check_choice("strategy", strategy, ("labels", "errors", "clusters"))
    if (strategy == "labels") != (environments is not None):
        verb = "needs" if environments is None else "takes no"
        raise ValueError(
            f"strategy={strategy!r} {verb} environments; 'labels' learns from known ones, "
            "'errors' and 'clusters' need none"
        )
    features, labels = check_X_y(X, y, dtype=np.float64, accept_sparse="csr")
    features = features.toarray() if issparse(features) else features
    check_classification_targets(labels)
    classes, codes = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y has only one class, {classes[0]!r}; there is no label to rely on")
    if C is not None:
        check.check_between("C", C, np.finfo(float).tiny, np.inf)
    rng = check_random_state(random_state)
    if environments is not None:
        names, e = encode(check.check_environments(environments, len(features)))
        if (e == MISSING).any():
            count = np.bincount(e[e != MISSING], minlength=1)
            if len(names) < 2 or (C is None and count.min() < max(cv, 2)):
                pairs = sorted(zip(count.tolist(), names.tolist(), strict=False), key=itemgetter(0))
                found = listed([f"{n} of {v!r}" for n, v in pairs], 5) or "none at all"
                raise ValueError(
                    f"too few rows with an environment to predict the others ({found}): there "
                    f"must be two environments or more, each with {max(cv, 2)} rows to choose the "
                    f"penalty (cv={cv!r}); label more rows, leave rare environments out, or pass "
                    "fewer folds or a C"
                )
            folds = StratifiedKFold(cv, shuffle=True, random_state=rng.randint(2**31 - 1))
            model, A = _predictor(features, codes, e, C, folds)
            e = np.where(e == MISSING, model.predict(A), e)
        return names[e]
    if strategy == "errors":
        guess = _errors(features, codes, C, cv, rng)
    else:
        guess = _clusters(features, codes, n_environments, n_components, rng)
    cells = Cells.of(labels, guess)
    found = cells.environments.tolist()
    if len(found) == 1:
        raise ValueError(
            f"all rows are {found[0]!r}: the head makes no mistake, so its errors do not show a "
            "shortcut; give a smaller C or strategy='clusters'"
        )
    empty = np.argwhere(cells.count() == 0)
    if len(empty):
        k, e = empty[0]
        raise ValueError(
            f"no row of class {classes.tolist()[k]!r} is in guessed environment {found[e]!r}; try "
            "another C, strategy or n_environments"
        )
    return guess


def drawn_environments(X: NDArray, cells: Cells, weight: NDArray | None = None) -> NDArray[np.intp]:
    """Codes of environments, unknown ones drawn at random from their predicted probabilities."""
    # A most probable environment that features hardly predict is that of most rows of the class:
    # such a guess would select rows by their features. A draw does not.
    unknown = np.flatnonzero(cells.e == MISSING)
    if len(cells.environments) < 2 or not len(unknown):
        return cells.e
    model, A = _predictor(X, cells.k, cells.e, 1.0, weight=weight)
    below = np.cumsum(model.predict_proba(A[unknown]), axis=1)[:, :-1]
    found = cells.e.copy()
    found[unknown] = (np.random.default_rng(0).random((len(unknown), 1)) > below).sum(axis=1)
    return found


def _predictor(
    X: NDArray,
    codes: NDArray,
    e: NDArray,
    C: float | None,
    folds: Any = None,
    weight: NDArray | None = None,
) -> tuple[Any, NDArray]:
    """A model of the known environments given features and class, and what it predicts from."""
    known = e != MISSING
    # Classes weigh much and are hardly penalised: the share of an environment depends on them.
    indicators = _CLASS_WEIGHT * LabelBinarizer().fit_transform(codes)
    A = np.hstack([StandardScaler().fit_transform(X, sample_weight=weight), indicators])
    model: Any = LogisticRegression(C=C or 1.0, max_iter=1000)
    if C is None:
        model = GridSearchCV(model, {"C": _PENALTIES}, scoring="neg_log_loss", cv=folds)
    given = {} if weight is None else {"sample_weight": weight[known]}
    return model.fit(A[known], e[known], **given), A


def _errors(X: NDArray, codes: NDArray, C: float | None, cv: int, rng: Any) -> NDArray[Any]:
    """Whether a simple head, fitted on other rows, gets each row right."""
    least = int(np.bincount(codes).min())
    if not 2 <= cv <= least:
        raise ValueError(
            f"cv={cv!r} must be at least 2 and at most {least}, the rows of the smallest class"
        )
    # With C = 1/n the penalty weighs as much as the mean loss: coefficients stay small, and
    # follow the directions in which the class means differ most.
    head = LogisticRegression(C=C or 1.0 / len(X), class_weight="balanced", max_iter=1000)
    folds = StratifiedKFold(cv, shuffle=True, random_state=rng)
    predicted = cross_val_predict(make_pipeline(StandardScaler(), head), X, codes, cv=folds)
    return np.where(predicted == codes, "right", "wrong")


def _clusters(
    X: NDArray, codes: NDArray, n_environments: int, n_components: int, rng: Any
) -> NDArray[Any]:
    """Cluster of each row inside its class, clusters of all classes in the same order."""
    check.check_between("n_environments", n_environments, 2, np.bincount(codes).min())
    check.check_between("n_components", n_components, 1, min(X.shape[1], len(X) - 1))
    target = LabelBinarizer().fit_transform(codes).astype(float)
    pls = PLSRegression(n_components, max_iter=2000).fit(StandardScaler().fit_transform(X), target)
    T = StandardScaler().fit_transform(pls.x_scores_)
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
