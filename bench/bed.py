"""Where one system runs during a line: started when first needed, thrown away at the end."""

import itertools
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.drivers.driver import ClientDriver, Driver
from bench.drivers.optional import installed
from bench.drivers.pulsar_client import PulsarClient
from bench.drivers.pulsar_raw import PulsarRaw
from bench.systems import Server, System

__all__ = ["Bed", "NotApplicable"]


class NotApplicable(Exception):
    """The line cannot be measured on this system; the message says why."""


class Bed:
    """Holds at most one running server of a system.

    Args:
        system: which.
        root: existing directory under which its data goes.
    """

    def __init__(self, system: System, root: Path) -> None:
        self.system = system
        self._root = root
        self._directory: Path | None = None
        self._server: Server | None = None
        self._topic_numbers = itertools.count()
        self._raw: Driver | None = None
        self._client: ClientDriver | None = None
        self._pulsar_client: PulsarClient | None = None

    def server(self) -> Server:
        """Return the running server, started if there is none."""
        return self._server or self.fresh()

    def fresh(self) -> Server:
        """Start the server anew with nothing stored, and return it."""
        self.close()
        self._directory = Path(tempfile.mkdtemp(prefix=f"{self.system.name}-", dir=self._root))
        self._server = Server(self.system, self._directory)
        return self._server

    def raw(self) -> Driver:
        """Return the driver of pre-encoded requests for the running server."""
        if self._raw is None:
            self._raw = self.system.raw(self.server().endpoint)
        return self._raw

    def client(self) -> ClientDriver:
        """Return the driver over a client library for the running server.

        Raises:
            NotApplicable: the library is not installed.
        """
        if self._client is None:
            self._client = self.system.client(self.server().endpoint)
        if self._client is None:
            raise NotApplicable("no client library")
        return self._client

    def pulsar_raw(self) -> PulsarRaw:
        """Return the driver of pre-encoded commands of Pulsar's."""
        return PulsarRaw(self.server().pulsar_endpoint)

    def pulsar_client(self) -> PulsarClient:
        """Return the driver over pulsar-client.

        Raises:
            NotApplicable: it is not installed.
        """
        if self._pulsar_client is None:
            library = installed("pulsar")
            if library is None:
                raise NotApplicable("pip install pulsar-client")
            self._pulsar_client = PulsarClient(library, self.server().pulsar_endpoint)
        return self._pulsar_client

    def topic(self) -> str:
        """Return a name that was not returned before."""
        return f"bench{next(self._topic_numbers)}"

    def close(self) -> None:
        """Stop the server and delete what it stored."""
        if self._pulsar_client is not None:
            self._pulsar_client.close()
        if self._server is not None:
            self._server.stop()
        if self._directory is not None:
            shutil.rmtree(self._directory)
        self._server = self._directory = self._raw = self._client = self._pulsar_client = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
