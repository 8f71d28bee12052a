"""The command group: commands loaded when called, errors turned into exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NamedTuple

import click

from isrlearn import __version__

OK, OUR_FAULT, USER_MISTAKE, INTERRUPTED = 0, 1, 2, 130


class Entry(NamedTuple):
    """Where a command lives and its line in ``isr --help``."""

    target: str  # module:attribute
    summary: str


# The summaries stand here as well, so that the list of commands imports none of them.
COMMANDS: dict[str, Entry] = {
    "bench": Entry("isrlearn.cli.bench:bench", "Run the benchmarks of the paper."),
    "datasets": Entry(
        "isrlearn.cli.datasets:datasets",
        "List the data sets, fetch or draw one, or write one to files.",
    ),
    "demo": Entry("isrlearn.cli.demo:demo", "Watch ISR fix a classifier that took a shortcut."),
    "diagnose": Entry(
        "isrlearn.cli.diagnose:diagnose", "Say whether ISR can help with a table, and what to do."
    ),
    "evaluate": Entry("isrlearn.cli.evaluate:evaluate", "Score a model on every group of a table."),
    "export": Entry(
        "isrlearn.cli.export:export", "Write a model as one affine map for other programs."
    ),
    "fit": Entry("isrlearn.cli.fit:fit", "Fit a model on a table and write it to a file."),
    "inspect": Entry("isrlearn.cli.inspect:inspect", "Show what is in a model file."),
    "predict": Entry("isrlearn.cli.predict:predict", "Predict a label for every row of a table."),
    "report": Entry("isrlearn.cli.report:report", "Show on one page what a model gained, and why."),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in sorted(COMMANDS)])


@dataclass
class Settings:
    """What the options before the command's name say."""

    debug: bool = False
    arguments: tuple[str, ...] = ()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="isr")
@click.option("--debug", is_flag=True, help="Show the traceback of any error.")
@click.pass_obj
def cli(settings: Settings, debug: bool) -> None:
    """Take out of features what moves with the environment.

    Example: isr demo
    """
    settings.debug = debug


def run(arguments: Sequence[str]) -> int:
    """Exit code of one run of the command line."""
    settings = Settings(arguments=tuple(arguments))
    try:
        code = cli.main(list(arguments), prog_name="isr", obj=settings, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return USER_MISTAKE
    except (click.Abort, KeyboardInterrupt):
        click.echo("isr: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has gone; Python's own flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OUR_FAULT
    except Exception as error:
        message = mistake(error)
        if settings.debug or message is None:
            traceback.print_exception(error)
        click.echo(f"isr: {message or 'internal error, please report it'}", err=True)
        return OUR_FAULT if message is None else USER_MISTAKE
    # click hands back the code of an early exit, and otherwise what the command returned.
    return code if isinstance(code, int) else OK


def mistake(error: Exception) -> str | None:
    """One line on what the user did wrong, or None when the error is not theirs.

    A bad value is the user's when this package or scikit-learn's validation says so; the same
    ValueError out of the depths of an array library is a fault of ours.
    """
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.strerror or type(error).__name__}: {error.filename}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if isinstance(error, ValueError | ImportError) and _raised_on_purpose(error):
        return " ".join(str(error).split())
    return None


def _raised_on_purpose(error: Exception) -> bool:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return module.startswith(("isrlearn.", "sklearn.utils."))
