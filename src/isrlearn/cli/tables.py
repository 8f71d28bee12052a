"""Options in: the files and columns that commands name, and the tables read from them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import isrlearn  # whose parts are imported on first use: `isr --help` must not wait for them

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isrlearn.io import ModelFile, Table

#: More classes or environments than this share of the rows cannot be compared.
_MOST_GROUPS = 0.5
#: Endings of the files that commands write; a model may have any other.
_ENDINGS = {
    "report": (".html", ".htm"),
    "card": (".md",),
    "predictions": (".csv", ".tsv", ".parquet", ".npz"),
    "onnx": (".onnx",),
    "torch": (".safetensors", ".pt", ".pth"),
    "numpy": (".npz",),
}
_NOT_MODELS = (".html", ".csv", ".tsv", ".parquet", ".npz", ".npy", ".onnx", ".pt", ".pth")
#: Whether outputs of any kind may be replaced, in the `meta` of a context.
FORCE = "isrlearn.force"


class Output(click.Path):
    """The type of a path to write: a file of a kind that `check_output` knows, or a folder."""

    def __init__(self, kind: str | None = None, *, folder: bool = False) -> None:
        super().__init__(file_okay=not folder, dir_okay=folder, path_type=Path)
        self.kind = kind


FILE = click.Path(path_type=Path)  # a Zarr array is a folder
FOLDER = click.Path(file_okay=False, path_type=Path)
TABLE = click.argument("table", type=FILE)
MODEL = click.argument("model", type=FILE)
SEED = click.option("--seed", type=click.IntRange(0), default=0)


def out(kind: str, text: str) -> Callable[[Any], Any]:
    """The option of the file that a command writes."""
    return click.option("--out", required=True, type=Output(kind), help=text)


def options(*declared: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A decorator that adds options to a command, in their order."""

    def add(command: Any) -> Any:
        for option in reversed(declared):
            command = option(command)
        return command

    return add


def names(option: str, text: str, *, joined: bool = False) -> Callable[[Any], Any]:
    """An option that names columns, also repeatedly: a list, or a text for `read_table`."""

    def read(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> Any:
        text = ",".join(value)
        return text or None if joined else isrlearn.markup.names_in(text)

    return click.option(option, multiple=True, metavar="COLUMNS", callback=read, help=text)


def columns(features: Callable[[Any], Any], *, required: bool) -> Callable[[Any], Any]:
    """The options that name the columns of a table, arguments of `read_table`."""
    note = "" if required else " [default: of the model]"
    column = partial(click.option, metavar="COLUMN")
    environments = f"Column of environments, or a .npy file.{note}"
    return options(
        column("--label", required=required, help=f"Column of labels, or a .npy file.{note}"),
        column("--environment", required=required, help=environments),
        column("--clusters", help=f"Column of clusters, such as the patient of each row.{note}"),
        features,
        click.option("--labels", type=FILE, help="Table of labels and environments."),
    )


#: How columns that are not complete columns of numbers are prepared; `preparer` takes the values.
PREPARATION = options(
    names("--include", "Use columns that look like ids, dates or free text."),
    names("--exclude", "Leave columns out."),
    names("--categorical", "Numbers that are categories, such as codes."),
    click.option(
        "--impute",
        type=click.Choice(["median", "mean"]),
        help="Replaces missing numbers. [default: median]",
    ),
    click.option("--strict", is_flag=True, help="Refuse text and missing values; omit nothing."),
)


def preparer(
    include: list[str], exclude: list[str], categorical: list[str], impute: str | None, strict: bool
) -> isrlearn.TablePreparer | None:
    """The preparation that the options ask for; None if they ask for complete numbers."""
    if strict and not (include or exclude or categorical or impute):
        return None
    impute = impute if strict else impute or "median"
    return isrlearn.TablePreparer(include, exclude, categorical, impute, strict)


MODEL_FEATURES = names(
    "--features", "Feature columns in the model's order, if it stores no names.", joined=True
)
MODEL_COLUMNS = columns(MODEL_FEATURES, required=False)
FEATURES = "Names, patterns f_* and ranges f0:f511. [default: all other columns]"
COLUMNS = columns(names("--features", FEATURES, joined=True), required=True)
#: The options that name columns, and those that say where else to look.
ROLES = ("label", "environment", "clusters"), ("features", "labels")


def forced() -> bool:
    """Whether the running command may replace outputs of any kind."""
    return bool(click.get_current_context().meta[FORCE])


def check_outputs(context: click.Context) -> None:
    """Raise now if an output cannot be written, or would replace a file of another kind."""
    types: dict[str, Any] = {str(each.name): each.type for each in context.command.params}
    given = {name: path for name, path in context.params.items() if path is not None}
    outputs = {name: path for name, path in given.items() if isinstance(types[name], Output)}
    inputs = []
    for name, path in given.items():
        is_path = isinstance(types[name], click.Path) or str(path).endswith(".npy")
        if is_path and name not in outputs:
            # A tuple has the paths of an option that is given repeatedly.
            for one in path if isinstance(path, tuple) else (path,):
                inputs += [one, *isrlearn.io.tables.label_files(one)]
    # A folder that is not an array is no table, and is refused when it is read.
    inputs = [one for one in inputs if str(one).lower().endswith(".zarr") or not os.path.isdir(one)]
    taken: dict[str, str] = {}
    for name, path in outputs.items():
        kind, hint = types[name], f"--{name}"
        other = taken.setdefault(os.path.realpath(path), hint)
        if other != hint:
            raise click.UsageError(f"{hint} and {other} are the same file, {path}")
        if kind.file_okay:
            isrlearn.io.files.check_output(path, inputs, kind.kind, force=forced())
            check_ending(path, hint, kind.kind)
        elif path.exists() and any(path.samefile(p) for p in inputs if os.path.exists(p)):
            raise ValueError(f"{path}: this is an input of the same command; choose another")


def check_ending(path: Path, hint: str, kind: str | None) -> None:
    """Raise if the name of a file says that it is of another kind; devices may have any name."""
    endings = _ENDINGS.get(kind or "", ())
    wrong = path.suffix.lower() not in endings
    if kind == "model":
        wrong = path.suffix.lower() in _NOT_MODELS and not forced()
    if wrong and (endings or kind == "model") and (path.is_file() or not path.exists()):
        legal = f"must end in {', '.join(endings)}" if endings else "is a model: name it model.isr"
        raise ValueError(f"{hint} {path}: this file {legal}")


def table_like(train: Table, path: Path, task: str, roles: Mapping[str, Any]) -> Table:
    """Another table with the columns of a training table."""
    for name in filter(None, roles.values()):
        if name.endswith(".npy"):
            raise ValueError(
                f"{path}: {name} belongs to {train.path}; with a second table, labels and "
                "environments must be columns, or in a table next to it"
            )
    features = train.feature_names if train.preparation is None else None
    how: dict[str, Any] = {"features": features, "prepare": train.preparation}
    table = isrlearn.io.read_table(path, **roles, **how, task=task)
    return _with_labels_like(table, train.y, train.environments, task)


def _with_labels_like(table: Table, y: Any, environments: Any, task: str) -> Table:
    """A table whose labels and environments are of the same types as those of other rows.

    Some of its classes must be among theirs; a warning names those that are not.
    """
    like, listed = isrlearn.io.labels.labels_like, isrlearn.io.errors.listed
    table = replace(table, y=like(table.y, y), environments=like(table.environments, environments))
    classes = dict.fromkeys(isrlearn.core.labels.encode(y)[0].tolist())
    labels = table.y.tolist() if task == "classification" else []
    other = [label for label in labels if label not in classes]
    n, found = len(other), listed([*dict.fromkeys(other)][:3])
    which = f"such as {found}, the classes {listed([*classes][:5])}"
    if n and n == len(labels):
        raise ValueError(f"{table.path}: no label is a class of the model: they are {which}")
    if n:
        text = f"{table.path}: {n} labels, which the model does not know, count as errors: they "
        warnings.warn(f"{text}are {which}", UserWarning, stacklevel=2)
    return table


def read_predictor(path: Path) -> ModelFile:
    """A stored model that predicts, for arrays whose columns are already in its order."""
    model = isrlearn.io.read_model(path)
    if not hasattr(model.estimator, "predict"):
        kind = type(model.estimator).__name__
        raise ValueError(f"{path}: a {kind} does not predict; fit a classifier or a regressor")
    # scikit-learn would warn of arrays without names.
    for step in (*model.preparation, model.estimator):
        if step is not model.preparer:
            vars(step).pop("feature_names_in_", None)
    return model


def table_for(model: ModelFile, path: Path, **columns: Any) -> Table:
    """A table with the model's features, found by name and prepared, in the model's order.

    Columns without names, those of an array, are taken in their order and must be as many as
    the model's. `columns` are the options of that name.
    """
    source, d = isrlearn.io.tables.open_table(path), model.estimator.n_features_in_
    task = "classification" if hasattr(model.estimator, "classes_") else "regression"
    steps = model.preparation
    if model.preparer is not None:
        if columns.pop("features", None) is not None:
            raise ValueError(f"{path}: the model finds its columns by name; leave --features out")
        columns["prepare"], steps = model.preparer, steps[1:]
    elif columns.get("features") is None and source.named:
        if model.feature_names is None:
            raise ValueError(
                f"{path}: the model stores no feature names; name its {d} columns, in their "
                "order, with --features"
            )
        columns["features"] = model.feature_names
    elif columns.get("features") is None and len(source.features) != d:
        raise ValueError(
            f"{path}: there are {len(source.features)} columns; the model has {d} features: an "
            "array must hold exactly these, in their order; or choose them with --features"
        )
    table = isrlearn.io.read_table(path, **columns, task=task)
    if table.X.shape[1] != d:
        raise ValueError(f"{path}: {table.X.shape[1]} columns were selected; the model has {d}")
    for step in steps:
        table = replace(table, X=step.transform(table.X[:]))
    return table


def labelled_table_for(model: ModelFile, path: Path, **columns: Any) -> Table:
    """As :func:`table_for`, with labels and environments, by default of the model's columns."""
    known = stored(model, "columns")
    clusters = known.get("clusters")
    if columns["clusters"] is None and clusters in isrlearn.io.tables.open_table(path).columns:
        columns["clusters"] = clusters
    elif columns["clusters"] is None and clusters is not None:
        text = f"{path} has no column {clusters!r}: its rows are taken for independent"
        warnings.warn(text, UserWarning, stacklevel=2)
    for role in ("label", "environment"):
        columns[role] = columns[role] or known.get(role)
        if not isinstance(columns[role], str):
            raise ValueError(f"the model does not name the {role} column; add --{role} COLUMN")
    table, moments = table_for(model, path, **columns), model.estimator.moments_
    task = "classification" if hasattr(model.estimator, "classes_") else "regression"
    return _with_labels_like(table, moments.classes, moments.environments, task)


def filled(table: Table) -> tuple[Table, int]:
    """The table with unknown environments predicted from the known ones, and how many."""
    known = table.environments
    n = int(isrlearn.core.labels.is_missing(known).sum())
    if n == 0:
        return table, 0
    found = isrlearn.infer_environments(table.X, table.y, environments=known, random_state=0)
    return replace(table, environments=found), n


def as_fitted(model: ModelFile, table: Table) -> Table:
    """The table with environments filled in, if it lacks as many as the training table did."""
    n = int(isrlearn.core.labels.is_missing(table.environments).sum())
    return filled(table)[0] if n and n == model.metadata.get("environments_filled") else table


def stored(model: ModelFile, entry: str) -> dict[str, Any]:
    """An entry of a model's metadata, which may be any JSON; empty unless it is an object."""
    found = model.metadata.get(entry)
    return found if isinstance(found, dict) else {}


def prepared_columns(model: ModelFile) -> list[tuple[str, ...]]:
    """What was done with each column before a model was fitted: columns, their use and why."""
    if model.preparer is not None:
        return [*model.preparer.describe()]
    rows = model.metadata.get("prepared")
    rows = (
        [tuple(row) for row in rows if isinstance(row, list | tuple)]
        if isinstance(rows, list)
        else []
    )
    return rows if all([*map(type, row)] == [str] * 3 for row in rows) else []


def check_tables(task: str, *tables: Table) -> None:
    """Raise unless the labels and environments of the tables suit the task."""
    for table in tables:
        if task != "regression":
            check_groups(table.path, "labels", table.y)
        check_groups(table.path, "environments", table.environments)


def check_groups(path: Path, what: str, values: NDArray) -> None:
    """Raise unless labels or environments divide the rows into groups."""
    names, hint = isrlearn.core.labels.encode(values)[0].tolist(), ""
    if what == "labels" and all(isrlearn.io.labels.is_float(str(name)) for name in names):
        hint = "; for a regression fit with --task regression"
    if what == "labels" and isrlearn.io.labels.looks_continuous(values):
        raise ValueError(
            f"{path}: labels such as {values[0]} look continuous, not like classes{hint}"
        )
    if len(names) > max(2, _MOST_GROUPS * len(values)):
        raise ValueError(
            f"{path}: there are {len(names)} different {what} in {len(values)} rows; groups of "
            f"one row cannot be compared: is this the right column?{hint}"
        )
