"""A scikit-learn scorer for the worst group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from ._intervals import find_metric
from ._report import group_report


@dataclass(frozen=True)
class WorstGroupScorer:
    """Score of the worst group, for the `scoring` of scikit-learn's searches.

    It asks scikit-learn for `environments`, so with
    ``set_config(enable_metadata_routing=True)`` the searches hand it the environments of each
    fold's held-out rows. Set ``error_score="raise"`` in ``GridSearchCV`` and its relatives:
    they turn an error into a score of NaN otherwise, a forgotten `environments` included.

    Parameters
    ----------
    metric : {"accuracy", "rmse", "r2"}, default="accuracy"
        See :func:`group_report`. Greater is better: the RMSE comes back negative.
    k : int, default=1
        Average over the `k` worst groups.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from isrlearn.metrics import WorstGroupScorer
    >>> X, y, environments = [[0], [0], [0], [0]], [0, 0, 0, 1], ["a", "b", "a", "b"]
    >>> model = DummyClassifier().fit(X, y)
    >>> WorstGroupScorer()(model, X, y, environments=environments)
    0.0
    >>> WorstGroupScorer(k=2)(model, X, y, environments=environments)
    0.5
    """

    metric: str = "accuracy"
    k: int = 1

    def __post_init__(self) -> None:
        find_metric(self.metric)
        if self.k < 1:
            raise ValueError(f"k must be at least 1, got {self.k!r}")

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, environments: ArrayLike | None = None
    ) -> float:
        """Score of `estimator` in its worst groups, the greater the better."""
        report = group_report(
            y, estimator.predict(X), environments=environments, metric=self.metric
        )
        score = report.worst_k(self.k)
        return score if find_metric(self.metric).greater_is_better else -score

    def get_metadata_routing(self) -> MetadataRequest:
        """The request for `environments`, as scikit-learn's routing asks for it."""
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="environments", alias=True)
        return request
