"""A server with every listener, and a certificate; what may go wrong on it is seen."""

from collections.abc import Iterator

import pytest

from tests.support.certificates import Certificates, make_certificates
from tests.support.server_process import ServerProcess, serving

LISTENERS = ("kafka", "kafka07", "pulsar", "iggy", "http", "any")


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Certificates for the run."""
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def one_port(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[ServerProcess]:
    """A server process with every listener; each takes every protocol, with TLS and without."""
    listen = " ".join(f"{name}=127.0.0.1:0" for name in LISTENERS)
    with serving(str(tmp_path_factory.mktemp("one-port") / "data"), listen, certificates.settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


@pytest.fixture(scope="session")
def demanding(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[ServerProcess]:
    """A server that asks for TLS, and for the certificates of clients."""
    settings = [*certificates.settings, f"tls.client.ca.file={certificates.authority}", "tls.required=true"]
    with serving(str(tmp_path_factory.mktemp("demanding") / "data"), "any=127.0.0.1:0", settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()
