"""``isr predict``."""

from __future__ import annotations

from pathlib import Path

import click

from isrlearn.cli import _options as options
from isrlearn.cli._console import JSON, show, working


@click.command()
@options.MODEL
@options.TABLE
@options.features("Columns in the model's order, for a model that knows no names.")
@options.out("Table to write: .csv, .parquet or .npz.")
@JSON
def predict(model: Path, table: Path, features: str | None, out: Path, as_json: bool) -> None:
    """Predict a label for every row of a table.

    Features are found by name, in any order; no label or environment is needed. What is written
    has a row for each row of the table: the prediction and, of a classifier, the probabilities.

    Example: isr predict model.isr new.csv --out predictions.csv
    """
    from isrlearn.cli.workflow import predict_table, table_for
    from isrlearn.io import read_model, write_columns
    from isrlearn.io.files import check_writable
    from isrlearn.io.write import check_format

    check_format(out)
    check_writable(out)
    with working(f"Predicting {table}"):
        saved = read_model(model)
        columns = predict_table(saved, table_for(saved, table, features=features))
        write_columns(out, columns)
    n = len(columns["prediction"])
    record = {"rows": n, "columns": list(columns), "out": str(out)}
    show(record, [f"{n} predictions are in {out}."], as_json)
