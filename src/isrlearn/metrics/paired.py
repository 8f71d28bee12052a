"""Two models compared on the same rows: which groups gain or lose, and how certain that is."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.stats import binomtest

from isrlearn import markup

from .groups import InGroup, checked, table

#: Draws of the bootstrap that are in memory together.
_DRAWS = 100
#: Loss of each row, from targets and predictions, and the score of a mean loss.
_METRICS: dict[str, tuple[Callable[[NDArray, NDArray], NDArray], Callable[[NDArray], NDArray]]] = {
    "accuracy": (lambda true, pred: (true != pred).astype(float), lambda loss: 1 - loss),
    "rmse": (lambda true, pred: (true - pred) ** 2, np.sqrt),
}


@dataclass(frozen=True)
class Change:
    """A score of two models, and a confidence interval of its difference.

    Examples
    --------
    >>> from isrlearn.metrics import Change
    >>> round(Change(before=0.5, after=0.8, low=0.1, high=0.45).difference, 2)
    0.3
    """

    before: float  #: Score of the first model.
    after: float  #: Score of the second model.
    low: float  #: Lower end of the interval.
    high: float  #: Upper end.

    @property
    def difference(self) -> float:
        """The score after less the score before."""
        return self.after - self.before

    def __str__(self) -> str:
        """The two scores, their difference and its interval."""
        interval = f"[{self.low:+.4f}, {self.high:+.4f}]"
        return f"{self.before:.4f} to {self.after:.4f}: {self.difference:+.4f} {interval}"


@dataclass(frozen=True)
class PairedGroup(InGroup):
    """Scores of two models in one group, and the rows on which they differ.

    Examples
    --------
    >>> from isrlearn.metrics import PairedGroup
    >>> PairedGroup("cow", "beach", 20, 0.5, 0.75, gained=6, lost=1, p_value=0.125).group
    ('cow', 'beach')
    """

    before: float  #: Score of the first model.
    after: float  #: Score of the second model.
    gained: int  #: Rows that only the second model predicts correctly, or with a smaller error.
    lost: int  #: Rows that only the first model predicts correctly, or with a smaller error.
    p_value: float  #: Of the hypothesis that a change is as likely to be a gain as a loss


@dataclass(frozen=True)
class PairedReport:
    """Two models compared on the same rows; made by :func:`paired_report`.

    ``str(report)`` is a plain-text table.

    Examples
    --------
    >>> from isrlearn.metrics import paired_report
    >>> y, before, after = [0] * 8, [0] + [1] * 7, [0] * 8
    >>> paired_report(y, before, after, environments=["a"] * 8).groups[0].p_value
    0.015625
    """

    metric: str  #: What the scores are.
    level: float  #: Level of the intervals.
    groups: tuple[PairedGroup, ...]  #: Scores of every group.
    worst: Change  #: Score of the worst group of each model, which need not be the same group.
    average: Change  #: Score over all rows, including those without an environment.

    def to_dict(self) -> dict[str, Any]:
        """Numbers and strings in nested dicts and lists, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """The groups as a table, then the worst group and the average."""
        head = ["class", "environment", "n", "before", "after", "gained", "lost", "p-value"]
        rows = []
        for g in self.groups:
            change = f"{g.before:.4f}", f"{g.after:.4f}", g.gained, g.lost, f"{g.p_value:.2g}"
            rows.append([g.label, g.environment, g.n, *change])
        lines = markup.aligned(*table("<<>>>>>>", head, rows))
        return "\n".join([*lines, "", f"worst group  {self.worst}", f"average      {self.average}"])


def paired_report(
    y_true: ArrayLike,
    before: ArrayLike,
    after: ArrayLike,
    environments: ArrayLike | None,
    *,
    metric: str = "accuracy",
    clusters: ArrayLike | None = None,
    level: float = 0.95,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> PairedReport:
    """Comparison of two models' predictions for the same rows, group by group.

    Intervals of two models may overlap although every row on which they differ favours one of
    them: only the paired rows decide.

    Parameters
    ----------
    y_true, before, after : array-like of shape (n,)
        Labels or targets, and the predictions of the two models.
    environments : array-like of shape (n,)
        The environment of each row. Rows whose environment is None or NaN belong to no group
        and count only in the average.
    metric : {"accuracy", "rmse"}, default="accuracy"
        With "accuracy" a group is a class in an environment, with "rmse" an environment.
    clusters : array-like of shape (n,), optional
        What rows have in common, such as their patient, speaker or video. The rows of a cluster
        are resampled together, and a cluster counts once in each p-value.
    level : float, default=0.95
        Confidence level of the intervals of the two differences.
    n_bootstrap : int, default=1000
        Draws of the rows, or clusters, for these intervals.
    random_state : int, default=0
        Seed of the draws.

    Returns
    -------
    PairedReport

    Notes
    -----
    P-values are those of the exact McNemar test: a sign test of the rows that only one of the
    models predicts correctly (or with a smaller error), or of the clusters by what they gain on
    balance. They are not adjusted for the number of groups. The intervals are percentiles of the
    paired bootstrap, with half a row gained and half a row lost added to each group (of squared
    errors: by as much as its rows differ on average). Where several groups are nearly the worst,
    that of the worst group is too wide rather than too narrow.

    Examples
    --------
    >>> from isrlearn.metrics import paired_report
    >>> y, environments = [0] * 20, ["a"] * 10 + ["b"] * 10
    >>> before, after = [0] * 10 + [1] * 9 + [0], [0] * 9 + [1] + [0] * 8 + [1] * 2
    >>> print(paired_report(y, before, after, environments))
    class  environment   n  before   after  gained  lost  p-value
    0      a            10  1.0000  0.9000       0     1        1
    0      b            10  0.1000  0.8000       8     1    0.039
    <BLANKLINE>
    worst group  0.1000 to 0.8000: +0.7000 [+0.1111, +0.9231]
    average      0.5500 to 0.8500: +0.3000 [+0.0000, +0.5500]
    """
    if metric not in _METRICS:
        raise ValueError(f"metric must be 'accuracy' or 'rmse' for a comparison, got {metric!r}")
    both, (losses, score) = {"before": before, "after": after}, _METRICS[metric]
    true, given, rows_of, unit = checked(y_true, both, environments, clusters, metric, level)
    loss = np.stack([losses(true, values) for values in given], axis=1)  # (n, 2)
    means = np.array([loss[rows].mean(axis=0) for rows in rows_of.values()])  # (G, 2)
    groups, code, scores = [], np.zeros(len(true), dtype=int), score(means).tolist()
    for g, (group, rows) in enumerate(rows_of.items()):
        code[rows] = g + 1
        label, environment = group if metric == "accuracy" else (None, group)
        (old, new), gain = scores[g], np.sign(loss[rows, 0] - loss[rows, 1])
        up, down = int(np.sum(gain > 0)), int(np.sum(gain < 0))
        balance = gain if unit is None else np.bincount(unit[rows], gain)
        wins, n = int(np.sum(balance > 0)), int(np.count_nonzero(balance))
        p_value = float(binomtest(wins, n).pvalue) if n else 1.0
        groups.append(PairedGroup(label, environment, len(rows), old, new, up, down, p_value))
    changes, rng = [], np.random.default_rng(random_state)
    for found, part in ((means.max(axis=0), code), (loss.mean(axis=0), np.ones_like(code))):
        draws = _resampled(part, loss, unit, n_bootstrap, rng)[:, 1:]
        with np.errstate(invalid="ignore"):  # a group may be absent from a draw
            drawn = np.nanmax(draws[..., 1:] / draws[..., :1], axis=1)
        tails = np.quantile(np.diff(score(drawn)), [(1 - level) / 2, (1 + level) / 2])
        changes.append(Change(*score(found).tolist(), *tails.tolist()))
    return PairedReport(metric, level, tuple(groups), *changes)


def _one_more(code: NDArray, loss: NDArray) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Groups, and for each the losses (2 G', 2) of a row that is gained and of one that is lost.

    In a group of few rows it is chance that none of them changes, or all in one direction: half of
    each, as large as the changes in the group, keeps an interval from shrinking to a point.
    """
    G, differ = int(code.max()) + 1, loss[:, 0] != loss[:, 1]
    n_changed = np.bincount(code[differ], minlength=G)
    ends = np.tile([1.0, 0.0], (G, 1))  # the losses of an accuracy
    for j, end in enumerate((loss.max(axis=1), loss.min(axis=1))):
        total = np.bincount(code[differ], end[differ], minlength=G)
        np.divide(total, n_changed, out=ends[:, j], where=n_changed > 0)
    is_accuracy = set(np.unique(loss)) <= {0.0, 1.0}
    few = np.arange(1, G)[(n_changed[1:] > 0) | is_accuracy]
    return few, np.stack([ends[few], ends[few, ::-1]], axis=1).reshape(-1, 2)


def _resampled(
    code: NDArray, loss: NDArray, unit: NDArray | None, n_draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Rows and both losses, summed by group (draws, groups, 3), of units that are drawn again."""
    few, extra = _one_more(code, loss)
    if unit is None:
        # Rows with the same group and losses need one draw, of how many there are.
        kinds, share = np.unique(np.column_stack([code, loss]), axis=0, return_counts=True)
        code, loss, unit = kinds[:, 0].astype(int), kinds[:, 1:], np.arange(len(kinds))
    else:
        share = np.ones(unit.max() + 1)
    n, m, few = int(share.sum()), len(share), np.repeat(few, 2)
    code, loss = np.r_[code, few], np.vstack([loss, extra])
    unit = np.r_[unit, m + np.arange(len(extra))]
    share = np.r_[share, np.full(len(extra), 0.5)]
    each, column = np.column_stack([np.ones(len(loss)), loss]), 3 * code[:, None] + np.arange(3)
    sums = csr_array((each.ravel(), (np.repeat(unit, 3), column.ravel())))
    drawn = [
        rng.multinomial(n, share / share.sum(), size=len(part)) @ sums
        for part in np.array_split(np.arange(n_draws), -(-n_draws // _DRAWS))
    ]
    return np.concatenate(drawn).reshape(n_draws, -1, 3)
