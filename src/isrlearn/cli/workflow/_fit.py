"""A table to a fitted model, with fixed settings or the best of many."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isrlearn.cli.workflow._tables import check_table, labelled
from isrlearn.core.labels import encode
from isrlearn.estimators import ISRClassifier, ISRRegressor
from isrlearn.estimators.search import ISRClassifierCV, ISRRegressorCV
from isrlearn.io import ModelFile, Table, TableError, save
from isrlearn.io.tables import is_vector
from isrlearn.metrics import GroupReport, group_report

#: (estimator, its search, the metric of its groups) for each task.
_TASKS: dict[str, tuple[Any, Any, str]] = {
    "classification": (ISRClassifier, ISRClassifierCV, "accuracy"),
    "regression": (ISRRegressor, ISRRegressorCV, "rmse"),
}
_WEIGHTS = {"none": None, "class": "class", "group": "group"}


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted model, how it does on the tables it came from, and what to store with it.

    Parameters
    ----------
    estimator : ISRClassifier or ISRRegressor
    table : Table
        What it was fitted on.
    train : GroupReport
        Scores on those same rows: how well the model fits, not how well it will do.
    validation : GroupReport or None
        Scores on the validation table, which chose the settings.
    search : ISRClassifierCV, ISRRegressorCV or None
        What was tried, where settings were chosen.
    metadata : dict
        Stored in the model file.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from isrlearn.io import Table
    >>> from isrlearn.cli.workflow import fit_table
    >>> X, codes = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80)
    >>> table = Table(Path("a.npy"), X, ("f0", "f1"), False, 2, codes % 2, codes // 2 % 2)
    >>> fitted = fit_table(table, settings={"head": "lda", "n_spurious": 1})
    >>> fitted.to_dict()["n_spurious"], fitted.metadata["n_rows"], fitted.train.n
    (1, 80, 80)
    """

    estimator: Any
    table: Table
    train: GroupReport
    validation: GroupReport | None
    search: Any
    metadata: dict[str, Any]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file."""
        names = self.table.feature_names
        save(self.estimator, path, feature_names=names, metadata=self.metadata)

    def to_dict(self) -> dict[str, Any]:
        """What was fitted, in numbers and text ready for JSON."""
        return ModelFile(self.estimator, self.table.feature_names, self.metadata).to_dict()


def fit_table(
    table: Table,
    *,
    task: str = "classification",
    settings: Mapping[str, Any] | None = None,
    validation: Table | None = None,
    search: bool = False,
    columns: Mapping[str, str] | None = None,
    engine: str = "memory",
    scheduler: str | None = None,
) -> Fitted:
    """A model fitted on a table.

    Parameters
    ----------
    table : Table
        With labels and environments.
    task : {"classification", "regression"}, default="classification"
    settings : mapping, optional
        Parameters of `ISRClassifier` or `ISRRegressor`, and ``weights``: "none", "class" or
        "group". Labels may be given as text.
    validation : Table, optional
        Choose the settings that are not given by the worst group of this table.
    search : bool, default=False
        Choose them by cross-validation, where there is no validation table.
    columns : mapping, optional
        Names of the columns "label" and "environment", to be remembered in the model.
    engine : {"memory", "dask"}, default="memory"
        "dask" fits on the table's file by :func:`isrlearn.dask.fit`, which needs `columns`.
    scheduler : str, optional
        Address of the Dask scheduler; threads of this process when not given.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from isrlearn.datasets import make_gaussian_environments
    >>> from isrlearn.io import Table
    >>> from isrlearn.cli.workflow import fit_table
    >>> data = make_gaussian_environments(300, 3, n_invariant=3, n_spurious=1, random_state=0)
    >>> names = ("a", "b", "c", "d")
    >>> table = Table(Path("a.npz"), data.X, names, True, 4, data.y, data.environments)
    >>> fitted = fit_table(table, settings={"head": "lda"})
    >>> fitted.estimator.n_spurious_, fitted.train.worst > 0.5
    (1, True)
    """
    if task not in _TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, _TASKS))}; got {task!r}")
    for part in (table, validation):
        if part is not None:
            check_table(part, task)
    kind, searcher, metric = _TASKS[task]
    chosen = _settings(kind, task, dict(settings or {}), table, search or validation is not None)
    found = None
    if engine not in ("memory", "dask"):
        raise ValueError(f"engine must be 'memory' or 'dask'; got {engine!r}")
    if engine == "dask":
        if search or validation is not None:
            raise ValueError("settings are chosen in memory only: engine='dask' fits given ones")
        estimator = _fit_by_dask(kind(**chosen), table, columns or {}, scheduler)
    elif search or validation is not None:
        found = searcher(**chosen, verbose=1)
        found.fit(table.X, table.y, environments=table.environments, validation=_rows(validation))
        estimator = found.best_estimator_
    else:
        estimator = fit_on(kind(**chosen), table)
    train = report_of(estimator, table, metric)
    held_out = None if validation is None else report_of(estimator, validation, metric)
    if table.named:
        estimator.feature_names_in_ = np.array(table.feature_names, dtype=object)
    metadata = {
        "task": task,
        # A file of labels belongs to one table; a column of that name to any.
        "columns": {k: v for k, v in (columns or {}).items() if not is_vector(v)},
        "n_rows": len(table),
        "n_columns": table.n_columns,
        "metrics": {
            "train": train.to_dict(),
            "validation": None if held_out is None else held_out.to_dict(),
        },
        "search": None if found is None else _search_record(found, validation is not None),
    }
    return Fitted(estimator, table, train, held_out, found, metadata)


def fit_on(estimator: Any, table: Table) -> Any:
    """The estimator, fitted on a table."""
    try:
        return estimator.fit(table.X, table.y, environments=table.environments)
    except np.linalg.LinAlgError as error:
        raise TableError(
            f"{table.path}: the numbers cannot be worked with ({error}); look for columns of very "
            "different sizes, and for constant or repeated ones"
        ) from error


def _fit_by_dask(
    estimator: Any, table: Table, columns: Mapping[str, str], scheduler: str | None
) -> Any:
    """The estimator, fitted on a table's file in parts."""
    from isrlearn.dask import client_of, fit

    with client_of(scheduler):
        return fit(
            estimator,
            [table.path.absolute()],
            columns["label"],
            environments=columns["environment"],
            features=table.feature_names,
        )


def report_of(estimator: Any, table: Table, metric: str) -> GroupReport:
    """Scores of an estimator on every group of a table."""
    y, environments = labelled(table)
    predicted = nameless(estimator).predict(table.X)
    return group_report(y, predicted, environments=environments, metric=metric)


def nameless(estimator: Any) -> Any:
    """The estimator for arrays whose columns were already put in order by name."""
    if not hasattr(estimator, "feature_names_in_"):
        return estimator
    twin = object.__new__(type(estimator))
    twin.__dict__.update({k: v for k, v in vars(estimator).items() if k != "feature_names_in_"})
    return twin


def _rows(table: Table | None) -> tuple[NDArray, Any, Any] | None:
    return None if table is None else (table.X, table.y, table.environments)


def _settings(
    kind: Any, task: str, given: dict[str, Any], table: Table, searching: bool
) -> dict[str, Any]:
    """Parameters of the estimator, or of its search, from settings given by name."""
    weights = given.pop("weights", None)
    if weights is not None and weights not in _WEIGHTS:
        raise ValueError(f"weights must be one of {', '.join(_WEIGHTS)}; got {weights!r}")
    known = set(inspect.signature(kind).parameters)
    for name in given:
        if name not in known:
            raise ValueError(f"{name} is no setting of a {task}")
    if given.get("n_components") == "none":
        given["n_components"] = None
    if given.get("condition_on") is not None:
        given["condition_on"] = _label(given["condition_on"], np.asarray(table.y))
    if searching:
        if weights is not None:
            given["weighting"] = _WEIGHTS[weights]
        return given
    if weights == "group":
        given["group_weight"] = "balanced"
    if weights == "class":
        if "class_weight" not in known:
            raise ValueError("weights='class' goes with classes; a regression has 'group'")
        given["class_weight"] = "balanced"
    return given


def _label(text: Any, y: NDArray) -> Any:
    """The class that is written so."""
    names = encode(y)[0].tolist()
    for name in names:
        if name == text or str(name) == str(text):
            return name
    raise ValueError(f"condition_on={text!r} is not a class; the classes are {names}")


def _search_record(search: Any, validated: bool) -> dict[str, Any]:
    return {
        "selection": search.selection,
        "by": "validation table" if validated else f"{search.n_splits_} folds",
        "n_settings": len(search.cv_results_["params"]),
        "best_score": search.best_score_,
        "best_params": {name: str(value) for name, value in search.best_params_.items()},
    }
