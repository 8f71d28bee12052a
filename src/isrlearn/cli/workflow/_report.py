"""Reports on models, from the tables they were fitted on and others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from isrlearn.cli.workflow._fit import Fitted, nameless
from isrlearn.cli.workflow._tables import check_table, labelled
from isrlearn.core.moments import Moments
from isrlearn.io import ModelFile, Table, TableError
from isrlearn.metrics import GroupReport
from isrlearn.report import Report, make_report

#: Relative difference of means that rounding may make.
_ROUNDING = 1e-5


def report_fitted(
    fitted: Fitted,
    *,
    validation: Table | None = None,
    test: Table | None = None,
    sources: Mapping[str, Any] | None = None,
) -> Report:
    """Report on a model that was just fitted.

    It is scored on the test table if there is one, else on the validation table, else by
    cross-validation.

    Parameters
    ----------
    fitted : Fitted
    validation : Table, optional
        The one that chose the settings.
    test : Table, optional
        One that took no part.
    sources : mapping, optional
        As in :func:`isrlearn.report.make_report`.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from isrlearn.io import Table
    >>> from isrlearn.cli.workflow import fit_table, report_fitted
    >>> X, codes = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80)
    >>> X[:, 0] += 3 * (codes // 2 % 2)
    >>> table = Table(Path("a.npy"), X, ("a", "b", "c"), False, 3, codes % 2, codes // 2 % 2)
    >>> report_fitted(fit_table(table)).to_dict()["scored_on"]
    'folds'
    """
    held_out = validation if test is None else test
    if test is not None:
        check_table(test, fitted.metadata["task"])
    chosen = fitted.search is not None and test is None
    return make_report(
        fitted.estimator,
        fitted.table,
        held_out,
        chosen=chosen,
        sources={
            "train": str(fitted.table.path),
            "scored": None if held_out is None else str(held_out.path),
            **fitted.metadata["columns"],
            **(sources or {}),
        },
    )


def report_table(
    model: ModelFile,
    table: Table,
    *,
    train: Table | None = None,
    sources: Mapping[str, Any] | None = None,
) -> Report:
    """Report on a stored model, scored on a table.

    A table that the model was fitted on is known by its moments, and scored by cross-validation.

    Parameters
    ----------
    model : ModelFile
    table : Table
        With labels and environments.
    train : Table, optional
        What the model was fitted on, to compare with nothing removed.
    sources : mapping, optional
        As in :func:`isrlearn.report.make_report`.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.io import ModelFile, Table
    >>> from isrlearn.cli.workflow import report_table
    >>> X, codes = np.random.default_rng(0).normal(size=(80, 3)), np.arange(80)
    >>> y, e = codes % 2, codes // 2 % 2
    >>> model = ModelFile(ISRClassifier(n_spurious=1).fit(X, y, environments=e))
    >>> table = Table(Path("a.npy"), X, ("a", "b", "c"), False, 3, y, e)
    >>> report_table(model, table).to_dict()["scored_on"]
    'folds'
    >>> other = Table(Path("b.npy"), X[:60], ("a", "b", "c"), False, 3, y[:60], e[:60])
    >>> report_table(model, other).to_dict()["scored_on"]
    'table'
    >>> report_table(model, other, train=table).to_dict()["scored_on"]
    'test'
    """
    estimator = nameless(model.estimator)
    if not hasattr(estimator, "predict"):
        raise ValueError(f"a {type(estimator).__name__} predicts nothing that could be scored")
    task = "classification" if hasattr(estimator, "classes_") else "regression"
    for part in (table, train):
        if part is not None:
            check_table(part, task)
    if train is not None and not fitted_on(estimator, train):
        raise TableError(
            f"{train.path}: these are not the rows that the model was fitted on (their numbers or "
            "means differ): name that table, or none"
        )
    held_out: Table | None = table
    if fitted_on(estimator, table):
        train, held_out = table, None
    by = _choice(model)
    chosen = by == "folds" and held_out is None
    columns = model.metadata.get("columns")
    found = make_report(
        estimator,
        train,
        held_out,
        chosen=chosen,
        sources={
            "train": None if train is None else str(train.path),
            "scored": None if held_out is None else str(held_out.path),
            "sha256": model.sha256,
            **(columns if isinstance(columns, dict) else {}),
            **(sources or {}),
        },
    )
    if by == "validation" and _is_validation(model, found.evidence.after):
        found = replace(found, evidence=replace(found.evidence, kind="validation"))
    return found


def fitted_on(estimator: Any, table: Table) -> bool:
    """Whether a table has the moments of the rows that an estimator was fitted on."""
    y, environments = labelled(table)
    mine, d = estimator.moments_, estimator.n_features_in_
    labels = y if hasattr(estimator, "classes_") else None
    found = Moments.from_data(table.X, labels, environments, order=1)
    if found.count.shape != mine.count.shape or not np.array_equal(found.count, mine.count):
        return False
    mean = mine.mean[..., :d]
    return bool(np.allclose(found.mean, mean, rtol=0, atol=_ROUNDING * np.abs(mean).max()))


def _choice(model: ModelFile) -> str:
    """What the settings were chosen by: "validation", "folds", or nothing."""
    record = model.metadata.get("search")
    if not isinstance(record, dict):
        return ""
    return "validation" if record.get("by") == "validation table" else "folds"


def _is_validation(model: ModelFile, report: GroupReport) -> bool:
    """Whether the scores are those that were stored of the table that chose the settings."""
    metrics = model.metadata.get("metrics")
    stored = metrics.get("validation") if isinstance(metrics, dict) else None
    if not isinstance(stored, dict):
        return False
    return (stored.get("n"), stored.get("worst")) == (report.n, report.worst)
