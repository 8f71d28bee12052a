"""``isr demo``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from isrlearn.cli._demo import Demonstration, Repetition
    from isrlearn.metrics import GroupScore

MODELS = {"plain": "logistic regression", "isr": "ISR"}
SCORES = {"worst": "worst group", "average": "average"}


@click.command()
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Which images, on which paper.",
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Take that many seeds; show means and standard deviations.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def demo(seed: int, repeat: int, as_json: bool) -> None:
    """Watch ISR fix a classifier that took a shortcut.

    Scikit-learn's handwritten digits, odd against even, on paper of two colours. The colour goes
    with the class in training and says nothing in test.

    Example: isr demo --seed 1
    """
    from isrlearn.cli._demo import demonstration, repetition

    if repeat > 1:
        several = repetition(seed, repeat)
        _show(several.to_dict(), [_spread(several)], as_json)
    else:
        one = demonstration(seed)
        _show(one.to_dict(), [_groups(one), _summary(one), *one.story], as_json)


def _show(record: dict[str, object], paragraphs: list[RenderableType], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(record, indent=2))
        return
    from rich.console import Console

    console = Console(highlight=False)
    for paragraph in paragraphs:
        console.print(paragraph)
        console.print()


def _groups(result: Demonstration) -> Table:
    table = _table("Digits on coloured paper: accuracy of each test group [95% interval]")
    for name in ("class", "paper"):
        table.add_column(name)
    for name in ("n train", "n test", *MODELS.values()):
        table.add_column(name, justify="right")
    for before, after in zip(result.plain.groups, result.isr.groups, strict=True):
        table.add_row(
            str(before.label),
            str(before.environment),
            str(before.n_train),
            str(before.n),
            _score(before, worst=before.group == result.plain.worst_group),
            _score(after, worst=after.group == result.isr.worst_group),
        )
    return table


def _score(score: GroupScore, *, worst: bool) -> str:
    value = f"[bold]{score.value:.3f}[/]" if worst else f"{score.value:.3f}"
    return f"{value} [{score.low:.2f}, {score.high:.2f}]"


def _summary(result: Demonstration) -> Table:
    table = _comparison("On the test images")
    for score, title in SCORES.items():
        table.add_row(title, *(f"{getattr(getattr(result, m), score):.3f}" for m in MODELS))
    return table


def _spread(several: Repetition) -> Table:
    table = _comparison(f"Mean ± standard deviation over {len(several.results)} seeds")
    for score, title in SCORES.items():
        cells = [several.spread(model, score) for model in MODELS]
        table.add_row(title, *(f"{mean:.3f} ± {deviation:.3f}" for mean, deviation in cells))
    return table


def _comparison(title: str) -> Table:
    table = _table(title)
    table.add_column("accuracy")
    for name in MODELS.values():
        table.add_column(name, justify="right")
    return table


def _table(title: str) -> Table:
    from rich.box import SIMPLE
    from rich.markup import escape
    from rich.table import Table

    return Table(
        title=escape(title),
        title_justify="left",
        title_style="bold",
        box=SIMPLE,
        # Narrow enough for a terminal of 80 columns.
        collapse_padding=True,
        pad_edge=False,
    )
