"""A model on a table: predictions, and scores of groups."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from isrlearn.cli.workflow._fit import fit_on, nameless
from isrlearn.cli.workflow._tables import labelled
from isrlearn.diagnosis import Diagnosis, diagnose
from isrlearn.io import ModelFile, Table, TableError, read_table
from isrlearn.io.tables import open_table
from isrlearn.metrics import GroupReport, group_report, group_sizes


def table_for(
    model: ModelFile,
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    environment: str | None = None,
    features: str | Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
) -> Table:
    """Table with the model's features, found by name, in the model's order.

    Columns without names, those of an array, are taken in their order and must be as many as
    the model's.

    Parameters
    ----------
    model : ModelFile
    path, label, environment, labels
        As in :func:`isrlearn.io.read_table`.
    features : str or sequence of str, optional
        Which columns to take, in the model's order, where the model knows no names.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.io import ModelFile, write_columns
    >>> from isrlearn.cli.workflow import table_for
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "t.csv")
    ...     write_columns(path, {"b": np.ones(2), "word": np.array(["x", "y"]), "a": np.zeros(2)})
    ...     table_for(ModelFile(reg, ("a", "b")), path).X.tolist()
    [[0.0, 1.0], [0.0, 1.0]]
    """
    source, d = open_table(path), model.estimator.n_features_in_
    if features is None and model.feature_names is None and source.named:
        raise TableError(
            f"{path}: the model knows no names of features; say which {d} columns they are, in "
            "their order"
        )
    width = model.metadata.get("n_columns", d)
    if features is None and not source.named and len(source.features) != width:
        raise TableError(
            f"{path}: there are {len(source.features)} columns; the model was fitted on {width}"
        )
    named = features is None and model.feature_names is not None
    table = read_table(
        path,
        label=label,
        environment=environment,
        features=model.feature_names if named else features,
        labels=labels,
    )
    if table.X.shape[1] != d:
        raise TableError(f"{path}: {table.X.shape[1]} columns were chosen; the model has {d}")
    return table


def labelled_table_for(
    model: ModelFile,
    path: str | os.PathLike[str],
    *,
    label: str | None = None,
    environment: str | None = None,
    features: str | Sequence[str] | None = None,
    labels: str | os.PathLike[str] | None = None,
) -> Table:
    """As :func:`table_for`, with labels and environments: of the model's columns by default.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from isrlearn import ISRRegressor
    >>> from isrlearn.io import ModelFile, write_columns
    >>> from isrlearn.cli.workflow import labelled_table_for
    >>> reg = ISRRegressor(1).fit([[0, 1], [1, 1], [2, 3]], [0, 1, 2], environments=[0, 1, 1])
    >>> known = {"columns": {"label": "y", "environment": "e"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, one = os.path.join(folder, "t.csv"), np.ones(1)
    ...     write_columns(path, {"a": one, "b": one, "y": one, "e": np.array(["A"])})
    ...     table = labelled_table_for(ModelFile(reg, ("a", "b"), known), path)
    >>> table.y.tolist(), table.environments.tolist()
    ([1.0], ['A'])
    """
    known = model.metadata.get("columns", {})
    names = {"label": label, "environment": environment}
    for role, name in names.items():
        names[role] = name or (known.get(role) if isinstance(known, dict) else None)
        if not isinstance(names[role], str):
            raise TableError(f"{path}: the model does not say where the {role} is: name the column")
    return table_for(model, path, features=features, labels=labels, **names)


def predict_table(model: ModelFile, table: Table) -> dict[str, NDArray]:
    """Columns of predictions: ``prediction`` and, of a classifier, the classes' probabilities.

    Parameters
    ----------
    model : ModelFile
    table : Table
        From :func:`table_for`.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.io import ModelFile, Table
    >>> from isrlearn.cli.workflow import predict_table
    >>> X, codes = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80)
    >>> y, e = codes % 2, codes // 2 % 2
    >>> model = ModelFile(ISRClassifier(n_spurious=1).fit(X, y, environments=e))
    >>> table = Table(Path("a.npy"), X, ("f0", "f1"), False, 2, y, e)
    >>> list(predict_table(model, table))
    ['prediction', 'probability_0', 'probability_1']
    """
    estimator = nameless(model.estimator)
    if not hasattr(estimator, "predict"):
        raise ValueError(f"a {type(estimator).__name__} predicts nothing; fit a classifier")
    columns = {"prediction": np.asarray(estimator.predict(table.X))}
    if hasattr(estimator, "predict_proba"):
        probabilities = estimator.predict_proba(table.X)
        for i, name in enumerate(estimator.classes_.tolist()):
            columns[f"probability_{name}"] = probabilities[:, i]
    return columns


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of a model's groups and, if asked for, of the same head with nothing removed.

    Examples
    --------
    >>> from isrlearn.metrics import group_report
    >>> from isrlearn.cli.workflow import Evaluation
    >>> report = group_report([0, 0, 1, 1], [0, 1, 1, 1], environments=["a", "b", "a", "b"])
    >>> Evaluation(report).to_dict()["model"]["worst"]
    0.0
    """

    model: GroupReport
    baseline: GroupReport | None = None

    def to_dict(self) -> dict[str, Any]:
        """Numbers and text, ready for JSON."""
        return {
            "model": self.model.to_dict(),
            "baseline": None if self.baseline is None else self.baseline.to_dict(),
        }


def evaluate_table(
    model: ModelFile, table: Table, *, metric: str | None = None, train: Table | None = None
) -> Evaluation:
    """Scores of a model on every group of a table.

    Parameters
    ----------
    model : ModelFile
    table : Table
        With labels and environments.
    metric : {"accuracy", "rmse", "r2"}, optional
        Default: accuracy for a classifier, rmse for a regression.
    train : Table, optional
        Training rows for a baseline: the model's own settings, but nothing is removed (plain
        empirical risk minimisation, with the same weights and penalty).

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from isrlearn import ISRClassifier
    >>> from isrlearn.io import ModelFile, Table
    >>> from isrlearn.cli.workflow import evaluate_table
    >>> X, codes = np.random.default_rng(0).normal(size=(80, 2)), np.arange(80)
    >>> y, e = codes % 2, codes // 2 % 2
    >>> model = ModelFile(ISRClassifier(n_spurious=1).fit(X, y, environments=e))
    >>> table = Table(Path("a.npy"), X, ("f0", "f1"), False, 2, y, e)
    >>> evaluation = evaluate_table(model, table, train=table)
    >>> evaluation.model.n, evaluation.baseline.n
    (80, 80)
    """
    y, environments = labelled(table)
    estimator = model.estimator
    if not hasattr(estimator, "predict"):
        raise ValueError(f"a {type(estimator).__name__} predicts nothing that could be scored")
    metric = metric or ("accuracy" if hasattr(estimator, "classes_") else "rmse")
    sizes = _training_sizes(estimator, table, metric)
    reports = [
        group_report(
            y,
            nameless(each).predict(table.X),
            environments=environments,
            metric=metric,
            train_groups=sizes,
        )
        for each in [estimator, *([] if train is None else [_plain(estimator, train)])]
    ]
    return Evaluation(reports[0], reports[1] if train is not None else None)


def diagnose_table(
    table: Table, *, task: str = "auto", level: float = 0.01, random_state: int = 0
) -> Diagnosis:
    """Diagnosis of a table with labels and environments.

    Parameters are those of :func:`isrlearn.diagnose`.

    Examples
    --------
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from isrlearn.io import Table
    >>> from isrlearn.cli.workflow import diagnose_table
    >>> X, codes = np.random.default_rng(0).normal(size=(200, 2)), np.arange(200)
    >>> table = Table(Path("a.npy"), X, ("f0", "f1"), False, 2, codes % 2, codes // 2 % 2)
    >>> diagnose_table(table).task
    'classification'
    """
    y, environments = labelled(table)
    return diagnose(table.X, y, environments, task=task, level=level, random_state=random_state)


def _plain(estimator: Any, train: Table) -> Any:
    """The same estimator fitted with nothing removed."""
    return fit_on(clone(nameless(estimator)).set_params(n_spurious=0), train)


def _training_sizes(estimator: Any, table: Table, metric: str) -> Mapping[Any, int] | None:
    """Rows of each group in training; None unless the table has all of those groups."""
    moments = estimator.moments_
    sizes: dict[Any, int] = {}
    for k, label in enumerate(moments.classes.tolist()):
        for e, environment in enumerate(moments.environments.tolist()):
            group = (label, environment) if hasattr(estimator, "classes_") else environment
            if moments.count[k, e]:
                sizes[group] = round(moments.count[k, e])
    present = group_sizes(*labelled(table), metric=metric)
    return sizes if set(sizes) <= set(present) else None
