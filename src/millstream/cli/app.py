"""The `millstream` command: its sub-commands and its help."""

__all__ = ["app"]

from importlib.metadata import PackageNotFoundError, version
from typing import Annotated, ClassVar, Final

import typer

from millstream.cli.lazy import RootGroup

# Name, module, one-line help. The order is that of the help.
_COMMANDS: Final = (
    ("topic", "millstream.cli.topic", "Create, list, describe and delete topics."),
    ("produce", "millstream.cli.produce", "Write records from standard input or files to a topic."),
    ("consume", "millstream.cli.consume", "Read the records of a topic."),
    ("group", "millstream.cli.group", "List, describe and delete consumer groups."),
    ("table", "millstream.cli.table", "Describe, compact and expire tables that Spark writes."),
    ("pipeline", "millstream.cli.pipeline", "Make, check and run pipelines on Spark."),
    ("job", "millstream.cli.job", "Archive, replay, backfill, compact and copy topics, on Spark."),
)

_EPILOG: Final = """\
\b
Examples:
  millstream serve --data-dir ./data
  millstream topic create orders --partitions 3
  echo hello | millstream produce orders
  millstream consume orders --until-end

The client commands work with any broker that speaks the Kafka protocol. On a terminal they print tables;
anywhere else they print one row a line, columns separated by tabs, without a heading.
"""


class _Millstream(RootGroup):
    modules: ClassVar[dict[str, str]] = {name: module for name, module, _ in _COMMANDS}


app = typer.Typer(
    name="millstream",
    cls=_Millstream,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_EPILOG,
)


def _print_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        typer.echo(f"millstream {version('millstream')}")
    except PackageNotFoundError:
        typer.echo("millstream (not installed)")
    raise typer.Exit


@app.callback()
def _root(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """One streaming log that every client already speaks to."""


def _listed_only() -> None:
    """Stand in for a sub-command in the help; the group replaces it by the real one when it is called."""


@app.command(
    "serve",
    help="Run the server.",
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
)
def _serve(ctx: typer.Context) -> None:
    """Hand `serve` on to its own parser; `millstream.cli.main` goes there without coming through here."""
    from millstream.cli.serve import serve

    raise typer.Exit(serve(ctx.args))


for _name, _, _help in _COMMANDS:
    app.command(_name, help=_help)(_listed_only)
