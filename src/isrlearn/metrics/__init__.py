"""Scores of a model in each group of samples, and in the worst one."""

from .groups import group_sizes
from .report import GroupReport, GroupScore, WorstGroupScorer, group_report, worst_group_accuracy

__all__ = [
    "GroupReport",
    "GroupScore",
    "WorstGroupScorer",
    "group_report",
    "group_sizes",
    "worst_group_accuracy",
]
