"""What all conformance tests share: one real server, and names that no other test uses."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.support.server_process import ServerProcess, serving

_numbers = itertools.count()
IMPATIENT_GROUPS = [
    "group.consumer.min.heartbeat.interval.ms=100",
    "group.consumer.heartbeat.interval.ms=200",
    "group.consumer.min.session.timeout.ms=1000",
    "group.consumer.session.timeout.ms=10000",
]
"""Settings of a server whose consumer groups (KIP-848) hear of their members often, and do not wait for them long: as
long as a client on a busy machine may need to come back before others are given what it had."""


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server process, shared by the whole run. Nothing in it may go wrong unseen."""
    settings = ["listener.recognition.timeout.ms=1000"]
    with serving(str(tmp_path_factory.mktemp("server") / "data"), settings=settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture(scope="session")
def impatient_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that takes short session timeouts and looks for what to delete all the time."""
    settings = [
        *IMPATIENT_GROUPS,
        "group.min.session.timeout.ms=500",
        "log.retention.check.interval.ms=200",
        "flush.interval.ms=50",
    ]
    with serving(str(tmp_path_factory.mktemp("impatient") / "data"), settings=settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Makes names for topics and groups."""
    return lambda stem: f"{stem}-{next(_numbers)}"
