"""The published subspaces with a head that is optimised as the baselines are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.base import BaseEstimator

from isrlearn.core import METHODS, Eraser, Moments, Subspace, head_coordinates, ridge_head
from isrlearn.engine import cell_moments, fit_logistic
from isrlearn.paper.baselines import make_baseline


@dataclass(eq=False, repr=False)
class PublishedISR(BaseEstimator):
    """A published subspace, and a linear head on its complement.

    ``optimizer="published"`` fits the head by the Adam of the linear unit tests on the invariant
    coordinates, as the paper does; "converged" by our own head, on whitened features, so that
    only the subspace is the paper's. `method` is a name in `isrlearn.core.METHODS`.
    """

    method: str
    n_spurious: int
    variant: str = "paper"  # or "authors"
    optimizer: str = "converged"
    learning_rate: float = 1e-3  # of Adam, like the next two
    weight_decay: float = 0.0
    random_state: int | None = None

    def fit(self, X: NDArray, y: NDArray, environments: NDArray) -> Self:
        """Find the subspace, and fit the head on the rest."""
        if self.optimizer == "published":
            self.fit_together([self], X, y, environments)
            return self
        moments, found = self._found(X, y, environments)
        features = moments.columns(X.shape[1])
        coordinates = head_coordinates(features, Eraser.of(found, 0.0, features.total[1]))
        if hasattr(self, "classes_"):
            shared: dict[str, Any] = {"coordinates": coordinates, "scatter": moments.total[2]}
            codes = np.searchsorted(self.classes_, y)
            head = fit_logistic(X, codes, n_classes=len(self.classes_), **shared)
            folded: Any = coordinates.fold(head.coef, head.intercept[:, 0])
        else:
            folded = ridge_head(moments, coordinates)
        self.coef_, self.intercept_ = folded
        return self

    @staticmethod
    def fit_together(models: Sequence[Any], X: NDArray, y: NDArray, environments: NDArray) -> None:
        """Fit models that differ in the settings of Adam only: one subspace, heads side by side."""
        _, found = models[0]._found(X, y, environments)
        span = linalg.null_space(found.basis.T) if found.rank else np.eye(X.shape[1])
        task = "classification" if METHODS[models[0].method].uses_classes else "regression"
        names = ("learning_rate", "weight_decay", "random_state")
        settings = [{name: getattr(model, name) for name in names} for model in models]
        heads: Any = [make_baseline("ERM", task=task, optimizer="published", **s) for s in settings]
        heads[0].fit_together(heads, X @ span, y, environments)
        for model, head in zip(models, heads, strict=True):
            model.coef_, model.intercept_ = head.coef_ @ span.T, head.intercept_
            if task == "classification":
                model.classes_ = head.classes_

    def _found(self, X: NDArray, y: NDArray, environments: NDArray) -> tuple[Moments, Subspace]:
        """Moments of the data, and the spurious subspace."""
        method = METHODS[self.method]
        codes, target = np.zeros(len(y), dtype=int), None if method.uses_classes else y
        if method.uses_classes:
            self.classes_, codes = np.unique(y, return_inverse=True)
        moments = cell_moments(X, codes, environments, targets=target)
        features = moments.columns(X.shape[1])
        return moments, method.find(features, self.n_spurious, variant=self.variant)

    def predict(self, X: NDArray) -> NDArray:
        """Class or target of each row."""
        scores = X @ self.coef_.T + self.intercept_
        if not hasattr(self, "classes_"):
            return np.asarray(scores)
        codes = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        return np.asarray(self.classes_[codes])
