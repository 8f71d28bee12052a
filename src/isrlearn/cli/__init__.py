"""The command ``isr``."""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Exit with the status of one run: 0 on success, 2 for a user error, 1 for a bug."""
    try:
        import click  # noqa: F401
        import rich  # noqa: F401
    except ModuleNotFoundError as error:
        print(
            f'isr: {error.name} is not installed; run: pip install "isrlearn[cli]"',
            file=sys.stderr,
        )
        sys.exit(2)
    from .app import run

    sys.exit(run(sys.argv[1:] if arguments is None else arguments))
