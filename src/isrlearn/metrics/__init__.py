"""How well a model does in each group, and in the worst one."""

from ._intervals import wilson_interval
from ._members import group_sizes
from ._report import GroupReport, GroupScore, group_report
from ._scorer import WorstGroupScorer
from ._scores import (
    balanced_score,
    weighted_score,
    worst_group_accuracy,
    worst_group_r2,
    worst_group_rmse,
    worst_k_score,
)

__all__ = [
    "GroupReport",
    "GroupScore",
    "WorstGroupScorer",
    "balanced_score",
    "group_report",
    "group_sizes",
    "weighted_score",
    "wilson_interval",
    "worst_group_accuracy",
    "worst_group_r2",
    "worst_group_rmse",
    "worst_k_score",
]
