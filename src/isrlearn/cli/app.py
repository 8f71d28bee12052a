"""The command group: imports a command when it is called and turns errors into exit codes."""

import gc
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

from isrlearn import __version__
from isrlearn.cli.console import say
from isrlearn.progress import Terminated, terminated_as_interrupted

OK, INTERNAL_ERROR, USER_ERROR = 0, 1, 2
#: What a shell reports for a program that a signal ended.
INTERRUPTED, BROKEN_PIPE, TERMINATED = 128 + 2, 128 + 13, 128 + 15
#: Modules whose ValueErrors and ImportErrors are about the user's input.
_PURPOSEFUL = ("isrlearn.", "sklearn.utils.")
_CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True}

#: The module of each command and its line in ``isr --help``, which imports none of the modules.
COMMANDS: dict[str, tuple[str, str]] = {
    "bench": ("bench", "Run the benchmarks, among them those of the paper."),
    "datasets": ("datasets", "List, download, plot or export data sets."),
    "demo": ("demo", "Compare ISR with plain and balanced models on digits."),
    "diagnose": ("fit", "Predict whether ISR will help with a table, and say what to do."),
    "evaluate": ("models", "Score a model on every group, and compare it with others."),
    "export": ("models", "Write a model as one affine map for other programs."),
    "fit": ("fit", "Fit a model on a table and write it to a file."),
    "inspect": ("models", "Show what is in a model file."),
    "predict": ("models", "Predict a label for every row of a table."),
    "report": ("models", "Write a page that says whether a model is worth using, and why."),
    "scan": ("fit", "Find the columns of a table that are shortcuts to the label."),
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
        with terminated_as_interrupted():
            code = cli.main(list(arguments), prog_name="isr", obj=settings, standalone_mode=False)
            if sys.stdout is not None:
                sys.stdout.flush()
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return USER_ERROR
    except (BrokenPipeError, SystemExit) as error:
        # click exits with 1 by itself when the reader of its output (head, less) has gone.
        if isinstance(error, SystemExit) and error.code != 1:
            raise
        _discard_output()
        return BROKEN_PIPE
    except (Exception, KeyboardInterrupt) as error:
        found = list(_replaced(error))  # a library may fail while it cleans up after a signal
        if any(isinstance(each, KeyboardInterrupt | click.Abort) for each in found):
            return _interrupted(found)
        message = user_error(error)
        if settings["debug"] or message is None:
            with suppress(OSError):
                traceback.print_exception(error)
        say(f"isr: {message or 'internal error, please report it'}")
        if isinstance(error, OSError) and error.filename is None:
            _discard_output()
        return INTERNAL_ERROR if message is None else USER_ERROR
    # click returns the code of an early exit, or else what the command returned.
    return code if isinstance(code, int) else OK


def _replaced(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, and those that it took the place of."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _interrupted(errors: Sequence[BaseException]) -> int:
    """Exit code of a run that a signal ended."""
    # Objects that were left half closed complain when they are freed: now, and in silence.
    before, sys.unraisablehook = sys.unraisablehook, lambda _: None
    for error in errors:
        traceback.clear_frames(error.__traceback__)
    gc.collect()
    sys.unraisablehook = before
    ended = any(isinstance(error, Terminated) for error in errors)
    say(f"isr: {'terminated' if ended else 'interrupted'}")
    return TERMINATED if ended else INTERRUPTED


def _discard_output() -> None:
    """Let the flush at interpreter exit succeed where output cannot be written."""
    with suppress(OSError, AttributeError):  # a test may have replaced it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def user_error(error: BaseException) -> str | None:
    """One line that says what the user did wrong, or None if the error is a bug.

    A ValueError is the user's if this package or scikit-learn's validation raised it; the same
    exception from inside an array library is a bug.
    """
    if isinstance(error, OSError):
        # Every file that is written has a name in its errors.
        where = "standard output" if error.filename is None else error.filename
        return f"{error.strerror or error}: {where}"
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
