"""`millstream serve`: run a server until it is told to stop."""

import argparse
import gc
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from millstream.cli.errors import FAILURE, USAGE, CliError, report
from millstream.model.errors import MillstreamError

__all__ = ["serve"]

_EXAMPLES: Final = """\
Examples:
  millstream serve
  millstream serve --data-dir ./data --listen kafka=0.0.0.0:19092
  millstream serve --set durability=os --set log.retention.ms=86400000

One line on standard output says when the server can serve, and where. Logs
go to standard error. SIGTERM and SIGINT stop it; nothing that was acknowledged
is lost. docs/configuration.md lists the settings.
"""
_LEVELS: Final = ("debug", "info", "warning", "error")


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as the other sub-commands do."""

    def error(self, message: str) -> NoReturn:
        report(CliError(message, "see 'millstream serve --help'", status=USAGE))
        sys.exit(USAGE)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help in two columns that hold the longest option, in 80 columns on any terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=27, width=80)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="millstream serve",
        usage="millstream serve [OPTIONS]",
        description="Run the server.",
        epilog=_EXAMPLES,
        formatter_class=_Formatter,
        allow_abbrev=False,
        add_help=False,
    )
    option = parser.add_argument_group("Options").add_argument
    option("--data-dir", metavar="DIR", help="Where topics are kept; made if missing.  [default: millstream-data]")
    option(
        "--listen",
        metavar="NAME=HOST:PORT",
        action="append",
        default=[],
        help="Where to listen, may be repeated; port 0 takes a free one. NAME is kafka, kafka07, pulsar, iggy, http "
        "or any; each takes clients of all protocols.  [default: all but any, on their usual ports of 127.0.0.1]",
    )
    option("--set", metavar="KEY=VALUE", action="append", default=[], help="A setting; may be repeated.")
    option("--config", metavar="FILE", help="A TOML file with data-dir, listen and [settings].")
    option(
        "--log-level",
        metavar="LEVEL",
        choices=_LEVELS,
        default="info",
        help=f"One of {', '.join(_LEVELS)}.  [default: info]",
    )
    option("-h", "--help", action="help", help="Show this message and exit.")
    return parser


def serve(arguments: Sequence[str]) -> int:
    """Run the server.

    Args:
        arguments: those behind `millstream serve`.

    Returns:
        The status to exit with.
    """
    asked = _parser().parse_args(arguments)
    # Nothing that an import makes is garbage, and looking for it takes a twentieth of the time to be ready.
    gc.disable()
    from millstream.server.config import ServerConfig
    from millstream.server.process import run, set_up_logging

    gc.enable()
    set_up_logging(asked.log_level)
    try:
        config = ServerConfig.of(
            data_dir=asked.data_dir, listen=asked.listen, settings=asked.set, config_file=asked.config
        )
        run(config, lambda line: print(line, flush=True))
    except MillstreamError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILURE
    return 0
