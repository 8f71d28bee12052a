"""Scores of a model in every group of samples, their summaries, and the worst one as a scorer."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from isrlearn import markup

from .groups import METRICS, Group, InGroup, Score, check_metric, check_train_groups, checked, table


@dataclass(frozen=True)
class GroupScore(InGroup):
    """Score of one group, its confidence interval and its size.

    Examples
    --------
    >>> from isrlearn.metrics import GroupScore
    >>> GroupScore(label="cow", environment="beach", n=20, value=0.5, low=0.3, high=0.7).group
    ('cow', 'beach')
    """

    value: float  #: The score.
    low: float  #: Lower end of its confidence interval.
    high: float  #: Upper end.
    n_train: int | None = None  #: Number of rows in training, if known.


@dataclass(frozen=True)
class GroupReport:
    """Scores of all groups and their summaries; made by :func:`group_report`.

    ``str(report)`` is a plain-text table, ``report["cow", "beach"]`` the score of one group.

    Examples
    --------
    >>> from isrlearn.metrics import group_report
    >>> report = group_report([0, 0, 1, 1], [0, 1, 1, 1], environments=["a", "b", "a", "b"])
    >>> report.worst, report.worst_group, report.average
    (0.0, (0, 'b'), 0.75)
    """

    metric: str  #: What the scores are.
    level: float  #: Level of the intervals.
    groups: tuple[GroupScore, ...]  #: Scores of every group.
    overall: Score  #: The score over all rows and its interval.
    #: Confidence interval of the score of the group that is worst in truth, whichever that is.
    worst_interval: tuple[float, float]
    n: int  #: Number of rows.
    n_without_environment: int  #: Rows of unknown environment, which are in no group.

    def __getitem__(self, group: Group) -> GroupScore:
        """Score of one group, by ``(class, environment)`` or environment."""
        for score in self.groups:
            if score.group == group:
                return score
        raise KeyError(f"no group {group!r}; the groups are {[g.group for g in self.groups]}")

    @property
    def average(self) -> float:
        """The score over all rows, including those without an environment."""
        return self.overall.value

    @property
    def balanced_average(self) -> float:
        """The mean of the groups' scores, with equal weights."""
        return float(np.mean([g.value for g in self.groups]))

    @property
    def weighted_average(self) -> float:
        """The mean of the groups' scores, weighted by the sizes of the training groups.

        It estimates the average on data distributed as in training, whatever the mix of groups
        in the data that were scored.
        """
        if any(g.n_train is None for g in self.groups):
            raise ValueError(
                "weighted_average needs the sizes of the training groups: "
                "pass train_groups=group_sizes(y_train, environments_train)"
            )
        weights = [g.n_train or 0 for g in self.groups]
        return float(np.average([g.value for g in self.groups], weights=weights))

    @property
    def worst(self) -> float:
        """The score of the worst group."""
        return self.by_rank[0].value

    @property
    def worst_group(self) -> Group:
        """The worst group: ``(class, environment)``, or environment for a regression."""
        return self.by_rank[0].group

    @property
    def by_rank(self) -> tuple[GroupScore, ...]:
        """The groups from worst to best."""
        return tuple(sorted(self.groups, key=lambda g: g.value, reverse=self.metric == "rmse"))

    def worst_k(self, k: int) -> float:
        """The mean score of the `k` worst groups."""
        if not 1 <= k <= len(self.groups):
            raise ValueError(f"k must lie between 1 and the {len(self.groups)} groups, got {k}")
        return float(np.mean([g.value for g in self.by_rank[:k]]))

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        weighted = None if self.groups[0].n_train is None else self.weighted_average
        names = "metric", "level", "n", "n_without_environment", "average", "balanced_average"
        return {name: getattr(self, name) for name in names} | {
            "weighted_average": weighted,
            "worst": self.worst,
            "worst_interval": list(self.worst_interval),
            "groups": [asdict(g) for g in self.groups],
        }

    def __str__(self) -> str:
        """The groups as a table, then the summaries."""
        lines = (f"{name:<17} {value}  {note}" for name, value, note in self._summaries())
        return "\n".join([*markup.aligned(*self._table(self.groups)), "", *map(markup.line, lines)])

    def _repr_html_(self) -> str:
        """The groups from worst to best, then the summaries."""
        summaries = markup.table([("summary", self.metric, ""), *self._summaries()], "<><")
        return markup.block(markup.table(*self._table(self.by_rank)), summaries)

    def _table(self, groups: tuple[GroupScore, ...]) -> tuple[list[list[Any]], str]:
        """Rows of a table of some groups, its head first, and the sides of its columns."""
        interval = f"{100 * self.level:g}% interval"
        head = ["class", "environment", "n", self.metric, interval, "n in training"]
        rows = []
        for g in groups:
            score = f"{g.value:.4f}", f"[{g.low:.4f}, {g.high:.4f}]"
            rows.append([g.label, g.environment, g.n, *score, g.n_train])
        return table("<<>><>", head, rows)

    def _summaries(self) -> list[tuple[str, str, str]]:
        """The worst group and the averages: name, value and note."""
        worst, (low, high) = self.by_rank[0], self.worst_interval
        rest = f", {self.n_without_environment} without an environment"
        rest *= self.n_without_environment > 0
        where = f"class {worst.label}, " * (worst.label is not None)
        name = "largest true rmse" if self.metric == "rmse" else "lowest true score"
        summaries = [
            ("worst group", f"{self.worst:.4f}", f"{where}environment {worst.environment}"),
            (name, f"[{low:.4f}, {high:.4f}]", "of any group"),
            ("average", f"{self.average:.4f}", f"all {self.n} rows{rest}"),
            ("balanced average", f"{self.balanced_average:.4f}", "each group counts the same"),
        ]
        if worst.n_train is not None:
            note = "groups weighted by their size in training"
            summaries.append(("weighted average", f"{self.weighted_average:.4f}", note))
        return summaries


def group_report(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    environments: ArrayLike | None,
    *,
    metric: str = "accuracy",
    train_groups: Mapping[Group, int] | None = None,
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> GroupReport:
    """Scores of every group, with sizes, confidence intervals and summaries.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels or targets, and what the model predicts for them.
    environments : array-like of shape (n,)
        The environment of each row. Rows whose environment is None or NaN belong to no group
        and count only in the plain average.
    metric : {"accuracy", "rmse", "r2"}, default="accuracy"
        With "accuracy" a group is a class in an environment and has Clopper and Pearson's exact
        interval; with "rmse" and "r2" it is an environment. Their intervals come from the delta
        method on the logarithm of the RMSE and of 1 − R²: residuals need not be normal, but heavy
        tails reduce the coverage (92 % instead of 95 % for Laplace residuals at n = 120), and the
        interval of a single row is unbounded.
    train_groups : mapping from group to int, optional
        The sizes of the training groups, from :func:`group_sizes`, for `weighted_average`.
    clusters : array-like of shape (n,), optional
        What rows have in common, such as their patient, speaker or video. Rows of a cluster are
        not independent, so that the intervals are wider: those of as many independent rows as
        would be as informative (Korn and Graubard), or with a standard error of cluster sums.
    level : float, default=0.95
        The probability that the intervals of all groups hold together, and therefore also that
        of the group which is named worst for its low score.

    Returns
    -------
    GroupReport

    Notes
    -----
    With G groups the interval of each is at level ``1 - (1 - level) / G`` (Bonferroni). The lowest
    true score of any group, `worst_interval`, is at most every group's upper limit at that level.
    It is below the smallest of the lower limits at the plain `level` only if the limit of the
    group that is worst in truth fails, so that these need no adjustment.

    Examples
    --------
    >>> from isrlearn.metrics import group_report
    >>> print(group_report([0, 0, 1, 1], [0, 1, 1, 1], environments=["a", "b", "a", "b"]))
    class  environment  n  accuracy  95% interval
    0      a            1    1.0000  [0.0062, 1.0000]
    0      b            1    0.0000  [0.0000, 0.9938]
    1      a            1    1.0000  [0.0062, 1.0000]
    1      b            1    1.0000  [0.0062, 1.0000]
    <BLANKLINE>
    worst group       0.0000  class 0, environment b
    lowest true score [0.0000, 0.9938]  of any group
    average           0.7500  all 4 rows
    balanced average  0.7500  each group counts the same
    """
    check_metric(metric)
    given = checked(y_true, {"y_pred": y_pred}, environments, clusters, metric, level)
    true, (pred,), rows_of, unit = given
    if train_groups is not None:
        check_train_groups(train_groups, rows_of)
    score, scores, alone = METRICS[metric], [], []
    together = 1 - (1 - level) / len(rows_of)
    for group, rows in rows_of.items():
        try:
            part, cluster = (true[rows], pred[rows]), None if unit is None else unit[rows]
            found = score(*part, together, cluster)
            alone.append(score(*part, level, cluster))
        except ValueError as error:
            raise ValueError(f"group {group!r}: {error}") from None
        label, environment = group if metric == "accuracy" else (None, group)
        n_train = None if train_groups is None else int(train_groups.get(group, 0))
        scores.append(GroupScore(label, environment, len(rows), *found, n_train))
    worst = min(g.low for g in alone), min(g.high for g in scores)
    if metric == "rmse":
        worst = max(g.low for g in scores), max(g.high for g in alone)
    n, known = len(true), sum(g.n for g in scores)
    overall = score(true, pred, level, unit)
    return GroupReport(metric, level, tuple(scores), overall, worst, n, n - known)


def worst_group_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, environments: ArrayLike | None
) -> float:
    """Accuracy of the class × environment group where it is lowest.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predicted labels.
    environments : array-like of shape (n,)
        The environment of each row; rows with None or NaN belong to no group.

    Returns
    -------
    float

    Examples
    --------
    >>> from isrlearn.metrics import worst_group_accuracy
    >>> worst_group_accuracy([0, 0, 1, 1], [0, 1, 1, 1], ["a", "a", "a", "b"])
    0.5
    """
    return group_report(y_true, y_pred, environments).worst


@dataclass(frozen=True)
class WorstGroupScorer:
    """Score of the worst group, for the `scoring` parameter of scikit-learn's searches.

    It requests `environments` from scikit-learn, so with
    ``set_config(enable_metadata_routing=True)`` the searches pass it the environments of each
    fold's held-out rows. Set ``error_score="raise"`` in ``GridSearchCV`` and its relatives:
    otherwise they turn every error, including forgotten `environments`, into a score of NaN.

    Parameters
    ----------
    metric : {"accuracy", "rmse", "r2"}, default="accuracy"
        See :func:`group_report`. Greater is better: the RMSE is returned with a minus sign.
    k : int, default=1
        Average over the `k` worst groups. With many small groups the single worst one is mostly
        noise.

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
        check_metric(self.metric)
        if self.k < 1:
            raise ValueError(f"k must be at least 1, got {self.k!r}")

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, environments: ArrayLike | None = None
    ) -> float:
        """Score of `estimator` in its worst groups; greater is better."""
        report = group_report(y, estimator.predict(X), environments, metric=self.metric)
        score = report.worst_k(self.k)
        return -score if self.metric == "rmse" else score

    def get_metadata_routing(self) -> MetadataRequest:
        """The request for `environments`, in the form that scikit-learn's routing expects."""
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="environments", alias=True)
        return request
