"""Commands on a fitted model: ``isr predict, evaluate, inspect, export`` and ``report``."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import isrlearn
from isrlearn.cli import tables
from isrlearn.cli.console import Command, Result, column_table, fate, share_table, working
from isrlearn.cli.console import table as table_of

if TYPE_CHECKING:
    from isrlearn.io import ModelFile, Table
    from isrlearn.report import Report

_FLOATS = click.Choice(["float32", "float64"])
_TRAIN = "Training table, to compare with plain and balanced models."
#: Relative difference of means that rounding may cause.
_ROUNDING = 1e-5
#: Most features that the code of a report names.
_MOST_NAMED = 200


@click.command(cls=Command)
@tables.MODEL
@tables.TABLE
@tables.MODEL_FEATURES
@tables.out("predictions", "Table to write: .csv, .tsv, .parquet or .npz.")
def predict(model: Path, table: Path, features: str | None, out: Path) -> Result:
    """Predict a label for every row of a table.

    Features are found by name, in any order; no label or environment is needed. The output has
    one row per row of the table: the prediction and, for a classifier, the probabilities.

    Example: isr predict model.isr new.csv --out predictions.csv
    """
    with working(f"Predicting {table}"):
        saved = tables.read_predictor(model)
        rows = tables.table_for(saved, table, features=features, stream=True)
        n = isrlearn.io.write_predictions(saved.estimator, rows.X, out)
    return {"rows": n, "out": str(out)}, [f"{n} predictions are in {out}."]


@click.command(cls=Command)
@tables.MODEL
@tables.TABLE
@tables.MODEL_COLUMNS
@click.option("--baseline", type=tables.FILE, metavar="TRAIN", help=_TRAIN)
@click.option("--metric", type=click.Choice(["accuracy", "rmse", "r2"]))
def evaluate(
    model: Path, table: Path, baseline: Path | None, metric: str | None, **columns: Any
) -> Result:
    """Score a model on every group, and compare it with others.

    A group is a class in an environment; for a regression, an environment. With the training
    table as --baseline, plain and balanced models are fitted on it, each with the penalty that
    suits it, and the first line says whether the model is worth using.

    Example: isr evaluate model.isr test.csv --baseline train.csv
    """
    from isrlearn.report.evidence import scored

    with working(f"Scoring {table}"):
        saved = tables.read_predictor(model)
        estimator = saved.estimator
        if metric is not None and (metric == "accuracy") != hasattr(estimator, "classes_"):
            raise click.UsageError(f"--metric {metric} is not a score of this kind of model")
        rows = tables.labelled_table_for(saved, table, **columns)
        sizes = _training_sizes(estimator, rows)
        own, found = scored(estimator, rows, metric, sizes), None
        seen = _fitted_on(estimator, tables.as_fitted(saved, rows))
        if baseline is not None:
            train = tables.labelled_table_for(saved, baseline, **columns | {"labels": None})
            train = tables.as_fitted(saved, train)
            given = {"model": estimator, "test": rows, "metric": metric, "clusters": train.clusters}
            found = isrlearn.compare_models(train.X, train.y, train.environments, **given)
    shown = [f"{own.metric} of each group:\n\n{own}\n"]
    if found is None:
        shown.append(
            "Add --baseline TRAIN.csv, the training table, to compare the model with plain and "
            "balanced ones and to see whether it is worth using."
        )
    else:
        change = f"From {found.best} to model, {found.change.metric}:", str(found.change)
        shown = [str(found), *shown, *change]
    if seen:
        text = "The model was fitted on these rows and may do worse on others: isr report scores"
        shown.insert(0, f"{text} it on folds of them.\n")
    return {"model": own, "training_rows": seen, "comparison": found}, shown


def _training_sizes(estimator: Any, table: Table) -> Mapping[Any, int] | None:
    """Rows of each group in training; None unless the table has all of those groups."""
    moments, by_class = estimator.moments_, hasattr(estimator, "classes_")
    sizes = {
        (label, environment) if by_class else environment: round(moments.count[k, e])
        for k, label in enumerate(moments.classes.tolist())
        for e, environment in enumerate(moments.environments.tolist())
        if moments.count[k, e]
    }
    metric = "accuracy" if by_class else "rmse"
    present = isrlearn.metrics.group_sizes(table.y, table.environments, metric=metric)
    return sizes if set(sizes) <= set(present) else None


@click.command(cls=Command)
@tables.MODEL
def inspect(model: Path) -> Result:
    """Show what is in a model file.

    Example: isr inspect model.isr
    """
    found = isrlearn.io.read_model(model)
    record = found.to_dict()
    removed, test = f"{record['n_spurious']} of {record['n_features']}", record["rank_test"]
    if test is not None:
        p_values = ", ".join(f"{p:.2g}" for p in test["p_values"][-4:])
        removed += f" (tested at level {test['level']:g}; last p-values {p_values})"
        if test["rank"] and not record["n_spurious"]:
            removed += f"; {test['rank']} shift, and were kept"
        elif test["rank"] > record["n_spurious"]:
            limit = "ISR-Mean removes fewer than there are environments, and one always stays"
            removed += f"; {test['rank']} shift, {limit}"
    names, kind = record["feature_names"] or ["not named"], "class" if record["classes"] else ""
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    facts = {
        f"directions {fate(record['parameters'].get('scale', 0.0))}": removed,
        "features": ", ".join(names[:6]) + more,
        "settings": _listed(record["parameters"], "="),
        "columns": _listed(tables.stored(found, "columns"), ": ") or "not stored",
        "written by": _listed(record["versions"], " "),
        "SHA-256": record["sha256"],
    }
    if moved := tables.stored(found, "search").get("threshold"):
        facts["threshold moved by"] = str(moved)
    counts = [
        [label, environment, f"{n:g}"]
        for label, row in zip(record["classes"] or [""], record["count"], strict=True)
        for environment, n in zip(record["environments"], row, strict=True)
    ]
    prepared = tables.prepared_columns(found)
    shown = [column_table("Columns of the table", prepared)] if prepared else []
    return record, [
        table_of(record["estimator"], ["", ""], facts.items(), n_left=2),
        *shown,
        *share_table(found.metadata.get("shares")),
        table_of("Training rows", [kind, "environment", "n"], counts, n_left=2),
    ]


def _listed(pairs: Mapping[str, Any], separator: str) -> str:
    """Names and values on one line."""
    return ", ".join(f"{name}{separator}{value}" for name, value in pairs.items())


@click.command(cls=Command)
@tables.MODEL
@click.option("--to", "kind", required=True, type=click.Choice(["onnx", "torch", "numpy"]))
@click.option("--precision", type=_FLOATS, help="[default: float32, and float64 for numpy]")
@tables.out("export", "File to write: .onnx; .safetensors or .pt for torch; .npz for numpy.")
def export(model: Path, kind: str, precision: str | None, out: Path) -> Result:
    """Write a model as one affine map for other programs.

    The ONNX file holds a Gemm, a softmax and the class names; the torch file the state of an
    nn.Linear; the NumPy file the arrays coef and intercept.

    Example: isr export model.isr --to onnx --out model.onnx
    """
    tables.check_ending(out, "--out", kind)
    isrlearn.io.export_model(isrlearn.io.read_model(model), kind, out, dtype=precision)
    return {"kind": kind, "out": str(out)}, [f"The {kind} model is in {out}."]


@click.command(cls=Command)
@tables.MODEL
@tables.TABLE
@click.option("--train", type=tables.FILE, metavar="TRAIN", help=_TRAIN)
@tables.MODEL_COLUMNS
@tables.out("report", "Page to write, such as report.html.")
@click.option("--card", type=tables.Output("card"), help="Also write a model card, card.md.")
def report(
    model: Path, table: Path, train: Path | None, out: Path, card: Path | None, **columns: Any
) -> Result:
    """Write a page that says whether a model is worth using, and why.

    The model is scored on the table: by cross-validation if it was fitted on that table,
    otherwise directly, and with --train compared with plain and balanced models. The page is one
    file that needs no network.

    Example: isr report model.isr test.csv --train train.csv --out report.html
    """
    isrlearn.io.errors.optional("jinja2", "a report", "report")
    with working(f"Examining {table}"):
        saved = tables.read_predictor(model)
        rows, fitted = tables.labelled_table_for(saved, table, **columns), None
        columns["labels"] = None  # they belong to that one table
        if train is not None:
            fitted = tables.as_fitted(saved, tables.labelled_table_for(saved, train, **columns))
            if not _fitted_on(saved.estimator, fitted):
                raise ValueError(
                    f"{train}: the model was not fitted on these rows (their counts or means "
                    "differ); give its training table, or leave --train out"
                )
        task = "classification" if hasattr(saved.estimator, "classes_") else "regression"
        tables.check_tables(task, *filter(None, (rows, fitted)))
        own = tables.as_fitted(saved, rows)
        scored = (own, None) if _fitted_on(saved.estimator, own) else (fitted, rows)
        found = report_on(saved, scored[0], scored[1], columns)
        found.save(out)
        if card is not None:
            found.save(card, card=True)
    lines = [found.headline, f"The report is in {out}."]
    lines += [] if card is None else [f"The model card is in {card}."]
    if found.evidence.kind == "table":
        lines.insert(1, "Give the training table with --train to compare with other models.")
    return {**found.to_dict(), "out": str(out)}, lines


def report_on(
    model: ModelFile,
    train: Table | None,
    held_out: Table | None,
    columns: Mapping[str, Any],
    search: Any = None,
) -> Report:
    """Report on a model, which recognises the rows that its settings were chosen on.

    It is scored on held-out rows if there are any, otherwise by cross-validation, which repeats
    the search that chose its settings, if that is given.
    """
    from sklearn.base import clone

    from isrlearn.report import make_report

    prepared = tables.prepared_columns(model)
    # The code of the page names the columns that were used, unless they are very many.
    some = model.preparer is None and any(use == "left out" for _, use, _ in prepared)
    used = model.feature_names if some and len(model.feature_names or ()) <= _MOST_NAMED else None
    sources = {
        "command": shlex.join(["isr", *click.get_current_context().obj["arguments"]]),
        "train": train and str(train.path),
        "scored": held_out and str(held_out.path),
        "sha256": model.sha256,
        **tables.stored(model, "columns"),
        "threshold": tables.stored(model, "search").get("threshold"),
        "filled": model.metadata.get("environments_filled"),
        "prepared": prepared,
        "features": used and list(used),
        "prepare": model.preparer and repr(clone(model.preparer)),
        **{role: str(name) for role, name in columns.items() if name},
    }
    by = tables.stored(model, "search").get("by")
    chosen = search is None and held_out is None and by not in (None, "validation table")
    fitted = model.estimator if search is None else search
    found = make_report(fitted, train, held_out, chosen=chosen, sources=sources)
    scores, own = tables.stored(model, "metrics").get("validation"), found.evidence.report
    # The scores stored for the table that chose the settings show whether this is that table.
    known = isinstance(scores, dict) and (scores.get("n"), scores.get("worst"))
    if by == "validation table" and known == (own.n, own.worst):
        found = replace(found, evidence=replace(found.evidence, kind="validation"))
    return found


def _fitted_on(estimator: Any, table: Table) -> bool:
    """Whether a table has the moments of the rows that an estimator was fitted on."""
    import numpy as np

    labels = table.y if hasattr(estimator, "classes_") else None
    found = isrlearn.engine.cell_moments(table.X, labels, table.environments, order=1)
    mine = estimator.moments_
    if not np.array_equal(found.count, mine.count):
        return False
    mean = mine.mean[..., : estimator.n_features_in_]
    return bool(np.allclose(found.mean, mean, rtol=0, atol=_ROUNDING * np.abs(mean).max()))
