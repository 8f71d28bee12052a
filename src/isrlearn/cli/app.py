"""The command group: imports a command when it is called and turns errors into exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import click

from isrlearn import __version__

OK, INTERNAL_ERROR, USER_ERROR, INTERRUPTED = 0, 1, 2, 130
#: Modules whose ValueErrors and ImportErrors are about the user's input.
_PURPOSEFUL = ("isrlearn.", "sklearn.utils.")
_CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True}

#: The module of each command and its line in ``isr --help``, which imports none of the modules.
COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("bench", "Run the benchmarks of the paper."),
    "datasets": ("datasets", "List, download, plot or export data sets."),
    "demo": ("demo", "Watch ISR fix a classifier that learned a shortcut."),
    "diagnose": ("fit", "Check whether ISR can help with a table, and what to do."),
    "evaluate": ("models", "Score a model on every group of a table."),
    "export": ("models", "Write a model as one affine map for other programs."),
    "fit": ("fit", "Fit a model on a table and write it to a file."),
    "inspect": ("models", "Show what is in a model file."),
    "predict": ("models", "Predict a label for every row of a table."),
    "report": ("models", "Write a page that shows what a model gained, and why."),
}


class LazyGroup(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, now imported."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"isrlearn.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup, context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="isr")
@click.option("--debug", is_flag=True, help="Show the traceback of any error.")
@click.pass_obj
def cli(settings: dict[str, Any], debug: bool) -> None:
    """Remove from features what shifts between environments.

    Example: isr demo
    """
    settings["debug"] = debug


def run(arguments: Sequence[str]) -> int:
    """Exit code of one run of the command line."""
    settings = {"debug": False, "arguments": list(arguments)}
    try:
        code = cli.main(list(arguments), prog_name="isr", obj=settings, standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return USER_ERROR
    except (click.Abort, KeyboardInterrupt):
        click.echo("isr: interrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has exited; the flush at interpreter exit must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return INTERNAL_ERROR
    except Exception as error:
        message = user_error(error)
        if settings["debug"] or message is None:
            traceback.print_exception(error)
        click.echo(f"isr: {message or 'internal error, please report it'}", err=True)
        return INTERNAL_ERROR if message is None else USER_ERROR
    # click returns the code of an early exit, or else what the command returned.
    return code if isinstance(code, int) else OK


def user_error(error: Exception) -> str | None:
    """One line that says what the user did wrong, or None if the error is a bug.

    A ValueError is the user's if this package or scikit-learn's validation raised it; the same
    exception from inside an array library is a bug.
    """
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.strerror or type(error).__name__}: {error.filename}"
    if isinstance(error, MemoryError):
        return "there is not enough memory for this"
    if type(error).__name__ == "LinAlgError":  # numpy is not imported only to name its class
        return (
            f"the computation failed ({error}); look for columns of very different scales, and "
            "for constant or repeated ones"
        )
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    raised_in = frames[-1].f_globals.get("__name__", "") if frames else ""
    if isinstance(error, ValueError | ImportError) and raised_in.startswith(_PURPOSEFUL):
        return " ".join(str(error).split())
    return None
