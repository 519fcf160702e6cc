"""The Rust client of Iggy of September 2023, which speaks dialect A, and a server for its scenarios."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cargo_program import cargo_program
from tests.support.server_process import ServerProcess, serving


@pytest.fixture(scope="session")
def program() -> Path:
    """The program of the scenarios."""
    return cargo_program(Path(__file__).parent)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with one port for all protocols. Nothing in it may go wrong unseen."""
    with serving(str(tmp_path_factory.mktemp("iggy-rust") / "data"), "any=127.0.0.1:0") as one:
        yield one
        assert "internal error" not in one.log()
        assert "Traceback" not in one.log()
