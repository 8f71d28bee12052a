"""Commands that use a fitted model: ``isr predict``, ``evaluate``, ``inspect`` and ``export``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isrlearn.cli import tables
from isrlearn.cli.console import groups, show, working
from isrlearn.cli.console import table as table_of

if TYPE_CHECKING:
    from rich.console import RenderableType

    from isrlearn.io import Table


@click.command()
@tables.MODEL
@tables.TABLE
@tables.MODEL_FEATURES
@click.option(
    "--out", required=True, type=tables.FILE, help="Table to write: .csv, .tsv, .parquet or .npz."
)
@tables.JSON
def predict(model: Path, table: Path, features: str | None, out: Path, as_json: bool) -> None:
    """Predict a label for every row of a table.

    Features are found by name, in any order; no label or environment is needed. The output has
    one row per row of the table: the prediction and, for a classifier, the probabilities.

    Example: isr predict model.isr new.csv --out predictions.csv
    """
    from isrlearn.io import write_predictions

    tables.check_outputs()
    with working(f"Predicting {table}"):
        saved = tables.read_predictor(model)
        rows = tables.table_for(saved, table, features=features, stream=True)
        n = write_predictions(saved.estimator, rows.X, out)
    show({"rows": n, "out": str(out)}, [f"{n} predictions are in {out}."], as_json)


@click.command()
@tables.MODEL
@tables.TABLE
@tables.columns(required=False)
@click.option(
    "--baseline",
    type=tables.FILE,
    metavar="TRAIN",
    help="Training table: fit the same head on it with nothing removed, and show both.",
)
@click.option("--metric", type=click.Choice(["accuracy", "rmse", "r2"]))
@tables.JSON
def evaluate(
    model: Path,
    table: Path,
    baseline: Path | None,
    metric: str | None,
    as_json: bool,
    **columns: Any,
) -> None:
    """Score a model on every group of a table.

    A group is a class in an environment; for a regression, an environment.

    Example: isr evaluate model.isr test.csv --baseline train.csv
    """
    from sklearn.base import clone

    with working(f"Scoring {table}"):
        saved = tables.read_predictor(model)
        estimator = saved.estimator
        rows = tables.labelled_table_for(saved, table, **columns)
        sizes = _training_sizes(estimator, rows)
        reports = {"model": tables.scores(estimator, rows, metric, sizes)}
        if baseline is not None:
            train = tables.labelled_table_for(saved, baseline, **columns | {"labels": None})
            plain = clone(estimator).set_params(n_spurious=0)
            plain.fit(train.X, train.y, environments=train.environments)
            reports = {"nothing removed": tables.scores(plain, rows, metric, sizes), **reports}
    record = {"model": reports["model"].to_dict(), "baseline": None}
    if baseline is not None:
        record["baseline"] = reports["nothing removed"].to_dict()
    show(record, groups(f"{reports['model'].metric} of each group", reports), as_json)


def _training_sizes(estimator: Any, table: Table) -> Mapping[Any, int] | None:
    """Rows of each group in training; None unless the table has all of those groups."""
    from isrlearn.metrics import group_sizes

    moments, by_class = estimator.moments_, hasattr(estimator, "classes_")
    sizes = {
        (label, environment) if by_class else environment: round(moments.count[k, e])
        for k, label in enumerate(moments.classes.tolist())
        for e, environment in enumerate(moments.environments.tolist())
        if moments.count[k, e]
    }
    metric = "accuracy" if by_class else "rmse"
    present = group_sizes(*tables.data_of(table)[1:], metric=metric)
    return sizes if set(sizes) <= set(present) else None


@click.command()
@tables.MODEL
@tables.JSON
def inspect(model: Path, as_json: bool) -> None:
    """Show what is in a model file.

    Example: isr inspect model.isr
    """
    from isrlearn.io import read_model

    record = read_model(model).to_dict()
    show(record, _paragraphs(record), as_json)


def _paragraphs(record: dict[str, Any]) -> list[RenderableType]:
    """The facts of a model, and the number of its training rows in every group."""
    removed, test = f"{record['n_spurious']} of {record['n_features']}", record["rank_test"]
    if test is not None:
        p_values = ", ".join(f"{p:.2g}" for p in test["p_values"][-4:])
        removed += f" (tested at level {test['level']:g}; last p-values {p_values})"
    names = record["feature_names"] or ["not named"]
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    columns = record["metadata"].get("columns")
    facts = {
        "directions removed": removed,
        "features": ", ".join(names[:6]) + more,
        "settings": _listed(record["parameters"], "="),
        "columns": _listed(columns if isinstance(columns, dict) else {}, ": ") or "not stored",
        "written by": _listed(record["versions"], " "),
        "SHA-256": record["sha256"],
    }
    counts = [
        [label, environment, f"{n:g}"]
        for label, row in zip(record["classes"] or [""], record["count"], strict=True)
        for environment, n in zip(record["environments"], row, strict=True)
    ]
    return [
        table_of(record["estimator"], ["", ""], facts.items(), n_left=2),
        table_of("Training rows", ["class", "environment", "n"], counts, n_left=2),
    ]


def _listed(pairs: Mapping[str, Any], separator: str) -> str:
    return ", ".join(f"{name}{separator}{value}" for name, value in pairs.items())


@click.command()
@tables.MODEL
@click.option("--to", "kind", required=True, type=click.Choice(["onnx", "torch", "numpy"]))
@click.option(
    "--precision",
    type=click.Choice(["float32", "float64"]),
    help="[default: float32, and float64 for numpy]",
)
@click.option(
    "--out",
    required=True,
    type=tables.FILE,
    help="File to write: .onnx; .safetensors or .pt for torch; .npz for numpy.",
)
@tables.JSON
def export(model: Path, kind: str, precision: str | None, out: Path, as_json: bool) -> None:
    """Write a model as one affine map for other programs.

    ONNX gets a Gemm, a softmax and the class names; torch the state of an nn.Linear; NumPy the
    arrays coef and intercept.

    Example: isr export model.isr --to onnx --out model.onnx
    """
    from isrlearn.io import export_model, read_model

    tables.check_outputs()
    export_model(read_model(model), kind, out, dtype=precision)
    show({"kind": kind, "out": str(out)}, [f"The {kind} model is in {out}."], as_json)
