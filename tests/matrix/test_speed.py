"""How fast each protocol reads what each other wrote, and the table of it in the documentation.

`MATRIX_SPEED=renew` measures for longer and writes `docs/matrix-speed.json`, of which `docs/generate.py` makes the
table. Figures are of the server's own processor time, so that what else runs on the machine distorts them little.
"""

import json
import os
from collections.abc import Callable, Iterator
from itertools import product
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
BATCHES: Final = (1, 1000)
"""Records of a batch: of clients that do not batch, and 100 KB."""
RECORDS: Final = {1: 30_000, 1000: 100_000} if RENEWS else {1: 6_000, 1000: 20_000}
TURNS: Final = 3 if RENEWS else 1
FLOORS: Final = {1: 100_000, 1000: 300_000} if COMPILED else {1: 5_000, 1000: 10_000}
"""Records/s of 100 B that one core of the server gives the first reader of any pair, at least, whatever else runs. A
machine that does nothing else gives three times as many."""
WRITTEN_FLOOR: Final = 300_000
"""What the figures in the documentation do not fall below."""
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
    """What the file holds of batches of one size."""
    return {
        "first": {w: {p.reader: rounded(p.first) for p in pairs if p.writer == w} for w in READERS},
        "ten": {w: {p.reader: rounded(p.together) for p in pairs if p.writer == w} for w in READERS},
    }


@pytest.fixture(scope="module")
def measured() -> Iterator[dict[tuple[int, str], list[Pair]]]:
    """What is measured, by size of batch and writer; in the end it is written down if that was asked for."""
    found: dict[tuple[int, str], list[Pair]] = {}
    yield found
    if RENEWS and set(found) == set(product(BATCHES, READERS)):
        batches = {
            str(size): written([pair for writer in READERS for pair in found[size, writer]]) for size in BATCHES
        }
        RESULTS.write_text(json.dumps({"record_bytes": 100, "batches": batches}, indent=1) + "\n")


@pytest.mark.timeout(600 if RENEWS else 120)
@pytest.mark.parametrize("writer", READERS)
@pytest.mark.parametrize("size", BATCHES)
def test_no_pair_is_slow(
    matrix_server: ServerProcess,
    endpoint: Endpoint,
    measured: dict[tuple[int, str], list[Pair]],
    size: int,
    writer: str,
) -> None:
    used = cpu_seconds(matrix_server.process.pid)
    slow: list[Pair] = []
    for attempt in range(ATTEMPTS):
        found = measure(endpoint, used, size, RECORDS[size], TURNS, [writer], name=f"speed-{attempt}-")
        measured[size, writer] = found
        assert {pair.reader for pair in found} == set(READERS)
        slow = [pair for pair in found if pair.first < FLOORS[size]]
        if not slow:
            break
    assert not slow


@pytest.mark.parametrize("size", BATCHES)
def test_the_documentation_has_a_figure_for_every_pair(size: int) -> None:
    told = json.loads(RESULTS.read_text())
    assert told["record_bytes"] == 100
    for figures in told["batches"][str(size)].values():
        assert set(figures) == set(READERS)
        for by_reader in figures.values():
            assert set(by_reader) == set(READERS)
            assert all(figure >= WRITTEN_FLOOR for figure in by_reader.values())
