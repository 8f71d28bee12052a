"""Will ISR help with these data? Which column of a table is a shortcut? Answers, and why."""

from isrlearn.diagnosis.candidates import Candidate, Scan
from isrlearn.diagnosis.diagnosis import diagnose
from isrlearn.diagnosis.findings import Diagnosis, Recommendation
from isrlearn.diagnosis.shares import ColumnShare, column_shares
from isrlearn.diagnosis.shifts import Cell, CellCounts, Shift, Stability
from isrlearn.diagnosis.shortcuts import scan

__all__ = [
    "Candidate",
    "Cell",
    "CellCounts",
    "ColumnShare",
    "Diagnosis",
    "Recommendation",
    "Scan",
    "Shift",
    "Stability",
    "column_shares",
    "diagnose",
    "scan",
]
