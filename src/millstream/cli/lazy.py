"""Command groups that import a sub-command only when it is the one that was asked for.

Nothing that only another sub-command needs (the Kafka client, table rendering) is imported on the way to one. The
help still lists every sub-command: its one-line help is part of the table here, not of the module.
"""

__all__ = ["CommandGroup", "RootGroup"]

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar, Final, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from millstream.cli.errors import FAILURE, USAGE, CliError, report

# What a shell reports for a process that a closed pipe ended: 128 + SIGPIPE.
_CLOSED_PIPE: Final = 141


class CommandGroup(TyperGroup):
    """A group that answers a bare call with its help on standard error and status 2."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            typer.echo(ctx.get_help(), err=True)
            ctx.exit(USAGE)
        return super().parse_args(ctx, args)


class RootGroup(CommandGroup):
    """The root of the command: loads sub-commands lazily and turns failures into one line each.

    `modules` maps a sub-command to the module that holds it. There, the attribute of the sub-command's name
    is either a `typer.Typer` (a group) or a function (a command; its help ends in the module's `EPILOG`, if any).
    """

    modules: ClassVar[dict[str, str]] = {}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and name in self.modules:
            command = _load(name, self.modules[name])
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            discard_stdout()
            raise typer.Exit(_CLOSED_PIPE) from None

    def main(self, args: Sequence[str] | None = None, *more: Any, **options: Any) -> NoReturn:
        # The framework prints a usage error as a paragraph, so it is asked to raise instead of to print.
        options["standalone_mode"] = False
        try:
            status = super().main(args, *more, **options)
        except CliError as error:
            report(error)
            sys.exit(error.status)
        except typer.TyperException as error:
            report(_usage_error(error))
            sys.exit(USAGE)
        except typer.Abort:
            report(CliError("nothing was done", "answer yes, or give --yes, to go ahead"))
            sys.exit(FAILURE)
        sys.exit(status if isinstance(status, int) else 0)


def discard_stdout() -> None:
    """Point standard output at nowhere, so that flushing it at exit does not complain about a closed pipe."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _load(name: str, module_name: str) -> Any:
    module = import_module(module_name)
    target = getattr(module, name)
    if isinstance(target, typer.Typer):
        return get_command(target)
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, epilog=getattr(module, "EPILOG", None))(target)
    return get_command(single)


def _usage_error(error: typer.TyperException) -> CliError:
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx is not None else "millstream"
    message = error.format_message().rstrip(".")
    return CliError(message[:1].lower() + message[1:], f"see '{path} --help'", status=USAGE)
