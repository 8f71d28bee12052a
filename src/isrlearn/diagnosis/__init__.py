"""Will ISR help with these data? Which assumptions hold, and what to do."""

from isrlearn.diagnosis.diagnosis import Diagnosis, diagnose
from isrlearn.diagnosis.findings import Recommendation
from isrlearn.diagnosis.held_out import HeadScore, Information
from isrlearn.diagnosis.sample import Cell, CellCounts
from isrlearn.diagnosis.shifts import CovarianceShift, MeanShift
from isrlearn.diagnosis.stability import Stability

__all__ = [
    "Cell",
    "CellCounts",
    "CovarianceShift",
    "Diagnosis",
    "HeadScore",
    "Information",
    "MeanShift",
    "Recommendation",
    "Stability",
    "diagnose",
]
