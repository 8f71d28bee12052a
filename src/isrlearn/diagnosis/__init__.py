"""Will ISR help with these data? A prediction, and the facts that explain it."""

from isrlearn.diagnosis.diagnosis import Diagnosis, Recommendation, diagnose
from isrlearn.diagnosis.shifts import Cell, CellCounts, Shift
from isrlearn.diagnosis.stability import Stability

__all__ = [
    "Cell",
    "CellCounts",
    "Diagnosis",
    "Recommendation",
    "Shift",
    "Stability",
    "diagnose",
]
