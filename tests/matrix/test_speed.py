"""How fast each protocol reads what each other wrote, and the table of it in the documentation.

`MATRIX_SPEED=renew` measures for longer and writes `docs/matrix-speed.json`, of which `docs/generate.py` makes the
table. Figures are of the server's own processor time, so that what else runs on the machine distorts them little.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from bench.drivers.driver import Endpoint
from bench.drivers.readers import READERS
from bench.translation import Pair, measure
from millstream.wire.kafka.record_rows import COMPILED
from tests.support.server_process import ServerProcess

RESULTS: Final = Path(__file__).parents[2] / "docs" / "matrix-speed.json"
RENEWS: Final = os.environ.get("MATRIX_SPEED") == "renew"
BATCH_RECORDS: Final = 1000
RECORDS: Final = 100_000 if RENEWS else 20_000
TURNS: Final = 3 if RENEWS else 1
FLOOR: Final = 300_000 if COMPILED else 10_000
"""Records/s of 100 B that one core of the server gives the first reader of any pair, at least."""
ATTEMPTS: Final = 3


def cpu_seconds(process_id: int) -> Callable[[], float]:
    """Tells the processor time of a process."""
    threads = Path(f"/proc/{process_id}/task")
    return lambda: sum(int(file.read_text().split()[0]) for file in threads.glob("*/schedstat")) / 1e9


@pytest.fixture(scope="module")
def endpoint(matrix_server: ServerProcess) -> Endpoint:
    """The server's one port."""
    host, _, port = matrix_server.addresses["any"].rpartition(":")
    return Endpoint(host, int(port), 1)


def rounded(rate: float) -> int:
    """Two digits of a figure: more would say more than is known."""
    unit = 10 ** (len(str(int(rate))) - 2)
    return int(round(rate / unit) * unit)


def written(pairs: list[Pair]) -> dict[str, Any]:
    """What the file holds."""
    return {
        "record_bytes": 100,
        "batch_records": BATCH_RECORDS,
        "first": {w: {p.reader: rounded(p.first) for p in pairs if p.writer == w} for w in READERS},
        "ten": {w: {p.reader: rounded(p.together) for p in pairs if p.writer == w} for w in READERS},
    }


@pytest.fixture(scope="module")
def measured() -> Iterator[dict[str, list[Pair]]]:
    """What is measured, by writer; in the end it is written down if that was asked for."""
    found: dict[str, list[Pair]] = {}
    yield found
    if RENEWS and set(found) == set(READERS):
        pairs = [pair for by_reader in found.values() for pair in by_reader]
        RESULTS.write_text(json.dumps(written(pairs), indent=1) + "\n")


@pytest.mark.timeout(600 if RENEWS else 120)
@pytest.mark.parametrize("writer", READERS)
def test_no_pair_is_slow(
    matrix_server: ServerProcess, endpoint: Endpoint, measured: dict[str, list[Pair]], writer: str
) -> None:
    used = cpu_seconds(matrix_server.process.pid)
    slow: list[Pair] = []
    for attempt in range(ATTEMPTS):
        found = measure(endpoint, used, BATCH_RECORDS, RECORDS, TURNS, [writer], name=f"speed-{attempt}-")
        measured[writer] = found
        assert {pair.reader for pair in found} == set(READERS)
        slow = [pair for pair in found if pair.first < FLOOR]
        if not slow:
            break
    assert not slow


def test_the_documentation_has_a_figure_for_every_pair() -> None:
    told = json.loads(RESULTS.read_text())
    assert (told["record_bytes"], told["batch_records"]) == (100, BATCH_RECORDS)
    for figures in (told["first"], told["ten"]):
        assert set(figures) == set(READERS)
        for by_reader in figures.values():
            assert set(by_reader) == set(READERS)
            assert all(figure >= 300_000 for figure in by_reader.values())
