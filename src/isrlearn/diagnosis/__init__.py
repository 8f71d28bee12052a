"""Will ISR help with these data? Which assumptions hold, and what to do."""

from isrlearn.diagnosis.diagnosis import Diagnosis, Requirement, diagnose
from isrlearn.diagnosis.findings import Finding, Recommendation
from isrlearn.diagnosis.held_out import HeadScore, Information, Unseen
from isrlearn.diagnosis.sample import Cell, CellCounts
from isrlearn.diagnosis.shifts import CovarianceShift, MeanShift, TargetShift
from isrlearn.diagnosis.stability import Stability

__all__ = [
    "Cell",
    "CellCounts",
    "CovarianceShift",
    "Diagnosis",
    "Finding",
    "HeadScore",
    "Information",
    "MeanShift",
    "Recommendation",
    "Requirement",
    "Stability",
    "TargetShift",
    "Unseen",
    "diagnose",
]
