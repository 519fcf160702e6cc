"""Compacted topics as the Java client meets them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.java_scenarios import Play
from tests.support.server_process import serving

pytestmark = pytest.mark.timeout(200)


def test_compacted_topics(tmp_path: Path, play: Play, unique: Callable[[str], str]) -> None:
    settings = ["log.cleaner.backoff.ms=50", "flush.interval.ms=50"]
    with serving(str(tmp_path / "data"), settings=settings) as server:
        play(server, "compacted", unique("java"))
        assert "cleaned directory" in server.log()
