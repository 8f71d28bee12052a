"""How sums over rows are computed: cell moments, the logistic solver, components, row sources."""

from isrlearn.engine.moments import cell_moments, sum_cells
from isrlearn.engine.rows import ArrayRows, Rows, row_blocks
from isrlearn.engine.stub import LogisticFit, column_squares, fit_logistic, project, row_components
