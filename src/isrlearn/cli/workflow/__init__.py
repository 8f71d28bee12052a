"""From tables to models and scores: what the commands do."""

from isrlearn.cli.workflow._apply import (
    Evaluation,
    diagnose_table,
    evaluate_table,
    labelled_table_for,
    predict_table,
    table_for,
)
from isrlearn.cli.workflow._fit import Fitted, fit_table
from isrlearn.cli.workflow._report import report_fitted, report_table
from isrlearn.cli.workflow._tables import fill_environments, table_like, training_tables

__all__ = [
    "Evaluation",
    "Fitted",
    "diagnose_table",
    "evaluate_table",
    "fill_environments",
    "fit_table",
    "labelled_table_for",
    "predict_table",
    "report_fitted",
    "report_table",
    "table_for",
    "table_like",
    "training_tables",
]
