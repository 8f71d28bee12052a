"""``isr bench partial-labels``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from isrlearn.cli._bench import JOBS, command_line, names
from isrlearn.cli._console import JSON, show


def _shares(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Comma-separated percentages as shares; None if not given."""
    if value is None:
        return None
    try:
        return tuple(float(part) / 100 for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of percentages such as 100,10") from None


@click.command("partial-labels")
@click.option("--draws", "n_draws", type=click.IntRange(1), default=20, show_default=True)
@click.option("--datasets", callback=names, help="Names of data sets, separated by commas.")
@click.option("--methods", callback=names, help="Names of methods, separated by commas.")
@click.option(
    "--labels",
    "fractions",
    callback=_shares,
    help="Percentages of rows whose environment is known. [default: 100,50,25,10,5]",
)
@JOBS
@click.option("--figures/--no-figures", default=True, show_default=True, help="Draw the figure.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Directory of records, tables and figures. [default: isr-bench/partial-labels]",
)
@JSON
@click.pass_context
def partial_labels(
    context: click.Context,
    /,
    out: Path | None,
    n_jobs: int,
    as_json: bool,
    figures: bool,
    **options: Any,
) -> None:
    """Worst-group accuracy with 100 % down to 5 % of the environment labels.

    Example: isr bench partial-labels --draws 5 --labels 100,10
    """
    from isrlearn.paper.figures import require_matplotlib
    from isrlearn.paper.partial_labels import (
        EXPERIMENT,
        LabelsPlan,
        run_partial_labels,
        write_partial_labels,
    )

    out = Path("isr-bench") / EXPERIMENT if out is None else out
    if figures:
        require_matplotlib()
    command = command_line(context)
    plan = LabelsPlan(**{name: value for name, value in options.items() if value is not None})
    result = run_partial_labels(plan, out, n_jobs=n_jobs, command=command)
    write_partial_labels(result, out, figures=figures, command=command)
    show(result.to_dict(), [table.rich() for table in result.tables()], as_json)
    click.echo(f"Records, tables and figures are in {out}.", err=True)
    if result.failures:
        first = result.failures[0]
        click.echo(f"{len(result.failures)} cells failed; first: {first.message}", err=True)
        context.exit(1)
