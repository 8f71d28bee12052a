"""``isr bench``: the paper's synthetic experiments, each by one command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from isrlearn.cli._bench import JOBS, command_line, names
from isrlearn.cli.bench_partial import partial_labels
from isrlearn.cli.bench_real import REAL_COMMANDS

if TYPE_CHECKING:
    from isrlearn.paper import Result
    from isrlearn.paper.tables import Table


def _numbers(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    """Numbers of a range such as 2:10 or a list such as 2,4,8."""
    from isrlearn.paper.plan import numbers

    try:
        return numbers(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


_OUTPUT = (
    click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables."),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=None,
        help="Directory of records, tables and figures. [default: isr-bench/EXPERIMENT]",
    ),
)
_RUN = (
    click.option(
        "--figures/--no-figures", default=True, show_default=True, help="Draw the figures."
    ),
    JOBS,
    click.option(
        "--samples",
        "n_samples",
        type=click.IntRange(10),
        default=10_000,
        show_default=True,
        help="Samples of each environment in each split.",
    ),
    click.option(
        "--search-seeds",
        "n_search_seeds",
        type=click.IntRange(1),
        default=3,
        show_default=True,
        help="Seeds whose validation error chooses among the trials.",
    ),
    click.option(
        "--trials",
        "n_trials",
        type=click.IntRange(1),
        default=20,
        show_default=True,
        help="Hyper-parameters tried for each method that has any.",
    ),
    click.option(
        "--optimizer",
        type=click.Choice(["converged", "published"]),
        default="converged",
        show_default=True,
        help="Baselines fitted to convergence, or by 10,000 steps of Adam as published.",
    ),
    click.option(
        "--environments",
        callback=_numbers,
        default="2:10",
        show_default=True,
        help="Numbers of environments: a range 2:10 or a list 2,4,8.",
    ),
    click.option("--methods", callback=names, help="Names of methods, separated by commas."),
    click.option("--datasets", callback=names, help="Names of data sets, separated by commas."),
    click.option("--seeds", "n_seeds", type=click.IntRange(1), default=50, show_default=True),
)


def _with(*options: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A decorator that adds options to a command."""

    def decorate(command: Any) -> Any:
        for option in options:
            command = option(command)
        return command

    return decorate


@click.group()
def bench() -> None:
    """Run the benchmarks of the paper.

    An interrupted run goes on where it stopped when the same command is given again.
    """


@bench.command("linear-unit-tests")
@_with(*_OUTPUT, *_RUN)
@click.option(
    "--compare",
    type=click.Choice(["published"]),
    default=None,
    help="Draw the published results and print how far ours are from them.",
)
@click.pass_context
def linear_unit_tests(context: click.Context, /, compare: str | None, **options: Any) -> None:
    """Error against environments on Example-2, 2s, 3, 3s, 3' and 3s'.

    Example: isr bench linear-unit-tests --seeds 5 --optimizer published --compare published
    """
    _run(context, compare=compare is not None, **options)


@bench.command()
@_with(*_OUTPUT, *_RUN)
@click.pass_context
def multiclass(context: click.Context, /, **options: Any) -> None:
    """Error against environments with 2 to 7 classes.

    Example: isr bench multiclass --datasets k=3,k=5 --environments 2:4 --seeds 20
    """
    _run(context, **options)


@bench.command()
@_with(*_OUTPUT, *_RUN)
@click.pass_context
def regression(context: click.Context, /, **options: Any) -> None:
    """Mean squared error against environments, with 3 to 6 spurious dimensions.

    Example: isr bench regression --datasets d_s=5,anticausal-d_s=5 --seeds 20
    """
    _run(context, **options)


@bench.command()
@_with(*_OUTPUT)
@click.option(
    "--spurious", callback=_numbers, default="1:8", show_default=True, help="Spurious dimensions."
)
@click.option(
    "--classes", callback=_numbers, default="2:7", show_default=True, help="Numbers of classes."
)
@click.option("--repeats", type=click.IntRange(1), default=20, show_default=True)
@click.pass_context
def theory(
    context: click.Context,
    spurious: tuple[int, ...],
    classes: tuple[int, ...],
    repeats: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Environments each algorithm needs, measured with exact moments, beside the bound.

    Example: isr bench theory --spurious 5 --classes 2:7 --json
    """
    from isrlearn.paper import theory as measured

    found = measured.environment_complexity(spurious, classes, n_repeats=repeats)
    if out is not None:
        measured.write_complexity(found, out, command_line(context), n_repeats=repeats)
    if as_json:
        click.echo(measured.complexity_json(found))
    else:
        _print([measured.complexity_table(found)])


def _run(
    context: click.Context,
    *,
    datasets: tuple[str, ...] | None,
    methods: tuple[str, ...] | None,
    out: Path | None,
    n_jobs: int,
    as_json: bool,
    figures: bool,
    compare: bool = False,
    **options: Any,
) -> None:
    """Run an experiment, write its files, print its tables."""
    from isrlearn.paper import EXPERIMENTS, Plan, run
    from isrlearn.paper.figures import require_matplotlib

    name = str(context.info_name)
    out = Path("isr-bench") / name if out is None else out
    if figures:
        require_matplotlib()
    experiment = EXPERIMENTS[name]
    plan = Plan(
        name,
        experiment.datasets if datasets is None else datasets,
        experiment.default_methods(options["optimizer"]) if methods is None else methods,
        **options,
    )
    try:
        result = run(plan, out, n_jobs=n_jobs, compare=compare, command=command_line(context))
    except KeyboardInterrupt:
        click.echo(f"What was finished is kept in {out}; the same command goes on.", err=True)
        raise
    _show(context, result, out, as_json, figures)


def _show(context: click.Context, result: Result, out: Path, as_json: bool, figures: bool) -> None:
    """Write the files and print what was found."""
    from isrlearn.paper import write_result

    write_result(result, out, command=command_line(context), figures=figures)
    if as_json:
        click.echo(result.as_json())
    else:
        _print(result.tables())
        click.echo(f"Records, tables and figures are in {out}.", err=True)
    if result.failures:
        first = result.failures[0]
        click.echo(
            f"{len(result.failures)} cells failed; first {first.key.method} on "
            f"{first.key.dataset}, seed {first.key.seed}: {first.message}",
            err=True,
        )
        context.exit(1)


def _print(tables: list[Table]) -> None:
    """Tables on the console, as wide as they are when output is not a terminal."""
    from rich.console import Console

    console = Console()
    if not console.is_terminal:
        console = Console(width=200)
    for table in tables:
        console.print(table.rich())


for _real in (partial_labels, *REAL_COMMANDS):
    bench.add_command(_real)
