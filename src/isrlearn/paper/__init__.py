"""The paper reproduced: synthetic experiments from a plan to records, tables and figures."""

from isrlearn.paper.benchmark import Result, run, write_result
from isrlearn.paper.experiments import EXPERIMENTS, METHODS
from isrlearn.paper.plan import Plan
from isrlearn.paper.records import RecordError, read_records
from isrlearn.paper.summary import published_results
from isrlearn.paper.theory import environment_complexity

__all__ = [
    "EXPERIMENTS",
    "METHODS",
    "Plan",
    "RecordError",
    "Result",
    "environment_complexity",
    "published_results",
    "read_records",
    "run",
    "write_result",
]
