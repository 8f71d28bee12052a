"""Will ISR help with these data? Which assumptions hold, and what to do."""

from isrlearn.diagnosis._advice import Recommendation
from isrlearn.diagnosis._cells import Cell, Cells
from isrlearn.diagnosis._covariances import CovarianceShift, Uncompared
from isrlearn.diagnosis._diagnose import diagnose
from isrlearn.diagnosis._diagnosis import Diagnosis
from isrlearn.diagnosis._findings import Finding
from isrlearn.diagnosis._heads import HeadScore
from isrlearn.diagnosis._information import Information
from isrlearn.diagnosis._means import MeanShift
from isrlearn.diagnosis._needs import Requirement
from isrlearn.diagnosis._stability import Stability
from isrlearn.diagnosis._target import TargetShift
from isrlearn.diagnosis._unseen import Unseen

__all__ = [
    "Cell",
    "Cells",
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
    "Uncompared",
    "Unseen",
    "diagnose",
]
