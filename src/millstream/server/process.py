"""A server as a process: signals, the ready line, logs."""

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from collections.abc import Callable
from typing import Final

import uvloop

from millstream.server.config import ServerConfig
from millstream.server.server import Server

__all__ = ["run", "set_up_logging"]

_GC_ALLOCATIONS: Final = 50_000
"""New objects between two looks for cycles. At Python's 700 the looks took a fifth of the time of small produces."""


def set_up_logging(level: str) -> None:
    """Log to standard error, a line an event.

    Args:
        level: a name that the logging module knows, such as "info".
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S"))
    root = logging.getLogger("millstream")
    root.addHandler(handler)
    root.setLevel(level.upper())


def run(config: ServerConfig, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT. SIGHUP reads the certificate again, if there is one.

    Args:
        config: what to serve.
        announce: is given the ready line once the server can serve.

    Raises:
        MillstreamError: the server cannot start.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(config, announce))


async def _serve(config: ServerConfig, announce: Callable[[str], None]) -> None:
    server = Server(config)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await server.start()
    if config.tls is not None:
        loop.add_signal_handler(signal.SIGHUP, server.reload_tls)
    # What there is now stays; what requests make is mostly freed as they end, and seldom in cycles.
    gc.freeze()
    gc.set_threshold(_GC_ALLOCATIONS)
    with contextlib.suppress(BrokenPipeError):
        announce(f"ready {server.addresses_line()}")
    await stop.wait()
    await server.stop()
