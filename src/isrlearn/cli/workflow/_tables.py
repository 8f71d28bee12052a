"""The tables that a model is fitted on and scored on, and what they must hold."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from isrlearn.core.labels import encode, is_missing
from isrlearn.estimators.infer import infer_environments
from isrlearn.io import Table, TableError, read_table
from isrlearn.io.tables import is_vector

#: More classes or environments than that share of the rows are no groups to compare.
_MOST_GROUPS = 0.5


def training_tables(
    path: str | os.PathLike[str],
    validation: str | os.PathLike[str] | None = None,
    *,
    label: str,
    environment: str,
    features: str | Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
    stream: bool = False,
) -> tuple[Table, Table | None]:
    """Training table and, with the same columns, validation table.

    Parameters are those of :func:`isrlearn.io.read_table`; `labels` and `stream` go with the
    training table.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from isrlearn.io import write_columns
    >>> from isrlearn.cli.workflow import training_tables
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.csv")
    ...     write_columns(path, {"x": np.arange(3.0), "y": np.arange(3), "e": np.arange(3)})
    ...     train, validation = training_tables(path, label="y", environment="e")
    >>> train.feature_names, validation
    (('x',), None)
    """
    train = read_table(
        path,
        label=label,
        environment=environment,
        features=features,
        labels=labels,
        stream=stream,
    )
    if validation is None:
        return train, None
    return train, table_like(train, validation, label=label, environment=environment)


def table_like(
    train: Table, path: str | os.PathLike[str], *, label: str, environment: str
) -> Table:
    """Another table with the columns of a training table.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from isrlearn.io import read_table, write_columns
    >>> from isrlearn.cli.workflow import table_like
    >>> columns = {"x": np.arange(3.0), "y": np.arange(3), "e": np.arange(3)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "train.csv")
    ...     write_columns(path, columns)
    ...     train = read_table(path, label="y", environment="e")
    ...     table_like(train, path, label="y", environment="e").X.shape
    (3, 1)
    """
    for name in (label, environment):
        if is_vector(name):
            raise TableError(
                f"{path}: {name} belongs to {train.path}; with a second table, labels and "
                "environments must be columns, or in a table beside"
            )
    return read_table(path, label=label, environment=environment, features=train.feature_names)


def fill_environments(table: Table) -> tuple[Table, int]:
    """The table with unknown environments told by those known, and how many those were.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from isrlearn.io import Table
    >>> from isrlearn.cli.workflow import fill_environments
    >>> y, e = np.arange(80) % 2, np.where(np.arange(80) < 40, "sea", "land").astype(object)
    >>> X = np.random.default_rng(0).normal(size=(80, 2)) + 9 * (e == "sea")[:, None]
    >>> e[20:60] = None
    >>> filled, n = fill_environments(Table(Path("a.npy"), X, ("f0", "f1"), False, 2, y, e))
    >>> n, int((filled.environments == "sea").sum())
    (40, 40)
    """
    y, environments = labelled(table)
    n = int(is_missing(environments).sum())
    if n == 0:
        return table, 0
    try:
        filled = infer_environments(table.X, y, environments=environments, random_state=0)
    except ValueError as error:
        raise TableError(f"{table.path}: {error}") from None
    return replace(table, environments=filled), n


def labelled(table: Table) -> tuple[NDArray, NDArray]:
    """Labels and environments of a table that must have them."""
    if table.y is None or table.environments is None:
        what = "labels" if table.y is None else "environments"
        raise TableError(f"{table.path}: {what} are needed: name the column that holds them")
    return table.y, table.environments


def check_table(table: Table, task: str) -> None:
    """Raise unless labels and environments are there and suit the task."""
    y, environments = labelled(table)
    if task == "regression":
        if y.dtype.kind not in "biuf" or not np.isfinite(y).all():
            bad = next((v for v in y.tolist() if not isinstance(v, int | float) or v - v), None)
            raise TableError(f"{table.path}: a regression needs numbers as labels; got {bad!r}")
    elif y.dtype.kind == "f" and (y != np.round(y)).any():
        example = y[y != np.round(y)][0]
        raise TableError(
            f"{table.path}: labels such as {example:g} are no classes; is the task a regression?"
        )
    else:
        _check_groups(y, table, "labels")
    _check_groups(environments, table, "environments")


def _check_groups(values: NDArray, table: Table, what: str) -> None:
    names = encode(values)[0]
    if len(names) > max(2, _MOST_GROUPS * len(values)):
        raise TableError(
            f"{table.path}: there are {len(names)} different {what} in {len(values)} rows; "
            "groups of one row cannot be compared: is it the right column?"
        )
