"""Scores of a model in each group of samples, and in the worst one."""

from .groups import group_sizes
from .paired import Change, PairedGroup, PairedReport, paired_report
from .report import GroupReport, GroupScore, WorstGroupScorer, group_report, worst_group_accuracy

__all__ = [
    "Change",
    "GroupReport",
    "GroupScore",
    "PairedGroup",
    "PairedReport",
    "WorstGroupScorer",
    "group_report",
    "group_sizes",
    "paired_report",
    "worst_group_accuracy",
]
