"""What a linear classifier says of rows: scores, classes, probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from isrlearn.estimators._reading import affine


def _has_probabilities(self: LinearScores) -> bool:
    return isinstance(self.head, str | tuple | LogisticRegression)


class LinearScores:
    """Predictions of a classifier whose decision function is an affine map of the features."""

    head: Any
    classes_: NDArray
    coef_: NDArray
    intercept_: NDArray

    def decision_function(self, X: Any) -> NDArray:
        """``X @ coef_.T + intercept_``: (n,) for two classes, else (n, n_classes)."""
        self._check_fitted()
        scores = affine(self, X, self.coef_.T, self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> NDArray:
        """Class of each row. No environments needed."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> NDArray:
        """Probability of each class."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        return softmax(scores, axis=1)

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> NDArray:
        """Logarithm of `predict_proba`, finite where that has underflowed to zero."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            both = np.column_stack([-scores, scores])
            exact, probability = log_expit(both), expit(both)
        else:
            exact, probability = log_softmax(scores, axis=1), softmax(scores, axis=1)
        return np.log(probability, out=exact, where=probability > 0)

    def _check_fitted(self) -> None:
        """Raise unless there is a head."""
        check_is_fitted(self, "coef_")
