"""What is common to all releases of the package, and where they differ."""

import asyncio
import inspect
import os
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

package: Any = import_module("apache_iggy" if find_spec("apache_iggy") else "iggy_py")
SendMessage = package.SendMessage
Strategy = package.PollingStrategy


def client() -> Any:
    """A client that is not connected yet, to the server named on the command line."""
    return package.IggyClient(sys.argv[1])


async def connected() -> Any:
    """A client that has logged in."""
    one = client()
    await one.connect()
    await one.login_user("iggy", "iggy")
    return one


def single(number: int) -> dict[str, Any]:
    """What names a consumer, in releases that have a name for it."""
    return {"consumer": package.Consumer.Single(number)} if hasattr(package, "Consumer") else {}


async def refused(action: Awaitable[Any]) -> str:
    """What an action is refused with."""
    try:
        await action
    except RuntimeError as error:
        return str(error)
    raise AssertionError("it was not refused")


def run(main: Callable[[], Awaitable[None]]) -> None:
    """Run a script's main function, and end the process: threads of the packages abort it at times when it ends."""
    assert inspect.iscoroutinefunction(main)
    asyncio.run(main())
    sys.stdout.flush()
    os._exit(0)
