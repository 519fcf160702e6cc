"""Millstream: one streaming log that every client already speaks to.

async with millstream.Broker() as broker:      # inside an event loop
    print(broker.kafka)                        # "127.0.0.1:41283"

with millstream.running() as broker:           # for synchronous code and tests
    print(broker.kafka)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.library import Broker, running

__all__ = ["Broker", "running"]


def __getattr__(name: str) -> Any:
    # Spark workers and the command line import this package often; only who embeds a server pays for one.
    if name in __all__:
        from millstream import library

        return getattr(library, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
