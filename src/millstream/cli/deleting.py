"""What `millstream topic delete` and `millstream group delete` have in common."""

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import typer
from confluent_kafka import KafkaError, KafkaException

from millstream.cli.errors import FAILURE, CliError, report

__all__ = ["YesOption", "confirm", "finish"]

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def confirm(names: Iterable[str], contents: str, *, yes: bool) -> None:
    """Ask on a terminal, unless told not to, and end the command if the answer is no.

    Args:
        names: of what is to go.
        contents: what goes with it.
        yes: not to ask.
    """
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete {', '.join(names)} with all {contents}?", abort=True, err=True)


def finish(kind: str, deletions: Mapping[str, Any], refusal: Callable[[str, KafkaError], CliError | None]) -> None:
    """Wait for deletions, print a line for each, and end the command with a failure if one was refused.

    Args:
        kind: of what is deleted, as printed.
        deletions: a future by name.
        refusal: takes a name and the broker's error; None if that is as good as deleted.
    """
    failed = False
    for name, deleted in deletions.items():
        try:
            deleted.result()
        except KafkaException as error:
            refused = refusal(name, error.args[0])
            if refused is not None:
                report(refused)
                failed = True
        else:
            print(f"deleted {kind} {name}")
    if failed:
        raise typer.Exit(FAILURE)
