"""A server that wants to know who its clients are and lets them do what ACLs say; root may do everything."""

from collections.abc import Iterator

import pytest

from tests.support.acls import guarded_server
from tests.support.server_process import ServerProcess


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the users root, ada and bob."""
    with guarded_server(tmp_path_factory.mktemp("acls")) as server:
        yield server
