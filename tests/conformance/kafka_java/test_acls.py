"""ACLs and the Java client: its admin client makes them, and its other clients are held to them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.acls import guarded_server
from tests.support.java_scenarios import Play

pytestmark = pytest.mark.timeout(200)


def test_acls(tmp_path: Path, play: Play, unique: Callable[[str], str]) -> None:
    with guarded_server(tmp_path) as server:
        play(server, "acls", unique("acls"))
