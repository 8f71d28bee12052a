"""Rows for a report: as the caller has them, and few enough of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.estimators.search._splits import Sample

#: Rows that a cell keeps, if it has them, however many the others have.
_FEWEST = 25


def rows_of(data: Any) -> Sample | None:
    """Features, labels and environments of a table, of a data set or of three arrays."""
    if data is None:
        return None
    if hasattr(data, "environments"):
        data = (data.X, data.y, data.environments)
    if not isinstance(data, tuple | list) or len(data) != 3 or any(part is None for part in data):
        raise ValueError(
            "rows must be (X, y, environments), or an object with attributes of these names, "
            f"none of them None; got {type(data).__name__}"
        )
    X, y, environments = (part if hasattr(part, "dtype") else np.asarray(part) for part in data)
    if not len(X) == len(y) == len(environments):
        raise ValueError(
            f"X, y and environments have {len(X)}, {len(y)} and {len(environments)} rows"
        )
    return Sample(X, np.asarray(y), np.asarray(environments))


def thinned(cells: NDArray[np.intp], most: int) -> NDArray[np.intp]:
    """Sorted positions of about `most` rows, at most half as many more, the same every time.

    Cells keep their shares, but a small one keeps rows enough to be seen.

    Examples
    --------
    >>> import numpy as np
    >>> rows = thinned(np.repeat([0, 1], [990, 10]), 100)
    >>> len(rows), int((rows >= 990).sum())
    (109, 10)
    """
    n = len(cells)
    if n <= most:
        return np.arange(n)
    rng = np.random.default_rng(0)
    kept, names = [], np.unique(cells)
    fewest = min(_FEWEST, most // (2 * len(names)))
    for cell in names:
        rows = np.flatnonzero(cells == cell)
        share = max(min(len(rows), fewest), int(len(rows) * most / n))
        kept.append(rng.choice(rows, share, replace=False))
    return np.sort(np.concatenate(kept))
