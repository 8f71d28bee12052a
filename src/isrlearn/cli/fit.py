"""Commands on a training table: ``isr scan``, ``isr diagnose`` and ``isr fit``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import Choice, option

import isrlearn
from isrlearn.cli import tables
from isrlearn.cli.console import Command, Result, fate, say, share_table, show_notes, working

if TYPE_CHECKING:
    from rich.console import RenderableType

    from isrlearn.io import ModelFile, Table
    from isrlearn.metrics import GroupReport


def number_or(*words: str) -> click.ParamType:
    """The type of a number, whose range the estimator checks, or of one of a few words."""

    def convert(value: str) -> int | float | str:
        for kind in (int, float):
            with suppress(ValueError):
                return value if value in words else kind(value)
        raise click.BadParameter(f"{value!r} is neither {' nor '.join(words)} nor a number")

    convert.__name__ = "|".join([*words, "NUMBER"])
    return click.types.FuncParamType(convert)


COUNT, COMPONENTS = number_or("auto", "permutation"), number_or("auto", "none")
WEIGHTS = Choice(["none", "class", "group", "within", "subsample"])
PAGE, METHODS = tables.Output("report"), Choice(["mean", "cov", "multiclass", "joint"])
ENGINES = Choice(["memory", "dask"])
HEADS = Choice(["logistic", "lda", "ridge"])
COMPARED = Choice(["auto", "means", "given-target"])
_PREPARATION = ("include", "exclude", "categorical", "impute", "strict")
_NOT_WITH_DASK = ("search", "validation", "fill_environments", "report", "labels", "clusters")

#: Parameters of the estimators; `parameters` translates their values.
SETTINGS = tables.options(
    option("--method", type=METHODS, help="Moments to compare. [default: mean]"),
    option("--compare", type=COMPARED, help="What a regression compares. [default: auto]"),
    option("--n-spurious", type=COUNT, help="Directions to remove, or a test. [default: auto]"),
    option("--level", type=float, help="Level of that test. [default: 0.01]"),
    option("--scale", type=float, help="Share of these directions to keep, 0 to 1. [default: 0]"),
    option("--components", "n_components", type=COMPONENTS, help="Principal components to use."),
    option("--variant", type=Choice(["pooled", "paper", "authors"]), help="[default: pooled]"),
    option("--head", type=HEADS, help="[default: logistic; ridge for a regression]"),
    option("--C", "C", type=float, help="Inverse penalty. [default: 0.1; 1 for 3 classes or more]"),
    option("--alpha", type=float, help="Penalty of the ridge head. [default: 1]"),
    option("--weights", type=WEIGHTS, help="How the head treats groups. [default: within]"),
)


@click.command(cls=Command)
@tables.TABLE
@option("--label", required=True, metavar="COLUMN", help="Column of labels.")
@option("--labels", type=tables.FILE, help="Table with further columns of the same rows.")
@tables.names("--candidates", "Columns to examine. [default: those of few values]")
@option("--level", type=float, default=0.01, help="Probability of a false alarm.")
@tables.SEED
@option("--out", type=PAGE, help="Also write a page.")
def scan(table: Path, label: str, candidates: list[str], out: Path | None, **given: Any) -> Result:
    """Find the columns of a table that are shortcuts to the label.

    Each column of few values is taken as the environment in turn: do the other columns shift with
    it, does a plain model rely on that, and does it fail where the column says otherwise?

    Example: isr scan train.csv --label y --out scan.html
    """
    with working(f"Reading {table}"):
        columns = isrlearn.io.tables.read_columns(table, label=label, labels=given["labels"])
    for name in [label, *candidates]:
        if name not in columns:
            hint = isrlearn.io.errors.suggestion(name, columns)
            raise ValueError(f"{table}: there is no column {isrlearn.io.errors.shown(name)}{hint}")
    tables.check_groups(table, "labels", columns[label])
    with working(f"Examining {table}"):
        how = {"level": given["level"], "random_state": given["seed"]}
        found = isrlearn.scan(columns, label, candidates=candidates or None, **how)
    lines = [str(found)]
    if out is not None:
        with isrlearn.io.files.atomic_write(out) as file:
            file.write(found.html().encode("utf-8", "replace"))
        lines.append(f"The page is in {out}.")
    return found.to_dict(), lines


@click.command(cls=Command)
@tables.TABLE
@tables.COLUMNS
@tables.PREPARATION
@option("--task", type=Choice(["auto", "classification", "regression"]), default="auto")
@option("--level", type=float, default=0.01, help="Level of every test.")
@tables.SEED
def diagnose(table: Path, task: str, level: float, seed: int, **given: Any) -> Result:
    """Predict whether ISR will help with a table, and say what to do.

    Example: isr diagnose train.csv --label y --environment hospital
    """
    from isrlearn.diagnosis.shares import origins

    columns = {name: given.pop(name) for roles in tables.ROLES for name in roles}
    with working(f"Reading {table}"):
        rows = isrlearn.io.read_table(table, **columns, task=task, prepare=tables.preparer(**given))
    show_notes(rows)
    continuous = task == "auto" and isrlearn.io.labels.looks_continuous(rows.y)
    tables.check_tables("regression" if continuous else task, rows)
    with working(f"Examining {table}"):
        how: dict[str, Any] = {"task": task, "level": level, "random_state": seed}
        how |= {"clusters": rows.clusters, "feature_names": origins(rows)}
        found = isrlearn.diagnose(rows.X, rows.y, rows.environments, **how)
    return found.to_dict(), [str(found)]


@click.command(cls=Command)
@tables.TABLE
@tables.COLUMNS
@tables.PREPARATION
@option("--task", type=Choice(["classification", "regression"]), default="classification")
@SETTINGS
@option("--validation", type=tables.FILE, help="Choose settings by this table's worst group.")
@option("--search/--no-search", default=None, help="Choose settings by cross-validation.")
@option("--fill-environments", is_flag=True, help="Predict unknown environments first.")
@option("--engine", type=ENGINES, default="memory", help="dask reads the table in parts.")
@option("--scheduler", metavar="ADDRESS", help="Dask cluster, such as tcp://host:8786.")
@tables.out("model", "Model file to write.")
@option("--report", type=PAGE, help="Also write a page with a verdict and its evidence.")
@option("--test", type=tables.FILE, help="Table to score, not to fit on.")
def fit(table: Path, task: str, out: Path, report: Path | None, **given: Any) -> Result:
    """Fit a model on a table and write it to a file.

    A table is a .csv, .parquet, .npz or .npy file. Categories and missing values are encoded, ids
    and dates left out, and the model keeps that preparation. Settings that are not given are
    chosen by the worst group of held-out rows, or have their defaults with --no-search.

    Example: isr fit train.csv --label y --environment hospital --out model.isr --report report.html
    """
    import numpy as np

    from isrlearn.cli.models import report_on

    _check_usage()
    if report is not None:
        isrlearn.io.errors.optional("jinja2", "a report", "report")  # now, before the work is done
    names, rest = ({role: given.pop(role) for role in roles} for roles in tables.ROLES)
    others = {part: given.pop(part) for part in ("validation", "test")}
    how, in_parts = {name: given.pop(name) for name in _PREPARATION}, given["engine"] == "dask"
    prepare = None if in_parts else tables.preparer(**how)
    with working(f"Reading {table}"):
        reading: dict[str, Any] = {"task": task, "stream": in_parts, "prepare": prepare}
        train = isrlearn.io.read_table(table, **names, **rest, **reading)
        columns = None if train.preparation is None else train.preparation.describe()
    if given["search"] is None:  # a search copies rows, which must be in memory
        given["search"] = type(train.X) is np.ndarray
        if not given["search"]:
            say(f"Note: {table} is read in blocks: settings have their defaults, without a search.")
    show_notes(train)
    if train.preparation is not None and train.preparation.plain_ and how["impute"] is None:
        train = replace(train, preparation=None)  # the names of the columns are enough
    with working(f"Reading {table}"):
        parts = {k: tables.table_like(train, p, task, names) for k, p in others.items() if p}
        tables.check_tables(task, train, *parts.values())
    record: dict[str, Any] = {}
    lines: list[RenderableType] = []
    if given.pop("fill_environments"):
        with working("Filling in environments"):
            train, n_filled = tables.filled(train)
        record["environments_filled"] = n_filled
        lines.append(f"{n_filled} of {len(train)} environments were filled in from the others.")
    what = f"Fitting on {len(train)} rows of {train.X.shape[1]} features"
    with working(what, quietly=given["search"] or "validation" in parts):
        filled = record.get("environments_filled", 0)
        given |= {"task": task, "columns": names, "prepared": columns, "filled": filled}
        model, scores, found = fit_table(train, parts, **given)
        isrlearn.save(model.model, out, feature_names=model.feature_names, metadata=model.metadata)
    record |= {**model.to_dict(), "out": str(out)}
    lines += _paragraphs(model.estimator, scores, found)
    if task == "classification":
        cells = isrlearn.core.labels.Cells.of(train.y, train.environments)
        empty = isrlearn.diagnosis.CellCounts.of(cells).empty
        if groups := [f"class {cell.label!r} in {cell.environment!r}" for cell in empty]:
            only = "" if "test" in parts else " Only a test table can show their accuracy."
            listed = isrlearn.markup.listed(groups, 3)
            lines.append(f"Groups without training rows: {listed}.{only}\n")
    lines += share_table(model.metadata["shares"])
    lines.append(f"The model is in {out}.")
    if report is not None:
        with working("Writing the report"):
            search = None if "validation" in parts else found
            scored = parts.get("test", parts.get("validation"))
            page = report_on(model, train, scored, names | rest, search)
            page.save(report)
        record["report"] = {"out": str(report), **page.to_dict()}
        lines += [page.headline, f"The report is in {report}."]
    return record, lines


def _shares(estimator: Any, table: Table) -> list[dict[str, Any]] | None:
    """Shares of the columns in what is removed and in the head; None without names or rows."""
    from isrlearn.diagnosis.shares import column_shares, origins

    names = origins(table)
    if names is None or isinstance(table.X, isrlearn.engine.Rows):
        return None
    shares = column_shares(estimator, names, table.X, table.y, table.environments)
    return [asdict(share) for share in shares]


def _check_usage() -> None:
    """Raise for options that do not go together."""
    given = click.get_current_context().params
    if given["engine"] == "dask":
        if any(given[name] for name in (*_NOT_WITH_DASK, *_PREPARATION[:-1])):
            raise click.UsageError(
                "--engine dask fits given settings on one table of complete numbers; it cannot be "
                "combined with --search, --validation, --fill-environments, --report, --labels, "
                "--clusters, --include, --exclude, --categorical or --impute"
            )
    elif given["scheduler"] is not None:
        raise click.UsageError("--scheduler needs --engine dask")
    if given["fill_environments"] and given["task"] == "regression":
        raise click.UsageError("--fill-environments needs classes; a regression has none")


def fit_table(
    table: Table,
    others: Mapping[str, Table],
    *,
    task: str,
    columns: Mapping[str, str],
    prepared: Any,
    filled: int,
    search: bool,
    engine: str,
    scheduler: str | None,
    **settings: Any,
) -> tuple[ModelFile, dict[str, GroupReport], Any]:
    """A model fitted on a table, its scores on that and the others, and the search."""
    import numpy as np

    from isrlearn.report.evidence import scored

    kind = isrlearn.ISRRegressor if task == "regression" else isrlearn.ISRClassifier
    chosen, found, validation = parameters(kind, task, settings), None, others.get("validation")
    given = {"environments": table.environments, "clusters": table.clusters}
    if engine == "dask":
        from isrlearn.dask import client_of, fit

        path, names = table.path.absolute(), table.feature_names
        label, environment = columns["label"], columns["environment"]
        with client_of(scheduler):
            estimator = fit(kind(**chosen), [path], label, environments=environment, features=names)
        vars(estimator).pop("feature_names_in_", None)  # the table's columns are in its order
    elif search or validation is not None:
        held = validation and (validation.X, validation.y, validation.environments)
        found = getattr(isrlearn, f"{kind.__name__}CV")(**chosen, verbose=1)
        estimator = found.fit(table.X, table.y, **given, validation=held).best_estimator_
    else:
        estimator = kind(**chosen).fit(table.X, table.y, **given)
    moved = getattr(found, "threshold_", np.zeros(1))
    scores = {part: scored(estimator, rows) for part, rows in {"train": table, **others}.items()}
    if table.named and table.preparation is None:
        estimator.feature_names_in_ = np.array(table.feature_names, dtype=object)
    metadata = {
        "task": task,
        # A file of labels belongs to one table; a column name is valid for any.
        "columns": {r: name for r, name in columns.items() if name and not name.endswith(".npy")},
        "n_rows": len(table),
        "metrics": {"validation": None} | {part: s.to_dict() for part, s in scores.items()},
        "search": None
        if found is None
        else {
            "selection": found.selection_,
            "by": f"{found.n_splits_} folds" if validation is None else "validation table",
            "n_settings": len(found.cv_results_["params"]),
            "best_score": found.best_score_,
            "best_params": {name: str(value) for name, value in found.best_params_.items()},
            "threshold": moved.tolist() if moved.any() else None,
        },
        "environments_filled": filled,
        "prepared": prepared,
        "shares": _shares(estimator, table),
    }
    steps = () if table.preparation is None else (table.preparation,)
    model = isrlearn.io.ModelFile(estimator, table.feature_names, metadata, preparation=steps)
    return model, scores, found


def parameters(kind: Any, task: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of an estimator, or of its search, from the values of `SETTINGS`."""
    given = {name: value for name, value in settings.items() if value is not None}
    for name in given:
        if name not in signature(kind).parameters:
            raise ValueError(f"{name} is not a setting of a {task}")
    for name in ("n_components", "weights"):
        if given.get(name) == "none":
            given[name] = None
    return given


def _paragraphs(
    estimator: Any, scores: Mapping[str, GroupReport], search: Any
) -> list[RenderableType]:
    """What was removed, which settings were chosen, and the scores of every group."""
    test, scale = estimator.rank_test_, estimator.scale
    tried = () if search is None else search.cv_results_["params"]
    searched = len({p.get("n_spurious") for p in tried}) > 1
    origin = "chosen by the search" if searched else "as requested"
    if test is not None:
        origin = f"tested at level {test.level:g}"
    done, n_found = fate(scale), estimator.n_spurious_
    if not n_found and test is not None and test.rank:
        n_found, done = test.rank, f"kept: {_why_kept(estimator)}"
    shifting = n_found if test is None else max(n_found, test.rank)
    s, was = ("s", "was") if shifting == 1 else ("", "were")
    of = f"{shifting} of {estimator.n_features_in_} directions"
    found = f"{of} shift{s} between environments ({origin})"
    lines: list[RenderableType] = [f"{found} and {was} {done}."]
    if test is None:
        lines = [f"{of} {was} {done} ({origin})."]
    elif n_found < shifting:
        most = "one that shifts most was" if n_found == 1 else f"{n_found} that shift most were"
        limit = "ISR-Mean removes fewer than there are environments, and one always stays"
        lines = [f"{found}; the {most} {done}: {limit}."]
    if not n_found:
        nothing = "Nothing was removed" if test is None else "Nothing shifts: nothing was removed"
        lines = [f"{nothing} ({origin})."]
    if search is not None:
        best = ", ".join(f"{k}={v}" for k, v in search.best_params_.items())
        moved = "; the threshold between classes was moved in favour of the worst group"
        moved *= any(getattr(search, "threshold_", ()))
        lines.append(f"Best of {len(tried)} settings: {best}{moved}.")
    metric = scores["train"].metric
    part, name = ("test", "test rows") if "test" in scores else ("train", "training rows")
    lines.append(f"\n{metric} of each group of the {name}:\n\n{scores[part]}\n")
    if "validation" in scores:
        title = f"{metric} on the validation table, which chose the settings"
        lines.append(f"{title}:\n\n{scores['validation']}\n")
    return lines


def _why_kept(estimator: Any) -> str:
    """Why nothing was removed although something shifts."""
    compared = estimator.held_out_ is not None
    if not hasattr(estimator, "compared_"):
        return "removal costs accuracy in new environments" if compared else "one always stays"
    if compared:
        return "removal does not clearly help in new environments"
    return "with two environments none can be held out to see whether removal helps"
