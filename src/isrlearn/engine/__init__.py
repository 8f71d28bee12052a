"""How sums over rows are computed: cell moments, the logistic solver, components, row sources."""

from isrlearn.engine.components import column_squares, project, row_components
from isrlearn.engine.logistic import (
    LogisticFit,
    LogisticLoss,
    fit_intercept,
    fit_logistic,
    minimise,
)
from isrlearn.engine.moments import cell_moments, sum_cells
from isrlearn.engine.rows import ArrayRows, Rows, SparseRows, row_blocks

__all__ = [
    "ArrayRows",
    "LogisticFit",
    "LogisticLoss",
    "Rows",
    "SparseRows",
    "cell_moments",
    "column_squares",
    "fit_intercept",
    "fit_logistic",
    "minimise",
    "project",
    "row_blocks",
    "row_components",
    "sum_cells",
]
