"""`millstream serve`: run a server until it is told to stop."""

import sys
from typing import Annotated

import typer

from millstream.model.errors import MillstreamError
from millstream.server.config import DEFAULT_DATA_DIR, ServerConfig
from millstream.server.process import run, set_up_logging

__all__ = ["EPILOG", "serve"]

EPILOG = """\
\b
Examples:
  millstream serve
  millstream serve --data-dir ./data --listen kafka=0.0.0.0:19092
  millstream serve --set durability=os --set log.retention.ms=86400000

One line on standard output says when the server can serve, and where. Logs go to standard error. SIGTERM and
SIGINT stop it; nothing that was acknowledged is lost. docs/configuration.md lists the settings.
"""

_LEVELS = ("debug", "info", "warning", "error")


def serve(
    data_dir: Annotated[
        str | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help=f"Where topics are kept; made if missing.  [default: {DEFAULT_DATA_DIR}]",
        ),
    ] = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(
            "--listen",
            metavar="NAME=HOST:PORT",
            help="Where to listen, may be repeated; port 0 takes a free one.  [default: kafka=127.0.0.1:9092]",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting; may be repeated."),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="A TOML file with data-dir, listen and [settings].")
    ] = None,
    log_level: Annotated[
        str, typer.Option("--log-level", metavar="LEVEL", help=f"One of {', '.join(_LEVELS)}.")
    ] = "info",
) -> None:
    """Run the server."""
    if log_level not in _LEVELS:
        print(f"error: --log-level is one of {', '.join(_LEVELS)}, not {log_level!r}", file=sys.stderr)
        raise typer.Exit(2)
    set_up_logging(log_level)
    try:
        run(
            ServerConfig.of(data_dir=data_dir, listen=listen or (), settings=set_ or (), config_file=config),
            lambda line: print(line, flush=True),
        )
    except MillstreamError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
