"""How sums over rows are computed: cell moments, the logistic solver, components, row sources."""

from isrlearn.engine.components import (
    column_scatter,
    prefers_rows,
    project,
    row_components,
    scatter_times,
)
from isrlearn.engine.logistic import LogisticFit, fit_logistic
from isrlearn.engine.loss import LogisticLoss
from isrlearn.engine.moments import cell_moments
from isrlearn.engine.rows import ArrayRows, Rows, row_blocks

__all__ = [
    "ArrayRows",
    "LogisticFit",
    "LogisticLoss",
    "Rows",
    "cell_moments",
    "column_scatter",
    "fit_logistic",
    "prefers_rows",
    "project",
    "row_blocks",
    "row_components",
    "scatter_times",
]
