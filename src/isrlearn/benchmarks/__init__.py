"""Benchmarks: what is run, one record a finished cell, tables and figures from records."""

from isrlearn.benchmarks.benchmark import Result, run, write_result
from isrlearn.benchmarks.experiments import EXPERIMENTS
from isrlearn.benchmarks.methods import METHODS
from isrlearn.benchmarks.plan import Plan
from isrlearn.benchmarks.published import published_results
from isrlearn.benchmarks.records import RecordError, read_records
from isrlearn.benchmarks.theory import environment_complexity

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
