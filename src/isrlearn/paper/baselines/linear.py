"""Linear models fitted with environments: input, fit, prediction and documentation.

A baseline is a method combined with a task by `both_tasks`. The method is a dataclass whose fields,
made by `parameter`, are the parameters of the estimator; the task is `LinearClassifier` or
`LinearRegressor`.
"""

import textwrap
from abc import abstractmethod
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from isrlearn.core.labels import MISSING, encode
from isrlearn.estimators.linear import LinearScores
from isrlearn.paper.baselines.objectives import LOGISTIC, SOFTMAX, SQUARED, Loss
from isrlearn.paper.baselines.solve import Problem
from isrlearn.validation import (
    SparseInput,
    all_or_nothing,
    check_between,
    check_choice,
    check_environments,
    check_sample_weight,
)

#: Rows in a block that fits in the cache.
_BLOCK = 4_000
_READ: dict[str, Any] = {"dtype": np.float64, "accept_sparse": "csr"}


def parameter(
    default: Any,
    kind: str,
    text: str,
    *,
    low: float = 0.0,
    high: float = np.inf,
    choices: tuple[str, ...] = (),
    **options: Any,
) -> Any:
    """A dataclass field with the type, the text and the legal values of a parameter."""
    about = {"kind": kind, "text": text, "between": (low, high), "choices": choices}
    return field(default=default, metadata=about, **options)


@dataclass(eq=False, repr=False, kw_only=True)
class LinearBaseline(SparseInput, BaseEstimator):
    """A linear model fitted with environments: a method finds weights, a task encodes targets."""

    learning_rate: float = parameter(1e-3, "float", "Step size of gradient descent.")
    weight_decay: float = parameter(
        0.0,
        "float",
        "L2 penalty, ``weight_decay / 2`` times the squared weights: of all weights with "
        '"published", of the weights of whitened features with "converged".',
    )
    max_iter: int = parameter(
        10_000,
        "int",
        "Number of steps of gradient descent, or largest number of iterations of L-BFGS.",
        low=1,
    )
    random_state: int | np.random.RandomState | None = parameter(  # noqa: RUF009 - a field
        None, "int, RandomState instance or None", "Draws the initial weights of gradient descent."
    )
    missing_environments: str = parameter(
        "raise",
        '{"raise", "single"}',
        "What ``fit`` does when environments are not passed: raise an error, or treat all samples "
        "as one environment.",
        choices=("raise", "single"),
    )

    # Routed by default: a search that forgot to ask for environments would fit without them.
    __metadata_request__fit = {"environments": True}

    #: Whether the method gives the same result for all environments.
    _ignores_environments: ClassVar[bool] = False
    #: Whether the risks of a classifier are those of cells (class and environment).
    _by_cell: ClassVar[bool] = False

    @abstractmethod
    def _weights(self, problem: Problem) -> tuple[NDArray[np.float64], int]:
        """Weights (d + 1, C), the intercept last, and the number of iterations."""

    @abstractmethod
    def _encode(self, y: NDArray) -> tuple[NDArray, Loss]:
        """Targets as numbers (n, C), and the loss."""

    @abstractmethod
    def _store(self, W: NDArray[np.float64]) -> None:
        """Set ``coef_`` and ``intercept_`` from weights (d + 1, C)."""

    @all_or_nothing
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        environments: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """The fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Targets.
        environments : array-like of shape (n_samples,)
            Environment of each sample; none may be missing.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples. Samples of weight 0 are ignored.

        Returns
        -------
        self : object
        """
        for f in fields(self):
            value = getattr(self, f.name)
            if f.metadata["choices"]:
                check_choice(f.name, value, f.metadata["choices"])
            elif f.name != "random_state":
                check_between(f.name, value, *f.metadata["between"])
        W, self.n_iter_ = self._weights(self._problem(X, y, environments, sample_weight))
        self._store(W)
        return self

    def _problem(self, X: Any, y: Any, environments: Any, sample_weight: Any) -> Problem:
        """The user's samples, checked and encoded."""
        features, labels = validate_data(self, X, y, y_numeric=is_regressor(self), **_READ)
        features = features.toarray() if issparse(features) else features
        codes = self._environment_codes(environments, len(labels))
        weight = None
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, features)
            kept = weight > 0
            features, labels, codes, weight = (a[kept] for a in (features, labels, codes, weight))
        target, loss = self._encode(labels)
        if self._by_cell and loss is not SQUARED:
            classes, index = np.unique(labels, return_inverse=True)
            codes = codes * len(classes) + index
        _, codes = np.unique(codes, return_inverse=True)  # no empty environment, no empty cell
        return Problem(features, target, codes, weight, loss)

    def _environment_codes(self, environments: ArrayLike | None, n: int) -> NDArray[np.intp]:
        """Integer code of each sample's environment."""
        labels = check_environments(environments, n, self.missing_environments)
        if self._ignores_environments:
            # Blocks that fit in the cache. The mean of their means, by share, is that of all. The
            # squared error needs one: a triangle stands for its rows.
            return np.arange(n) // (n if is_regressor(self) else _BLOCK)
        _, codes = encode(labels)
        unknown = int((codes == MISSING).sum())
        if unknown:
            raise ValueError(
                f"{type(self).__name__} needs the environment of every row, and {unknown} of {n} "
                "are missing: remove these rows"
            )
        return codes


def _outputs(model: Any, X: ArrayLike) -> NDArray[np.float64]:
    """The linear outputs of samples, (n,) or (n, C)."""
    check_is_fitted(model)
    features = validate_data(model, X, reset=False, **_READ)
    return np.asarray(features @ model.coef_.T + model.intercept_)


class LinearClassifier(LinearScores, ClassifierMixin, LinearBaseline):
    """Logistic regression for two classes, multinomial for more."""

    head: Any = "logistic"
    _model, _note, _example = "Logistic regression", "", ("2", "(1, 10)")
    _attributes: ClassVar[str] = """
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features on their original scale.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts."""

    def _encode(self, y: NDArray) -> tuple[NDArray, Loss]:
        check_classification_targets(y)
        self.classes_, index = np.unique(y, return_inverse=True)
        K = len(self.classes_)
        if K < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least 2 classes, but the data contain "
                f"only one class: {self.classes_[0]!r}."
            )
        if K == 2:
            return index[:, None] - 0.5, LOGISTIC
        return np.eye(K)[index], SOFTMAX

    def _store(self, W: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_ = np.ascontiguousarray(W[:-1].T), W[-1].copy()

    def decision_function(self, X: ArrayLike, environments: Any = None) -> NDArray[np.float64]:
        """Outputs of the linear model: (n,) for two classes, (n, n_classes) for more.

        They are infinite or NaN if the method diverged.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        environments : None
            Ignored: these models have no intercepts of environments.
        """
        outputs = _outputs(self, X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs


class LinearRegressor(RegressorMixin, LinearBaseline):
    """Regression with the squared error."""

    _model, _example = "Least squares", ("1", "(10,)")
    _note = "\n\n    The loss is the squared error, and cells are environments."
    _attributes: ClassVar[str] = """
    coef_ : ndarray of shape (n_features,)
        Weights of the features on their original scale.
    intercept_ : float
        Intercept."""

    def _encode(self, y: NDArray) -> tuple[NDArray, Loss]:
        return y.astype(np.float64)[:, None], SQUARED

    def _store(self, W: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_ = W[:-1, 0].copy(), float(W[-1, 0])

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The predicted target of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        return _outputs(self, X)


_DOCSTRING = """{description}

    Parameters
    ----------
{parameters}

    Attributes
    ----------{attributes}
    n_iter_ : int
        Number of steps or iterations.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X had names.

    Examples
    --------
    >>> from isrlearn.paper.baselines import {name}
    >>> from isrlearn.paper.datasets import make_linear_unit_test
    >>> train = make_linear_unit_test("{test}", n_samples=500, random_state=0).train
    >>> model = {name}(max_iter=500).fit(train.X, train.y, train.environments)
    >>> model.coef_.shape
    {shape}
    """


def both_tasks(method: Any) -> tuple[type[Any], type[Any]]:
    """Classifier and regressor of a method, whose docstring and parameters describe both."""
    lines = []
    for f in sorted(fields(method), key=lambda f: bool(f.kw_only)):
        default = f'"{f.default}"' if isinstance(f.default, str) else f.default
        lines.append(f"    {f.name} : {f.metadata['kind']}, default={default}")
        lines.append(textwrap.indent(textwrap.fill(f.metadata["text"], 84), " " * 8))
    made = []
    tasks: tuple[Any, ...] = (LinearClassifier, LinearRegressor)
    for task in tasks:
        name = method.__name__.lstrip("_") + task.__name__.removeprefix("Linear")
        description = (method.__doc__ or "").rstrip().replace("{model}", task._model)
        text = _DOCSTRING.format(
            description=description + task._note,
            parameters="\n".join(lines),
            attributes=task._attributes,
            name=name,
            test=task._example[0],
            shape=task._example[1],
        )
        made.append(type(name, (task, method), {"__module__": method.__module__, "__doc__": text}))
    return made[0], made[1]
