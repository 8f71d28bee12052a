"""What the commands of ``isr bench`` share."""

from __future__ import annotations

import os
from typing import Any

import click

# Options that change where a result goes or how fast it comes, not what it is.
_INCIDENTAL = {"cache", "out", "n_jobs", "as_json", "figures"}

JOBS = click.option(
    "--jobs",
    "n_jobs",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    show_default="all cores",
    help="Processes.",
)


def names(context: click.Context, parameter: click.Parameter, value: str | None) -> Any:
    """Comma-separated names; None if not given."""
    return None if value is None else tuple(name.strip() for name in value.split(","))


def command_line(context: click.Context) -> str:
    """The command as it could be given again, without what does not change the result."""
    given = click.core.ParameterSource.COMMANDLINE
    words = ["isr", "bench", str(context.info_name)]
    for parameter in context.command.params:
        name = str(parameter.name)
        if name in _INCIDENTAL or context.get_parameter_source(name) != given:
            continue
        value = context.params[name]
        if isinstance(value, bool):
            words.append(parameter.opts[0])
            continue
        if name == "fractions":
            value = tuple(f"{100 * share:g}" for share in value)
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        words += [parameter.opts[0], text]
    return " ".join(words)
