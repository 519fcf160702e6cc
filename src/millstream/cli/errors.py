"""What the command says when it cannot do what was asked: one line, `error: what happened; what to do`."""

__all__ = ["FAILURE", "INTERRUPTED", "USAGE", "CliError", "report", "warn"]

import sys
from typing import Final

FAILURE: Final = 1
USAGE: Final = 2
# What a shell reports for a process that SIGINT ended: 128 + 2.
INTERRUPTED: Final = 130


class CliError(Exception):
    """A failure the user can do something about.

    Args:
        what: what happened, without a final full stop.
        remedy: what to do about it, as an instruction.
        status: exit status of the command, FAILURE or USAGE.
    """

    def __init__(self, what: str, remedy: str, *, status: int = FAILURE) -> None:
        super().__init__(f"{what}; {remedy}")
        self.status = status


def report(error: CliError) -> None:
    """Write the error to standard error as one line."""
    print(f"error: {_one_line(str(error))}", file=sys.stderr)


def warn(what: str) -> None:
    """Write a warning to standard error as one line."""
    print(f"warning: {_one_line(what)}", file=sys.stderr)


def _one_line(text: str) -> str:
    return " ".join(text.split())
