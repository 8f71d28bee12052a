"""ISR and its rivals in every regime: ``isr bench regimes``."""

from isrlearn.paper.regimes.data import DATASETS, REGIMES, Task, tasks
from isrlearn.paper.regimes.page import RegimesResult, run, write_regimes
from isrlearn.paper.regimes.scores import METHODS, RegimesPlan, Score, read_scores, run_regimes

__all__ = [
    "DATASETS",
    "METHODS",
    "REGIMES",
    "RegimesPlan",
    "RegimesResult",
    "Score",
    "Task",
    "read_scores",
    "run",
    "run_regimes",
    "tasks",
    "write_regimes",
]
