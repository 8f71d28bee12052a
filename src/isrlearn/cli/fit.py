"""``isr fit``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isrlearn.cli import _options as options
from isrlearn.cli._console import JSON, command_line, groups, show, working

if TYPE_CHECKING:
    from rich.console import RenderableType

    from isrlearn.cli.workflow import Fitted


class Count(click.ParamType):
    """A whole number, or "auto"."""

    name = "auto|INTEGER"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | str:
        """The value an option has when it is written so."""
        if value == "auto":
            return "auto"
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither 'auto' nor a whole number", param, ctx)


class Components(click.ParamType):
    """A whole number, or a fraction of variance, or "auto", or "none"."""

    name = "auto|none|INTEGER|FRACTION"

    def convert(self, value: Any, param: Any, ctx: Any) -> int | float | str:
        """The value an option has when it is written so."""
        if value in ("auto", "none"):
            return str(value)
        try:
            return int(value) if str(value).lstrip("-").isdigit() else float(value)
        except ValueError:
            self.fail(f"{value!r} is no number", param, ctx)


@click.command()
@options.TABLE
@options.label(required=True)
@options.environment(required=True)
@options.features("Feature columns: names, patterns f_*, ranges f0:f511. [default: all the others]")
@options.LABELS
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    default="classification",
    show_default=True,
)
@click.option("--method", type=click.Choice(["mean", "cov", "multiclass", "joint"]))
@click.option("--n-spurious", type=Count(), help="Directions to remove. [default: auto]")
@click.option("--rank-test", type=click.Choice(["moments", "permutation"]), help="For auto.")
@click.option("--scale", type=float, help="What is kept of them, 0 to 1. [default: 0]")
@click.option("--components", "n_components", type=Components(), help="Principal ones first.")
@click.option("--condition-on", metavar="CLASS", help="Compare the means of this class only.")
@click.option("--variant", type=click.Choice(["pooled", "paper"]))
@click.option("--head", type=click.Choice(["logistic", "lda", "ridge"]))
@click.option("--C", "C", type=float, help="Inverse penalty of the logistic head. [default: 1]")
@click.option("--alpha", type=float, help="Penalty of the ridge head. [default: 1]")
@click.option("--shrinkage", type=float, help="Of the lda head, 0 to 1. [default: 0]")
@click.option("--weights", type=click.Choice(["none", "class", "group"]), help="Balanced rows.")
@click.option(
    "--validation",
    type=options.FILE,
    help="Choose the settings not given by the worst group of this table.",
)
@click.option(
    "--fill-environments",
    "fill",
    is_flag=True,
    help="Tell unknown environments by features and class, from rows where they are known.",
)
@click.option("--search", is_flag=True, help="Choose them by cross-validation.")
@click.option(
    "--engine",
    type=click.Choice(["memory", "dask"]),
    default="memory",
    show_default=True,
    help="dask: fit on the file in parts, larger than memory or on a cluster.",
)
@click.option("--scheduler", metavar="ADDRESS", help="Of a Dask cluster, tcp://host:8786.")
@options.out("Model file to write.")
@click.option(
    "--report", type=options.FILE, help="Page to write as well: what was gained, and why."
)
@click.option("--test", type=options.FILE, help="Table to score in the report, not to fit on.")
@JSON
def fit(
    table: Path,
    label: str,
    environment: str,
    features: str | None,
    labels: Path | None,
    task: str,
    validation: Path | None,
    fill: bool,
    search: bool,
    engine: str,
    scheduler: str | None,
    out: Path,
    report: Path | None,
    test: Path | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Fit a model on a table and write it to a file.

    A table is a .csv, .parquet, .npz or .npy file. Settings that are not given have their
    defaults, or are chosen by the worst group with --validation or --search.

    Example: isr fit train.csv --label y --environment hospital --out model.isr --report report.html
    """
    from isrlearn.cli.workflow import (
        fill_environments,
        fit_table,
        report_fitted,
        table_like,
        training_tables,
    )
    from isrlearn.io.files import check_writable

    if engine == "dask" and (search or validation or fill or report or labels):
        raise click.UsageError(
            "--engine dask fits given settings on one table: not with --search, --validation, "
            "--fill-environments, --report or --labels"
        )
    if scheduler is not None and engine != "dask":
        raise click.UsageError("--scheduler goes with --engine dask")
    if fill and task == "regression":
        raise click.UsageError("--fill-environments goes by class: not for a regression")

    check_writable(out)
    _check_report(report, out, test)
    with working(f"Reading {table}"):
        train, held_out = training_tables(
            table,
            validation,
            label=label,
            environment=environment,
            features=features,
            labels=labels,
            stream=engine == "dask",
        )
        columns = {"label": label, "environment": environment}
        unseen = None if test is None else table_like(train, test, **columns)
    n_filled = 0
    if fill:
        with working("Filling in environments"):
            train, n_filled = fill_environments(train)
    given = {name: value for name, value in settings.items() if value is not None}
    what = f"Fitting on {len(train)} rows of {train.X.shape[1]} features"
    with working(what, quietly=search or validation is not None):
        fitted = fit_table(
            train,
            task=task,
            settings=given,
            validation=held_out,
            search=search,
            columns=columns,
            engine=engine,
            scheduler=scheduler,
        )
        fitted.save(out)
    record, lines = {**fitted.to_dict(), "out": str(out)}, _paragraphs(fitted, out)
    if fill:
        record["environments_filled"] = n_filled
        lines.insert(0, f"{n_filled} of {len(train)} environments were filled in from the others.")
    if report is not None:
        with working("Writing the report"):
            page = report_fitted(
                fitted,
                validation=held_out,
                test=unseen,
                sources={
                    "command": command_line(),
                    "labels": None if labels is None else str(labels),
                    "features": features,
                },
            )
            page.save(report)
        record["report"] = {"out": str(report), **page.to_dict()}
        lines += [page.headline, f"The report is in {report}."]
    show(record, lines, as_json)


def _check_report(report: Path | None, out: Path, test: Path | None) -> None:
    """Raise now what would be wrong with the report later."""
    if report is None:
        if test is not None:
            raise click.UsageError("--test goes with --report: the report scores that table")
        return
    from isrlearn.io.files import check_writable
    from isrlearn.report._page import check_jinja

    check_writable(report)
    check_jinja()
    if report.resolve() == out.resolve():
        raise click.UsageError(f"--report and --out are the same file, {out}")


def _paragraphs(fitted: Fitted, out: Path) -> list[RenderableType]:
    estimator = fitted.estimator
    reports = {"training rows": fitted.train}
    lines: list[RenderableType] = [_removal(estimator)]
    if fitted.search is not None:
        best = ", ".join(f"{k}={v}" for k, v in fitted.search.best_params_.items())
        lines.append(f"Best of {len(fitted.search.cv_results_['params'])} settings: {best}.")
    lines += groups(f"{fitted.train.metric} of each group", reports)
    if fitted.validation is not None:
        title = f"{fitted.validation.metric} on the validation table, which chose the settings"
        lines += groups(title, {"validation rows": fitted.validation})
    lines.append(f"The model is in {out}.")
    return lines


def _removal(estimator: Any) -> str:
    """What became of the directions that move, in one sentence."""
    test = estimator.rank_test_
    number = f"{estimator.n_spurious_} of {estimator.n_features_in_} directions"
    origin = "as asked" if test is None else f"tested at level {test.level:g}"
    if estimator.scale == 0:
        return f"{number} move with the environment and were taken out ({origin})."
    if estimator.scale == 1:
        return f"{number} move with the environment ({origin}); they were left as they are."
    share = f"{100 * estimator.scale:g}%"
    return f"{number} move with the environment ({origin}) and were scaled to {share}."
