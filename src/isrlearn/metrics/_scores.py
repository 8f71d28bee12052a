"""One number out of a group report."""

from __future__ import annotations

from collections.abc import Mapping

from numpy.typing import ArrayLike

from ._members import Group
from ._report import group_report


def worst_group_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, environments: ArrayLike | None
) -> float:
    """Accuracy of the class × environment group where it is lowest.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels and predicted labels.
    environments : array-like of shape (n,)
        The environment of each row; rows with None or NaN are in no group.

    Returns
    -------
    float

    Examples
    --------
    >>> from isrlearn.metrics import worst_group_accuracy
    >>> worst_group_accuracy([0, 0, 1, 1], [0, 1, 1, 1], ["a", "a", "a", "b"])
    0.5
    """
    return group_report(y_true, y_pred, environments=environments).worst


def worst_group_rmse(y_true: ArrayLike, y_pred: ArrayLike, environments: ArrayLike | None) -> float:
    """Root mean squared error of the environment where it is highest.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Targets and predictions.
    environments : array-like of shape (n,)
        The environment of each row; rows with None or NaN are in no group.

    Returns
    -------
    float

    Examples
    --------
    >>> from isrlearn.metrics import worst_group_rmse
    >>> worst_group_rmse([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 5.0], ["a", "a", "b", "b"])
    2.0
    """
    return group_report(y_true, y_pred, environments=environments, metric="rmse").worst


def worst_group_r2(y_true: ArrayLike, y_pred: ArrayLike, environments: ArrayLike | None) -> float:
    """Coefficient of determination of the environment where it is lowest.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Targets and predictions.
    environments : array-like of shape (n,)
        The environment of each row; rows with None or NaN are in no group.

    Returns
    -------
    float

    Examples
    --------
    >>> from isrlearn.metrics import worst_group_r2
    >>> worst_group_r2([0.0, 2.0, 0.0, 2.0], [0.0, 2.0, 1.0, 1.0], ["a", "a", "b", "b"])
    0.0
    """
    return group_report(y_true, y_pred, environments=environments, metric="r2").worst


def worst_k_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    environments: ArrayLike | None,
    *,
    k: int,
    metric: str = "accuracy",
) -> float:
    """Mean score of the `k` worst groups.

    With many small groups the single worst one is mostly noise; a few together are steadier.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels or targets, and what the model predicts for them.
    environments : array-like of shape (n,)
        The environment of each row; rows with None or NaN are in no group.
    k : int
        Between 1 and the number of groups.
    metric : {"accuracy", "rmse", "r2"}, default="accuracy"
        See :func:`group_report`.

    Returns
    -------
    float

    Examples
    --------
    >>> from isrlearn.metrics import worst_k_score
    >>> worst_k_score([0, 0, 1, 1], [0, 1, 1, 1], ["a", "b", "a", "b"], k=2)
    0.5
    """
    return group_report(y_true, y_pred, environments=environments, metric=metric).worst_k(k)


def balanced_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    environments: ArrayLike | None,
    *,
    metric: str = "accuracy",
) -> float:
    """Mean of the groups' scores, each group counting the same.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels or targets, and what the model predicts for them.
    environments : array-like of shape (n,)
        The environment of each row; rows with None or NaN are in no group.
    metric : {"accuracy", "rmse", "r2"}, default="accuracy"
        See :func:`group_report`.

    Returns
    -------
    float

    Examples
    --------
    >>> from isrlearn.metrics import balanced_score
    >>> balanced_score([0, 0, 0, 1], [0, 0, 0, 0], ["a", "a", "a", "a"])
    0.5
    """
    report = group_report(y_true, y_pred, environments=environments, metric=metric)
    return report.balanced_average


def weighted_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    environments: ArrayLike | None,
    *,
    train_groups: Mapping[Group, int],
    metric: str = "accuracy",
) -> float:
    """Mean of the groups' scores, weighted by the sizes of the training groups.

    It is the average one would see on data distributed as in training, whatever the mix of
    groups in the data at hand.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels or targets, and what the model predicts for them.
    environments : array-like of shape (n,)
        The environment of each row; rows with None or NaN are in no group.
    train_groups : mapping from group to int
        ``group_sizes(y_train, environments_train)``.
    metric : {"accuracy", "rmse", "r2"}, default="accuracy"
        See :func:`group_report`.

    Returns
    -------
    float

    Examples
    --------
    >>> from isrlearn.metrics import group_sizes, weighted_score
    >>> sizes = group_sizes([0, 0, 0, 1], ["a", "a", "a", "a"])
    >>> weighted_score([0, 1], [0, 0], ["a", "a"], train_groups=sizes)
    0.75
    """
    report = group_report(
        y_true, y_pred, environments=environments, metric=metric, train_groups=train_groups
    )
    return report.weighted_average
