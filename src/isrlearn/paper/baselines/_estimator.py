"""What the baselines share as scikit-learn estimators: input, fit, prediction."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from isrlearn.core.labels import MISSING, encode
from isrlearn.paper.baselines import _solve
from isrlearn.paper.baselines._losses import LOGISTIC, SOFTMAX, Loss
from isrlearn.validation import (
    check_between,
    check_environments,
    check_sample_weight,
)

_BLOCK = 10_000


class LinearBaseline(BaseEstimator):
    """A linear model fitted with the environment of each sample.

    A method finds the weights in `_weights`. A task, `LinearClassifier` or `LinearRegressor`,
    turns targets into numbers and outputs into predictions.
    """

    # Routed by default: a search that forgot to ask for environments would fit without them.
    __metadata_request__fit = {"environments": True}

    #: Whether the method is the same whatever the environments.
    _ignores_environments = False
    #: Whether a classifier's risks are those of cells (class and environment), not environments.
    _by_cell = False

    # Parameters that every method has.
    learning_rate: float
    weight_decay: float
    max_iter: int
    random_state: int | np.random.RandomState | None
    missing_environments: str

    coef_: NDArray[np.float64]
    intercept_: Any
    n_iter_: int

    @abstractmethod
    def _weights(self, problem: _solve.Problem) -> tuple[NDArray[np.float64], int]:
        """Weights (d + 1, C), the intercept last, and the number of iterations."""

    @abstractmethod
    def _read(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray, NDArray]:
        """X and y as arrays, checked."""

    @abstractmethod
    def _encode(self, y: NDArray) -> tuple[NDArray, Loss | None]:
        """Targets as numbers (n, C), and the loss; None is the squared error."""

    @abstractmethod
    def _store(self, W: NDArray[np.float64]) -> None:
        """Set ``coef_`` and ``intercept_`` from weights (d + 1, C)."""

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        environments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """The estimator, fitted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Targets.
        environments : array-like of shape (n_samples,)
            The environment of each sample, known for all of them.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples. Weight 0 leaves a sample out.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        problem = self._problem(X, y, environments, sample_weight)
        W, self.n_iter_ = self._weights(problem)
        self._store(W)
        return self

    def _check_parameters(self) -> None:
        """Raise a ValueError that names the first parameter outside its range."""
        check_between("learning_rate", self.learning_rate, 0.0, np.inf)
        check_between("weight_decay", self.weight_decay, 0.0, np.inf)
        check_between("max_iter", self.max_iter, 1, np.inf)

    def _problem(
        self,
        X: ArrayLike,
        y: ArrayLike,
        environments: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> _solve.Problem:
        """The user's samples, checked and encoded."""
        features, labels = self._read(X, y)
        codes = self._environment_codes(environments, len(features))
        weight = check_sample_weight(sample_weight, len(features))
        if weight is not None:
            kept = weight > 0
            features, labels, codes, weight = (a[kept] for a in (features, labels, codes, weight))
        target, loss = self._encode(labels)
        if self._by_cell and loss is not None:
            classes, index = np.unique(labels, return_inverse=True)
            codes = codes * len(classes) + index
        _, codes = np.unique(codes, return_inverse=True)  # no empty environment, no empty cell
        return _solve.Problem(features, target, codes, weight, loss)

    def _environment_codes(self, environments: ArrayLike | None, n: int) -> NDArray[np.intp]:
        """Integer code of each sample's environment."""
        if self._ignores_environments:
            # Blocks that fit in the cache. The mean of their means, by share, is that of all.
            return np.arange(n) // _BLOCK
        labels = check_environments(environments, n, self.missing_environments, part=True)
        _, codes = encode(labels)
        unknown = int((codes == MISSING).sum())
        if unknown:
            raise ValueError(
                f"{type(self).__name__} needs the environment of every row, and {unknown} of {n} "
                "are missing: leave these rows out"
            )
        return codes

    def _outputs(self, X: ArrayLike) -> NDArray[np.float64]:
        """The linear outputs of samples, (n,) or (n, C)."""
        check_is_fitted(self)
        features: NDArray[np.float64] = validate_data(self, X, dtype=np.float64, reset=False)
        return features @ self.coef_.T + self.intercept_


class LinearClassifier(ClassifierMixin):
    """Logistic regression for two classes, multinomial for more."""

    classes_: NDArray
    intercept_: Any

    def _read(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray, NDArray]:
        features, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        return features, labels

    def _encode(self, y: NDArray) -> tuple[NDArray, Loss | None]:
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

    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Outputs of the linear model: (n,) for two classes, (n, n_classes) for more.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: ArrayLike) -> NDArray:
        """The likeliest class of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        outputs = self.decision_function(X)
        index = (outputs > 0).astype(int) if outputs.ndim == 1 else outputs.argmax(axis=1)
        return self.classes_[index]

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities (n_samples, n_classes) of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        outputs = self.decision_function(X)
        if outputs.ndim == 1:
            p = special.expit(outputs)
            return np.column_stack([1.0 - p, p])
        return np.asarray(special.softmax(outputs, axis=1))


class LinearRegressor(RegressorMixin):
    """Regression with the squared error."""

    intercept_: Any

    def _read(self, X: ArrayLike, y: ArrayLike) -> tuple[NDArray, NDArray]:
        features, values = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        return features, values

    def _encode(self, y: NDArray) -> tuple[NDArray, Loss | None]:
        return y.astype(np.float64)[:, None], None

    def _store(self, W: NDArray[np.float64]) -> None:
        self.coef_, self.intercept_ = W[:-1, 0].copy(), float(W[-1, 0])

    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """The predicted target of each sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        """
        return np.asarray(self._outputs(X))
