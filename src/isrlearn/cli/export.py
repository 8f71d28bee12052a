"""``isr export``."""

from __future__ import annotations

from pathlib import Path

import click

from isrlearn.cli import _options as options
from isrlearn.cli._console import JSON, show


@click.command()
@options.MODEL
@click.option("--to", "kind", required=True, type=click.Choice(["onnx", "torch", "numpy"]))
@click.option(
    "--precision",
    type=click.Choice(["float32", "float64"]),
    help="[default: float32, and float64 for numpy]",
)
@options.out("File to write: .onnx; .safetensors or .pt for torch; .npz for numpy.")
@JSON
def export(model: Path, kind: str, precision: str | None, out: Path, as_json: bool) -> None:
    """Write a model as one affine map for other programs.

    ONNX has a Gemm, a softmax and the classes' names; torch the state of an nn.Linear; NumPy
    the arrays coef and intercept.

    Example: isr export model.isr --to onnx --out model.onnx
    """
    from isrlearn.io import export_model, read_model
    from isrlearn.io.files import check_writable

    check_writable(out)
    export_model(read_model(model), kind, out, dtype=precision)
    show({"kind": kind, "out": str(out)}, [f"The {kind} model is in {out}."], as_json)
