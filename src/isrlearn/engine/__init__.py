"""How sums over rows are computed: cell moments, the logistic solver, components, row sources."""

from isrlearn.engine.moments import cell_moments
from isrlearn.engine.rows import ArrayRows, Rows, row_blocks

__all__ = ["ArrayRows", "Rows", "cell_moments", "row_blocks"]
