"""``isr bench`` on real data: one command for each of the paper's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from isrlearn.cli._bench import command_line, names
from isrlearn.cli._console import JSON, show, working

_SHARED = (
    JSON,
    click.option("--jobs", "n_jobs", type=click.IntRange(1), default=1, show_default=True),
    click.option(
        "--cache",
        type=click.Path(file_okay=False, path_type=Path),
        default=None,
        help="Directory of trained features. [default: features, in the output]",
    ),
    click.option(
        "--out",
        type=click.Path(file_okay=False, path_type=Path),
        default=None,
        help="Directory of records and tables. [default: isr-bench/NAME]",
    ),
    click.option("--methods", callback=names, help="Names of methods, separated by commas."),
    click.option(
        "--trained-with", callback=names, help="Names of objectives, separated by commas."
    ),
    click.option("--full", is_flag=True, help="The paper's sizes; for a machine with a GPU."),
    click.option("--seeds", "n_seeds", type=click.IntRange(1), default=None),
)
_FOLDER = (
    click.option("--network", default=None, help="Network to train, or encoder to run."),
    click.option(
        "--features",
        type=click.Path(exists=True, dir_okay=False),
        default=None,
        help="A .npz file of features instead of images or tokens.",
    ),
    click.option(
        "--data",
        type=click.Path(exists=True, file_okay=False),
        default=None,
        help="The folder of the data set. [default: in $ISRLEARN_DATA, then in the cache]",
    ),
)

# Name, what its table shows, whether it takes a folder or features, an example.
_COMMANDS = (
    (
        "mc-cmnist",
        "ISR-Multiclass on networks trained on Multi-class Coloured MNIST.",
        False,
        "isr bench mc-cmnist --seeds 2 --trained-with erm,irm",
    ),
    (
        "rcfmnist",
        "ISR-Regression on networks trained on Rotated Coloured Fashion-MNIST.",
        False,
        "isr bench rcfmnist --seeds 3",
    ),
    (
        "law-school",
        "ISR-Regression on networks that predict grades of law students.",
        False,
        "isr bench law-school --seeds 20",
    ),
    (
        "pretrained",
        "Heads on a pretrained encoder: garments on photographs.",
        False,
        "isr bench pretrained --seeds 5",
    ),
    (
        "waterbirds",
        "ISR-Mean and ISR-Cov on networks trained on Waterbirds.",
        True,
        "isr bench waterbirds --data waterbird_complete95_forest2water2 --full",
    ),
    (
        "celeba",
        "ISR-Mean and ISR-Cov on networks trained on CelebA.",
        True,
        "isr bench celeba --data celeba --full",
    ),
    (
        "multinli",
        "ISR-Mean and ISR-Cov on networks trained on MultiNLI.",
        True,
        "isr bench multinli --features bert.npz",
    ),
    (
        "clip",
        "Heads on CLIP's features of Waterbirds.",
        True,
        "isr bench clip --features clip.npz",
    ),
)


def _command(name: str, summary: str, folder: bool, example: str) -> click.Command:
    """The command of one table."""

    def callback(**options: Any) -> None:
        _run(click.get_current_context(), name, **options)

    callback.__doc__ = f"{summary}\n\nExample: {example}"
    for option in (*_SHARED, *(_FOLDER if folder else ())):
        callback = option(callback)
    return click.command(name)(callback)


def _run(
    context: click.Context,
    name: str,
    *,
    out: Path | None,
    cache: Path | None,
    n_jobs: int,
    as_json: bool,
    n_seeds: int | None,
    trained_with: tuple[str, ...] | None,
    methods: tuple[str, ...] | None,
    full: bool,
    **source: str | None,
) -> None:
    """Run an experiment, write its files, print its tables."""
    from isrlearn.paper.real import RealPlan, run_real, write_real

    out = Path("isr-bench") / name if out is None else out
    given = {option: value for option, value in source.items() if value is not None}
    plan = RealPlan(name, n_seeds, trained_with, methods, given, full)
    command = command_line(context)
    with working(name, quietly=True):
        result = run_real(plan, out, cache=cache, n_jobs=n_jobs, command=command)
    write_real(result, out, command=command)
    show(result.to_dict(), [table.rich() for table in result.tables()], as_json)
    click.echo(f"Records, features and tables are in {out}.", err=True)
    if result.failures:
        first = result.failures[0]
        click.echo(
            f"isr: {len(result.failures)} cells failed; first {first.key.method} on "
            f"{first.key.optimizer}, seed {first.key.seed}: {first.message}",
            err=True,
        )
        context.exit(1)


#: The commands, to be added to ``isr bench``.
REAL_COMMANDS = tuple(_command(*entry) for entry in _COMMANDS)
