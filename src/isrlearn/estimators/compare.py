"""A model compared with plain and balanced ones that are tuned as carefully as it is."""

import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_regressor
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import has_fit_parameter

from isrlearn import validation as check
from isrlearn.core.labels import Cells, as_array
from isrlearn.estimators.cv import ISRClassifierCV, ISRRegressorCV
from isrlearn.estimators.folds import Fold, folds_of
from isrlearn.estimators.preparation import is_fitted
from isrlearn.estimators.search import Search
from isrlearn.estimators.verdict import ComparedModel, Comparison
from isrlearn.metrics import PairedReport, group_report, group_sizes, paired_report

#: The comparison models of a task: nothing is removed, and rows are weighted in this way.
ALTERNATIVES: dict[str, dict[str, str | None]] = {
    "classification": {"plain": None, "class-balanced": "class", "group-balanced": "group"},
    "regression": {"plain": None, "environment-balanced": "group"},
}
#: Rows that a cell keeps in a sample, if it has them.
_FEWEST = 25


class LabelledRows(NamedTuple):
    """Features, labels and environments of the same rows, and the clusters they belong to."""

    X: Any  # (n, d): array, sparse array or data frame
    y: NDArray  # (n,)
    environments: NDArray  # (n,)
    clusters: NDArray | None = None  # (n,)

    @classmethod
    def of(cls, data: Any, clusters: ArrayLike | None = None) -> Self:
        """Rows of a table, of a data set or of three arrays; four with the clusters."""
        if hasattr(data, "environments"):
            data = (data.X, data.y, data.environments, getattr(data, "clusters", None))
        if not isinstance(data, tuple | list) or len(data) not in (3, 4) or data[2] is None:
            raise ValueError(
                "rows must be (X, y, environments) or an object with these attributes, none of "
                f"them None; got {type(data).__name__}"
            )
        X, y, environments, own = (*data, None)[:4]
        groups = own if clusters is None else clusters
        check_consistent_length(X, y, environments, groups)
        X = X.tocsr() if issparse(X) else X if hasattr(X, "dtypes") else np.asarray(X)
        groups = None if groups is None else np.asarray(groups)
        return cls(X, np.asarray(y), as_array(environments), groups)

    def take(self, rows: NDArray[np.intp]) -> Self:
        """Some of the rows; the same object if these are all of them."""
        if len(rows) == len(self.y):
            return self
        return type(self)._make(v if v is None else _safe_indexing(v, rows) for v in self)

    def cells(self, metric: str) -> Cells:
        """Class and environment of each row; a regression has one class."""
        classes = self.y if metric == "accuracy" else None
        return Cells.of(classes, self.environments, self.clusters)

    def at_most(self, n: float, metric: str) -> Self:
        """A sample of about that many rows."""
        return self.take(thinned(self.cells(metric), int(n)))

    def folds(self, n_folds: int, metric: str, random_state: int = 0) -> list[Fold]:
        """Folds over which every cell is spread evenly, and which split no cluster."""
        rng = np.random.RandomState(random_state)
        return folds_of(self.X, self.cells(metric), "worst-group", n_folds, rng)


def thinned(cells: Cells, most: int) -> NDArray[np.intp]:
    """Sorted positions of about `most` rows, at most half as many more, the same every time.

    Cells keep their shares, but a small cell keeps enough rows to be seen.

    Examples
    --------
    >>> import numpy as np
    >>> rows = thinned(Cells.of(None, np.repeat(["a", "b"], [990, 10])), 100)
    >>> len(rows), int((rows >= 990).sum())
    (109, 10)
    """
    n, rng, kept = len(cells.k), np.random.default_rng(0), []
    if n <= most:
        return np.arange(n)
    codes = cells.k * (len(cells.environments) + 1) + cells.e
    names = np.unique(codes)
    fewest = min(_FEWEST, most // (2 * len(names)))
    for cell in names:
        rows = np.flatnonzero(codes == cell)
        share = max(min(len(rows), fewest), int(len(rows) * most / n))
        kept.append(rng.choice(rows, share, replace=False))
    return np.sort(np.concatenate(kept))


def compare_models(
    X: Any,
    y: ArrayLike,
    environments: ArrayLike,
    *,
    model: Any = None,
    test: Any = None,
    clusters: ArrayLike | None = None,
    task: str = "auto",
    metric: str | None = None,
    cv: int = 5,
    name: str = "model",
    random_state: int = 0,
) -> Comparison:
    """A model compared with plain and balanced ones that are tuned as carefully as it is.

    The comparison models remove nothing: "plain", "class-balanced" and "group-balanced" logistic
    regressions, or "plain" and "environment-balanced" ridge regressions. Each has its own search
    over the default penalties, by the same folds and the same rule: the worst group of held-out
    rows, for a regression with three environments the error in environments left out. Nothing in
    them depends on the settings of the model.

    Parameters
    ----------
    X, y, environments
        Training rows, dense or sparse, their classes or target, and their environments; None or
        NaN where these are unknown.
    model : estimator, optional
        Fitted or not; by default `ISRClassifierCV()` or `ISRRegressorCV()`. Its settings are used
        as they are, and its own search, if it has one, is repeated wherever it is fitted.
    test : (X, y, environments), with clusters as fourth, or EnvironmentData, optional
        Rows to score. Without them the training rows are held out in turn, and every model with
        its search is fitted again without them.
    clusters : array-like of shape (n_samples,), optional
        What rows have in common, such as their patient or video. A cluster is never split between
        folds, and intervals account for clusters.
    task : {"auto", "classification", "regression"}, default="auto"
        "auto" is that of the model; without one, numbers that are not whole make a regression.
    metric : {"accuracy", "rmse", "r2"}, optional
        Of the groups' scores; the verdict on a regression is by the RMSE.
    cv : int, default=5
        Number of folds.
    name : str, default="model"
        What to call the model.
    random_state : int, default=0
        Seed of the folds.

    Notes
    -----
    One model is *clearly better* than another if the 95 % interval of the paired difference of
    their worst groups lies above zero. If it contains zero, the average over all rows decides,
    provided that its interval does not contain zero and the worst group does not point the other
    way. The best alternative is the comparison model with the best cross-validated worst group on
    the training rows; test scores have no part in that choice. The verdict is

    - "use it": the model is clearly better than the best alternative;
    - "use balanced weights instead": otherwise, if the best alternative is a balanced model that
      is clearly better than the model, or than the plain one unless the model removes nothing and
      has balanced weights itself;
    - "do not use it": otherwise, if the model is clearly worse than the best alternative or than
      the plain model;
    - "no clear difference" in all other cases.

    Examples
    --------
    >>> from isrlearn import ISRClassifier, compare_models
    >>> from isrlearn.datasets import load_digits_on_paper
    >>> data = load_digits_on_paper()
    >>> train = data.train.X, data.train.y, data.train.environments
    >>> found = compare_models(*train, model=ISRClassifier(), test=data.test)
    >>> list(found.models), found.best
    (['plain', 'class-balanced', 'group-balanced', 'model'], 'group-balanced')
    >>> found.verdict
    'use balanced weights instead'
    """
    rows = LabelledRows.of((X, y, environments), clusters)
    task = task_of(task, model, rows.y)
    metric_of_task = "accuracy" if task == "classification" else "rmse"
    kind = ISRClassifierCV if task == "classification" else ISRRegressorCV
    models = {
        key: kind(n_spurious=0, scale=1.0, weights=weights)
        for key, weights in ALTERNATIVES[task].items()
    }
    if task == "classification":  # balanced models may move their threshold, as a search of ISR may
        models["plain"].set_params(threshold=None)
    if name in models:
        raise ValueError(f"name must differ from {', '.join(models)}; got {name!r}")
    alternatives = list(models)
    models[name] = kind() if model is None else model
    fitted = {
        key: each if is_fitted(each) else _fitted(each, rows, cv, random_state)
        for key, each in models.items()
    }
    if test is None:
        folds = rows.folds(cv, metric_of_task, random_state)
        scored, predicted = _held_out(models, rows, folds, cv, random_state)
    else:
        scored = LabelledRows.of(test)
        predicted = {key: each.predict(scored.X) for key, each in fitted.items()}
    rest: dict[str, Any] = {"environments": scored.environments, "clusters": scored.clusters}
    metric = metric_of_task if metric is None else metric
    sizes: Any = group_sizes(rows.y, rows.environments, metric=metric_of_task)
    if not set(sizes) <= set(group_sizes(scored.y, scored.environments, metric=metric_of_task)):
        sizes = None
    found = {}
    for key, each in fitted.items():
        settings = getattr(each, "best_params_", None) or each.get_params(deep=False)
        report = group_report(scored.y, predicted[key], metric=metric, train_groups=sizes, **rest)
        found[key] = ComparedModel(each, settings, getattr(each, "best_score_", None), report)
    best = max(alternatives, key=lambda key: fitted[key].best_score_)

    def paired(before: str, after: str) -> PairedReport:
        both = predicted[before], predicted[after]
        return paired_report(scored.y, *both, metric=metric_of_task, **rest)

    from_plain = {key: paired("plain", key) for key in {best: 0, name: 0}}
    change = from_plain[name] if best == "plain" else paired(best, name)
    return Comparison(found, best, change, from_plain, "folds" if test is None else "test")


def left_out(comparison: Comparison, rows: LabelledRows) -> dict[str, dict[Any, float]] | None:
    """Accuracy or error in each environment when it is left out, by the best alternative and ours.

    None if fewer than three are known, or if nothing can be compared without one of them.
    """
    metric = comparison.change.metric
    cells, regression = rows.cells(metric), metric != "accuracy"
    found = {name: comparison.models[name].estimator for name in (comparison.best, comparison.name)}
    models = {name: getattr(each, "best_estimator_", each) for name, each in found.items()}
    try:
        folds = folds_of(rows.X, cells, "leave-one-environment-out", None, None)
        held_out, predicted = _held_out(models, rows, folds, 2, 0)
    except (ValueError, np.linalg.LinAlgError):
        return None

    def score(y: NDArray, guess: NDArray) -> float:
        return float(np.sqrt(np.mean((y - guess) ** 2)) if regression else np.mean(y == guess))

    own = [(name, held_out.environments == name) for name in cells.environments.tolist()]
    return {
        model: {name: score(held_out.y[of], guess[of]) for name, of in own}
        for model, guess in predicted.items()
    }


def task_of(task: str, model: Any, y: ArrayLike) -> str:
    """The task of a model, or the one that labels suggest."""
    check.check_choice("task", task, ("auto", *ALTERNATIVES))
    if task != "auto":
        return task
    if model is not None:
        return "regression" if is_regressor(model) else "classification"
    return "regression" if type_of_target(y).startswith("continuous") else "classification"


def _fitted(model: Any, rows: LabelledRows, cv: int, random_state: int) -> Any:
    """A clone fitted on some rows; searches without a splitter of their own share the folds."""
    twin, given = clone(model), {}
    if isinstance(twin, Search) and not hasattr(twin.cv, "split"):
        given = {"cv": twin.cv, "random_state": twin.random_state}
        own = isinstance(twin.cv, Integral) and twin.cv != type(twin)().cv
        twin.set_params(cv=twin.cv if own else cv, random_state=random_state)
    known = {"environments": rows.environments, "clusters": rows.clusters}
    twin.fit(rows.X, rows.y, **{k: v for k, v in known.items() if has_fit_parameter(twin, k)})
    return twin.set_params(**given)


def _held_out(
    models: Mapping[str, Any], rows: LabelledRows, folds: list[Fold], cv: int, random_state: int
) -> tuple[LabelledRows, dict[str, NDArray]]:
    """The rows that folds hold out, and the predictions of models fitted without them."""
    tested = np.concatenate([test for _, test in folds])
    order = np.argsort(tested, kind="stable")
    found: dict[str, list[NDArray]] = {name: [] for name in models}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the fit on all rows were shown
        for train, test in folds:
            part, held_out = rows.take(train), rows.take(test)
            for name, model in models.items():
                twin = _fitted(model, part, cv, random_state)
                found[name].append(twin.predict(held_out.X))
    predicted = {name: np.concatenate(each)[order] for name, each in found.items()}
    return rows.take(tested[order]), predicted
